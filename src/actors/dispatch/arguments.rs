//! Arguments as models write them (F43): understood where that is unambiguous, otherwise refused
//! with words a model can act on.

use bytes::Bytes;

use crate::protocol::jsonrpc::{Object, RawJson};

/// What `mcpx_call` was asked for.
#[derive(Debug)]
pub(crate) struct Wanted {
    /// The namespace as given.
    pub(crate) namespace: String,
    /// The tool as given.
    pub(crate) tool: String,
    /// The arguments member as given.
    pub(crate) arguments: Option<RawJson>,
}

/// Reads the arguments of `mcpx_call` itself; an error is text for the model.
pub(crate) fn wanted(arguments: Option<&RawJson>) -> Result<Wanted, String> {
    let given = object_of(arguments)?;
    let text = |key: &str| {
        given.get_str(key).filter(|value| !value.is_empty()).ok_or_else(|| {
            format!(
                "mcpx_call needs `{key}` as a string. It takes namespace, tool and arguments; \
                 mcpx_namespaces lists the namespaces and their tools."
            )
        })
    };
    Ok(Wanted {
        namespace: text("namespace")?,
        tool: text("tool")?,
        arguments: given.get("arguments").cloned(),
    })
}

/// An object from what a model sent in its place: an object, its JSON as a string, `""`, `null` or
/// nothing at all.
pub(crate) fn object_of(given: Option<&RawJson>) -> Result<Object, String> {
    let Some(raw) = given.filter(|raw| !raw.is_null()) else { return Ok(Object::new()) };
    if let Ok(object) = Object::read(raw) {
        return Ok(object);
    }
    let refused = || "arguments must be a JSON object".to_owned();
    let text: String = raw.read().map_err(|_| refused())?;
    if text.trim().is_empty() {
        return Ok(Object::new());
    }
    let inner = RawJson::parse(Bytes::from(text)).map_err(|_| refused())?;
    if inner.is_null() {
        return Ok(Object::new());
    }
    Object::read(&inner).map_err(|_| refused())
}

/// Refuses what a core tool does not take, by name: a model that misspelled an argument would
/// otherwise take the answer to another question for the one to its own.
pub(crate) fn only_known(tool: &str, given: &Object, known: &[&str]) -> Result<(), String> {
    let unknown: Vec<&str> =
        given.iter().map(|(key, _)| key).filter(|key| !known.contains(key)).collect();
    if unknown.is_empty() {
        return Ok(());
    }
    Err(format!(
        "{tool} has no argument `{}`. It takes: {}.",
        unknown.join("`, `"),
        known.join(", ")
    ))
}

/// The arguments for an upstream tool: as they came where they are an object already, so that their
/// text stays; unwrapped where they repeat the call's own envelope and the tool has no such
/// properties.
pub(crate) fn for_tool(given: Option<&RawJson>, tool: &RawJson) -> Result<RawJson, String> {
    let object = object_of(given)?;
    if let Some(inner) = wrapped(&object, tool) {
        return object_of(Some(&inner)).map(|object| object.write());
    }
    match given {
        Some(raw) if raw.is_object() => Ok(raw.clone()),
        _ => Ok(object.write()),
    }
}

/// The inner arguments of `{"name": …, "arguments": {…}}` and its like.
fn wrapped(object: &Object, tool: &RawJson) -> Option<RawJson> {
    const ENVELOPE: [&str; 5] = ["name", "tool", "namespace", "arguments", "params"];
    let inner = object.get("arguments").or_else(|| object.get("params"))?;
    let only_envelope = object.iter().all(|(key, _)| ENVELOPE.contains(&key));
    let names_it = object.contains("name") || object.contains("tool");
    let own = properties(tool);
    let ambiguous = object.iter().any(|(key, _)| own.contains(key));
    (only_envelope && names_it && !ambiguous && object_of(Some(inner)).is_ok())
        .then(|| inner.clone())
}

fn properties(tool: &RawJson) -> Object {
    let schema = tool.member("inputSchema");
    let properties = schema.and_then(|schema| schema.member("properties"));
    Object::read_or_empty(properties.as_ref())
}

/// Whether the arguments do not fit the tool's schema at first sight: a required one is missing or
/// one is given that the schema does not name. Only decides whether the schema is shown beside an
/// upstream's error; the upstream is who judges.
pub(crate) fn look_wrong(arguments: &RawJson, tool: &RawJson) -> bool {
    let given = Object::read_or_empty(Some(arguments));
    let schema = Object::read_or_empty(tool.member("inputSchema").as_ref());
    let required: Vec<String> =
        schema.get("required").and_then(|raw| raw.read().ok()).unwrap_or_default();
    let own = properties(tool);
    required.iter().any(|name| !given.contains(name))
        || given.iter().any(|(name, _)| !own.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    const TOOL: &str = r#"{"name":"t","inputSchema":{"type":"object","properties":{"q":{}}}}"#;

    #[test]
    fn f43_arguments_in_every_dress() {
        let tool = raw(TOOL);
        for (given, sent) in [
            (r#"{"q": 1.0}"#, r#"{"q": 1.0}"#),
            (r#""{\"q\":1}""#, r#"{"q":1}"#),
            (r#""""#, "{}"),
            ("null", "{}"),
            (r#"{"name":"t","arguments":{"q":2}}"#, r#"{"q":2}"#),
            (r#"{"name":"t","q":3}"#, r#"{"name":"t","q":3}"#),
        ] {
            assert_eq!(for_tool(Some(&raw(given)), &tool).unwrap().as_str(), sent, "{given}");
        }
        assert_eq!(for_tool(None, &tool).unwrap().as_str(), "{}");
        assert!(for_tool(Some(&raw("[1]")), &tool).is_err());
        assert!(for_tool(Some(&raw("\"not json\"")), &tool).is_err());
    }

    #[test]
    fn f43_an_envelope_is_kept_where_the_tool_has_such_properties() {
        let text = r#"{"name":"t","inputSchema":{"properties":{"name":{},"arguments":{}}}}"#;
        let given = raw(r#"{"name":"t","arguments":{"q":2}}"#);
        assert_eq!(for_tool(Some(&given), &raw(text)).unwrap(), given);
    }

    #[test]
    fn f43_unknown_arguments_are_refused_by_name() {
        let given = Object::read(&raw(r#"{"page":1,"bogus":2}"#)).unwrap();
        assert!(only_known("t", &given, &["page", "bogus"]).is_ok());
        let refused = only_known("t", &given, &["page"]).unwrap_err();
        assert_eq!(refused, "t has no argument `bogus`. It takes: page.");
    }

    #[test]
    fn the_schema_is_shown_for_missing_and_foreign_arguments() {
        let tool = raw(r#"{"inputSchema":{"properties":{"q":{}},"required":["q"]}}"#);
        assert!(!look_wrong(&raw(r#"{"q":1}"#), &tool));
        assert!(look_wrong(&raw("{}"), &tool));
        assert!(look_wrong(&raw(r#"{"q":1,"z":1}"#), &tool));
    }
}
