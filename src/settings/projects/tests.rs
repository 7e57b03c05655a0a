//! Tests of what a project's own file does.

use super::*;
use crate::settings::{Loaded, Rule};

const OWN: &str = "[servers.docs]\ncommand = 'd'\n[servers.github]\ncommand = 'g'\n\
                   [policy]\n'db.drop' = 'deny'\n\
                   [profiles.review]\nservers = ['d*']\npolicy = { 'docs.w' = 'ask' }\n";

struct Place {
    top: tempfile::TempDir,
}

impl Place {
    fn new(own: &str) -> Self {
        let place = Self { top: tempfile::tempdir().unwrap() };
        place.write("c.toml", own);
        place
    }

    fn folder(&self, name: &str) -> PathBuf {
        self.top.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.folder(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        #[expect(clippy::disallowed_methods, reason = "a test writes its own input")]
        std::fs::write(path, text).unwrap();
    }

    /// Trusts these folders as they are now.
    fn trust(&self, folders: &[&str]) {
        let mut trust = Trust::default();
        for name in folders {
            let folder = self.folder(name);
            let text = std::fs::read(folder.join(FILE)).unwrap();
            trust.folders.insert(folder, digest_of(&text));
        }
        self.write("trusted.json", &String::from_utf8(trust.write()).unwrap());
    }

    fn sources(&self) -> Sources {
        let (file, trusted) = (Some(self.folder("c.toml")), Some(self.folder("trusted.json")));
        Sources { file, trusted, ..Sources::default() }
    }

    fn load(&self) -> Loaded {
        Settings::load(&self.sources(), Path::new("/nowhere/mcpx")).unwrap()
    }

    fn keys(&self, loaded: &Loaded, folder: &str, profile: Option<&str>) -> Vec<String> {
        let settings = loaded.seen_from(Some(&self.folder(folder)), profile).unwrap();
        settings.servers.iter().map(|def| def.key.clone()).collect()
    }
}

#[test]
fn a_project_adds_servers_for_itself_alone() {
    let place = Place::new(OWN);
    place.write("p/.mcpx.toml", "[servers.db]\ncommand = 'x'\n[servers.github]\ncommand = 'y'\n");
    place.write("q/.mcpx.toml", "[servers.db]\ncommand = 'z'\n");
    place.trust(&["p", "q"]);
    let loaded = place.load();
    assert!(loaded.warnings.is_empty(), "{:?}", loaded.warnings);
    let at = |key: &str, folder: &str| format!("{key}@{}", place.folder(folder).display());
    let p = [at("db", "p"), at("github", "p")];
    assert_eq!(place.keys(&loaded, "p", None), ["docs", &p[0], &p[1]]);
    assert_eq!(place.keys(&loaded, "q", None), ["docs", "github", &at("db", "q")]);
    assert_eq!(place.keys(&loaded, "elsewhere", None), ["docs", "github"]);
    assert_eq!(place.keys(&loaded, "p", Some("review")), ["docs", &p[0]]);
    assert!(loaded.seen_from(Some(&place.folder("p")), Some("other")).is_none());
    let all: Vec<_> = loaded.everywhere.servers.iter().map(|def| def.key.as_str()).collect();
    assert_eq!(all, ["docs", "github", &p[0], &p[1], &at("db", "q")]);
    let project = loaded.project(&place.folder("p")).unwrap();
    let namespaces: Vec<_> = project.servers().map(|def| def.namespace.as_str()).collect();
    assert_eq!(namespaces, ["db", "github"], "hosts know them by their names in the file");
}

#[test]
fn a_project_opens_nothing() {
    let place = Place::new(OWN);
    let text = "[servers.db]\ncommand = 'x'\n[policy]\n'db.drop' = 'allow'\n'docs.w' = 'deny'\n\
                'db.write' = 'ask'\n";
    place.write("p/.mcpx.toml", text);
    place.trust(&["p"]);
    let loaded = place.load();
    let rule = |profile: Option<&str>, namespace: &str, tool: &str| {
        let settings = loaded.seen_from(Some(&place.folder("p")), profile).unwrap();
        let def = settings.servers.iter().find(|def| def.namespace == namespace).unwrap();
        def.tools.of(tool)
    };
    assert_eq!(rule(None, "db", "drop"), Rule::Deny, "the person's own rule");
    assert_eq!(rule(None, "db", "write"), Rule::Ask);
    assert_eq!(rule(None, "docs", "w"), Rule::Deny, "the project's, of the person's server");
    assert_eq!(rule(Some("review"), "docs", "w"), Rule::Deny, "of two the stricter");
    let docs = loaded.settings.servers.iter().find(|def| def.key == "docs").unwrap();
    assert_eq!(docs.tools.of("w"), Rule::Allow, "elsewhere it says nothing");
}

#[test]
fn only_what_was_looked_at_counts() {
    let place = Place::new("");
    place.write("p/.mcpx.toml", "[servers.db]\ncommand = 'x'\n");
    assert!(place.load().projects.is_empty(), "nobody has said anything");
    place.trust(&["p"]);
    let before = place.sources().digest();
    let loaded = place.load();
    assert_eq!(loaded.projects.len(), 1);
    let keys = place.keys(&loaded, "p", None);
    assert_eq!(keys.len(), 1, "the demo server stands for none: {keys:?}");

    place.write("p/.mcpx.toml", "[servers.db]\ncommand = 'y'\n");
    assert_ne!(place.sources().digest(), before, "the change is seen");
    let loaded = place.load();
    assert!(loaded.projects.is_empty());
    let told = loaded.warnings.first().unwrap().to_string();
    assert!(told.contains("p/.mcpx.toml: has changed since it was trusted"), "{told}");
    assert!(told.ends_with("p`"), "{told}");

    place.write("trusted.json", "{\"version\":9,\"folders\":{}}");
    let told = place.load().warnings.first().unwrap().to_string();
    assert!(told.contains("no project is trusted"), "{told}");
}

#[test]
fn how_a_file_stands() {
    let place = Place::new("");
    let folder = place.folder("p");
    let standing = |trust: &Trust| trust.standing(&folder, 100);
    let mut trust = Trust::default();
    assert_eq!(standing(&trust), Standing::Absent);
    place.write("p/.mcpx.toml", "");
    assert_eq!(standing(&trust), Standing::Unknown);
    let digest = offered(&folder, 1000).unwrap().digest;
    trust.folders.insert(folder.clone(), digest);
    assert_eq!(standing(&trust), Standing::Trusted);
    assert_eq!(standing(&trust).remark(&folder), None);
    place.write("p/.mcpx.toml", "\n");
    assert_eq!(standing(&trust), Standing::Changed);
    assert_eq!(Trust::read(&trust.write()), Ok(trust));
}

#[test]
fn mistakes_of_a_project_are_its_own() {
    let place = Place::new("[servers.docs]\ncommand = 'd'\nprefix = 'x'\n");
    let text = "[pool]\nqueue = 1\n[profiles.a]\n[servers.x]\ncommand = 'x'\nscop = 'global'\n";
    place.write("p/.mcpx.toml", text);
    place.write("q/.mcpx.toml", "[servers.x]\ncommand = 'x'\n");
    place.write("r/.mcpx.toml", "[servers.db]\ncommand = 'x'\n[policy]\n'bd.x' = 'deny'\n");
    place.trust(&["p", "q", "r"]);
    let loaded = place.load();
    assert!(loaded.projects.is_empty());
    let told: Vec<String> = loaded.warnings.iter().map(ToString::to_string).collect();
    let expected = [
        "p/.mcpx.toml:6:1: server `x`: unknown key `scop`",
        "p/.mcpx.toml:2:1: `pool.queue` is no project's",
        "p/.mcpx.toml:3:11: `profiles.a` is no project's",
        "q/.mcpx.toml:1:10: server `x` has the prefix \"x\" of your own server `docs`",
        "r/.mcpx.toml:4:1: policy `bd.x` is about no server",
    ];
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    for (told, expected) in told.iter().zip(expected) {
        assert!(told.contains(expected), "{expected}: {told}");
    }
    assert_eq!(offered(&place.folder("p"), 1000).unwrap_err().len(), 3);
}

/// It comes with a checkout: nothing of that name may be waited for, or read without end.
#[test]
fn what_is_no_plain_file_of_its_size_is_not_read() {
    let place = Place::new("");
    let stands = |name: &str| Trust::default().standing(&place.folder(name), 100);
    let unusable = |name: &str, expected: &str| match stands(name) {
        Standing::Unusable(why) => assert!(why.contains(expected), "{name}: {why}"),
        other => panic!("{name}: {other:?}"),
    };
    for (name, target) in [("zero", "/dev/zero"), ("loop", ".mcpx.toml")] {
        std::fs::create_dir_all(place.folder(name)).unwrap();
        std::os::unix::fs::symlink(target, place.folder(name).join(FILE)).unwrap();
    }
    std::fs::create_dir_all(place.folder("folder/.mcpx.toml")).unwrap();
    std::fs::create_dir_all(place.folder("pipe")).unwrap();
    let pipe = place.folder("pipe").join(FILE);
    nix::unistd::mkfifo(&pipe, nix::sys::stat::Mode::S_IRWXU).unwrap();
    place.write("long/.mcpx.toml", &"# long\n".repeat(15));
    for name in ["zero", "folder", "pipe"] {
        unusable(name, "is no plain file");
        assert!(offered(&place.folder(name), 100).is_err());
    }
    unusable("loop", "cannot be read");
    unusable("long", "is longer than 100 bytes (setting config.max_project)");
    assert!(stands("long").remark(Path::new("/x")).unwrap().contains("are left out"));
}
