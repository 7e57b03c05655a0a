//! What hosts are offered: mcpx's own capabilities, and resources, resource templates and prompts as
//! upstreams list them, with what must be mended before hosts see them.

use super::tasks;
use crate::protocol::jsonrpc::{Object, RawJson};

/// What mcpx declares to hosts, newest shape; the edge takes out what a revision lacks (H-24, H-42).
pub fn capabilities() -> RawJson {
    let with = |members: &[(&'static str, RawJson)]| {
        let mut object = Object::new();
        for (name, value) in members {
            object.set(*name, value.clone());
        }
        object.write()
    };
    let (yes, empty) = (RawJson::write(&true), RawJson::empty_object());
    let changing = with(&[("listChanged", yes.clone())]);
    let calls = with(&[("tools", with(&[("call", empty.clone())]))]);
    let core = [("list", empty.clone()), ("cancel", empty.clone()), ("requests", calls)];
    with(&[
        ("tools", changing.clone()),
        ("resources", with(&[("listChanged", yes.clone()), ("subscribe", yes)])),
        ("prompts", changing),
        ("completions", empty.clone()),
        // Tasks in both forms: the edge leaves each revision its own.
        ("tasks", with(&core)),
        ("extensions", with(&[(tasks::EXTENSION, empty.clone())])),
        // What upstreams log.
        ("logging", empty),
    ])
}

/// Members that may be left out, and that some servers write as null; some hosts refuse a whole list
/// for one of them (F41).
const OPTIONAL: [&str; 8] =
    ["title", "description", "mimeType", "annotations", "size", "icons", "arguments", "_meta"];

/// `item` with `shown` as its `key` (`uri`, `uriTemplate` or `name`), as hosts can take it; everything
/// that is right stays as it came. Every revision asks for a `name`: an item without one is called by
/// `own`, its upstream's key for it.
pub fn for_hosts(item: &RawJson, key: &'static str, shown: &str, own: &str) -> Option<RawJson> {
    let mut object = Object::read(item).ok()?;
    object.set(key, RawJson::write(shown));
    if object.get_str("name").is_none() {
        object.set("name", RawJson::write(own));
    }
    object.retain(|name, value| !(value.is_null() && OPTIONAL.contains(&name)));
    Some(object.write())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(bytes::Bytes::copy_from_slice(text.as_bytes())).unwrap()
    }

    #[test]
    fn f41_items_are_mended_and_otherwise_kept() {
        let item = raw(r#"{"x":null,"uri":"a:1","title":null,"size":1e2}"#);
        assert_eq!(
            for_hosts(&item, "uri", "mcpx://n/a:1", "a:1").unwrap().as_str(),
            r#"{"x":null,"uri":"mcpx://n/a:1","size":1e2,"name":"a:1"}"#
        );
        let whole = r#"{"name":"n","uri":"a:1","annotations":{"priority":1.0}}"#;
        assert_eq!(for_hosts(&raw(whole), "uri", "a:1", "a:1").unwrap().as_str(), whole);
        assert_eq!(for_hosts(&raw("7"), "uri", "a:1", "a:1"), None);
    }
}
