use std::os::unix::fs::PermissionsExt;

use super::*;
use crate::transport::store::statefile;
use crate::transport::task::spawn_named;

const LONG: Duration = Duration::from_secs(20);

fn variables(pairs: &[(&str, &str)]) -> Variables {
    pairs.iter().map(|(name, value)| (name.into(), value.into())).collect()
}

fn of<'a>(env: &'a [(OsString, OsString)], name: &str) -> Option<&'a str> {
    env.iter().find(|(known, _)| known == name).and_then(|(_, value)| value.to_str())
}

/// An environment whose login shell is this script.
fn with_shell(
    script: &str,
    own: &[(&str, &str)],
    limit: Duration,
) -> (tempfile::TempDir, Environment) {
    let folder = tempfile::tempdir().unwrap();
    let shell = folder.path().join("shell");
    statefile::write(&shell, format!("#!/bin/sh\n{script}\n").as_bytes()).unwrap();
    std::fs::set_permissions(&shell, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut own = variables(own);
    own.entry("PATH".into()).or_insert("/usr/bin:/bin".into());
    own.insert("SHELL".into(), shell.into());
    let (environment, capture) = Environment::new(own, limit, LONG);
    spawn_named("login", capture);
    (folder, environment)
}

/// Runs what it is asked to run, with the last argument as the script.
const HONEST: &str = "for last; do :; done; export PATH=/home/me/.nvm/bin:$PATH ONLY_LOGIN=yes";

#[tokio::test]
async fn f34_path_comes_from_the_login_shell_and_secrets_stay_here() {
    let own = [
        ("PATH", "/usr/bin"),
        ("TOKEN", "secret"),
        ("LC_ALL", "C"),
        ("XDG_DATA_HOME", "/d"),
        ("NOTIFY_SOCKET", "/n"),
        ("MCPX_LOG", "debug"),
        ("LISTEN_FDS", "1"),
        ("TZ", "UTC"),
    ];
    let script = format!("echo 'Welcome!'; {HONEST}; eval \"$last\"; echo bye");
    let (_folder, environment) = with_shell(&script, &own, LONG);
    let base = environment.base().await;
    assert_eq!(of(&base, "PATH"), Some("/home/me/.nvm/bin:/usr/bin"));
    assert_eq!((of(&base, "LC_ALL"), of(&base, "XDG_DATA_HOME")), (Some("C"), Some("/d")));
    assert_eq!(of(&base, "TZ"), Some("UTC"));
    assert!(of(&base, "HOME").is_some());
    for name in ["TOKEN", "NOTIFY_SOCKET", "MCPX_LOG", "LISTEN_FDS", "ONLY_LOGIN", "MCPX_SPAWN"] {
        assert_eq!(of(&base, name), None, "{name}");
    }
    // References see both environments, the daemon's first.
    assert_eq!(environment.variable("TOKEN").await, Some("secret".into()));
    assert_eq!(environment.variable("PATH").await, Some("/usr/bin".into()));
    assert_eq!(environment.variable("ONLY_LOGIN").await, Some("yes".into()));
    assert_eq!(environment.variable("MISSING").await, None);
    assert_eq!(environment.variable("SHLVL").await, None);
}

#[tokio::test]
async fn f34_the_login_shell_is_not_told_about_the_daemon() {
    let own = [("NOTIFY_SOCKET", "/n"), ("MCPX_LOG", "debug"), ("OTHER", "x")];
    let script = format!("{HONEST}; export SEEN=\"$NOTIFY_SOCKET$MCPX_LOG$OTHER\"; eval \"$last\"");
    let (_folder, environment) = with_shell(&script, &own, LONG);
    assert_eq!(environment.variable("SEEN").await, Some("x".into()));
}

#[tokio::test]
async fn f34_an_interactive_shell_that_hangs_gives_way_to_a_plain_one() {
    let script = format!("case \"$*\" in *-i*) sleep 1000;; esac; {HONEST}; eval \"$last\"");
    let (_folder, environment) = with_shell(&script, &[], Duration::from_secs(4));
    assert_eq!(environment.variable("ONLY_LOGIN").await, Some("yes".into()));
}

#[tokio::test]
async fn f34_without_a_login_environment_the_daemon_s_own_is_used() {
    for script in ["exit 1", "echo nonsense", "exec sleep 1000"] {
        let (_folder, environment) = with_shell(script, &[], Duration::from_millis(400));
        assert_eq!(of(&environment.base().await, "PATH"), Some("/usr/bin:/bin"), "{script}");
    }
    let (environment, capture) = Environment::new(variables(&[("PATH", "/x")]), LONG, LONG);
    drop(capture);
    assert_eq!(of(&environment.base().await, "PATH"), Some("/x"), "nobody waits for ever");
}

#[tokio::test]
async fn f34_the_shells_that_are_here_answer() {
    for shell in ["/bin/sh", "/bin/bash", "/bin/zsh", "/usr/bin/fish"] {
        if !Path::new(shell).exists() {
            continue;
        }
        let folder = tempfile::tempdir().unwrap();
        let home = folder.path().to_str().unwrap();
        let own = variables(&[("PATH", "/usr/bin:/bin"), ("HOME", home), ("SHELL", shell)]);
        let (environment, capture) = Environment::new(own, LONG, LONG);
        spawn_named("login", capture);
        let login = environment.login().await;
        assert_eq!(login.get(OsStr::new("HOME")), Some(&OsString::from(home)), "{shell}");
    }
}

#[tokio::test]
async fn f34_a_command_gives_what_it_prints() {
    let (_folder, environment) = with_shell("exit 1", &[("TOKEN", "secret")], LONG);
    let command = |text: &'static str| {
        let environment = environment.clone();
        async move { environment.command(text).await }
    };
    assert_eq!(command("printf 'a b\\n\\n'").await.unwrap(), "a b\n", "one line break goes");
    assert_eq!(command("printf 'a\\r\\n'").await.unwrap(), "a");
    assert_eq!(command("echo \"[$TOKEN]\"").await.unwrap(), "[]");
    let error = command("echo no such entry >&2; exit 2").await.unwrap_err();
    assert_eq!(error, "exited with status 2: no such entry");
    let error = command("head -c 200000 /dev/zero").await.unwrap_err();
    assert_eq!(error, "it printed more than 131072 bytes");
}

#[test]
fn what_stands_between_the_markers_counts() {
    let output = b"noise\0X=0\nMA=b=c\0E=\0N=l1\nl2\0=odd\0rubbish\0M\nbye";
    let expected = variables(&[("A", "b=c"), ("E", ""), ("N", "l1\nl2")]);
    assert_eq!(parse(output, b"M"), Some(expected));
    assert_eq!(parse(b"no marker", b"M"), None);
    assert_eq!(parse(b"MM", b"M"), None);
}

#[test]
fn a_daemon_that_is_started_from_here_gets_the_user_s_settings_alone() {
    let own = variables(&[
        ("HOME", "/h"),
        ("MCPX_LOG", "debug"),
        ("MCPX_SPAWN", "00"),
        ("NOTIFY_SOCKET", "/n"),
    ]);
    let names: Vec<OsString> = for_daemon(&own).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["HOME", "MCPX_LOG"]);
}
