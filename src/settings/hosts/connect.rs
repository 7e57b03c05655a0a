//! Our own entry in a host's file: how it is spelled, and how it is put in and taken out so that
//! everything else stays to the letter.

use std::fmt;
use std::path::{Path, PathBuf};

use jsonc_parser::cst::{CstInputValue, CstObject, CstRootNode};
use toml_edit::{Array, DocumentMut, InlineTable, Table, Value, value};

use super::document::{self, Format, member, table};
use super::found;
use super::own::{self, Leads, Own};
use super::table::{Entry as Spelling, Host, Reach, Token};
use crate::settings::mistake::Mistake;
use crate::settings::tree::{Entry, Node, Raw, SourceText, json_options};

/// The key of our entry, unless a person chooses another. Hosts that put it in front of the names of
/// tools show `m_mcpx_call` so, where `mcpx` would give `mcpx_mcpx_call` (H-45).
pub const KEY: &str = "m";

/// The variable that a host takes the token from, where it takes it from one. It is no setting's name:
/// in the daemon's own environment it means nothing.
pub const TOKEN_VARIABLE: &str = "MCPX_TOKEN";

/// VS Code's name for the token that it asks for.
const INPUT: &str = "mcpx-token";

/// How a host gets to mcpx.
#[derive(Debug, Clone)]
pub enum Way {
    /// It starts the shim.
    Shim {
        /// The program.
        program: String,
        /// Its arguments.
        args: Vec<String>,
    },
    /// It goes to an address.
    Http {
        /// The address.
        url: String,
        /// The token, unless none is asked for.
        token: Option<Held>,
    },
}

/// Where the token is.
#[derive(Clone)]
pub struct Held {
    /// The file that holds it, where one does.
    pub file: Option<PathBuf>,
    /// The token, where it is known.
    pub text: Option<String>,
}

/// Where it is; what it is stays unsaid.
impl fmt::Debug for Held {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Held").field("file", &self.file).finish_non_exhaustive()
    }
}

/// An entry as its host spells it.
pub struct Ours {
    value: CstInputValue,
    /// Where entries stand in that file.
    pub at: Vec<String>,
    /// What a new file holds beside it.
    begin: &'static str,
    /// VS Code is to ask for the token.
    input: bool,
    /// What a person has to know or do.
    pub notes: Vec<String>,
    /// Holds the token itself.
    pub secret: bool,
}

/// Where it goes; it may hold the token.
impl fmt::Debug for Ours {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Ours").field("at", &self.at).finish_non_exhaustive()
    }
}

fn text(text: impl Into<String>) -> CstInputValue {
    CstInputValue::String(text.into())
}

fn object(members: Vec<(&str, CstInputValue)>) -> CstInputValue {
    CstInputValue::Object(
        members.into_iter().map(|(name, value)| (name.to_owned(), value)).collect(),
    )
}

/// Spells the entry for a host. `second` asks for the layout of opencode 2.x, which is also taken where
/// the file has it.
pub fn ours(
    host: &Host,
    way: &Way,
    reach: Reach,
    top: &[Entry],
    second: bool,
) -> Result<Ours, String> {
    let mut ours = Ours {
        value: CstInputValue::Null,
        at: host.at.iter().map(|&name| name.to_owned()).collect(),
        begin: host.begin,
        input: false,
        notes: Vec::new(),
        secret: false,
    };
    let opencode = host.entry == Spelling::Opencode;
    if second && !opencode {
        return Err(format!("--v2 is about opencode; {} has one layout", host.title));
    }
    let second = opencode && (second || is_second(top));
    if second {
        ours.at.push("servers".to_owned());
    }
    let mut members = match way {
        Way::Shim { program, args } => shim(host, program, args),
        Way::Http { url, token } => {
            let members = remote(host, url, token.as_ref(), reach, &mut ours)?;
            if opencode { [members, vec![("oauth", false.into())]].concat() } else { members }
        }
    };
    if host.all_tools {
        members.push(("tools", CstInputValue::Array(vec![text("*")])));
    }
    if second {
        // Without it opencode 2.x opens with `initialize` and stays in the legacy era.
        members.push(("protocol", text("auto")));
    }
    ours.value = object(members);
    Ok(ours)
}

/// Whether a file has the layout of opencode 2.x.
fn is_second(top: &[Entry]) -> bool {
    let servers = table(top, "mcp").and_then(|mcp| member(mcp, "servers"));
    let nested = servers.is_some_and(|servers| match &servers.raw {
        Raw::Table(inner) => member(inner, "type").is_none() && member(inner, "command").is_none(),
        _ => false,
    });
    nested || matches!(member(top, "permissions").map(|node| &node.raw), Some(Raw::List(_)))
}

fn shim<'a>(host: &Host, program: &str, args: &[String]) -> Vec<(&'a str, CstInputValue)> {
    match host.entry {
        Spelling::Opencode => {
            let words = std::iter::once(program.to_owned()).chain(args.iter().cloned());
            let words = words.map(CstInputValue::String).collect();
            vec![("type", text("local")), ("command", CstInputValue::Array(words))]
        }
        Spelling::Split(kind) => {
            let mut members: Vec<_> = kind.map(|kind| ("type", text(kind))).into_iter().collect();
            let args = args.iter().cloned().map(CstInputValue::String).collect();
            members.push(("command", text(program)));
            members.push(("args", CstInputValue::Array(args)));
            members
        }
    }
}

fn remote<'a>(
    host: &Host,
    url: &str,
    token: Option<&Held>,
    reach: Reach,
    ours: &mut Ours,
) -> Result<Vec<(&'a str, CstInputValue)>, String> {
    let Some(remote) = host.remote else {
        return Err(format!(
            "{} has no addresses in its file, or none that is documented; leave --http out, and it starts \
             the shim",
            host.title
        ));
    };
    let mut members: Vec<_> = remote.kind.map(|kind| ("type", text(kind))).into_iter().collect();
    members.push((remote.url, text(url)));
    let Some(held) = token else { return Ok(members) };
    let by_variable = || {
        format!(
            "{} reads the token from its environment: set {TOKEN_VARIABLE} where it starts (`mcpx status \
             --http` shows the token)",
            host.title
        )
    };
    let bearer = match remote.token {
        Token::File => match &held.file {
            Some(file) => format!("{{file:{}}}", file.display()),
            None => {
                return Err(format!(
                    "the token stands in the setting http.token, and {} can refer to a file only: write \
                     http.token = \"${{file:PATH}}\", or leave --http out",
                    host.title
                ));
            }
        },
        Token::Variable(spelled) => {
            ours.notes.push(by_variable());
            spelled.to_owned()
        }
        Token::Named(key) => {
            ours.notes.push(by_variable());
            members.push((key, text(TOKEN_VARIABLE)));
            return Ok(members);
        }
        Token::Input => {
            ours.input = true;
            ours.notes.push(format!(
                "{} asks for the token once and keeps it (`mcpx status --http` shows it)",
                host.title
            ));
            format!("${{input:{INPUT}}}")
        }
        Token::Literal if reach == Reach::Project => {
            return Err(format!(
                "{} can refer to no file and no variable, and the token has no place in a project's file: \
                 leave --project or --http out",
                host.title
            ));
        }
        Token::Literal => {
            ours.secret = true;
            ours.notes.push(
                "the token itself goes into this file: see to it that nobody else reads it"
                    .to_owned(),
            );
            held.text.clone().ok_or_else(|| {
                "there is no token yet: start the daemon once (`mcpx daemon`, or any call)"
                    .to_owned()
            })?
        }
    };
    let header = object(vec![("Authorization", text(format!("Bearer {bearer}")))]);
    members.push(("headers", header));
    Ok(members)
}

/// What a file already says about us.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// Nothing.
    Free,
    /// The key is ours.
    Ours,
    /// The key is another server's.
    Taken,
    /// We are there under another key.
    Elsewhere(String),
}

/// Looks for us in a file.
pub fn standing(source: &SourceText, top: &[Entry], key: &str, own: &Own<'_>) -> Standing {
    let all = found::servers(source, top, None);
    if let Some(candidate) = all.iter().find(|candidate| candidate.key == key) {
        return if own::is(&candidate.node, own) { Standing::Ours } else { Standing::Taken };
    }
    let other = all.into_iter().find(|candidate| own::is(&candidate.node, own));
    other.map_or(Standing::Free, |candidate| Standing::Elsewhere(candidate.key))
}

/// How many servers a file has that are not mcpx.
pub fn others(source: &SourceText, top: &[Entry], own: &Own<'_>) -> usize {
    let all = found::servers(source, top, None);
    all.iter().filter(|candidate| leads_elsewhere(&candidate.node, own)).count()
}

fn leads_elsewhere(node: &Node, own: &Own<'_>) -> bool {
    !matches!(own::leads(node, own), Some(Leads::Command(_) | Leads::Url(_)))
}

/// A file's text with our entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Put {
    /// The text.
    pub text: String,
    /// How many of the tables around the entry were made for it.
    pub made: usize,
    /// Whether an input was added to VS Code's.
    pub input: bool,
}

const BOM: &str = "\u{feff}";

/// Puts our entry into a text, in the place of one under the same key.
pub fn put(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    match Format::of(path) {
        Format::Json => put_json(path, present, key, ours),
        Format::Toml => put_toml(path, present, key, ours),
        Format::Yaml => Err(Mistake::of_file(path, "YAML is not written".to_owned())),
    }
}

fn json_root(path: &Path, text: &str) -> Result<CstRootNode, Mistake> {
    let source = SourceText::new(path, text);
    CstRootNode::parse(text, &json_options())
        .map_err(|error| source.mistake(error.range().start, error.kind().to_string()))
}

fn put_json(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    let (mark, text) = match present.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", present),
    };
    let begin = if text.trim().is_empty() { ours.begin } else { text };
    let root = json_root(path, begin)?;
    let wrong = |name: &str| Mistake::of_file(path, format!("`{name}` is no object there"));
    let top = root.object_value().ok_or_else(|| wrong("the whole"))?;
    let (mut at, mut made) = (top.clone(), 0);
    for name in &ours.at {
        made += usize::from(at.get(name).is_none());
        at = at.object_value_or_create(name).ok_or_else(|| wrong(name))?;
    }
    match at.get(key) {
        Some(old) => old.set_value(ours.value.clone()),
        None => {
            at.append(key, ours.value.clone());
        }
    }
    let input = ours.input && put_input(&top);
    Ok(Put { text: format!("{mark}{root}"), made, input })
}

/// Adds the question for the token, once.
fn put_input(top: &CstObject) -> bool {
    let Some(inputs) = top.array_value_or_create("inputs") else { return false };
    let there = inputs.elements().iter().any(|element| {
        let id = element.as_object().and_then(|object| object.get("id")).and_then(|id| id.value());
        id.and_then(|id| id.as_string_lit()).and_then(|id| id.decoded_value().ok()).as_deref()
            == Some(INPUT)
    });
    if !there {
        inputs.append(object(vec![
            ("type", text("promptString")),
            ("id", text(INPUT)),
            ("description", text("The token of mcpx (mcpx status --http)")),
            ("password", true.into()),
        ]));
    }
    !there
}

/// TOML is edited with the line ends that it has, or not at all.
fn toml_document(path: &Path, text: &str) -> Result<(DocumentMut, bool), Mistake> {
    let windows = text.contains("\r\n");
    let plain = text.replace("\r\n", "\n");
    let source = SourceText::new(path, &plain);
    let document: DocumentMut = plain.parse().map_err(|error: toml_edit::TomlError| {
        source.mistake(error.span().map_or(0, |span| span.start), error.message())
    })?;
    let mixed = windows && plain.replace('\n', "\r\n") != text;
    // The last line may lack its end; an edit gives it one.
    let ended = plain.is_empty() || plain.ends_with('\n');
    let whole = if ended { plain } else { plain + "\n" };
    if mixed || document.to_string() != whole {
        let text = "an edit would change more of it than our entry (are its line ends mixed?): add the \
                    entry by hand";
        return Err(Mistake::of_file(path, text.to_owned()));
    }
    Ok((document, windows))
}

fn toml_text(document: &DocumentMut, windows: bool) -> String {
    let text = document.to_string();
    if windows { text.replace('\n', "\r\n") } else { text }
}

fn put_toml(path: &Path, present: &str, key: &str, ours: &Ours) -> Result<Put, Mistake> {
    let (mut document, windows) = toml_document(path, present)?;
    let wrong = |name: &str| Mistake::of_file(path, format!("`{name}` is no table there"));
    let (mut at, mut made) = (document.as_table_mut(), 0);
    for name in &ours.at {
        made += usize::from(!at.contains_key(name));
        let item = at.entry(name).or_insert_with(|| {
            let mut table = Table::new();
            table.set_implicit(true);
            toml_edit::Item::Table(table)
        });
        at = item.as_table_mut().ok_or_else(|| wrong(name))?;
    }
    let mut entry = Table::new();
    if let CstInputValue::Object(members) = &ours.value {
        for (name, member) in members {
            entry.insert(name, value(toml_value(member)));
        }
    }
    if !present.trim().is_empty() {
        entry.decor_mut().set_prefix("\n");
    }
    at.insert(key, toml_edit::Item::Table(entry));
    Ok(Put { text: toml_text(&document, windows), made, input: false })
}

fn toml_value(from: &CstInputValue) -> Value {
    match from {
        CstInputValue::Null => Value::from(""),
        CstInputValue::Bool(on) => Value::from(*on),
        CstInputValue::Number(text) | CstInputValue::String(text) => Value::from(text.as_str()),
        CstInputValue::Array(items) => Value::from(items.iter().map(toml_value).collect::<Array>()),
        CstInputValue::Object(members) => {
            let mut inline = InlineTable::new();
            for (name, member) in members {
                inline.insert(name, toml_value(member));
            }
            Value::from(inline)
        }
    }
}

/// What was put into a file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Where {
    /// Where entries stand.
    pub at: Vec<String>,
    /// The key.
    pub key: String,
    /// How many tables were made for it.
    pub made: usize,
    /// Whether VS Code's inputs got one.
    #[serde(default)]
    pub input: bool,
}

/// Takes our entry out of a text that was changed since, and what was made for it where that holds
/// nothing else now. `None` where the entry is gone already.
pub fn take(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    match Format::of(path) {
        Format::Json => take_json(path, present, of),
        Format::Toml => take_toml(path, present, of),
        Format::Yaml => Ok(None),
    }
}

fn take_json(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    let (mark, text) = match present.strip_prefix(BOM) {
        Some(rest) => (BOM, rest),
        None => ("", present),
    };
    let root = json_root(path, text)?;
    let Some(top) = root.object_value() else { return Ok(None) };
    let mut tables = vec![top.clone()];
    for name in &of.at {
        let Some(inner) = tables.last().and_then(|table| table.object_value(name)) else {
            return Ok(None);
        };
        tables.push(inner);
    }
    let Some(entry) = tables.last().and_then(|table| table.get(&of.key)) else { return Ok(None) };
    entry.remove();
    for (depth, name) in of.at.iter().enumerate().rev().take(of.made) {
        let empty = tables.get(depth + 1).is_some_and(|table| table.properties().is_empty());
        if let Some(property) =
            tables.get(depth).and_then(|table| table.get(name)).filter(|_| empty)
        {
            property.remove();
        }
    }
    if of.input {
        take_input(&top);
    }
    Ok(Some(format!("{mark}{root}")))
}

fn take_input(top: &CstObject) {
    let Some(inputs) = top.array_value("inputs") else { return };
    let is_ours = |element: &jsonc_parser::cst::CstNode| {
        let id = element.as_object().and_then(|object| object.get("id")).and_then(|id| id.value());
        id.and_then(|id| id.as_string_lit()).and_then(|id| id.decoded_value().ok()).as_deref()
            == Some(INPUT)
    };
    if let Some(element) = inputs.elements().into_iter().find(is_ours) {
        element.remove();
    }
    if inputs.elements().is_empty() {
        if let Some(property) = top.get("inputs") {
            property.remove();
        }
    }
}

fn take_toml(path: &Path, present: &str, of: &Where) -> Result<Option<String>, Mistake> {
    let (mut document, windows) = toml_document(path, present)?;
    if !take_from(document.as_table_mut(), &of.at, &of.key, of.made) {
        return Ok(None);
    }
    Ok(Some(toml_text(&document, windows)))
}

/// Takes the entry out of the table at this path; empty tables go where `made` says that they are ours.
fn take_from(table: &mut Table, at: &[String], key: &str, made: usize) -> bool {
    let Some((name, rest)) = at.split_first() else { return table.remove(key).is_some() };
    let Some(inner) = table.get_mut(name).and_then(toml_edit::Item::as_table_mut) else {
        return false;
    };
    let taken = take_from(inner, rest, key, made);
    if taken && inner.is_empty() && at.len() <= made {
        table.remove(name);
    }
    taken
}

/// Whether nothing is left in a text but its braces.
pub fn holds_nothing(text: &str) -> bool {
    text.chars().all(|c| c.is_whitespace() || matches!(c, '{' | '}'))
}

/// The text and its tree, or the first mistake with line and column.
pub fn readable(path: &Path, text: &str) -> Result<(SourceText, Vec<Entry>), Mistake> {
    let source = SourceText::new(path, text);
    match document::parse(&source) {
        Ok(top) => Ok((source, top)),
        Err(mistakes) => Err(mistakes
            .into_iter()
            .next()
            .unwrap_or_else(|| Mistake::of_file(path, "cannot be read".to_owned()))),
    }
}

/// What changes, line by line, each with its number. Only lines of ours are shown whole: of another one
/// that changed (a comma behind it), its name is.
pub fn difference(before: &str, after: &str, hidden: Option<&str>) -> Vec<String> {
    let (old, new): (Vec<&str>, Vec<&str>) = (before.lines().collect(), after.lines().collect());
    let same = old.iter().zip(&new).take_while(|(one, other)| one == other).count();
    let rest = old.len().min(new.len()) - same;
    let tail =
        old.iter().rev().zip(new.iter().rev()).take(rest).take_while(|(a, b)| a == b).count();
    let gone = old.get(same..old.len() - tail).unwrap_or_default();
    let come = new.get(same..new.len() - tail).unwrap_or_default();
    // A comment may stand behind the comma.
    let bare = |line: &str| line.replace(',', "");
    let shown = |line: &str, others: &[&str]| {
        let kept = others.iter().any(|other| bare(other) == bare(line));
        let text = match line.split_once(':').filter(|_| kept) {
            Some((name, rest)) => format!("{name}: …{}", if rest.contains(',') { "," } else { "" }),
            None => line.to_owned(),
        };
        match hidden.filter(|hidden| !hidden.is_empty()) {
            Some(hidden) => text.replace(hidden, "…"),
            None => text,
        }
    };
    let lines = |sign: char, all: &[&str], others: &[&str]| -> Vec<String> {
        let number = |at: usize| same + at + 1;
        all.iter()
            .enumerate()
            .map(|(at, line)| format!("{:>5} {sign} {}", number(at), shown(line, others)))
            .collect()
    };
    [lines('-', gone, come), lines('+', come, gone)].concat()
}

#[cfg(test)]
mod tests {
    use super::super::table::{HOSTS, find};
    use super::*;

    fn shim() -> Way {
        Way::Shim { program: "/opt/mcpx".to_owned(), args: vec!["serve".to_owned()] }
    }

    fn over_http() -> Way {
        let held = Held { file: Some("/s/http-token".into()), text: Some("t0ken".to_owned()) };
        Way::Http { url: "http://127.0.0.1:7332/mcp".to_owned(), token: Some(held) }
    }

    fn connect(host: &str, name: &str, text: &str, way: &Way) -> (Put, Where) {
        let path = Path::new(name);
        let (_, top) = readable(path, text).unwrap();
        let ours = ours(find(host).unwrap(), way, Reach::User, &top, false).unwrap();
        let put = put(path, text, KEY, &ours).unwrap();
        let of = Where { at: ours.at, key: KEY.to_owned(), made: put.made, input: put.input };
        (put, of)
    }

    #[test]
    fn comments_order_and_format_stay() {
        let text = "{\n  // the model\n  \"model\": \"x\", // here\n  \"mcp\": {\n    /* one */\n    \"a\": { \
                    \"type\": \"local\", \"command\": [\"a\"] } // last\n  },\n  \"theme\": \"y\"\n}\n";
        let (put, of) = connect("opencode", "o.jsonc", text, &shim());
        for line in text.lines() {
            let bare = line.trim_end_matches(" // last");
            assert!(put.text.contains(bare), "{line} in\n{}", put.text);
        }
        assert!(put.text.contains("// last"), "{}", put.text);
        let parsed = readable(Path::new("o.jsonc"), &put.text).unwrap().1;
        let mcp = table(&parsed, "mcp").unwrap();
        assert_eq!(mcp.iter().map(|entry| entry.key.as_str()).collect::<Vec<_>>(), ["a", "m"]);
        // Changed elsewhere since: only ours goes.
        let changed = put.text.replace("\"y\"", "\"z\"");
        let taken = take(Path::new("o.jsonc"), &changed, &of).unwrap().unwrap();
        let strip = |text: &str| text.replace(',', "");
        assert_eq!(strip(&taken), strip(&text.replace("\"y\"", "\"z\"")));
        assert!(readable(Path::new("o.jsonc"), &taken).is_ok());
        assert_eq!(take(Path::new("o.jsonc"), &taken, &of).unwrap(), None);
    }

    #[test]
    fn every_host_reads_its_entry_back_as_ours() {
        let own = Own { program: Path::new("/opt/mcpx"), listen: "127.0.0.1:7332".parse().ok() };
        for host in HOSTS {
            let name = host.spots[0].path;
            for way in [shim(), over_http()] {
                if matches!(way, Way::Http { .. }) && host.remote.is_none() {
                    continue;
                }
                let (put, of) = connect(host.name, name, "", &way);
                let (source, top) = readable(Path::new(name), &put.text).unwrap();
                assert_eq!(
                    standing(&source, &top, KEY, &own),
                    Standing::Ours,
                    "{}\n{}",
                    name,
                    put.text
                );
                assert_eq!(standing(&source, &top, "x", &own), Standing::Elsewhere(KEY.to_owned()));
                assert_eq!(others(&source, &top, &own), 0);
                let left = take(Path::new(name), &put.text, &of).unwrap().unwrap();
                assert!(holds_nothing(&left) || left == host.begin, "{}: {left:?}", host.name);
            }
        }
    }

    #[test]
    fn x05_opencode_2_gets_the_protocol_option() {
        let nested = "{ \"mcp\": { \"servers\": {} } }";
        let (put, of) = connect("opencode", "o.json", nested, &shim());
        assert_eq!(of.at, ["mcp", "servers"]);
        assert!(put.text.contains("\"protocol\": \"auto\""), "{}", put.text);
        let (put, _) = connect("opencode", "o.json", "{ \"mcp\": {} }", &shim());
        assert!(!put.text.contains("protocol"), "{}", put.text);
        let second = ours(find("opencode").unwrap(), &shim(), Reach::User, &[], true).unwrap();
        assert_eq!(second.at, ["mcp", "servers"]);
        assert!(ours(find("zed").unwrap(), &shim(), Reach::User, &[], true).is_err());
    }

    #[test]
    fn the_token_is_referred_to_where_the_host_can() {
        for (host, shown) in [
            ("opencode", "Bearer {file:/s/http-token}"),
            ("claude-code", "Bearer ${MCPX_TOKEN}"),
            ("cursor", "Bearer ${env:MCPX_TOKEN}"),
            ("gemini", "Bearer $MCPX_TOKEN"),
            ("vscode", "Bearer ${input:mcpx-token}"),
            ("codex", "bearer_token_env_var = \"MCPX_TOKEN\""),
            ("zed", "Bearer t0ken"),
        ] {
            let name = find(host).unwrap().spots[0].path;
            let (put, _) = connect(host, name, "", &over_http());
            assert!(put.text.contains(shown), "{host}: {}", put.text);
            assert_eq!(put.text.contains("t0ken"), host == "zed", "{host}");
        }
        let zed = find("zed").unwrap();
        assert!(ours(zed, &over_http(), Reach::Project, &[], false).is_err());
        let desktop = find("claude-desktop").unwrap();
        assert!(ours(desktop, &over_http(), Reach::User, &[], false).is_err());
    }

    #[test]
    fn toml_stays_in_order() {
        for end in ["\n", "\r\n"] {
            let text =
                "# mine\nmodel = 'x'\n\n[mcp_servers.b]\ncommand = 'C:\\b' # kept\n\n[a]\nz = 1\n";
            let text = text.replace('\n', end);
            let (put, of) = connect("codex", "config.toml", &text, &shim());
            let lines: Vec<&str> = put.text.lines().collect();
            assert!(text.lines().all(|line| lines.contains(&line)), "{}", put.text);
            assert_eq!(put.text.matches('\n').count(), put.text.matches(end).count());
            assert!(put.text.contains("[mcp_servers.m]"), "{}", put.text);
            let taken = take(Path::new("config.toml"), &put.text, &of).unwrap().unwrap();
            assert_eq!(taken, text);
        }
        let mixed = "a = 1\r\nb = 2\n";
        let path = Path::new("config.toml");
        let ours = ours(find("codex").unwrap(), &shim(), Reach::User, &[], false).unwrap();
        assert!(put(path, mixed, KEY, &ours).unwrap_err().to_string().contains("line ends"));
        let broken = put(path, "a = \n", KEY, &ours).unwrap_err().to_string();
        assert!(broken.starts_with("config.toml:1:"), "{broken}");
    }

    #[test]
    fn a_byte_order_mark_and_windows_lines_stay() {
        let text =
            "\u{feff}{\r\n  \"mcpServers\": {\r\n    \"a\": {\"command\": \"a\"}\r\n  }\r\n}\r\n";
        let (put, _) = connect("cursor", "mcp.json", text, &shim());
        assert!(put.text.starts_with('\u{feff}'));
        assert_eq!(
            put.text.matches('\n').count(),
            put.text.matches("\r\n").count(),
            "{:?}",
            put.text
        );
    }

    #[test]
    fn what_is_no_table_is_refused() {
        for text in ["[]", "{\"mcpServers\": []}", "{\"mcpServers\": 1}"] {
            let path = Path::new("mcp.json");
            let ours = ours(find("cursor").unwrap(), &shim(), Reach::User, &[], false).unwrap();
            assert!(put(path, text, KEY, &ours).is_err(), "{text}");
        }
    }

    #[test]
    fn a_difference_shows_no_others_secret() {
        let before = "{\n  \"token\": \"hush\"\n}\n";
        let after = "{\n  \"token\": \"hush\",\n  \"m\": \"t0ken\"\n}\n";
        let lines = difference(before, after, Some("t0ken"));
        assert_eq!(
            lines,
            ["    2 -   \"token\": …", "    2 +   \"token\": …,", "    3 +   \"m\": \"…\""]
        );
        assert!(difference(before, before, None).is_empty());
    }
}
