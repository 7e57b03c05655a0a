//! Namespaces from configuration keys, and the names under which a host sees upstream tools.
//!
//! A name is a function of the server's prefix, the tool's own name and the other *prefixes*, not of
//! what other tools there are: lists come and go while a host remembers names. Where a name cannot
//! be plain it ends in a digest of what it stands for, so that it is the same in every run; the way
//! back is the map, and the upstream always gets its own name (F40, H-46).

use std::collections::HashSet;

use sha2::{Digest, Sha256};

use crate::protocol::hex::hex;

/// Hexadecimal digits of a tail; more only where that many do not tell two names apart.
const TAIL: usize = 8;

/// The namespace that a configuration key gives: letters, digits, `_` and `-` stay, anything else
/// becomes `_`, and nothing at the ends (H-46). Empty where nothing of the key can be shown to a
/// host. Giving a namespace changes nothing.
pub fn namespace_of_key(key: &str) -> String {
    plain(key.trim_matches(|character: char| !is_plain(character)))
}

/// Two configuration keys that give one namespace (H-47).
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "servers `{first}` and `{second}` both get the namespace `{namespace}`; give one of them a \
     `namespace` of its own"
)]
pub struct Clash {
    /// The key that came first.
    pub first: String,
    /// The other key.
    pub second: String,
    /// What both give.
    pub namespace: String,
}

/// All clashes among `(key, namespace)` pairs, in their order (H-47).
pub fn clashes<'a>(named: impl IntoIterator<Item = (&'a str, &'a str)>) -> Vec<Clash> {
    let mut seen: Vec<(&str, &str)> = Vec::new();
    let mut clashes = Vec::new();
    for (key, namespace) in named {
        match seen.iter().find(|(_, other)| *other == namespace) {
            Some((first, _)) => clashes.push(Clash {
                first: (*first).to_owned(),
                second: key.to_owned(),
                namespace: namespace.to_owned(),
            }),
            None => seen.push((key, namespace)),
        }
    }
    clashes
}

/// A server whose tools are shown.
#[derive(Debug, Clone, Copy)]
pub struct Exposed<'a> {
    /// What its tools' names begin with, before an underscore; `""` for bare names.
    pub prefix: &'a str,
    /// Its tools' own names.
    pub tools: &'a [&'a str],
}

/// Where a shown name leads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExposedName {
    /// What hosts see.
    pub name: String,
    /// Which of the servers.
    pub server: usize,
    /// Which of its tools.
    pub tool: usize,
}

/// The names under which hosts see the tools of `servers`, in the order given: distinct, none of
/// `reserved` (mcpx's own tools), of at most `limit` characters. A tool named twice by one server is
/// given once.
pub fn exposed_names(servers: &[Exposed<'_>], reserved: &[&str], limit: usize) -> Vec<ExposedName> {
    let mut taken: HashSet<String> = reserved.iter().map(|name| (*name).to_owned()).collect();
    let mut pending = Vec::new();
    let mut names = Vec::new();
    for (server, exposed) in servers.iter().enumerate() {
        let mut own = HashSet::new();
        for (tool, name) in exposed.tools.iter().enumerate() {
            if !own.insert(*name) {
                continue;
            }
            let plain = plain_name(servers, exposed.prefix, name, limit)
                .filter(|name| taken.insert(name.clone()));
            match plain {
                Some(name) => names.push(ExposedName { name, server, tool }),
                None => pending.push((server, tool)),
            }
        }
    }
    // Those with a tail come second: whatever they are, no plain name moves for them.
    for (server, tool) in pending {
        let Some(exposed) = servers.get(server) else { continue };
        let Some(own) = exposed.tools.get(tool) else { continue };
        let name = (TAIL..=64)
            .map(|digits| tailed_name(exposed.prefix, own, limit, digits))
            .find(|name| !taken.contains(name));
        if let Some(name) = name {
            taken.insert(name.clone());
            names.push(ExposedName { name, server, tool });
        }
    }
    names.sort_by_key(|name| (name.server, name.tool));
    names
}

/// The name without a tail, where it may have one: nothing had to be replaced or cut, and no other
/// server's longer prefix claims it. (`a` with `b_c` gives way to a server `a_b`, whether or not
/// that has a tool `c` just now.)
fn plain_name(servers: &[Exposed<'_>], prefix: &str, tool: &str, limit: usize) -> Option<String> {
    let name = joined(prefix, tool);
    let bare = prefix.is_empty();
    let fits = !tool.is_empty() && name.chars().count() <= limit;
    let spelled = tool.chars().all(|character| is_plain(character) || (bare && character == '.'));
    let claimed = servers.iter().any(|other| {
        other.prefix.len() > prefix.len()
            && name.strip_prefix(other.prefix).is_some_and(|rest| rest.starts_with('_'))
    });
    (fits && spelled && !claimed).then_some(name)
}

/// Whether a tool of a server with this prefix could be shown under `name`, whatever tools it has.
pub fn may_be_of(name: &str, prefix: &str, limit: usize) -> bool {
    // A long prefix is cut like the rest of the name, to leave room for the tail.
    let mut head = plain(&joined(prefix, ""));
    head.truncate(limit.saturating_sub(TAIL + 1));
    name.starts_with(&head)
}

/// As much of the name as there is room for, and a digest of what it stands for.
fn tailed_name(prefix: &str, tool: &str, limit: usize, digits: usize) -> String {
    let mut digest = hex(&Sha256::digest(format!("{prefix}\0{tool}")));
    digest.truncate(digits);
    let mut name = plain(&joined(prefix, tool));
    name.truncate(limit.saturating_sub(digits + 1));
    format!("{}_{digest}", name.trim_end_matches('_'))
}

fn joined(prefix: &str, tool: &str) -> String {
    if prefix.is_empty() { tool.to_owned() } else { format!("{prefix}_{tool}") }
}

/// Letters, digits, `_` and `-`; each run of anything else as one `_`.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut replaced = false;
    for character in text.chars() {
        let fits = is_plain(character);
        if fits {
            out.push(character);
        } else if !replaced {
            out.push('_');
        }
        replaced = !fits;
    }
    out
}

/// The alphabet that hosts accept in names everywhere.
fn is_plain(character: char) -> bool {
    character.is_ascii_alphanumeric() || matches!(character, '_' | '-')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(servers: &[(&str, &[&str])], limit: usize) -> Vec<String> {
        let exposed: Vec<Exposed<'_>> =
            servers.iter().map(|(prefix, tools)| Exposed { prefix, tools }).collect();
        let names = exposed_names(&exposed, &["mcpx_call"], limit);
        let distinct: HashSet<&str> = names.iter().map(|name| name.name.as_str()).collect();
        assert_eq!(distinct.len(), names.len(), "{names:?}");
        for name in &names {
            assert!(name.name.len() <= limit, "{name:?}");
            let bare = servers[name.server].0.is_empty();
            assert!(
                name.name
                    .chars()
                    .all(|character| is_plain(character) || (bare && character == '.')),
                "{name:?}"
            );
        }
        names.into_iter().map(|name| name.name).collect()
    }

    #[test]
    fn h46_namespaces_come_from_keys() {
        for (key, namespace) in [
            ("github", "github"),
            ("Google Sheets", "Google_Sheets"),
            ("pagerduty/pagerduty-mcp-server", "pagerduty_pagerduty-mcp-server"),
            ("  a // b  ", "a_b"),
            ("_x-", "_x-"),
            ("ツール", ""),
            ("é1", "1"),
            ("", ""),
        ] {
            assert_eq!(namespace_of_key(key), namespace, "{key}");
            assert_eq!(namespace_of_key(namespace), namespace, "{key}");
        }
    }

    #[test]
    fn h47_clashes_name_both_keys() {
        let keys = ["fff-nix", "a b", "fff_nix", "a/b", "a.b"];
        let named: Vec<(&str, String)> = keys.map(|key| (key, namespace_of_key(key))).to_vec();
        let found = clashes(named.iter().map(|(key, namespace)| (*key, namespace.as_str())));
        assert_eq!(found.len(), 2);
        let text = found[0].to_string();
        assert!(
            text.contains("`a b`") && text.contains("`a/b`") && text.contains("`a_b`"),
            "{text}"
        );
    }

    #[test]
    fn f40_plain_names_stay_plain() {
        assert_eq!(
            names(&[("gh", &["list", "get-Item_2"]), ("docs", &["list"])], 64),
            ["gh_list", "gh_get-Item_2", "docs_list"]
        );
        assert_eq!(names(&[("", &["list", "admin.tools.list"])], 64), ["list", "admin.tools.list"]);
    }

    #[test]
    fn f40_joints_are_told_apart() {
        let both = names(&[("a", &["b_c"]), ("a_b", &["c"])], 64);
        assert!(both[0].starts_with("a_b_c_") && both[1] == "a_b_c", "{both:?}");
        // In either order, and whether or not the other list has the tool now.
        assert_eq!(names(&[("a_b", &["c"]), ("a", &["b_c"])], 64)[1], both[0]);
        assert_eq!(names(&[("a", &["b_c"]), ("a_b", &[])], 64)[0], both[0]);
    }

    #[test]
    fn f40_odd_and_long_names() {
        let long: Vec<String> = ["x", "y"].map(|end| format!("{}{end}", "t".repeat(119))).to_vec();
        let odd =
            ["get/item", "get.item", "get item", "get_item", "ツール", "", &long[0], &long[1]];
        for limit in [64, 40] {
            let found = names(&[("srv", &odd)], limit);
            assert_eq!(found.len(), odd.len());
            assert!(found[0].starts_with("srv_get_item_") && found[3] == "srv_get_item");
            assert!(found[4].starts_with("srv_"), "{found:?}");
            assert_eq!(found[6].len(), limit);
            // Another server changes nothing.
            let more = names(&[("other", &["get/item", "x"]), ("srv", &odd)], limit);
            assert_eq!(more[2..], found);
        }
    }

    #[test]
    fn f40_doubles_and_own_names() {
        assert_eq!(names(&[("a", &["x", "x", "y"])], 64), ["a_x", "a_y"]);
        let bare = names(&[("", &["mcpx_call", "x", "gh_list"]), ("gh", &["list"])], 64);
        assert!(bare[0].starts_with("mcpx_call_"), "{bare:?}");
        assert!(bare[2].starts_with("gh_list_") && bare[3] == "gh_list", "{bare:?}");
        // A tool whose own name looks like another's tail.
        let tailed = names(&[("a", &["x/y"])], 64).remove(0);
        let own = tailed.strip_prefix("a_").unwrap();
        let found = names(&[("a", &["x/y", own])], 64);
        assert!(found[1] == tailed && found[0] != tailed, "{found:?}");
    }

    #[test]
    fn names_lead_back() {
        let exposed = [
            Exposed { prefix: "a", tools: &["x", "b_c", "x"] },
            Exposed { prefix: "a_b", tools: &["c/d", "c"] },
        ];
        let found = exposed_names(&exposed, &[], 64);
        let back: Vec<&str> =
            found.iter().map(|name| exposed[name.server].tools[name.tool]).collect();
        assert_eq!(back, ["x", "b_c", "c/d", "c"]);
    }
}
