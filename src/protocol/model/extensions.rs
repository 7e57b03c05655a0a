//! Extensions that mcpx itself knows nothing of, of a server that is exposed alone: what it declares is
//! declared to its hosts, and what they declare is declared to it (2026-07-28, `extensions` of both
//! capabilities; `experimental` in all revisions). Their settings stay as they came.

use super::tasks;
use crate::protocol::jsonrpc::skim::has_member;
use crate::protocol::jsonrpc::{Object, RawJson};

/// The members of capabilities that hold extensions by their names.
const HOLDERS: [&str; 2] = ["extensions", "experimental"];

/// Our capabilities with the extensions of `theirs` beside ours. Where both have one, ours stands:
/// it is mcpx that keeps what it says there.
pub fn merged(ours: &RawJson, theirs: &RawJson) -> RawJson {
    let mut all = Object::read_or_empty(Some(ours));
    for holder in HOLDERS {
        let Some(Ok(theirs)) = theirs.member(holder).as_ref().map(Object::read) else { continue };
        let mut merged = Object::read_or_empty(all.get(holder));
        for (name, settings) in theirs.iter().filter(|(name, _)| *name != tasks::EXTENSION) {
            merged.set_default(name.to_owned(), settings.clone());
        }
        if !merged.is_empty() {
            all.set(holder, merged.write());
        }
    }
    all.write()
}

/// Whether a host that declared `capabilities` declared any.
pub fn any(capabilities: &RawJson) -> bool {
    has_member(capabilities.as_bytes(), |name, _| {
        HOLDERS.iter().any(|holder| holder.as_bytes() == name)
    })
}

/// Whether this member of capabilities holds extensions.
pub fn holds(member: &str) -> bool {
    HOLDERS.contains(&member)
}

/// A host's declaration for a server that is not exposed alone.
pub fn without(capabilities: &RawJson) -> RawJson {
    let mut all = Object::read_or_empty(Some(capabilities));
    all.retain(|key, _| !HOLDERS.contains(&key));
    all.write()
}

/// The same for the one that is. That of tasks is mcpx's own to declare, which drives them.
pub fn for_server(capabilities: &RawJson) -> RawJson {
    let mut all = Object::read_or_empty(Some(capabilities));
    let mut named = Object::read_or_empty(all.get("extensions"));
    if named.remove(tasks::EXTENSION).is_none() {
        return capabilities.clone();
    }
    if named.is_empty() {
        all.remove("extensions");
    } else {
        all.set("extensions", named.write());
    }
    all.write()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn extensions_of_a_server_stand_beside_ours() {
        let ours = raw(r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"o/x":1}}"#);
        let theirs = raw(
            r#"{"tools":{"x":1},"vendor":{},"experimental":{"e":{}},"extensions":{"io.modelcontextprotocol/tasks":{"t":1},"o/x":2,"v/s":{"n":1e2}}}"#,
        );
        assert_eq!(
            merged(&ours, &theirs).as_str(),
            r#"{"tools":{},"extensions":{"io.modelcontextprotocol/tasks":{},"o/x":1,"v/s":{"n":1e2}},"experimental":{"e":{}}}"#
        );
        assert_eq!(merged(&ours, &raw(r#"{"extensions":7}"#)).as_str(), ours.as_str());
        let plain = raw(r#"{"tools":{}}"#);
        let tasks = raw(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}}}"#);
        assert_eq!(merged(&plain, &tasks).as_str(), plain.as_str());
    }

    #[test]
    fn what_a_host_declares_for_a_server() {
        let came = raw(r#"{"roots":{},"extensions":{"io.modelcontextprotocol/tasks":{},"v/s":1}}"#);
        assert!(any(&came) && !any(&raw(r#"{"roots":{"extensions":{}}}"#)));
        assert_eq!(without(&came).as_str(), r#"{"roots":{}}"#);
        assert_eq!(for_server(&came).as_str(), r#"{"roots":{},"extensions":{"v/s":1}}"#);
        let only = raw(r#"{"extensions":{"io.modelcontextprotocol/tasks":{}},"roots":{}}"#);
        assert_eq!(for_server(&only).as_str(), r#"{"roots":{}}"#);
        let other = raw(r#"{"extensions":{"v/s":1e2}}"#);
        assert_eq!(for_server(&other).as_str(), other.as_str());
    }
}
