//! Both openings, in both roles: identity and capabilities as each revision has them.

use super::LogLevel;
use super::fields::{Shape, spell};
use super::keys::{CLIENT_CAPABILITIES, CLIENT_INFO, LOG_LEVEL, PROTOCOL_VERSION};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::revision::Revision;

/// H-23: `serverInfo` or `clientInfo` as `revision` has it.
pub fn implementation(revision: Revision, info: &RawJson) -> RawJson {
    spell(Shape::Implementation, revision, info).unwrap_or_else(|| info.clone())
}

/// H-24: a server's capabilities as `revision` has them.
pub fn server_capabilities(revision: Revision, capabilities: &RawJson) -> RawJson {
    spell(Shape::ServerCapabilities, revision, capabilities).unwrap_or_else(|| capabilities.clone())
}

/// What a server of `revision` declared, in newest shape. 2024-11-05 has `completion/complete` and no
/// capability for it: there it goes without saying (R-10).
pub fn lift_server_capabilities(revision: Revision, capabilities: &RawJson) -> RawJson {
    let Ok(mut object) = Object::read(capabilities) else { return RawJson::empty_object() };
    if revision < Revision::V2025_03_26 {
        object.set_default("completions", RawJson::empty_object());
    }
    object.write()
}

/// A client's capabilities as `revision` has them. Roots are declared `{}` in newest shape; legacy
/// revisions are told that we send no change notifications (U-34).
pub fn client_capabilities(revision: Revision, capabilities: &RawJson) -> RawJson {
    let spelled = spell(Shape::ClientCapabilities, revision, capabilities)
        .unwrap_or_else(|| capabilities.clone());
    if revision.is_modern() {
        return spelled;
    }
    let Ok(mut object) = Object::read(&spelled) else { return spelled };
    let Some(Ok(mut roots)) = object.get("roots").map(Object::read) else { return spelled };
    roots.set_default("listChanged", RawJson::write(&false));
    object.set("roots", roots.write());
    object.write()
}

/// The answer to `initialize` at `revision` (H-07, H-22 to H-24).
pub fn initialize_result(
    revision: Revision,
    info: &RawJson,
    capabilities: &RawJson,
    instructions: &str,
) -> RawJson {
    let mut result = Object::new();
    result.set("protocolVersion", RawJson::write(revision.as_str()));
    result.set("capabilities", server_capabilities(revision, capabilities));
    result.set("serverInfo", implementation(revision, info));
    if !instructions.is_empty() {
        result.set("instructions", RawJson::write(instructions));
    }
    result.write()
}

/// The answer to `server/discover`, without what every modern result gets at the end (H-19).
pub fn discover_result(capabilities: &RawJson, instructions: &str) -> RawJson {
    let mut result = Object::new();
    result.set("supportedVersions", RawJson::write(&super::supported()));
    result.set("capabilities", server_capabilities(Revision::NEWEST, capabilities));
    if !instructions.is_empty() {
        result.set("instructions", RawJson::write(instructions));
    }
    result.write()
}

/// The parameters of our own `initialize` that offers `revision`.
pub fn initialize_params(revision: Revision, info: &RawJson, capabilities: &RawJson) -> RawJson {
    let mut params = Object::new();
    params.set("protocolVersion", RawJson::write(revision.as_str()));
    params.set("capabilities", client_capabilities(revision, capabilities));
    params.set("clientInfo", implementation(revision, info));
    params.write()
}

/// The envelope of a request to an upstream of `revision`, for [`super::downgrade_params`]; empty
/// for a legacy one. `capabilities` are those declared for this request (U-35).
pub fn request_meta(
    revision: Revision,
    info: &RawJson,
    capabilities: &RawJson,
    log_level: Option<LogLevel>,
) -> Vec<(&'static str, RawJson)> {
    if !revision.is_modern() {
        return Vec::new();
    }
    let mut meta = vec![
        (PROTOCOL_VERSION, RawJson::write(revision.as_str())),
        (CLIENT_INFO, implementation(revision, info)),
        (CLIENT_CAPABILITIES, client_capabilities(revision, capabilities)),
    ];
    if let Some(level) = log_level {
        meta.push((LOG_LEVEL, RawJson::write(level.as_str())));
    }
    meta
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    const INFO: &str = r#"{"name":"mcpx","title":"mcpx","version":"1","description":"d","icons":[],"websiteUrl":"https://x.test"}"#;
    const CAPABILITIES: &str = r#"{"tools":{"listChanged":true},"logging":{},"completions":{},"tasks":{"list":{}},"extensions":{"a/b":{}}}"#;

    fn initialized(revision: Revision) -> RawJson {
        initialize_result(revision, &raw(INFO), &raw(CAPABILITIES), "short")
    }

    #[test]
    fn h23_identity_by_revision() {
        let info = |revision| initialized(revision).member("serverInfo").unwrap();
        assert_eq!(info(Revision::V2024_11_05).as_str(), r#"{"name":"mcpx","version":"1"}"#);
        assert_eq!(
            info(Revision::V2025_06_18).as_str(),
            r#"{"name":"mcpx","title":"mcpx","version":"1"}"#
        );
        assert_eq!(info(Revision::V2025_11_25).as_str(), INFO);
    }

    #[test]
    fn h24_capabilities_by_revision() {
        let keys = |revision| {
            let capabilities = initialized(revision).member("capabilities").unwrap();
            let object = Object::read(&capabilities).unwrap();
            object.iter().map(|(key, _)| key.to_owned()).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(keys(Revision::V2024_11_05), "tools logging");
        assert_eq!(keys(Revision::V2025_03_26), "tools logging completions");
        assert_eq!(keys(Revision::V2025_06_18), "tools logging completions");
        assert_eq!(keys(Revision::V2025_11_25), "tools logging completions tasks");
        let discovered = discover_result(&raw(CAPABILITIES), "").member("capabilities").unwrap();
        assert!(discovered.member("extensions").is_some() && discovered.member("tasks").is_none());
    }

    #[test]
    fn h19_discover_has_its_two_names_and_no_others() {
        let result = discover_result(&raw(CAPABILITIES), "short");
        let object = Object::read(&result).unwrap();
        let keys: Vec<&str> = object.iter().map(|(key, _)| key).collect();
        assert_eq!(keys, ["supportedVersions", "capabilities", "instructions"]);
        assert!(object.get("supportedVersions").unwrap().as_str().starts_with("[\"2026-07-28\""));
    }

    #[test]
    fn u34_what_we_declare_upstream() {
        let declared =
            raw(r#"{"roots":{},"elicitation":{"form":{},"url":{}},"sampling":{"tools":{}}}"#);
        let spelled = |revision| client_capabilities(revision, &declared).as_str().to_owned();
        assert_eq!(
            spelled(Revision::V2024_11_05),
            r#"{"roots":{"listChanged":false},"sampling":{}}"#
        );
        assert_eq!(
            spelled(Revision::V2025_06_18),
            r#"{"roots":{"listChanged":false},"elicitation":{},"sampling":{}}"#
        );
        assert_eq!(spelled(Revision::NEWEST), declared.as_str());
        let keys: Vec<&str> = request_meta(Revision::NEWEST, &raw(INFO), &declared, None)
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, [PROTOCOL_VERSION, CLIENT_INFO, CLIENT_CAPABILITIES]);
        assert!(request_meta(Revision::V2025_11_25, &raw(INFO), &declared, None).is_empty());
    }
}
