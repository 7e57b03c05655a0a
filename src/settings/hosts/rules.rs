//! A host's permission rules as `[policy]` (C1).
//!
//! A host's rules are about its own names of tools, `<server>_<tool>`. Behind mcpx it sees one tool that
//! calls them all, and the rules would bite no more: so they come along. Where the host lets the last
//! rule that fits decide and mcpx the most specific one, what comes out is never milder than it was.

use super::document::{member, table};
use crate::settings::policy::{Glob, Rule};
use crate::settings::tree::{Entry, Raw};

/// A line of `[policy]`.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Line {
    /// `NAMESPACE.TOOL`, with wildcards.
    pub pattern: String,
    /// `allow`, `ask` or `deny`.
    #[serde(serialize_with = "word")]
    pub rule: Rule,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "the shape serde asks for")]
fn word<S: serde::Serializer>(rule: &Rule, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(rule.as_str())
}

/// A rule as its host has it.
#[derive(Debug, Clone)]
struct Said {
    /// The host's pattern.
    pattern: String,
    rule: Rule,
    /// Where: `permission`, `tools`.
    place: &'static str,
}

/// What a file's rules come to.
#[derive(Debug, Default)]
pub(super) struct Carried {
    /// Lines of `[policy]`.
    pub lines: Vec<Line>,
    /// What could not be carried, and why.
    pub notes: Vec<String>,
}

/// A server as its host's rules know it.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    /// Its key in the host's file.
    pub key: &'a str,
    /// Its namespace here.
    pub namespace: &'a str,
}

/// opencode's own tools, about which mcpx has nothing to say.
const OPENCODE_TOOLS: [&str; 22] = [
    "read",
    "edit",
    "write",
    "patch",
    "multiedit",
    "glob",
    "grep",
    "list",
    "bash",
    "shell",
    "task",
    "subagent",
    "skill",
    "lsp",
    "webfetch",
    "websearch",
    "codesearch",
    "todowrite",
    "todoread",
    "question",
    "external_directory",
    "doom_loop",
];

/// The rules of an opencode file: `tools` and `permission` of 1.x, `permissions` of 2.x.
pub(super) fn of_opencode(top: &[Entry], servers: &[Subject<'_>]) -> Carried {
    let mut carried = Carried::default();
    let said = opencode_rules(top, &mut carried.notes);
    let prefix = |server: &Subject<'_>| format!("{}_", opencode_name(server.key));
    for rule in &said {
        let fits =
            servers.iter().any(|server| !residuals(&rule.pattern, &prefix(server)).is_empty());
        if !fits && !OPENCODE_TOOLS.contains(&rule.pattern.as_str()) && rule.pattern != "*" {
            carried.notes.push(format!(
                "{} {:?} = {} is about no server that is taken over",
                rule.place,
                rule.pattern,
                rule.rule.as_str()
            ));
        }
    }
    for server in servers {
        let about = said.iter().flat_map(|rule| {
            residuals(&rule.pattern, &prefix(server)).into_iter().map(|glob| (glob, rule.rule))
        });
        settle(server.namespace, about.collect(), &mut carried);
    }
    for name in ["agent", "agents", "mode"] {
        for agent in table(top, name).unwrap_or_default() {
            let Raw::Table(inner) = &agent.node.raw else { continue };
            let own = opencode_rules(inner, &mut Vec::new());
            let about = own.iter().filter(|rule| {
                servers.iter().any(|server| !residuals(&rule.pattern, &prefix(server)).is_empty())
            });
            for rule in about.filter(|rule| rule.pattern != "*") {
                carried.notes.push(format!(
                    "not carried: {name} `{}` has {:?} = {}; mcpx does not know which agent calls. Give \
                     that agent an entry of its own, or leave the servers that only it may use where they \
                     are",
                    agent.key,
                    rule.pattern,
                    rule.rule.as_str()
                ));
            }
        }
    }
    carried
}

/// As opencode writes a server's name into the names of its tools.
fn opencode_name(key: &str) -> String {
    key.chars()
        .map(|c| if c.is_ascii_alphanumeric() || "_-".contains(c) { c } else { '_' })
        .collect()
}

fn opencode_rules(top: &[Entry], notes: &mut Vec<String>) -> Vec<Said> {
    let mut said = Vec::new();
    // opencode reads `tools` as rules in front of `permission`.
    for entry in table(top, "tools").unwrap_or_default() {
        if let Raw::Switch(on) = entry.node.raw {
            let rule = if on { Rule::Allow } else { Rule::Deny };
            said.push(Said { pattern: entry.key.clone(), rule, place: "tools" });
        }
    }
    match member(top, "permission").map(|node| &node.raw) {
        Some(Raw::Text(text)) => said.extend(rule_of(text).map(|rule| Said {
            pattern: "*".to_owned(),
            rule,
            place: "permission",
        })),
        Some(Raw::Table(entries)) => {
            for entry in entries {
                let rule = match &entry.node.raw {
                    Raw::Text(text) => rule_of(text),
                    // A tool of a server is asked about with the resource `*`.
                    Raw::Table(inner) => match member(inner, "*").map(|node| &node.raw) {
                        Some(Raw::Text(text)) => rule_of(text),
                        _ => None,
                    },
                    _ => None,
                };
                match rule {
                    Some(rule) => {
                        said.push(Said { pattern: entry.key.clone(), rule, place: "permission" });
                    }
                    None if OPENCODE_TOOLS.contains(&entry.key.as_str()) => {}
                    None => notes.push(format!("permission {:?} is not understood", entry.key)),
                }
            }
        }
        _ => {}
    }
    if let Some(Raw::List(items)) = member(top, "permissions").map(|node| &node.raw) {
        said.extend(items.iter().filter_map(|item| {
            let Raw::Table(rule) = &item.raw else { return None };
            let text = |key| match member(rule, key).map(|node| &node.raw) {
                Some(Raw::Text(text)) => Some(text.as_str()),
                _ => None,
            };
            let everywhere = text("resource").is_none_or(|resource| resource == "*");
            let rule = rule_of(text("effect")?).filter(|_| everywhere)?;
            Some(Said { pattern: text("action")?.to_owned(), rule, place: "permissions" })
        }));
    }
    said
}

fn rule_of(word: &str) -> Option<Rule> {
    Rule::ALL.into_iter().find(|rule| rule.as_str() == word)
}

/// The rules of a settings file of Claude Code: `mcp__SERVER__TOOL` in `permissions`. What it allows
/// without asking is no permission here; `deny` outranks `ask`.
pub(super) fn of_claude(top: &[Entry], servers: &[Subject<'_>]) -> Carried {
    let mut carried = Carried::default();
    let permissions = table(top, "permissions").unwrap_or_default();
    let listed = |name: &str| -> Vec<String> {
        let Some(Raw::List(items)) = member(permissions, name).map(|node| &node.raw) else {
            return Vec::new();
        };
        let about = items.iter().filter_map(|item| match &item.raw {
            Raw::Text(text) => text.strip_prefix("mcp__").map(str::to_owned),
            _ => None,
        });
        about.collect()
    };
    if !listed("allow").is_empty() {
        carried.notes.push(
            "permissions.allow says what Claude Code runs without asking; that is no permission here and \
             was left out"
                .to_owned(),
        );
    }
    for server in servers {
        let tool = |text: &String| match text.strip_prefix(server.key)? {
            "" => Some("*".to_owned()),
            rest => rest.strip_prefix("__").map(str::to_owned),
        };
        let of = |name: &str, rule: Rule| -> Vec<(String, Rule)> {
            listed(name).iter().filter_map(tool).map(|glob| (glob, rule)).collect()
        };
        let mut rules = of("ask", Rule::Ask);
        rules.extend(of("deny", Rule::Deny));
        settle(server.namespace, rules, &mut carried);
    }
    carried
}

/// What is left of a pattern once it has taken `prefix`: patterns for what follows it. None where no name
/// that begins so fits.
fn residuals(pattern: &str, prefix: &str) -> Vec<String> {
    let pattern: Vec<char> = pattern.chars().collect();
    // A star may be passed by at once.
    let spread = |places: Vec<usize>| -> Vec<usize> {
        let mut all = Vec::new();
        for mut place in places {
            while !all.contains(&place) {
                all.push(place);
                if pattern.get(place) == Some(&'*') {
                    place += 1;
                }
            }
        }
        all
    };
    let mut places = spread(vec![0]);
    for c in prefix.chars() {
        let next = places.iter().filter_map(|place| match pattern.get(*place)? {
            '*' => Some(*place),
            other if *other == '?' || *other == c => Some(place + 1),
            _ => None,
        });
        places = spread(next.collect());
    }
    let mut globs: Vec<String> = Vec::new();
    places.sort_unstable();
    for place in places {
        let rest: String = pattern.get(place..).unwrap_or_default().iter().collect();
        let covered = globs.iter().any(|glob| covers(glob, &rest));
        if !rest.is_empty() && !covered {
            globs.push(rest);
        }
    }
    globs
}

/// Whether every name that fits `narrow` fits `wide`: a star fits a star too.
fn covers(wide: &str, narrow: &str) -> bool {
    Glob::parse(wide).is_ok_and(|wide| wide.fits(narrow))
}

/// Whether some name fits both.
fn meet(one: &str, other: &str) -> bool {
    let (one, other): (Vec<char>, Vec<char>) = (one.chars().collect(), other.chars().collect());
    // Row by row: whether the rests from here on meet.
    let mut below = vec![false; other.len() + 1];
    for i in (0..=one.len()).rev() {
        let mut row = vec![false; other.len() + 1];
        for j in (0..=other.len()).rev() {
            let (a, b) = (one.get(i), other.get(j));
            let down = below.get(j).copied().unwrap_or(false);
            let right = row.get(j + 1).copied().unwrap_or(false);
            let both = below.get(j + 1).copied().unwrap_or(false);
            let met = match (a, b) {
                (None, None) => true,
                (Some('*'), None) => down,
                (None, Some('*')) => right,
                (Some('*'), Some(_)) | (Some(_), Some('*')) => down || right,
                (Some(a), Some(b)) => both && (a == b || *a == '?' || *b == '?'),
                _ => false,
            };
            if let Some(place) = row.get_mut(j) {
                *place = met;
            }
        }
        below = row;
    }
    below.first().copied().unwrap_or(false)
}

/// Rules of one server, of which the last that fits decides, as lines of which the most specific does.
fn settle(namespace: &str, rules: Vec<(String, Rule)>, carried: &mut Carried) {
    let mut kept: Vec<(Glob, Rule)> = Vec::new();
    for (pattern, rule) in rules {
        match Glob::parse(&pattern) {
            Ok(glob) => {
                kept.retain(|(earlier, _)| !glob.fits(earlier.as_str()));
                kept.push((glob, rule));
            }
            Err(why) => carried.notes.push(format!("not carried: {why}")),
        }
    }
    let before = kept.clone();
    for (at, (earlier, rule)) in kept.iter_mut().enumerate() {
        for (later, decides) in before.iter().skip(at + 1) {
            let outranks = earlier.weight() > later.weight();
            if outranks && decides > rule && meet(earlier.as_str(), later.as_str()) {
                carried.notes.push(format!(
                    "{namespace}.{earlier} became {} instead of {}: {later} comes later in the host's file \
                     and decides there",
                    decides.as_str(),
                    rule.as_str()
                ));
                *rule = *decides;
            }
        }
    }
    // What nothing forbids is allowed without a line.
    let needed = |(glob, rule): &&(Glob, Rule)| {
        *rule != Rule::Allow
            || kept
                .iter()
                .any(|(other, rule)| *rule != Rule::Allow && meet(glob.as_str(), other.as_str()))
    };
    carried.lines.extend(
        kept.iter()
            .filter(needed)
            .map(|(glob, rule)| Line { pattern: format!("{namespace}.{glob}"), rule: *rule }),
    );
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::tree::SourceText;
    use std::path::Path;

    fn lines(text: &str, keys: &[&str]) -> (Vec<String>, Vec<String>) {
        let top = SourceText::new(Path::new("o.json"), text).parse_json().unwrap();
        let subjects: Vec<_> = keys.iter().map(|key| Subject { key, namespace: key }).collect();
        let carried = of_opencode(&top, &subjects);
        let shown = |line: &Line| format!("{}={}", line.pattern, line.rule.as_str());
        (carried.lines.iter().map(shown).collect(), carried.notes)
    }

    #[test]
    fn c1_globs_over_names_become_globs_over_tools() {
        for (pattern, expected) in [
            ("gh_*", vec!["gh.*=deny"]),
            ("gh_create_*", vec!["gh.create_*=deny"]),
            ("gh*", vec!["gh.*=deny"]),
            ("*", vec!["gh.*=deny"]),
            ("*_delete", vec!["gh.*_delete=deny", "gh.delete=deny"]),
            ("g?_x", vec!["gh.x=deny"]),
            ("other_*", vec![]),
            ("gh", vec![]),
        ] {
            let (lines, _) =
                lines(&format!("{{\"permission\": {{\"{pattern}\": \"deny\"}}}}"), &["gh"]);
            assert_eq!(lines, expected, "{pattern}");
        }
    }

    #[test]
    fn c1_the_last_rule_decides_and_nothing_becomes_milder() {
        let of = |text: &str| lines(text, &["gh"]).0;
        assert_eq!(of(r#"{"permission": {"gh_*": "deny", "*": "allow"}}"#), Vec::<String>::new());
        assert_eq!(
            of(r#"{"permission": {"*": "ask", "gh_get_*": "allow"}}"#),
            ["gh.*=ask", "gh.get_*=allow"]
        );
        // The later, less specific one decides in opencode.
        let (found, notes) =
            lines(r#"{"permission": {"gh_create_*": "ask", "gh_*_all": "deny"}}"#, &["gh"]);
        assert_eq!(found, ["gh.create_*=deny", "gh.*_all=deny"]);
        assert!(notes[0].contains("instead of ask"), "{notes:?}");
        assert_eq!(of(r#"{"tools": {"gh_*": false}, "permission": {"gh_get": "allow"}}"#).len(), 2);
        assert_eq!(of(r#"{"permission": "ask"}"#), ["gh.*=ask"]);
        let two = r#"{"permissions": [{"action": "gh_*", "resource": "*", "effect": "deny"},
                      {"action": "shell", "resource": "git *", "effect": "allow"}]}"#;
        assert_eq!(of(two), ["gh.*=deny"]);
    }

    #[test]
    fn c1_what_is_an_agents_own_is_said() {
        let text = r#"{"permission": {"gh_*": "deny", "gone_*": "deny", "bash": {"rm *": "deny"}},
                       "agent": {"ops": {"permission": {"gh_*": "allow"}}}}"#;
        let (lines, notes) = lines(text, &["gh"]);
        assert_eq!(lines, ["gh.*=deny"]);
        assert!(notes.iter().any(|note| note.contains("`ops`") && note.contains("not carried")));
        assert!(notes.iter().any(|note| note.contains("gone_*") && note.contains("no server")));
        assert_eq!(notes.len(), 2, "{notes:?}");
    }

    #[test]
    fn claude_codes_rules_come_along_but_not_what_it_allows() {
        let text = r#"{"permissions": {"allow": ["mcp__gh__get"], "ask": ["mcp__gh__create"],
                       "deny": ["mcp__gh", "mcp__other__x", "Bash(rm:*)"]}}"#;
        let top = SourceText::new(Path::new("s.json"), text).parse_json().unwrap();
        let carried = of_claude(&top, &[Subject { key: "gh", namespace: "gh" }]);
        assert_eq!(carried.lines, [Line { pattern: "gh.*".to_owned(), rule: Rule::Deny }]);
        assert_eq!(carried.notes.len(), 1);
    }

    #[test]
    fn patterns_meet() {
        for (one, other, met) in [
            ("*", "a", true),
            ("a*", "*b", true),
            ("a*c", "ab*", true),
            ("a?c", "abc", true),
            ("a*", "b*", false),
            ("", "*", true),
            ("a", "", false),
        ] {
            assert_eq!((meet(one, other), meet(other, one)), (met, met), "{one} {other}");
        }
    }
}
