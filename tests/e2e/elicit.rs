//! Questions that no host can be asked, from outside: the broker by command, by route, on a terminal and
//! after a daemon that died (E-01, E-02, D-08), and the policies that ask (E-10).

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::os::fd::OwnedFd;
use std::process::Stdio;
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::setup::{self, call, failed, names, reason};
use crate::support::daemon::{Daemon, Output};
use crate::support::raw_host::text_of;
use crate::{SOON, eventually};

/// A daemon with the built-in upstream alone.
fn demo(more: &str) -> Daemon {
    let mut daemon = setup::prepare();
    daemon.write_config(&[], &setup::quick(more));
    daemon.launch();
    daemon
}

async fn questions(daemon: &Daemon) -> Vec<Value> {
    let answer = daemon.cli(&["elicit", "list", "--json"]).await.expect_code(0).json();
    answer["questions"].as_array().unwrap().clone()
}

/// The one question that is open, once it is.
async fn question(daemon: &Daemon) -> Value {
    let mut found;
    eventually!(
        SOON,
        {
            found = questions(daemon).await;
            found.len() == 1
        },
        "no question, but {found:?}"
    );
    found.remove(0)
}

/// Runs `mcpx call demo ask`, and answers it meanwhile as `answer` says.
async fn asked(daemon: &Daemon, answer: &[&str]) -> (Output, Value) {
    let words = ["call", "demo", "ask", "question=Tea or coffee?"];
    let answering = async {
        let asked = question(daemon).await;
        let id = asked["id"].as_str().unwrap().to_owned();
        let words: Vec<&str> = ["elicit"].into_iter().chain(answer.iter().copied()).collect();
        let words: Vec<String> = words.iter().map(|word| word.replace("ID", &id)).collect();
        daemon.cli(&words).await.expect_code(0);
        asked
    };
    tokio::join!(daemon.cli(&words), answering)
}

/// E-01, D-08: a call from the command line says what is asked and waits; whoever answers by command
/// answers it. Neither events nor logs know the answer.
#[tokio::test]
async fn d08_a_question_is_listed_and_answered() {
    let daemon = demo("");
    assert_eq!(
        daemon.cli(&["elicit", "list"]).await.expect_code(0).stdout.trim(),
        "no question is open"
    );
    let (done, asked) = asked(&daemon, &["answer", "ID", "answer=Sencha-4711"]).await;
    assert!(done.expect_code(0).stdout.contains("the answer is: Sencha-4711"));
    assert_eq!(
        (&asked["state"], &asked["kind"], &asked["server"], &asked["message"]),
        (&json!("open"), &json!("form"), &json!("demo"), &json!("Tea or coffee?"))
    );
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    for kind in ["question.opened", "question.answered"] {
        assert!(events.contains(kind), "{events}");
    }
    assert!(!events.contains("Sencha-4711") && !daemon.output().contains("Sencha-4711"));
    assert_eq!(questions(&daemon).await, [] as [Value; 0]);
}

/// E-02: every way to say no, one value, what does not fit, and what is not there.
#[tokio::test]
async fn e02_answers_of_every_kind() {
    let daemon = demo("");
    for (answer, told) in [
        (&["answer", "ID", "Mate"][..], "the answer is: Mate"),
        (&["answer", "ID", "{\"answer\": \"Chai\"}"], "the answer is: Chai"),
        (&["decline", "ID"], "declined"),
        (&["cancel", "ID"], "dismissed"),
    ] {
        let (done, asked) = asked(&daemon, answer).await;
        let said = format!("{}{}", done.stdout, done.stderr);
        assert!(said.contains(told), "{said}");
        let id = asked["id"].as_str().unwrap();
        assert!(done.stderr.contains(&format!("mcpx elicit answer {id} answer=…")), "{said}");
        let late = daemon.cli(&["elicit", "answer", id, "x"]).await.expect_code(1);
        assert!(late.stderr.contains("no open question"), "{}", late.stderr);
    }
    // What does not fit leaves it open.
    let words = ["call", "demo", "ask"];
    let answering = async {
        let asked = question(&daemon).await;
        let id = asked["id"].as_str().unwrap();
        let unfit = daemon.cli(&["elicit", "answer", id, "nme=x"]).await.expect_code(2);
        assert!(unfit.stderr.contains("no field `nme`"), "{}", unfit.stderr);
        let route = format!("/v1/questions/{id}");
        let shown = daemon.http("GET", &route, None).await.json();
        let printed = daemon.cli(&["elicit", "show", id, "--json"]).await.expect_code(0).json();
        assert_eq!(shown["params"], printed["params"]);
        let body = json!({ "content": { "answer": "by route" } });
        let answered = daemon.http("POST", &format!("{route}/answer"), Some(&body)).await;
        assert_eq!(answered.json(), json!({ "id": id, "action": "accept" }));
    };
    let (done, ()) = tokio::join!(daemon.cli(&words), answering);
    assert!(done.expect_code(0).stdout.contains("by route"));
}

/// A terminal of ours, with a command on it.
struct Terminal {
    master: File,
    shown: Arc<Mutex<String>>,
    child: tokio::process::Child,
}

impl Terminal {
    fn open(daemon: &Daemon, args: &[&str]) -> Self {
        let pair = nix::pty::openpty(None, None).unwrap();
        let end = |fd: &OwnedFd| Stdio::from(fd.try_clone().unwrap());
        let mut command = tokio::process::Command::from(daemon.command(args));
        command.stdin(end(&pair.slave)).stderr(end(&pair.slave)).stdout(Stdio::piped());
        let child = command.kill_on_drop(true).spawn().unwrap();
        drop(command);
        drop(pair.slave);
        let master = File::from(pair.master);
        let shown = Arc::new(Mutex::new(String::new()));
        let (mut reader, into) = (master.try_clone().unwrap(), Arc::clone(&shown));
        // Ends when the command has: reading its terminal then fails.
        std::thread::spawn(move || {
            let mut bytes = [0; 1024];
            while let Ok(read @ 1..) = reader.read(&mut bytes) {
                into.lock().unwrap().push_str(&String::from_utf8_lossy(&bytes[..read]));
            }
        });
        Self { master, shown, child }
    }

    fn shown(&self) -> String {
        self.shown.lock().unwrap().clone()
    }

    async fn expect(&self, text: &str) {
        eventually!(SOON, self.shown().contains(text), "no {text:?} in {:?}", self.shown());
    }

    fn type_line(&mut self, text: &str) {
        self.master.write_all(format!("{text}\n").as_bytes()).unwrap();
    }

    async fn end(self) -> (i32, String) {
        let output = tokio::time::timeout(SOON, self.child.wait_with_output()).await;
        let output = output.expect("the command ends").unwrap();
        (output.status.code().unwrap(), String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// D-08: on a terminal the person is asked there, and nobody else has to listen.
#[tokio::test]
async fn d08_a_person_is_asked_on_the_terminal() {
    let daemon = demo("");
    let mut terminal = Terminal::open(&daemon, &["call", "demo", "ask", "question=Tea?"]);
    terminal.expect("tool `ask` of server `demo`").await;
    terminal.expect("Tea?").await;
    terminal.type_line("Oolong");
    let (code, out) = terminal.end().await;
    assert_eq!((code, out.contains("the answer is: Oolong")), (0, true), "{out}");

    let mut terminal = Terminal::open(&daemon, &["call", "demo", "ask"]);
    terminal.expect(":decline").await;
    terminal.type_line(":decline");
    let (_, out) = terminal.end().await;
    assert!(out.contains("declined"), "{out}");

    // Answered elsewhere meanwhile: the prompt goes.
    let terminal = Terminal::open(&daemon, &["call", "demo", "ask"]);
    terminal.expect(":decline").await;
    let asked = question(&daemon).await;
    daemon.cli(&["elicit", "answer", asked["id"].as_str().unwrap(), "Mate"]).await.expect_code(0);
    let (_, out) = terminal.end().await;
    assert!(out.contains("the answer is: Mate"), "{out}");
}

/// E-01: who watches is told of the questions of all calls, also of a host's that cannot be asked.
#[tokio::test]
async fn e01_a_watcher_answers_for_a_host() {
    let daemon = demo("");
    let mut host = setup::host(&daemon, "2025-03-26").await;
    let wanted = json!({ "namespace": "demo", "tool": "ask", "arguments": {} });
    // Nobody is there: the server is told so, and the model.
    let alone = host.call("mcpx_call", wanted.clone()).await;
    assert!(failed(&alone) || text_of(&alone).contains("dismissed"), "{alone}");
    let mut terminal = Terminal::open(&daemon, &["elicit", "watch"]);
    terminal.expect("waiting for questions").await;
    let id = host.take_id();
    host.start_call(id, "mcpx_call", wanted).await;
    terminal.expect("called by").await;
    terminal.type_line("Genmaicha");
    let done = host.expect_response(id).await;
    assert!(text_of(&done).contains("the answer is: Genmaicha"), "{done}");
    terminal.expect("accepted").await;
}

/// E-01: a daemon that dies with a question open is followed by one that shows it as lost.
#[tokio::test]
async fn e01_a_killed_daemon_leaves_its_questions_as_lost() {
    let mut daemon = demo("");
    let mut command = daemon.command(&["call", "demo", "ask"]);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let calling = tokio::process::Command::from(command).spawn().unwrap();
    let asked = question(&daemon).await;
    let id = asked["id"].as_str().unwrap().to_owned();
    let store = daemon.path("state").join("mcpx.redb");
    let kept = || {
        let bytes = std::fs::read(&store).unwrap();
        bytes.windows(id.len()).any(|window| window == id.as_bytes())
    };
    eventually!(SOON, kept(), "no record of {id}");
    daemon.kill9();
    let told = calling.wait_with_output().await.unwrap();
    assert_eq!(told.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&told.stderr).contains("outcome is unknown"));
    daemon.launch();
    let lost = question(&daemon).await;
    assert_eq!((&lost["id"], &lost["state"]), (&json!(id), &json!("lost")));
    assert!(lost["fate"].as_str().unwrap().contains("is not known here"));
    let events = daemon.cli(&["events"]).await.expect_code(0).stdout;
    assert!(events.contains("question.lost"), "{events}");
    let late = daemon.cli(&["elicit", "answer", &id, "x"]).await.expect_code(1);
    assert!(late.stderr.contains("earlier daemon"), "{}", late.stderr);
}

/// A-09, product.md 3: a denied tool is told apart from none by nothing, on every way; a reload puts the
/// policy in force, and hosts are told.
#[tokio::test]
async fn a09_a_denied_tool_is_not_there() {
    let rule = |rule: &str| setup::quick(&format!("expose.mode = \"both\"\n\n[policy]\n{rule}"));
    let mut daemon = setup::prepare();
    let fakes = [daemon.fake("up").line("tools = { deny = [\"fail\"] }")];
    daemon.write_config(&fakes, &rule("\"up.ech?\" = \"deny\""));
    daemon.launch();
    let mut host = setup::host(&daemon, "2025-11-25").await;
    let listed = host.list_tools().await;
    assert!(names(&listed).contains(&"up_add") && !names(&listed).contains(&"up_echo"));
    assert!(!names(&listed).contains(&"up_fail"));
    for (denied, absent) in [("echo", "echa"), ("fail", "faul")] {
        let same = |told: String, tool: &str| told.replace(tool, "TOOL");
        let denied_told = text_of(&call(&mut host, "up", denied, json!({})).await);
        let absent_told = text_of(&call(&mut host, "up", absent, json!({})).await);
        assert_eq!(same(denied_told.clone(), denied), same(absent_told, absent));
        assert!(denied_told.contains("has no tool"), "{denied_told}");
        let direct = host.call(&format!("up_{denied}"), json!({})).await;
        assert_eq!(direct["error"]["code"], -32602, "{direct}");
        let body = json!({ "namespace": "up", "tool": denied });
        assert_eq!(daemon.http("POST", "/v1/call", Some(&body)).await.status, 404);
        let typed = daemon.cli(&["call", "up", denied]).await.expect_code(1);
        assert!(typed.stderr.contains("has no tool"), "{}", typed.stderr);
    }
    let shown = host.call("mcpx_namespaces", json!({ "namespace": "up" })).await;
    assert!(!text_of(&shown).contains("echo"), "{shown}");
    assert!(!daemon.cli(&["tools", "up"]).await.expect_code(0).stdout.contains("echo"));
    let pids = crate::pids(&daemon, "up").await;
    daemon.write_config(&fakes, &rule("\"up.ech?\" = \"allow\""));
    daemon.cli(&["reload"]).await.expect_code(0);
    host.expect_notification("notifications/tools/list_changed").await;
    let echoed = host.call("up_echo", json!({ "text": "there again" })).await;
    assert_eq!(text_of(&echoed), "there again");
    assert_eq!(crate::pids(&daemon, "up").await, pids, "a policy restarts nothing");
    daemon.write_config(&fakes, &rule("\"up.[e]cho\" = \"deny\""));
    let refused = daemon.cli(&["config", "check"]).await.expect_code(4);
    assert!(refused.stderr.contains(':') && refused.stderr.contains("policy `up.[e]cho`"));
}

/// E-10: what a policy asks about, or what may destroy, is called once somebody agrees: the host, or a
/// person at the broker; and not at all where nobody can be asked.
#[tokio::test]
async fn e10_a_call_is_confirmed() {
    let more = "elicit.confirm_destructive = true\n\n[policy]\n\"up.add\" = \"ask\"";
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], more);
    let log = || daemon.fake("up").transcript().with_method("tools/call").len();
    let arguments = json!({ "namespace": "up", "tool": "add", "arguments": { "a": 1, "b": 2 } });
    // Nobody can be asked.
    let mut mute = setup::host(&daemon, "2025-03-26").await;
    let told = mute.call("mcpx_call", arguments.clone()).await;
    assert_eq!((failed(&told), reason(&told)), (true, "not_confirmed"), "{told}");
    assert!(text_of(&told).contains("[policy]"), "{told}");
    assert_eq!(log(), 0, "it is not called");
    // The host is asked.
    let mut host = daemon.shim(&[]);
    host.capabilities = json!({ "elicitation": {} });
    setup::open(&mut host, "2025-11-25").await;
    for (answer, done) in [
        (json!({ "action": "decline" }), false),
        (json!({ "action": "accept", "content": { "approve": false } }), false),
        (json!({ "action": "accept", "content": { "approve": true } }), true),
    ] {
        let id = host.take_id();
        host.start_call(id, "mcpx_call", arguments.clone()).await;
        let asked = host.expect_request("elicitation/create").await;
        let message = asked["params"]["message"].as_str().unwrap();
        assert!(message.contains("`add`") && message.contains("\"b\":2"), "{message}");
        host.answer(&asked, answer).await;
        let told = host.expect_response(id).await;
        assert_eq!(failed(&told), !done, "{told}");
    }
    assert_eq!(log(), 1);
    // A person at the command line.
    let answering = async {
        let asked = question(&daemon).await;
        let id = asked["id"].as_str().unwrap();
        daemon.cli(&["elicit", "answer", id, "yes"]).await.expect_code(0);
    };
    let words = ["call", "up", "add", "a=1", "b=2"];
    let (done, ()) = tokio::join!(daemon.cli(&words), answering);
    done.expect_code(0);
    assert_eq!(log(), 2);
}
