//! A tool as upstreams declare it: what mcpx decides on, and what it must mend before hosts see it.
//!
//! The catalog keeps tools as they came (U-48). These are views, read where they are needed.

use crate::protocol::jsonrpc::{Object, RawJson};

/// The behaviour hints of a tool. Hints, not permissions: whoever wrote the tool wrote them (A-09).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Hints {
    /// `readOnlyHint` as it stands.
    pub read_only: Option<bool>,
    /// `destructiveHint` as it stands.
    pub destructive: Option<bool>,
    /// `idempotentHint` as it stands.
    pub idempotent: Option<bool>,
}

impl Hints {
    /// Reads the hints of a tool; what is no boolean counts as absent.
    pub fn of(tool: &RawJson) -> Self {
        let annotations = Object::read_or_empty(tool.member("annotations").as_ref());
        let hint = |key| match annotations.get(key)?.as_bytes() {
            b"true" => Some(true),
            b"false" => Some(false),
            _ => None,
        };
        Self {
            read_only: hint("readOnlyHint"),
            destructive: hint("destructiveHint"),
            idempotent: hint("idempotentHint"),
        }
    }

    /// Whether a call may be made twice without asking (U-56): absent means no.
    pub fn is_repeatable(self) -> bool {
        self.read_only == Some(true) || self.idempotent == Some(true)
    }

    /// Whether a call may destroy something: absent means yes, unless the tool only reads (E-10).
    pub fn is_destructive(self) -> bool {
        self.read_only != Some(true) && self.destructive != Some(false)
    }
}

/// What people are shown: `title`, else the annotations' title, else the name (H-48).
pub fn display_name(tool: &RawJson) -> Option<String> {
    let shown = |text: &String| !text.is_empty();
    let tool = Object::read(tool).ok()?;
    tool.get_str("title")
        .filter(shown)
        .or_else(|| tool.get("annotations")?.member_str("title").filter(shown))
        .or_else(|| tool.get_str("name"))
}

/// `tool` under `name`, as hosts can take it, or why none can (F41). Some hosts refuse a whole list
/// for one tool whose schema is not an object's, or for one member that is null; everything that is
/// right stays as it came.
pub fn for_hosts(tool: &RawJson, name: &str) -> Result<RawJson, String> {
    let Ok(mut tool) = Object::read(tool) else {
        return Err("its definition is not an object".to_owned());
    };
    tool.set("name", RawJson::write(name));
    for key in
        ["title", "description", "annotations", "outputSchema", "icons", "execution", "_meta"]
    {
        if tool.get(key).is_some_and(RawJson::is_null) {
            tool.remove(key);
        }
    }
    if let Some(schema) = mended_schema(tool.get("inputSchema"))? {
        tool.set("inputSchema", schema);
    }
    Ok(tool.write())
}

/// The input schema where it has to be another; `None` where it is right.
fn mended_schema(schema: Option<&RawJson>) -> Result<Option<RawJson>, String> {
    let empty = || RawJson::write(&serde_json::json!({ "type": "object" }));
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else { return Ok(Some(empty())) };
    let Ok(mut object) = Object::read(schema) else {
        // `true` admits everything; what else is no object is no schema.
        return match schema.as_bytes() {
            b"true" => Ok(Some(empty())),
            _ => Err("its `inputSchema` is not a JSON Schema".to_owned()),
        };
    };
    match object.get("type").map(RawJson::text) {
        Some(Some(kind)) if kind == "object" => Ok(None),
        None => {
            object.set("type", RawJson::write("object"));
            Ok(Some(object.write()))
        }
        Some(Some(kind)) => Err(format!(
            "its `inputSchema` has the type {kind:?}, but arguments are always an object"
        )),
        Some(None) => {
            let admits = object.get("type").and_then(RawJson::elements).is_some_and(|kinds| {
                kinds.iter().any(|kind| kind.text().as_deref() == Some("object"))
            });
            if !admits {
                return Err("its `inputSchema` does not admit an object".to_owned());
            }
            object.set("type", RawJson::write("object"));
            Ok(Some(object.write()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn shown(text: &str) -> Result<String, String> {
        for_hosts(&raw(text), "n").map(|tool| tool.as_str().to_owned())
    }

    #[test]
    fn f41_odd_schemas() {
        let right = r#"{"name":"n","inputSchema":{"$ref":"https://evil.test/s.json","type":"object","$defs":{"X":{}}}}"#;
        assert_eq!(shown(right).unwrap(), right);
        for missing in
            ["", r#","inputSchema":null"#, r#","inputSchema":true"#, r#","inputSchema":{}"#]
        {
            assert_eq!(
                shown(&format!(r#"{{"name":"t"{missing}}}"#)).unwrap(),
                r#"{"name":"n","inputSchema":{"type":"object"}}"#
            );
        }
        let untyped = r#"{"name":"t","inputSchema":{"properties":{"a":{"default":1e2}}}}"#;
        let typed =
            r#"{"name":"n","inputSchema":{"properties":{"a":{"default":1e2}},"type":"object"}}"#;
        assert_eq!(shown(untyped).unwrap(), typed);
        let either = r#"{"name":"t","inputSchema":{"type":["object","null"]}}"#;
        assert!(shown(either).unwrap().contains(r#""type":"object""#));
        for bad in
            [r#"{"type":"string"}"#, r#"{"type":["null"]}"#, "false", "[]", "\"x\"", "{\"type\":7}"]
        {
            assert!(shown(&format!(r#"{{"name":"t","inputSchema":{bad}}}"#)).is_err(), "{bad}");
        }
    }

    #[test]
    fn f41_null_members_go() {
        let odd = r#"{"name":"t","description":null,"annotations":null,"inputSchema":{"type":"object"},"x":null}"#;
        assert_eq!(shown(odd).unwrap(), r#"{"name":"n","inputSchema":{"type":"object"},"x":null}"#);
    }

    #[test]
    fn h48_display_names() {
        let name = |text: &str| display_name(&raw(text)).unwrap();
        assert_eq!(name(r#"{"name":"n","title":"T","annotations":{"title":"A"}}"#), "T");
        assert_eq!(name(r#"{"name":"n","title":"","annotations":{"title":"A"}}"#), "A");
        assert_eq!(name(r#"{"name":"n","annotations":null}"#), "n");
    }

    #[test]
    fn hints_have_the_defaults_of_the_specification() {
        let hints = |text: &str| Hints::of(&raw(&format!(r#"{{"annotations":{text}}}"#)));
        for absent in ["{}", "null", "7", r#"{"readOnlyHint":"yes"}"#] {
            assert!(hints(absent).is_destructive() && !hints(absent).is_repeatable(), "{absent}");
        }
        let reads = hints(r#"{"readOnlyHint":true}"#);
        assert!(!reads.is_destructive() && reads.is_repeatable());
        assert!(hints(r#"{"idempotentHint":true}"#).is_repeatable());
        assert!(!hints(r#"{"destructiveHint":false}"#).is_destructive());
    }
}
