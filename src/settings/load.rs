//! Loading: all layers and server tables to [`Settings`], or every mistake at once.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::layers::{InForce, Layer, Resolved, Sources};
use super::mistake::{Mistake, Place, hint};
use super::parse;
use super::policy::{self, PolicyRule};
use super::profiles::{self, Profile, ProfileDef};
use super::projects::{self, Everybody, Project};
use super::servers::{self, Scope, ServerDef, ServerDraft};
use super::typed::{OtelHeader, Settings};
use super::value::Value;

/// A configuration in force, with where each part of it came from.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// As the program uses it, for hosts that are in no project with servers of its own.
    pub settings: Arc<Settings>,
    /// The same with the servers of all projects: what there is to run.
    pub everywhere: Arc<Settings>,
    /// The projects that have servers of their own.
    pub projects: Vec<Project>,
    /// Every setting with its origin.
    pub resolved: Resolved,
    /// Where each of `settings.servers` is defined; `None` for the built-in one.
    pub server_places: Vec<Option<Place>>,
    /// `[policy]` of all files, in their order; what it says of a server stands in its definition too.
    pub policy: Vec<PolicyRule>,
    /// The profiles, in the order of the files.
    pub profiles: Vec<Profile>,
    /// The files that were read, weakest first.
    pub files: Vec<PathBuf>,
    /// Of [`Sources::digest`], from before they were read.
    pub digest: [u8; 32],
    /// What is no mistake but worth a word: run-time values that no longer fit and were left out, and
    /// what works otherwise than one might think.
    pub warnings: Vec<Mistake>,
}

impl Loaded {
    /// The profile of this name.
    pub fn profile(&self, name: &str) -> Option<&Profile> {
        self.profiles.iter().find(|profile| profile.def.name == name)
    }

    /// The project of this folder, where it has servers of its own.
    pub fn project(&self, folder: &Path) -> Option<&Project> {
        self.projects.iter().find(|project| *project.folder == *folder)
    }

    /// What is in force for hosts in this folder that came in by this profile; `None` where there is no
    /// such profile.
    pub fn seen_from(
        &self,
        folder: Option<&Path>,
        profile: Option<&str>,
    ) -> Option<&Arc<Settings>> {
        let project = folder.and_then(|folder| self.project(folder));
        let (settings, profiles) = match project {
            Some(project) => (&project.settings, &project.profiles),
            None => (&self.settings, &self.profiles),
        };
        let Some(name) = profile else { return Some(settings) };
        let profile = profiles.iter().find(|profile| profile.def.name == name);
        profile.map(|profile| &profile.settings)
    }

    /// What somebody is told who wants a profile that there is not.
    pub fn no_profile(&self, name: &str) -> String {
        let known = self.profiles.iter().map(|profile| profile.def.name.as_str());
        let hint = if self.profiles.is_empty() {
            "none is configured; write [profiles.NAME], or leave it out".to_owned()
        } else {
            hint(name, known)
        };
        format!("there is no profile `{name}`: {hint}")
    }
}

impl Settings {
    /// Reads every layer. `program` is this program's own file, for the built-in upstream.
    pub fn load(sources: &Sources, program: &Path) -> Result<Loaded, Vec<Mistake>> {
        let digest = sources.digest();
        let mut mistakes = Vec::new();
        let mut warnings = Vec::new();
        let mut layers = vec![parse::defaults()?];
        let mut drafts: Vec<ServerDraft> = Vec::new();
        let mut policy: Vec<PolicyRule> = Vec::new();
        let mut profiles: Vec<ProfileDef> = Vec::new();
        let mut files = Vec::new();
        for (layer, path) in sources.files() {
            if let Some(content) = parse::read_file(&path, layer, &mut mistakes) {
                layers.push(content.values);
                policy::place(&mut policy, content.policy);
                profiles::place(&mut profiles, content.profiles);
                content.servers.into_iter().for_each(|draft| place_server(&mut drafts, draft));
            }
            files.push(path);
        }
        layers.push(parse::read_variables(&sources.variables, &mut mistakes));
        layers.push(parse::read_flags(&sources.flags, &mut mistakes));
        layers.push(parse::read_runtime(&sources.runtime, &mut warnings));
        servers::check_names(&drafts, &mut mistakes);
        if !mistakes.is_empty() {
            return Err(mistakes);
        }
        let resolved = Resolved::merge(&layers).map_err(|mistake| vec![mistake])?;
        check_together(&resolved).map_err(|mistake| vec![mistake])?;
        let (settings, server_places) = assemble(&resolved, drafts, &policy, program);
        warnings.extend(sessions_that_are_calls(&settings, &server_places));
        let settings = Arc::new(settings);
        let everybody = Everybody { settings: &settings, policy: &policy, profiles: &profiles };
        let projects = projects::assemble(sources, &everybody, &mut warnings);
        let everywhere = everywhere(&settings, &projects);
        let namespaces: Vec<&str> =
            everywhere.servers.iter().map(|server| server.namespace.as_str()).collect();
        warnings.extend(policy::about_nothing(&policy, &namespaces));
        warnings.extend(profiles::about_nothing(&profiles, &everywhere));
        let profiles = profiles::assemble(profiles, &settings);
        Ok(Loaded {
            settings,
            everywhere,
            projects,
            resolved,
            server_places,
            policy,
            profiles,
            files,
            digest,
            warnings,
        })
    }

    /// The built-in values and the built-in upstream alone: what tests and broken configurations
    /// start from.
    pub fn defaults(program: &Path) -> Result<Loaded, Vec<Mistake>> {
        Self::load(&Sources::default(), program)
    }
}

/// All that may run: the servers of everybody, and after them those of each project.
fn everywhere(everybody: &Arc<Settings>, projects: &[Project]) -> Arc<Settings> {
    if projects.is_empty() {
        return Arc::clone(everybody);
    }
    let own = projects.iter().flat_map(Project::servers);
    let servers = everybody.servers.iter().chain(own).cloned().collect();
    Arc::new(Settings { servers, ..Settings::clone(everybody) })
}

/// Modern hosts over HTTP have no session: for them, what is for a session is for one call
/// (product.md 3).
fn sessions_that_are_calls<'a>(
    settings: &'a Settings,
    places: &'a [Option<Place>],
) -> impl Iterator<Item = Mistake> + 'a {
    let served = settings.http.listen.is_some();
    let servers = settings.servers.iter().zip(places).filter(move |_| served);
    servers.filter(|(server, _)| server.scope == Scope::Session).filter_map(|(server, place)| {
        let text = format!(
            "server `{}` has the scope `session`, and hosts that speak the newest protocol revision \
             over HTTP have none: each of their calls gets an instance of its own",
            server.key
        );
        Some(Mistake { place: place.clone()?, text })
    })
}

/// What may not be in force together, whoever said each; and what is more than one value's form.
fn check_together(resolved: &Resolved) -> Result<(), Mistake> {
    check_headers(resolved)?;
    let http = Settings::of_values(resolved).http;
    let afar = http.listen.filter(|listen| !listen.ip().is_loopback());
    let (Some(listen), true, Some(open)) = (afar, http.open, resolved.get("http.open")) else {
        return Ok(());
    };
    Err(Mistake {
        place: open.origin.place.clone(),
        text: format!(
            "`http.open` needs a loopback address, and `http.listen` is {listen}: everybody in the \
             network could use every server; leave `http.open` off, so that hosts need the token"
        ),
    })
}

/// `otel.headers`, whose values nobody is shown, also not in a mistake.
fn check_headers(resolved: &Resolved) -> Result<(), Mistake> {
    let Some(InForce { value: Value::Secret(written), origin, .. }) = resolved.get("otel.headers")
    else {
        return Ok(());
    };
    OtelHeader::read_all(written.written()).map(|_| ()).map_err(|why| Mistake {
        place: origin.place.clone(),
        text: format!("`otel.headers`: {why}"),
    })
}

/// A later file's table of the same key takes the earlier one's place as a whole.
fn place_server(drafts: &mut Vec<ServerDraft>, draft: ServerDraft) {
    match drafts.iter_mut().find(|earlier| earlier.def.key == draft.def.key) {
        Some(earlier) => *earlier = draft,
        None => drafts.push(draft),
    }
}

fn assemble(
    resolved: &Resolved,
    drafts: Vec<ServerDraft>,
    policy: &[PolicyRule],
    program: &Path,
) -> (Settings, Vec<Option<Place>>) {
    let mut settings = Settings::of_values(resolved);
    let govern = |mut def: ServerDef| {
        def.tools.govern(&def.namespace, policy);
        Arc::new(def)
    };
    if drafts.is_empty() {
        settings.servers = vec![govern(ServerDef::demo(program))];
        return (settings, vec![None]);
    }
    let places = drafts.iter().map(|draft| Some(draft.place.clone())).collect();
    let max = settings.pool.max;
    settings.servers = drafts.into_iter().map(|draft| govern(draft.finish(max))).collect();
    (settings, places)
}

/// Settings whose value is in a later layer than `layer` are not changed by a change there; for
/// telling people why a value they set does not count.
pub fn overruled_by(loaded: &Loaded, key: &str, layer: Layer) -> Option<String> {
    let in_force = loaded.resolved.get(key)?;
    (in_force.origin.layer > layer).then(|| in_force.origin.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::settings::layers::FlagValue;

    fn write(path: &Path, text: &str) {
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
        std::fs::write(path, text).unwrap();
    }

    fn origin(loaded: &Loaded, key: &str) -> String {
        let in_force = loaded.resolved.get(key).unwrap();
        format!("{} from {}", in_force.value, in_force.origin)
    }

    #[test]
    fn every_layer_is_read_and_each_value_knows_its_origin() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(&root.join("etc/config.toml"), "[pool]\nqueue = 1\nin_flight = 1\npark_after = 1\n");
        write(&root.join("user/config.toml"), "[pool]\nin_flight = 2\npark_after = 2\nmax = 2\n");
        write(&root.join("user/conf.d/10-x.json"), "{\"pool\": {\"park_after\": 3, \"max\": 3}}");
        let sources = Sources {
            system: Some(root.join("etc")),
            user: Some(root.join("user")),
            file: None,
            variables: vec![("MCPX_POOL_MAX".to_owned(), "4".to_owned())],
            flags: vec![FlagValue {
                flag: "--set".to_owned(),
                key: "call.idle_timeout".to_owned(),
                text: "1m".to_owned(),
            }],
            runtime: vec![("call.total_timeout".to_owned(), "2m".to_owned())],
            trusted: None,
        };
        let loaded = Settings::load(&sources, Path::new("/bin/mcpx")).unwrap();
        let root = root.display();
        for (key, expected) in [
            ("pool.queue", format!("1 from {root}/etc/config.toml:2:1")),
            ("pool.in_flight", format!("2 from {root}/user/config.toml:2:1")),
            ("pool.park_after", format!("3 from {root}/user/conf.d/10-x.json:1:11")),
            ("pool.max", "4 from environment variable MCPX_POOL_MAX".to_owned()),
            ("call.idle_timeout", "1m from --set".to_owned()),
            ("call.total_timeout", "2m from set at run time".to_owned()),
            ("shim.grace", "30s from default".to_owned()),
        ] {
            assert_eq!(origin(&loaded, key), expected);
        }
        assert_eq!(loaded.settings.pool.max, 4);
        assert_eq!(loaded.files.len(), 3);
        assert!(overruled_by(&loaded, "pool.max", Layer::User).unwrap().contains("MCPX_POOL_MAX"));
        assert_eq!(overruled_by(&loaded, "shim.grace", Layer::User), None);
    }

    #[test]
    fn mistakes_of_all_layers_come_together_and_run_time_values_only_warn() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        write(&file, "[pool]\nqeue = 1\n[servers.a]\ncommand = \"a\"\nscop = \"global\"\n");
        let sources = Sources {
            file: Some(file),
            variables: vec![("MCPX_POOL_MAX".to_owned(), "none".to_owned())],
            runtime: vec![("gone.key".to_owned(), "1".to_owned())],
            ..Sources::default()
        };
        assert_eq!(Settings::load(&sources, Path::new("/bin/mcpx")).unwrap_err().len(), 3);
        let sources = Sources {
            runtime: vec![("gone.key".to_owned(), "1".to_owned())],
            ..Sources::default()
        };
        assert_eq!(Settings::load(&sources, Path::new("x")).unwrap().warnings.len(), 1);
    }

    #[test]
    fn the_demo_upstream_stands_in_for_none_and_only_for_none() {
        let loaded = Settings::defaults(Path::new("/opt/a$b/mcpx")).unwrap();
        let demo = loaded.settings.servers.first().unwrap();
        assert!(demo.builtin);
        assert_eq!(demo.command, ["/opt/a$$b/mcpx", "demo-server"]);

        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("c.toml");
        write(&file, "[servers.zeta]\ncommand = \"z\"\n[servers.Alpha]\ncommand = \"a\"\n");
        let sources = Sources { file: Some(file), ..Sources::default() };
        let loaded = Settings::load(&sources, Path::new("/bin/mcpx")).unwrap();
        let keys: Vec<_> = loaded.settings.servers.iter().map(|def| def.key.as_str()).collect();
        assert_eq!(keys, ["zeta", "Alpha"]);
    }

    #[test]
    fn a_later_layer_replaces_a_server_as_a_whole() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(&root.join("etc/config.toml"), "[servers.a]\ncommand = \"old\"\nmax = 5\n");
        write(&root.join("user/config.toml"), "[servers.a]\ncommand = \"new\"\n");
        let sources = Sources {
            system: Some(root.join("etc")),
            user: Some(root.join("user")),
            ..Sources::default()
        };
        let loaded = Settings::load(&sources, Path::new("/bin/mcpx")).unwrap();
        let def = loaded.settings.servers.first().unwrap();
        assert_eq!(
            (loaded.settings.servers.len(), def.command.first().unwrap().as_str()),
            (1, "new")
        );
        assert_eq!(def.max, 1);
    }

    #[test]
    fn the_file_that_was_named_must_be_there() {
        let sources =
            Sources { file: Some(PathBuf::from("/nowhere/c.toml")), ..Sources::default() };
        let mistakes = Settings::load(&sources, Path::new("x")).unwrap_err();
        assert!(
            mistakes.first().unwrap().to_string().starts_with("/nowhere/c.toml: cannot be read")
        );
    }
}
