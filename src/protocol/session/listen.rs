//! `subscriptions/listen` as data, for both sides: what is asked for, what was agreed, and to which
//! stream a message belongs (2026-07-28 subscriptions page).

use std::collections::BTreeSet;

use crate::protocol::edge::keys::SUBSCRIPTION_ID;
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::session::upstream::ListKind;

/// The `notifications` member of a request or of its acknowledgement.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ListenFilter {
    /// `toolsListChanged`.
    pub tools: bool,
    /// `promptsListChanged`.
    pub prompts: bool,
    /// `resourcesListChanged`.
    pub resources: bool,
    /// `resourceSubscriptions`.
    pub uris: BTreeSet<String>,
    /// `taskIds`, of the tasks extension (SEP-2663, "Task Status Notifications").
    pub tasks: BTreeSet<String>,
}

const TOOLS: &str = "toolsListChanged";
const PROMPTS: &str = "promptsListChanged";
const RESOURCES: &str = "resourcesListChanged";
const URIS: &str = "resourceSubscriptions";
const TASKS: &str = "taskIds";

impl ListenFilter {
    /// Reads the member; what is missing or of another type is not asked for.
    pub fn read(notifications: &RawJson) -> Self {
        let flag = |key| notifications.member(key).is_some_and(|flag| flag.as_bytes() == b"true");
        let texts = |key| {
            let texts = notifications.member(key).and_then(|texts| texts.elements());
            texts.into_iter().flatten().filter_map(|text| text.text()).collect()
        };
        Self {
            tools: flag(TOOLS),
            prompts: flag(PROMPTS),
            resources: flag(RESOURCES),
            uris: texts(URIS),
            tasks: texts(TASKS),
        }
    }

    /// As it goes on the wire; what is not asked for is left out.
    pub fn write(&self) -> RawJson {
        let mut object = Object::new();
        for (key, flag) in
            [(TOOLS, self.tools), (PROMPTS, self.prompts), (RESOURCES, self.resources)]
        {
            if flag {
                object.set(key, RawJson::write(&true));
            }
        }
        for (key, texts) in [(URIS, &self.uris), (TASKS, &self.tasks)] {
            if !texts.is_empty() {
                object.set(key, RawJson::write(texts));
            }
        }
        object.write()
    }

    /// Whether nothing is asked for.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Whether changes of this list are asked for; that of resources stands for their templates, too.
    pub const fn has(&self, kind: ListKind) -> bool {
        match kind {
            ListKind::Tools => self.tools,
            ListKind::Resources | ListKind::Templates => self.resources,
            ListKind::Prompts => self.prompts,
        }
    }

    /// What is in this one and in `asked`.
    #[must_use]
    pub fn within(self, asked: &Self) -> Self {
        let Self { tools, prompts, resources, mut uris, mut tasks } = self;
        uris.retain(|uri| asked.uris.contains(uri));
        tasks.retain(|task| asked.tasks.contains(task));
        Self {
            tools: tools && asked.tools,
            prompts: prompts && asked.prompts,
            resources: resources && asked.resources,
            uris,
            tasks,
        }
    }

    /// What is in this one and not in `agreed`.
    #[must_use]
    pub fn without(&self, agreed: &Self) -> Self {
        Self {
            tools: self.tools && !agreed.tools,
            prompts: self.prompts && !agreed.prompts,
            resources: self.resources && !agreed.resources,
            uris: self.uris.difference(&agreed.uris).cloned().collect(),
            tasks: self.tasks.difference(&agreed.tasks).cloned().collect(),
        }
    }
}

/// The stream that a notification says it belongs to, as its id stands in the text; none where it
/// says nothing.
pub fn subscription_id(params: Option<&RawJson>) -> Option<RawJson> {
    params?.member("_meta")?.member(SUBSCRIPTION_ID)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filter(text: &str) -> ListenFilter {
        ListenFilter::read(&RawJson::parse(text.to_owned().into()).unwrap())
    }

    #[test]
    fn filters_are_read_and_written() {
        let whole =
            r#"{"toolsListChanged":true,"resourceSubscriptions":["a:b","c:d"],"taskIds":["t"]}"#;
        assert_eq!(filter(whole).write().as_str(), whole);
        let odd = filter(r#"{"toolsListChanged":"yes","resourceSubscriptions":[1,"a:b"],"x":1}"#);
        assert_eq!(odd.write().as_str(), r#"{"resourceSubscriptions":["a:b"]}"#);
        assert!(filter("{}").is_empty() && filter("null").is_empty() && filter("[]").is_empty());
    }

    /// U-43: what was declined.
    #[test]
    fn u43_what_is_missing_in_an_acknowledgement() {
        let asked = filter(
            r#"{"toolsListChanged":true,"promptsListChanged":true,"resourceSubscriptions":["a:b","c:d"]}"#,
        );
        let agreed = filter(r#"{"toolsListChanged":true,"resourceSubscriptions":["c:d"]}"#);
        let declined = r#"{"promptsListChanged":true,"resourceSubscriptions":["a:b"]}"#;
        assert_eq!(asked.without(&agreed).write().as_str(), declined);
        assert!(agreed.without(&asked).is_empty());
        assert_eq!(agreed.clone().within(&asked), agreed);
        assert_eq!(asked.clone().within(&agreed), agreed);
        assert!(asked.within(&ListenFilter::default()).is_empty());
    }

    #[test]
    fn the_stream_of_a_message() {
        let of = |text: &str| {
            let params = RawJson::parse(text.to_owned().into()).unwrap();
            subscription_id(Some(&params)).map(|id| id.as_str().to_owned())
        };
        let tagged = r#"{"_meta":{"io.modelcontextprotocol/subscriptionId":7}}"#;
        assert_eq!(of(tagged).as_deref(), Some("7"));
        assert_eq!(of(r#"{"_meta":{}}"#), None);
        assert_eq!(of("{}"), None);
        assert_eq!(subscription_id(None), None);
    }
}
