//! Who a program says it is, newest shape.

use serde::Serialize;

use crate::protocol::jsonrpc::RawJson;

/// Our own identity; the edge takes out what a revision lacks (H-23).
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Implementation {
    /// For programs.
    pub name: String,
    /// For people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// Of the program.
    pub version: String,
    /// What it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// Where to read more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website_url: Option<String>,
}

impl Implementation {
    /// As it goes on the wire.
    pub fn write(&self) -> RawJson {
        RawJson::write(self)
    }
}

/// `name version` of a self-reported identity; a label for logs and status pages, nothing more
/// (H-16).
pub fn label(info: Option<&RawJson>) -> String {
    let text = |key| info.and_then(|info| info.member_str(key)).filter(|text| !text.is_empty());
    match (text("name"), text("version")) {
        (Some(name), Some(version)) => format!("{name} {version}"),
        (Some(name), None) => name,
        (None, _) => "unknown".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_and_names_on_the_wire() {
        let own = Implementation {
            name: "mcpx".to_owned(),
            version: "1".to_owned(),
            website_url: Some("https://x.test".to_owned()),
            ..Implementation::default()
        };
        let raw = own.write();
        assert_eq!(raw.as_str(), r#"{"name":"mcpx","version":"1","websiteUrl":"https://x.test"}"#);
        assert_eq!(label(Some(&raw)), "mcpx 1");
        assert_eq!(label(None), "unknown");
        assert_eq!(label(Some(&RawJson::write(&serde_json::json!({"name": 7})))), "unknown");
    }
}
