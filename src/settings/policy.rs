//! Which tools may be called: `[policy]`, and `tools` of a server (product.md 3).
//!
//! A server's own `tools.allow` and `tools.deny` say which of its tools are there at all. `[policy]` says
//! of each whether it is called at once, only after a question, or never. Of the rules that fit a tool
//! the most specific decides, wherever it stands: the one with the most letters that are no wildcards;
//! of two alike the stricter.

use std::cmp::Reverse;
use std::fmt;

use super::mistake::{Mistake, Place};
use super::tree::{Entry, Raw, SourceText};

/// What becomes of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// It is made.
    Allow,
    /// It is made once somebody has agreed.
    Ask,
    /// The tool is not there.
    Deny,
}

impl Rule {
    /// All of them, the mildest first.
    pub const ALL: [Self; 3] = [Self::Allow, Self::Ask, Self::Deny];

    /// As configured.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Allow => "allow",
            Self::Ask => "ask",
            Self::Deny => "deny",
        }
    }
}

/// A pattern for a name: `*` is any number of characters, `?` is one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Glob(String);

impl Glob {
    /// Reads one. What looks like more than `*` and `?` is refused: a pattern that means something else
    /// than its author thinks would leave open what should be shut.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("a pattern is not empty; `*` fits every name".to_owned());
        }
        let odd = |c: &char| "[]{}\\!".contains(*c) || c.is_whitespace() || c.is_control();
        match text.chars().find(odd) {
            Some(odd) => {
                Err(format!("{text:?} has {odd:?}; a pattern has `*`, `?` and names alone"))
            }
            None => Ok(Self(text.to_owned())),
        }
    }

    /// Whether a name fits.
    pub fn fits(&self, name: &str) -> bool {
        let pattern: Vec<char> = self.0.chars().collect();
        let name: Vec<char> = name.chars().collect();
        let (mut at, mut read) = (0, 0);
        // Where the last `*` stands, and how much of the name it has taken.
        let mut star: Option<(usize, usize)> = None;
        while let Some(found) = name.get(read) {
            match (pattern.get(at), star) {
                (Some('*'), _) => {
                    star = Some((at, read));
                    at += 1;
                }
                (Some(wanted), _) if *wanted == '?' || wanted == found => {
                    at += 1;
                    read += 1;
                }
                (_, Some((before, taken))) => {
                    star = Some((before, taken + 1));
                    at = before + 1;
                    read = taken + 1;
                }
                (_, None) => return false,
            }
        }
        pattern.get(at..).unwrap_or_default().iter().all(|rest| *rest == '*')
    }

    /// How much it says: letters that are no wildcards, and few of those.
    pub(super) fn weight(&self) -> (usize, Reverse<usize>) {
        let wild = self.0.chars().filter(|c| matches!(c, '*' | '?')).count();
        (self.0.chars().count() - wild, Reverse(wild))
    }

    /// As written.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One line of `[policy]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PolicyRule {
    /// The namespaces it is about.
    pub namespace: Glob,
    /// Their tools that it is about.
    pub tool: Glob,
    /// What it says.
    pub rule: Rule,
    /// Where it stands.
    pub place: Place,
}

impl PolicyRule {
    /// Its key: `namespace.tool`.
    pub fn pattern(&self) -> String {
        format!("{}.{}", self.namespace, self.tool)
    }

    fn weight(&self) -> (usize, Reverse<usize>, Rule) {
        let (letters, Reverse(wild)) = self.namespace.weight();
        let (more, Reverse(wilder)) = self.tool.weight();
        (letters + more, Reverse(wild + wilder), self.rule)
    }
}

/// Everything that is said about one server's tools.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ToolRules {
    /// `tools.allow`: where it is there, only these.
    pub allow: Option<Vec<Glob>>,
    /// `tools.deny`: never these.
    pub deny: Vec<Glob>,
    /// The policy for its namespace, what decides first in front.
    policy: Vec<(Glob, Rule)>,
    /// The same of a project and of a profile, beside it.
    narrowed: Vec<Vec<(Glob, Rule)>>,
}

impl ToolRules {
    /// Takes over what `[policy]` says of this namespace.
    pub fn govern(&mut self, namespace: &str, policy: &[PolicyRule]) {
        self.policy = about(namespace, policy);
    }

    /// Takes over what the `policy` of a project or a profile says of this namespace: it opens nothing.
    pub fn narrow(&mut self, namespace: &str, policy: &[PolicyRule]) {
        let about = about(namespace, policy);
        if !about.is_empty() {
            self.narrowed.push(about);
        }
    }

    /// Whether nothing is said: every tool is called at once.
    pub fn is_empty(&self) -> bool {
        let Self { allow, deny, policy, narrowed } = self;
        allow.is_none() && deny.is_empty() && policy.is_empty() && narrowed.is_empty()
    }

    /// What becomes of a call of this tool, by the server's own name for it.
    pub fn of(&self, tool: &str) -> Rule {
        let fits = |globs: &[Glob]| globs.iter().any(|glob| glob.fits(tool));
        if fits(&self.deny) || self.allow.as_ref().is_some_and(|allow| !fits(allow)) {
            return Rule::Deny;
        }
        let decided = |rules: &[(Glob, Rule)]| {
            rules.iter().find(|(glob, _)| glob.fits(tool)).map_or(Rule::Allow, |(_, rule)| *rule)
        };
        let narrowed = self.narrowed.iter().map(|rules| decided(rules)).max();
        decided(&self.policy).max(narrowed.unwrap_or(Rule::Allow))
    }
}

/// What is said about one namespace, what decides first in front.
fn about(namespace: &str, policy: &[PolicyRule]) -> Vec<(Glob, Rule)> {
    let mut about: Vec<&PolicyRule> =
        policy.iter().filter(|rule| rule.namespace.fits(namespace)).collect();
    about.sort_by_key(|rule| Reverse(rule.weight()));
    about.into_iter().map(|rule| (rule.tool.clone(), rule.rule)).collect()
}

/// Reads `[policy]`; also as tables of namespaces, as TOML reads an unquoted `github.create`.
pub fn read(
    entries: &[Entry],
    source: &SourceText,
    mistakes: &mut Vec<Mistake>,
) -> Vec<PolicyRule> {
    let mut rules: Vec<PolicyRule> = Vec::new();
    let mut lines = Vec::new();
    for entry in entries {
        match &entry.node.raw {
            Raw::Table(inner) => {
                lines.extend(
                    inner.iter().map(|inner| (format!("{}.{}", entry.key, inner.key), inner)),
                );
            }
            _ => lines.push((entry.key.clone(), entry)),
        }
    }
    for (pattern, entry) in lines {
        match rule(&pattern, entry, source) {
            Ok(rule) => match rules.iter().find(|other| other.pattern() == pattern) {
                Some(other) => {
                    let text =
                        format!("policy `{pattern}` is given twice; first at {}", other.place);
                    mistakes.push(Mistake { place: rule.place, text });
                }
                None => rules.push(rule),
            },
            Err(why) => {
                let text = format!("policy `{pattern}`: {why}");
                mistakes.push(Mistake { place: source.place(entry.at), text });
            }
        }
    }
    rules
}

fn rule(pattern: &str, entry: &Entry, source: &SourceText) -> Result<PolicyRule, String> {
    let (namespace, tool) = pattern
        .split_once('.')
        .ok_or_else(|| "write \"NAMESPACE.TOOL\", both with `*` and `?` where wanted".to_owned())?;
    let words = || Rule::ALL.map(Rule::as_str).join(", ");
    let rule = match &entry.node.raw {
        Raw::Text(word) => Rule::ALL
            .into_iter()
            .find(|rule| rule.as_str() == word)
            .ok_or_else(|| format!("{word:?} is not one of {}", words()))?,
        other => return Err(format!("it is one of {}, found {}", words(), other.name())),
    };
    let (namespace, tool) = (Glob::parse(namespace)?, Glob::parse(tool)?);
    Ok(PolicyRule { namespace, tool, rule, place: source.place(entry.at) })
}

/// A later file's rule of the same pattern takes the earlier one's place.
pub fn place(rules: &mut Vec<PolicyRule>, later: Vec<PolicyRule>) {
    for rule in later {
        match rules.iter_mut().find(|earlier| earlier.pattern() == rule.pattern()) {
            Some(earlier) => *earlier = rule,
            None => rules.push(rule),
        }
    }
}

/// Rules that are about no server: a slip of the pen would leave open what should be shut.
pub fn about_nothing<'a>(
    rules: &'a [PolicyRule],
    namespaces: &'a [&str],
) -> impl Iterator<Item = Mistake> + 'a {
    let idle = |rule: &&PolicyRule| !namespaces.iter().any(|name| rule.namespace.fits(name));
    rules.iter().filter(idle).map(|rule| {
        let hint = super::mistake::hint(rule.namespace.as_str(), namespaces.iter().copied());
        let text = format!("policy `{}` is about no server: {hint}", rule.pattern());
        Mistake { place: rule.place.clone(), text }
    })
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn parse(text: &str) -> Result<Vec<PolicyRule>, Vec<String>> {
        let source = SourceText::new(Path::new("p.toml"), text);
        let mut mistakes = Vec::new();
        let top = source.parse().unwrap();
        let Some(Entry { node, .. }) = top.first() else { panic!() };
        let Raw::Table(entries) = &node.raw else { panic!() };
        let rules = read(entries, &source, &mut mistakes);
        if mistakes.is_empty() {
            Ok(rules)
        } else {
            Err(mistakes.iter().map(ToString::to_string).collect())
        }
    }

    fn rules(namespace: &str, text: &str) -> ToolRules {
        let mut rules = ToolRules::default();
        rules.govern(namespace, &parse(text).unwrap());
        rules
    }

    #[test]
    fn patterns_fit_names() {
        for (pattern, name, fits) in [
            ("*", "", true),
            ("create_*", "create_", true),
            ("create_*", "recreate_x", false),
            ("*_all", "delete_all", true),
            ("*_all", "delete_all_x", false),
            ("*a*b*", "xaxxbx", true),
            ("*ab", "aab", true),
            ("?", "ü", true),
            ("?", "ab", false),
            ("a?c*", "abc", true),
            ("a.b", "a.b", true),
            ("a.b", "axb", false),
        ] {
            assert_eq!(Glob::parse(pattern).unwrap().fits(name), fits, "{pattern} {name}");
        }
    }

    /// The most specific rule decides in either order; of two alike the stricter.
    #[test]
    fn the_most_specific_rule_decides() {
        let lines = [
            r#""*.*" = "ask""#,
            r#""github.*" = "allow""#,
            r#""github.create_*" = "ask""#,
            r#""github.create_issue" = "allow""#,
            r#""*.delete_?" = "deny""#,
            r#""github.x*" = "allow""#,
            r#""github.*x" = "deny""#,
        ];
        let mut turned = lines;
        turned.reverse();
        for lines in [lines, turned] {
            let rules = rules("github", &format!("[policy]\n{}", lines.join("\n")));
            for (tool, rule) in [
                ("list", Rule::Allow),
                ("create_pull", Rule::Ask),
                ("create_issue", Rule::Allow),
                ("delete_a", Rule::Deny),
                ("xx", Rule::Deny),
            ] {
                assert_eq!(rules.of(tool), rule, "{tool}");
            }
        }
        let other = rules("docs", r#"policy = { "*.*" = "ask", "github.*" = "deny" }"#);
        assert_eq!(other.of("x"), Rule::Ask);
        assert!(rules("docs", r#"policy = { "github.*" = "deny" }"#).is_empty());
        let table = rules("github", "[policy.github]\ncreate = \"deny\"\n\"a.b\" = \"ask\"");
        assert_eq!((table.of("create"), table.of("a.b")), (Rule::Deny, Rule::Ask));
    }

    /// Allow, then deny; a policy opens nothing that they shut.
    #[test]
    fn a_servers_own_lists_come_first() {
        let globs = |texts: &[&str]| texts.iter().map(|text| Glob::parse(text).unwrap()).collect();
        let mut rules = rules("github", r#"policy = { "github.delete_x" = "allow" }"#);
        rules.allow = Some(globs(&["get_*", "delete_*"]));
        rules.deny = globs(&["delete_*"]);
        assert_eq!(rules.of("get_a"), Rule::Allow);
        assert_eq!(rules.of("put_a"), Rule::Deny);
        assert_eq!(rules.of("delete_x"), Rule::Deny);
        rules.allow = Some(Vec::new());
        assert_eq!(rules.of("get_a"), Rule::Deny);
    }

    #[test]
    fn mistakes_name_their_place_and_nothing_is_left_open() {
        let told = parse(
            "[policy]\ngithub = \"deny\"\n\"a.[b]\" = \"deny\"\n\"a.b\" = \"never\"\n\"a.c\" = 1\n\"a.\" = \"deny\"\n\"x.y\" = \"ask\"\n[policy.x]\ny = \"deny\"\n",
        );
        let told = told.unwrap_err();
        let expected = [
            "p.toml:2:1: policy `github`: write \"NAMESPACE.TOOL\"",
            "p.toml:3:1: policy `a.[b]`: \"[b]\" has '['",
            "p.toml:4:1: policy `a.b`: \"never\" is not one of allow, ask, deny",
            "p.toml:5:1: policy `a.c`: it is one of allow, ask, deny, found a number",
            "p.toml:6:1: policy `a.`: a pattern is not empty",
            "p.toml:9:1: policy `x.y` is given twice; first at p.toml:7:1",
        ];
        assert_eq!(told.len(), expected.len(), "{told:?}");
        for (told, expected) in told.iter().zip(expected) {
            assert!(told.starts_with(expected), "{told}");
        }
        let idle = parse(r#"policy = { "gihub.*" = "deny", "*.x" = "ask" }"#).unwrap();
        let warned: Vec<_> =
            about_nothing(&idle, &["github"]).map(|mistake| mistake.text).collect();
        assert_eq!(warned, ["policy `gihub.*` is about no server: did you mean `github`?"]);
    }
}
