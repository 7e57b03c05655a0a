//! How servers and tools are called in a script: `tools.<namespace>.<tool>(arguments)`.
//!
//! Every name works as it is, in brackets (`tools.github["get-issue"]`). Beside it each has a name that
//! can be written with a dot, where its own cannot (C-13).

use std::collections::BTreeMap;

/// The names to write after a dot for these names, in their order: the name itself where it is an identifier, else one made of
/// it that none of the others has. Deterministic for a set of names, whatever their order.
pub fn members<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<(String, &'a str)> {
    let names: Vec<&str> = names.into_iter().collect();
    let mut taken: BTreeMap<String, &str> = BTreeMap::new();
    for name in names.iter().filter(|name| is_identifier(name)) {
        taken.insert((*name).to_owned(), name);
    }
    let mut others: Vec<&str> = names.iter().copied().filter(|name| !is_identifier(name)).collect();
    others.sort_unstable();
    others.dedup();
    let mut made: BTreeMap<&str, String> = BTreeMap::new();
    // The last number of each name that was taken: a server may have thousands that look alike.
    let mut numbers: BTreeMap<String, usize> = BTreeMap::new();
    for name in others {
        let base = identifier(name);
        let mut member = base.clone();
        while taken.contains_key(&member) {
            let number = numbers.entry(base.clone()).or_insert(1);
            *number += 1;
            member = format!("{base}_{number}");
        }
        taken.insert(member.clone(), name);
        made.insert(name, member);
    }
    let member = |name: &str| made.get(name).cloned().unwrap_or_else(|| name.to_owned());
    names.into_iter().map(|name| (member(name), name)).collect()
}

/// The name that a script means by `member`: one of `names` as it is, or by its name after a dot.
pub fn resolve<'a>(member: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let names: Vec<&str> = names.into_iter().collect();
    let exact = names.iter().copied().find(|name| *name == member);
    let written = || {
        let members = members(names.iter().copied());
        members.into_iter().find(|(written, _)| written == member).map(|(_, name)| name)
    };
    exact.or_else(written)
}

/// Whether it can stand after a dot. Reserved words can; what scripts take for something else cannot.
pub fn is_identifier(name: &str) -> bool {
    let mut chars = name.chars();
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == '$';
    chars.next().is_some_and(first)
        && chars.all(|c| first(c) || c.is_ascii_digit())
        && !SPECIAL.contains(&name)
}

/// Names that mean something on every object: `await` asks for `then`, text asks for `toString`.
const SPECIAL: [&str; 6] = ["then", "toString", "valueOf", "constructor", "__proto__", "toJSON"];

/// The name, with `_` for what an identifier cannot have.
pub(super) fn identifier(name: &str) -> String {
    let clean = |c: char| if c.is_ascii_alphanumeric() || c == '$' { c } else { '_' };
    let made: String = name.chars().map(clean).collect();
    let digit = made.chars().next().is_none_or(|c| c.is_ascii_digit());
    if digit || SPECIAL.contains(&made.as_str()) { format!("_{made}") } else { made }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn made(names: &[&'static str]) -> Vec<String> {
        members(names.iter().copied()).into_iter().map(|(member, _)| member).collect()
    }

    /// C-13: identifiers, collisions, names that are none.
    #[test]
    fn c13_members() {
        assert_eq!(
            made(&["echo", "get-issue", "get_issue", "delete"]),
            ["echo", "get_issue_2", "get_issue", "delete"]
        );
        assert_eq!(made(&["a.b", "a-b"]), ["a_b_2", "a_b"]);
        assert_eq!(made(&["1x", "", "then", "löschen"]), ["_1x", "_", "_then", "l_schen"]);
        assert_eq!(made(&["a-b", "a.b"]), ["a_b", "a_b_2"]);
    }

    #[test]
    fn c13_members_are_found_again() {
        let names = ["get-issue", "get_issue", "a.b", "then"];
        for (member, name) in members(names) {
            assert_eq!(resolve(&member, names), Some(name));
            assert_eq!(resolve(name, names), Some(name));
        }
        assert_eq!(resolve("none", names), None);
    }
}
