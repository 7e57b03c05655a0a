//! What an import would do: each server of a host's files with what becomes of it, the rules that come
//! along, and the text of the file that holds them.

use std::path::{Path, PathBuf};

use super::entry::{self, Context, Server};
use super::found::{self, Candidate};
use super::own::{self, Own};
use super::rules::{self, Carried, Line, Subject};
use super::secret::SecretFile;
use super::table::{Around, Dialect, Found, Host, Reach};
use super::words::{Reader, Told};
use super::{document, render};
use crate::settings::layers::Layer;
use crate::settings::load::Loaded;
use crate::settings::mistake::{Mistake, Place};
use crate::settings::parse;
use crate::settings::servers::ServerDef;
use crate::settings::tree::SourceText;

/// What is to be taken over, and into what.
pub struct Request<'a> {
    /// Whose files; `None` for a file of unknown origin.
    pub host: Option<&'static Host>,
    /// The files.
    pub files: &'a [Found],
    /// Where we are.
    pub around: &'a Around<'a>,
    /// The file to write.
    pub target: &'a Path,
    /// What it holds now.
    pub present: Option<&'a str>,
    /// Where secrets go.
    pub secrets: &'a Path,
    /// The configuration in force.
    pub loaded: &'a Loaded,
    /// This program.
    pub program: &'a Path,
    /// Whether a program is found.
    pub runs: &'a dyn Fn(&str) -> bool,
    /// Servers and rules that are there otherwise are replaced.
    pub force: bool,
}

impl std::fmt::Debug for Request<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Request").field("target", &self.target).finish_non_exhaustive()
    }
}

/// What becomes of an entry.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case", tag = "becomes", content = "reason")]
pub enum Becomes {
    /// A server of mcpx.
    Imported,
    /// It takes the place of one that was there.
    Replaced,
    /// Its host does not start it: it is written as a comment.
    Off,
    /// It is there already.
    Same,
    /// It is left out.
    Skipped(String),
}

/// An entry of a host's file.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Item {
    /// Its key in mcpx.
    pub server: String,
    /// Where it stands.
    pub from: String,
    /// What becomes of it.
    #[serde(flatten)]
    pub becomes: Becomes,
    /// Its command or address, without secrets.
    pub what: String,
    /// What is to be said about it.
    #[serde(flatten)]
    pub told: Told,
}

/// All of it.
#[derive(Debug, Default)]
pub struct Plan {
    /// Each entry.
    pub servers: Vec<Item>,
    /// Rules that come along.
    pub policy: Vec<Line>,
    /// What is to be said of the whole.
    pub notes: Vec<String>,
    /// Files that cannot be read, with line and column.
    pub broken: Vec<Mistake>,
    /// The new content of the file; `None` where there is nothing to write.
    pub text: Option<String>,
    /// Secrets to write.
    pub secrets: Vec<SecretFile>,
}

/// An entry on its way.
struct Draft {
    item: Item,
    /// The host's key, which its rules are about.
    host_key: String,
    server: Option<Server>,
    def: Option<ServerDef>,
}

/// Makes the plan.
pub fn plan(request: &Request<'_>) -> Plan {
    let mut plan = Plan::default();
    let mut drafts: Vec<Draft> = Vec::new();
    let mut carried = Carried::default();
    for file in request.files {
        let source = match SourceText::read(&file.path) {
            Ok(source) => source,
            Err(mistake) => {
                plan.broken.push(mistake);
                continue;
            }
        };
        let top = match document::parse(&source) {
            Ok(top) => top,
            Err(mistakes) => {
                plan.broken.extend(mistakes);
                continue;
            }
        };
        let begin = drafts.len();
        for candidate in found::servers(&source, &top, Some(request.around.project)) {
            let draft = draft(request, file, &source, candidate, &drafts);
            drafts.push(draft);
        }
        if request.host.is_none_or(|host| host.name == "opencode") {
            let subjects = subjects(drafts.get(begin..).unwrap_or_default());
            add(&mut carried, rules::of_opencode(&top, &subjects));
        }
    }
    let beside = request.host.map(|host| host.rule_files(request.around)).unwrap_or_default();
    for file in beside {
        let read = SourceText::read(&file.path).map_err(|mistake| vec![mistake]);
        match read.and_then(|source| document::parse(&source)) {
            Ok(top) => add(&mut carried, rules::of_claude(&top, &subjects(&drafts))),
            Err(mistakes) => plan.broken.extend(mistakes),
        }
    }
    plan.notes = carried.notes;
    policy(request, carried.lines, &mut plan);
    write(request, drafts, &mut plan);
    plan
}

fn add(all: &mut Carried, more: Carried) {
    all.lines.extend(more.lines);
    all.notes.extend(more.notes);
}

fn subjects(drafts: &[Draft]) -> Vec<Subject<'_>> {
    let taken = drafts.iter().filter_map(|draft| {
        let def = draft.def.as_ref()?;
        (!matches!(draft.item.becomes, Becomes::Skipped(_)))
            .then_some(Subject { key: &draft.host_key, namespace: &def.namespace })
    });
    taken.collect()
}

fn draft(
    request: &Request<'_>,
    file: &Found,
    source: &SourceText,
    candidate: Candidate,
    before: &[Draft],
) -> Draft {
    let mut item = Item {
        server: candidate.key.clone(),
        from: source.place(candidate.at).to_string(),
        becomes: Becomes::Imported,
        what: String::new(),
        told: Told::default(),
    };
    let host_key = candidate.key.clone();
    let skipped = |mut item: Item, reason: String| {
        item.becomes = Becomes::Skipped(reason);
        Draft { item, host_key: host_key.clone(), server: None, def: None }
    };
    let own = Own { program: request.program, listen: request.loaded.settings.http.listen };
    if own::is(&candidate.node, &own) {
        return skipped(item, "is mcpx itself".to_owned());
    }
    let folder = file.path.parent().unwrap_or(Path::new("/"));
    let context = Context {
        reader: Reader {
            dialect: request.host.map_or(Dialect::Any, |host| host.dialect),
            folder,
            secrets: request.secrets,
            lookup: request.around.lookup,
        },
        runs: request.runs,
        project: (file.reach == Reach::Project).then_some(request.around.project),
    };
    let mut server = match entry::read(&candidate.key, &candidate.node, &context) {
        Ok(server) => server,
        Err(reason) => return skipped(item, reason),
    };
    if let Some(key) = candidate.off {
        server.off = true;
        server.told.note(format!("is turned off by `{key}`"));
    }
    item.told = std::mem::take(&mut server.told);
    item.what = what(&server);
    let def = match definition(request.target, &item.server, &server) {
        Ok(def) => def,
        Err(reason) => return skipped(item, reason),
    };
    let mut draft = Draft { item, host_key: candidate.key, server: Some(server), def: Some(def) };
    place(request, &mut draft, before);
    draft
}

/// The command line or the address; secrets are references by now.
fn what(server: &Server) -> String {
    match &server.url {
        Some(url) => url.clone(),
        None => server.command.join(" "),
    }
}

/// As mcpx will read it, or its complaint.
fn definition(target: &Path, key: &str, server: &Server) -> Result<ServerDef, String> {
    let text = render::server_text(key, server);
    let mut mistakes = Vec::new();
    let source = SourceText::new(target, &text);
    let mut content = parse::read_source(&source, Layer::Extra, &mut mistakes);
    match (mistakes.first(), content.servers.pop()) {
        (None, Some(draft)) => Ok(draft.finish(1)),
        (Some(mistake), _) => Err(format!("mcpx does not take it: {}", mistake.text)),
        (None, None) => Err("mcpx does not take it".to_owned()),
    }
}

/// Decides between what comes and what is there.
fn place(request: &Request<'_>, draft: &mut Draft, before: &[Draft]) {
    let (Some(def), Some(server)) = (&draft.def, &draft.server) else { return };
    let earlier = before.iter().filter(|other| !matches!(other.item.becomes, Becomes::Skipped(_)));
    let twin = earlier
        .clone()
        .find(|other| other.def.as_ref().is_some_and(|other| other.namespace == def.namespace));
    if let Some(twin) = twin {
        let same = twin.def.as_ref().is_some_and(|other| alike(other, def));
        draft.item.becomes = Becomes::Skipped(if same {
            format!("is the same as at {}", twin.item.from)
        } else {
            format!(
                "`{}` at {} has its name and is another server",
                twin.item.server, twin.item.from
            )
        });
        return;
    }
    let there = request
        .loaded
        .settings
        .servers
        .iter()
        .zip(&request.loaded.server_places)
        .find(|(other, _)| !other.builtin && other.namespace == def.namespace);
    draft.item.becomes = match there {
        Some((other, _)) if alike(other, def) => Becomes::Same,
        Some((other, place)) if !request.force || other.key != def.key => {
            let place = place.as_ref().map(Place::to_string).unwrap_or_default();
            let how = if other.key == def.key { "; --force takes this one" } else { "" };
            Becomes::Skipped(format!("`{}` at {place} is there and is another one{how}", other.key))
        }
        Some(_) => Becomes::Replaced,
        None if server.off => Becomes::Off,
        None => Becomes::Imported,
    };
}

/// Whether two definitions start the same.
fn alike(one: &ServerDef, other: &ServerDef) -> bool {
    one.command == other.command
        && one.url == other.url
        && one.transport == other.transport
        && one.headers == other.headers
        && one.auth == other.auth
        && one.env == other.env
        && one.cwd == other.cwd
        && one.tools.allow == other.tools.allow
        && one.tools.deny == other.tools.deny
}

/// Rules that are not there yet.
fn policy(request: &Request<'_>, lines: Vec<Line>, plan: &mut Plan) {
    for line in lines {
        if plan.policy.iter().any(|known| known.pattern == line.pattern) {
            // Two files of one host: the stricter word counts.
            for known in plan.policy.iter_mut().filter(|known| known.pattern == line.pattern) {
                known.rule = known.rule.max(line.rule);
            }
            continue;
        }
        let there = request.loaded.policy.iter().find(|rule| rule.pattern() == line.pattern);
        match there {
            Some(rule) if rule.rule == line.rule => {}
            Some(rule) if !request.force => plan.notes.push(format!(
                "policy `{}` = {} stays as it is at {}; the host says {}",
                line.pattern,
                rule.rule.as_str(),
                rule.place,
                line.rule.as_str()
            )),
            _ => plan.policy.push(line),
        }
    }
}

/// The text of the file, and the secrets.
fn write(request: &Request<'_>, drafts: Vec<Draft>, plan: &mut Plan) {
    let from = request.host.map_or_else(
        || request.files.first().map(|file| file.path.display().to_string()).unwrap_or_default(),
        |host| host.title.to_owned(),
    );
    let mut file = match render::File::begin(request.present, &from) {
        Ok(file) => file,
        Err(why) => {
            plan.broken.push(Mistake::of_file(request.target, why));
            return;
        }
    };
    for mut draft in drafts {
        if let Some(server) = &mut draft.server {
            let written = match draft.item.becomes {
                Becomes::Imported | Becomes::Replaced => file.put(&draft.item, server),
                Becomes::Off => file.put_off(&draft.item, server),
                Becomes::Same | Becomes::Skipped(_) => false,
            };
            if !written && draft.item.becomes == Becomes::Off {
                draft.item.becomes = Becomes::Same;
            }
            if written {
                secrets(request, server, &mut draft.item.told, &mut plan.secrets);
            }
        }
        plan.servers.push(draft.item);
    }
    file.put_policy(&plan.policy);
    let text = file.finish();
    if request.present == Some(text.as_str()) || !file_has_content(plan) {
        return;
    }
    let mut mistakes = Vec::new();
    parse::read_source(&SourceText::new(request.target, &text), Layer::Extra, &mut mistakes);
    if mistakes.is_empty() {
        plan.text = Some(text);
    } else {
        plan.broken.extend(mistakes);
    }
}

fn file_has_content(plan: &Plan) -> bool {
    let put = |item: &Item| !matches!(item.becomes, Becomes::Same | Becomes::Skipped(_));
    plan.servers.iter().any(put) || !plan.policy.is_empty()
}

fn secrets(request: &Request<'_>, server: &mut Server, told: &mut Told, all: &mut Vec<SecretFile>) {
    for secret in std::mem::take(&mut server.secrets) {
        let there = std::fs::read_to_string(&secret.path).ok();
        let same = there.as_deref().map(|text| text.trim_end_matches('\n')) == Some(&secret.value);
        if there.is_some() && !same && !request.force {
            told.warn(format!(
                "{} holds another value and stays as it is; --force writes this one",
                secret.path.display()
            ));
        } else if !same {
            all.push(secret);
        }
    }
}

/// The file that an import of this host or file writes, in the folder of the configuration.
pub fn target(folder: &Path, host: Option<&Host>, file: Option<&Path>) -> PathBuf {
    let name = match (host, file) {
        (Some(host), _) => host.name.to_owned(),
        (None, Some(file)) => {
            let stem = file.file_stem().map(|stem| stem.to_string_lossy().into_owned());
            let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
            let name: String = stem.unwrap_or_default().chars().map(plain).collect();
            let name = name.trim_matches('-').to_owned();
            if name.is_empty() { "file".to_owned() } else { name }
        }
        (None, None) => "file".to_owned(),
    };
    folder.join("conf.d").join(format!("20-import-{name}.toml"))
}
