//! Log messages of servers: parameters of `notifications/message`, alike in all revisions.

use crate::protocol::edge::LogLevel;
use crate::protocol::jsonrpc::{Object, RawJson};

/// One log message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LogMessage {
    /// Its level.
    pub level: LogLevel,
    /// All of it, as it goes on the wire.
    pub params: RawJson,
}

impl LogMessage {
    /// Reads what a server sent. `None` where the level is none, because nobody could then say
    /// whether it is wanted; what else the schemas ask for is put right.
    pub fn read(params: &RawJson) -> Option<Self> {
        let level = LogLevel::parse(&params.member_str("level")?)?;
        let strange_logger = params.member("logger").is_some_and(|name| name.text().is_none());
        if !strange_logger && params.member("data").is_some() {
            return Some(Self { level, params: params.clone() });
        }
        let mut object = Object::read_or_empty(Some(params));
        object.set_default("data", RawJson::null());
        if strange_logger {
            object.remove("logger");
        }
        Some(Self { level, params: object.write() })
    }

    /// The same with the namespace before the logger's name, so that people know whose it is.
    #[must_use]
    pub fn named(self, namespace: &str) -> Self {
        let mut object = Object::read_or_empty(Some(&self.params));
        let name = match object.get_str("logger").filter(|logger| !logger.is_empty()) {
            Some(logger) => format!("{namespace}/{logger}"),
            None => namespace.to_owned(),
        };
        object.set("logger", RawJson::write(&name));
        Self { level: self.level, params: object.write() }
    }

    /// One line for a server's log: level, logger, and the beginning of the data.
    pub fn line(&self, most: usize) -> String {
        let logger = self.params.member_str("logger");
        let logger = logger.map(|logger| format!(" {logger:.60}")).unwrap_or_default();
        let data = self.params.member("data").unwrap_or_else(RawJson::null);
        let data = data.text().unwrap_or_else(|| data.as_str().to_owned());
        let data: String = data.chars().take(most).collect();
        format!("[{}]{logger}: {data}", self.level.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Option<LogMessage> {
        LogMessage::read(&RawJson::parse(text.to_owned().into()).unwrap())
    }

    #[test]
    fn what_servers_send_is_put_right() {
        let params = |text| read(text).unwrap().params.as_str().to_owned();
        let whole = r#"{"level":"info","logger":"db","data":1e2}"#;
        assert_eq!(params(whole), whole);
        assert_eq!(params(r#"{"level":"info","logger":7}"#), r#"{"level":"info","data":null}"#);
        for none in [r#"{"level":"loud","data":1}"#, r#"{"data":1}"#, "{}", r#"{"level":3}"#] {
            assert_eq!(read(none), None, "{none}");
        }
    }

    #[test]
    fn people_know_whose_it_is() {
        let message = read(r#"{"level":"error","logger":"db","data":{"n":1}}"#).unwrap();
        assert_eq!(message.line(5), "[error] db: {\"n\":");
        let named = message.named("github");
        assert_eq!(
            named.params.as_str(),
            r#"{"level":"error","logger":"github/db","data":{"n":1}}"#
        );
        let bare = read(r#"{"level":"error","data":"x"}"#).unwrap();
        assert_eq!(bare.line(80), "[error]: x");
        assert_eq!(bare.named("g").params.member_str("logger").as_deref(), Some("g"));
    }
}
