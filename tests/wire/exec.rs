//! Scripts through a host: what they get, what comes back, and that their calls are calls like all others
//! (C-05, C-10, C-11, C-13 to C-18).

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::eventually;
use crate::setup::{failed, host, http_host, open, reason, start};
use crate::support::asking::{accept, with_responses};
use crate::support::daemon::Daemon;
use crate::support::fake::Fake;
use crate::support::procs::Process;
use crate::support::raw_host::{RawHost, text_of};
use crate::support::schema::MODERN;

const SOON: Duration = Duration::from_secs(5);

fn one(args: &str, more: &str) -> (Daemon, Fake) {
    let fake = |daemon: &Daemon| daemon.fake("up").args(args).line("scope = \"global\"");
    let daemon = start(|daemon| vec![fake(daemon)], more);
    let fake = daemon.fake("up");
    (daemon, fake)
}

async fn able(daemon: &Daemon, revision: &str, capabilities: Value) -> RawHost {
    let mut host = daemon.shim(&[]);
    host.capabilities = capabilities;
    open(&mut host, revision).await;
    host
}

async fn exec(host: &mut RawHost, code: &str) -> Value {
    host.call("mcpx_exec", json!({ "code": code })).await
}

/// The value that a script returned, read from its text.
async fn value(host: &mut RawHost, code: &str) -> Value {
    let answer = exec(host, code).await;
    assert!(!failed(&answer), "{answer}");
    let text = text_of(&answer);
    serde_json::from_str(&text).unwrap_or_else(|why| panic!("{why}: {text}"))
}

fn blocks(answer: &Value) -> Vec<String> {
    let blocks = answer["result"]["content"].as_array().unwrap();
    blocks.iter().map(|block| block["text"].as_str().unwrap_or_default().to_owned()).collect()
}

/// How many sandboxes there are: children of the daemon that are the same program.
fn sandboxes(daemon: &Daemon) -> usize {
    let ours = |process: &&Process| process.name == "mcpx" && process.state != 'Z';
    daemon.descendants().iter().filter(ours).count()
}

crate::for_revisions! { all_real;
    /// C-05, C-10, C-18: a script calls tools, gets values, and gives one; in every revision's shape.
    async fn c05_a_script_calls_tools(revision) {
        let (daemon, fake) = one("", "");
        let mut host = host(&daemon, revision).await;
        let code = "const told: string = await tools.up.echo({ text: 'a' });
            const sums = await Promise.all([1, 2, 3].map((n: number) => tools.up.add({ a: n, b: n })));
            return { told, sums, given: input.n };";
        let answer = host.call("mcpx_exec", json!({ "code": code, "input": { "n": 1 } })).await;
        assert!(!failed(&answer), "{answer}");
        let said: Value = serde_json::from_str(&text_of(&answer)).unwrap();
        assert_eq!((&said["told"], &said["given"]), (&json!("a"), &json!(1)), "{said}");
        assert_eq!(said["sums"].as_array().unwrap().len(), 3, "{said}");
        if revision >= "2025-06-18" {
            assert_eq!(answer["result"]["structuredContent"], said);
        } else {
            assert!(answer["result"].get("structuredContent").is_none(), "{answer}");
        }
        assert_eq!(fake.transcript().with_method("tools/call").len(), 4);
    }
}

/// C-10, C-18: structured content as it is, numbers exact; one text, several blocks.
#[tokio::test]
async fn c10_c18_values_of_results() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    for (shape, expected) in [
        ("only", json!({ "a": 1 })),
        ("array", json!([1, { "b": 2 }])),
        ("string", json!("text")),
        ("number", json!(1.5)),
        ("null", json!("words")),
        ("content_null", json!(null)),
    ] {
        let code = format!("return [await tools.up.structured({{ shape: '{shape}' }})]");
        assert_eq!(value(&mut host, &code).await, json!([expected]), "{shape}");
    }
    let code = "const blocks = await tools.up.content({}); return blocks.map((b) => b.type)";
    let types = value(&mut host, code).await;
    assert!(types.as_array().unwrap().contains(&json!("image")), "{types}");
    let code = "return await tools.up.echo({ text: '{\"n\": 12345678901234567890}' })";
    let answer = exec(&mut host, code).await;
    assert!(text_of(&answer).contains("12345678901234567890"), "{answer}");
}

/// C-11: what a tool fails with can be caught, with its content; what is not caught ends the script with
/// the place, what it had said, and what it had called.
#[tokio::test]
async fn c11_errors_of_tools_are_thrown() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "try { await tools.up.fail({ text: 'no such repo' }); }
        catch (e) { return [e instanceof ToolError, e.name, e.message, e.content[0].text]; }";
    let caught = value(&mut host, code).await;
    assert_eq!(caught, json!([true, "ToolError", "no such repo", "no such repo"]));
    let code = "console.log('first', 1);
await tools.up.echo({ text: 'x' });
await tools.up.fail({ text: 'no such repo' });";
    let answer = exec(&mut host, code).await;
    assert!(failed(&answer), "{answer}");
    let said = blocks(&answer);
    assert!(said[0].starts_with("ToolError: no such repo (line 3"), "{said:?}");
    assert!(said[0].contains("2 calls (up.echo, up.fail)"), "{said:?}");
    assert_eq!(said[1], "console:\nfirst 1");
}

/// C-13: names that are no identifiers, in brackets and by their other name; what is not there is said
/// with what is near.
#[tokio::test]
async fn c13_names_and_what_is_near() {
    let fake = |daemon: &Daemon| daemon.fake("my-up").line("scope = \"global\"");
    let daemon = start(|daemon| vec![fake(daemon)], "");
    let mut host = host(&daemon, "2025-11-25").await;
    let code =
        "return [await tools['my-up'].echo({ text: 'a' }), await tools.my_up.echo({ text: 'b' })]";
    assert_eq!(value(&mut host, code).await, json!(["a", "b"]));
    for (code, near) in
        [("await tools.my_up.ecko({})", "echo"), ("await tools.my_ub.echo({})", "my-up")]
    {
        let answer = exec(&mut host, code).await;
        assert!(failed(&answer), "{answer}");
        assert!(text_of(&answer).contains(near), "{answer}");
    }
}

/// C-14 to C-16: artifacts are linked and named, and can be read again.
#[tokio::test]
async fn c14_c15_artifacts_come_back_as_links_and_in_words() {
    let (daemon, _) = one("", "exec.max_artifacts = 2");
    let mut host = host(&daemon, "2025-11-25").await;
    let code =
        "const file = await artifacts.write('a.csv', 'x,y\\n1,2\\n', 'text/csv'); return file.uri";
    let answer = exec(&mut host, code).await;
    assert!(!failed(&answer), "{answer}");
    let uri = text_of(&answer);
    let uri = uri.lines().next().unwrap().to_owned();
    let content = answer["result"]["content"].as_array().unwrap();
    let link = content.iter().find(|block| block["type"] == "resource_link").unwrap();
    assert_eq!((&link["uri"], &link["name"]), (&json!(uri), &json!("a.csv")), "{answer}");
    assert_eq!(link["mimeType"], "text/csv");
    assert!(blocks(&answer).iter().any(|text| text.contains(&format!("a.csv: {uri}"))), "{answer}");
    let read = host.call("mcpx_read", json!({ "uri": uri })).await;
    assert!(text_of(&read).contains("1,2"), "{read}");
    let code = "for (let n = 0; n < 3; n++) await artifacts.write(`f${n}`, 'x')";
    let answer = exec(&mut host, code).await;
    assert!(failed(&answer) && text_of(&answer).contains("exec.max_artifacts"), "{answer}");
}

/// C-17: a destructive call inside a script is confirmed one by one, by a host of either era.
#[tokio::test]
async fn c17_destructive_calls_are_confirmed_one_by_one() {
    for revision in ["2025-11-25", MODERN] {
        let (daemon, fake) = one("", "elicit.confirm_destructive = true");
        let mut host = able(&daemon, revision, json!({ "elicitation": { "form": {} } })).await;
        let mut times = 0;
        host.answer_with(move |question| {
            let message = question["params"]["message"].as_str().unwrap();
            assert!(message.starts_with("Call tool `ledger` of server `up`?"), "{message}");
            times += 1;
            accept(json!({ "approve": times == 1 }))
        });
        let code = "await tools.up.echo({ text: 'read only' });
            await tools.up.ledger({ text: 'one' });
            try { await tools.up.ledger({ text: 'two' }) } catch (e) { return [e.name, e.reason] }";
        assert_eq!(
            value(&mut host, code).await,
            json!(["ToolError", "not_confirmed"]),
            "{revision}"
        );
        let done = fake.ledger("effect ledger");
        assert_eq!(done.len(), 1, "{revision}: {done:?}");
    }
}

/// E-06, F45: a modern host is asked what the calls of a script are asked, at once where they ask at once;
/// one run, one call upstream each; the script goes on behind its answers.
#[tokio::test]
async fn e06_a_script_waits_for_a_modern_hosts_answers() {
    for era in ["2025-11-25", "modern"] {
        let (daemon, fake) = one(&format!("--era {era} --questions"), "elicit.gather = \"500ms\"");
        let mut host = able(&daemon, MODERN, json!({ "elicitation": { "form": {} } })).await;
        let code = "const before = await tools.up.echo({ text: 'before' });
            const both = await Promise.all(['x', 'y'].map((id) => tools.up.ask_form({ id })));
            return [before, both, await tools.up.ask_form({ id: 'z' })]";
        let params = json!({ "name": "mcpx_exec", "arguments": { "code": code } });
        let first = host.modern("tools/call", params.clone()).await;
        assert_eq!(first["result"]["resultType"], "input_required", "{era}: {first}");
        let asked = first["result"]["inputRequests"].as_object().unwrap().clone();
        // A legacy server that asks without a sign whose call it is has one call at a time.
        let at_once = if era == "modern" { 2 } else { 1 };
        assert!(asked.len() >= at_once, "{era}: {first}");
        let mut result = first["result"].clone();
        let mut rounds = 1;
        let done = loop {
            let keys = result["inputRequests"].as_object().unwrap().keys();
            let replies: Value =
                keys.map(|key| (key.clone(), accept(json!({ "name": "Ada" })))).collect();
            let again = with_responses(&params, &result, replies);
            let answer = host.modern("tools/call", again.clone()).await;
            if answer["result"]["resultType"] != "input_required" {
                // Brought once.
                let twice = host.modern("tools/call", again).await;
                assert_eq!(twice["error"]["code"], -32602, "{twice}");
                break answer;
            }
            result = answer["result"].clone();
            rounds += 1;
            assert!(rounds < 10, "{answer}");
        };
        assert!(!failed(&done), "{era}: {done}");
        assert_eq!(text_of(&done).matches("Ada").count() % 3, 0, "{era}: {done}");
        assert!(text_of(&done).contains("before"), "{era}: {done}");
        let echoes = fake.transcript().with_method("tools/call").into_iter();
        let echoes = echoes.filter(|call| call["params"]["name"] == "echo").count();
        assert_eq!(echoes, 1, "{era}: the script ran once");
    }
}

/// E-15: a legacy host is asked on the line of the exec call.
#[tokio::test]
async fn e15_a_legacy_host_is_asked_during_the_call() {
    let (daemon, _) = one("--era modern --questions", "");
    let mut host = able(&daemon, "2025-11-25", json!({ "elicitation": {} })).await;
    host.answer_with(|_| accept(json!({ "name": "Ada" })));
    let said = exec(&mut host, "return await tools.up.ask_form({})").await;
    assert!(text_of(&said).contains("Ada"), "{said}");
    assert_eq!(host.answers.asked.len(), 1);
}

/// A run that waits for a host that never comes back ends with its state, and its calls with it.
#[tokio::test]
async fn e07_a_parked_run_ends_with_its_state() {
    let args = "--era 2025-11-25 --questions";
    let (daemon, fake) = one(args, "elicit.state_ttl = \"300ms\"\nexec.warm = 0");
    let mut host = able(&daemon, MODERN, json!({ "elicitation": { "form": {} } })).await;
    let code = "return await tools.up.ask_form({})";
    let params = json!({ "name": "mcpx_exec", "arguments": { "code": code } });
    let first = host.modern("tools/call", params).await;
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    eventually!(SOON, fake.transcript().with_method("notifications/cancelled").len() == 1);
    eventually!(SOON, sandboxes(&daemon) == 0);
}

/// F36: giving the run up cancels its calls upstream, and kills its process.
#[tokio::test]
async fn f36_a_cancelled_run_takes_its_calls_and_its_process_with_it() {
    let (daemon, fake) = one("", "exec.warm = 0");
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "await Promise.all([1, 2].map(() => tools.up.slow({ ms: 60000 })))";
    host.start_call(101, "mcpx_exec", json!({ "code": code })).await;
    eventually!(SOON, fake.transcript().with_method("tools/call").len() == 2);
    assert_eq!(sandboxes(&daemon), 1);
    host.cancel(101).await;
    eventually!(SOON, fake.ledger("stopped").len() == 2);
    eventually!(SOON, sandboxes(&daemon) == 0);
    host.expect_no_response(101, 50).await;
}

/// F37: the calls' own progress and the script's, to the host's token; it only grows.
#[tokio::test]
async fn f37_progress_of_a_run() {
    let (daemon, _) = one("", "host.progress_interval = \"0s\"");
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "for (const ms of [40, 40]) await tools.up.slow({ ms, steps: 2 })";
    host.start_call_with_progress(7, "mcpx_exec", json!({ "code": code }), json!("t")).await;
    host.expect_response(7).await;
    let notes: Vec<Value> = host.inbox.drain(..).map(|note| note["params"].clone()).collect();
    let messages: Vec<&str> = notes.iter().filter_map(|note| note["message"].as_str()).collect();
    assert_eq!(
        messages,
        [
            "up.slow: step 1",
            "up.slow: step 2",
            "1 call made",
            "up.slow: step 1",
            "up.slow: step 2",
            "2 calls made"
        ],
        "{notes:?}"
    );
    let values: Vec<f64> = notes.iter().filter_map(|note| note["progress"].as_f64()).collect();
    assert!(values.windows(2).all(|two| two[0] < two[1]), "{values:?}");
}

/// F43: a script that repeats a failure is told so, as a host is.
#[tokio::test]
async fn f43_what_a_script_repeats_is_said() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "let last = '';
        for (let n = 0; n < 3; n++) try { await tools.up.fail({ text: 'no' }) } catch (e) { last = e.message }
        return last";
    let answer = exec(&mut host, code).await;
    assert!(text_of(&answer).contains("failed 3 times in a row"), "{answer}");
    for (wrong, why) in [
        (json!({}), "needs `code`"),
        (json!({ "code": "1", "bogus": 1 }), "no argument `bogus`"),
        (json!({ "code": "1", "timeout": "soon" }), "number of seconds"),
    ] {
        let answer = host.call("mcpx_exec", wrong).await;
        assert!(failed(&answer) && text_of(&answer).contains(why), "{answer}");
    }
}

/// F43: what mcpx itself refuses again and again is said as well, whoever asks: a wrong name, wrong arguments, a
/// script that fails in the same way.
#[tokio::test]
async fn f43_mcpx_s_own_failures_are_counted() {
    const AGAIN: &str = "failed 3 times in a row";
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    for (tool, arguments) in [
        ("mcpx_call", json!({ "namespace": "up", "tool": "nope", "arguments": { "a": 1 } })),
        ("mcpx_call", json!({ "namespace": "nope", "tool": "echo" })),
        ("mcpx_call", json!({ "namespace": "up", "tool": "echo", "arguments": "[1]" })),
        ("mcpx_call", json!({ "tool": "echo" })),
        ("mcpx_search", json!({})),
        ("mcpx_read", json!({ "uri": "mcpx://nope/a:b" })),
        ("mcpx_exec", json!({ "code": "throw new Error('x')" })),
        ("mcpx_scripts", json!({ "action": "show", "name": "x" })),
    ] {
        let mut said = Vec::new();
        for _ in 0..3 {
            let answer = host.call(tool, arguments.clone()).await;
            assert!(failed(&answer), "{tool}: {answer}");
            said.push(text_of(&answer).contains(AGAIN));
        }
        assert_eq!(said, [false, false, true], "{tool} {arguments}");
    }
    for call in ["tools.up.nope({ a: 2 })", "mcpx.search({ q: 1 })", "mcpx.read('mcpx://nope/c:d')"]
    {
        let code = format!(
            "const said = []; for (let n = 0; n < 3; n++) try {{ await {call} }} \
             catch (e) {{ said.push(e.message.includes('{AGAIN}')) }} return said"
        );
        assert_eq!(value(&mut host, &code).await, json!([false, false, true]), "{call}");
    }
}

/// F43: a wrong name of one of mcpx's own tools has near ones.
#[tokio::test]
async fn f43_mcpx_s_own_tools_are_near() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    for times in 1..=3 {
        let answer = host.call("mcpx_serch", json!({ "query": "x" })).await;
        let message = answer["error"]["message"].as_str().unwrap_or_else(|| panic!("{answer}"));
        assert!(message.contains("Did you mean mcpx_search"), "{message}");
        assert_eq!(message.contains("3 times in a row"), times == 3, "{message}");
    }
}

/// What a script did is said to be done only where somebody was reached.
#[tokio::test]
async fn what_reached_nobody_is_not_said_to_be_done() {
    const DONE: &str = "What these did is done";
    let (daemon, _) = one("", "call.idle_timeout = \"200ms\"");
    let mut host = host(&daemon, "2025-11-25").await;
    for (code, done) in [
        ("await tools.up.nope({})", false),
        ("await tools.nope.echo({})", false),
        ("await mcpx.search('echo'); await artifacts.write('a', 'b'); throw 1", false),
        ("await tools.up.echo({ text: 'x' }); throw 1", true),
        ("await tools.up.fail({ text: 'x' })", true),
        ("await tools.up.hang({})", true),
        ("tools.up.slow({ ms: 60000 }); await tools.up.nope({})", true),
    ] {
        let answer = exec(&mut host, code).await;
        assert!(failed(&answer), "{code}: {answer}");
        let text = text_of(&answer);
        assert!(text.contains("It had made"), "{code}: {text}");
        assert_eq!(text.contains(DONE), done, "{code}: {text}");
        assert_eq!(text.contains("No tool has run by these."), !done, "{code}: {text}");
    }
}

/// An agent looks around before it calls; servers that were never listed are listed for that.
#[tokio::test]
async fn what_there_is_to_call() {
    let fake = |daemon: &Daemon| daemon.fake("my-up").line("scope = \"global\"");
    let policy = "[policy]\n\"my-up.ledger\" = \"deny\"";
    let daemon = start(|daemon| vec![fake(daemon)], policy);
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "const names = Object.keys(tools.my_up);
        return [Object.keys(tools), names.includes('echo'), names.includes('ledger'), 'echo' in tools['my-up'],
            'nope' in tools.my_up, 'my_up' in tools, await tools[Object.keys(tools)[0]].echo({ text: 'a' })]";
    let said = value(&mut host, code).await;
    assert_eq!(said, json!([["my-up"], true, false, true, false, true, "a"]));
    let code = "const slow = tools.my_up.echo({ text: 'b' }); const known = 'echo' in tools.my_up; return [known, await slow]";
    assert_eq!(value(&mut host, code).await, json!([true, "b"]));
    let listed = value(&mut host, "return tools").await;
    assert!(listed["my-up"].as_array().unwrap().contains(&json!("echo")), "{listed}");
}

/// `null` is a value, and none is said in words.
#[tokio::test]
async fn null_is_a_value() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    assert_eq!(text_of(&exec(&mut host, "return null").await), "null");
    assert_eq!(text_of(&exec(&mut host, "return").await), "The script returned nothing.");
    let code = json!({ "code": "return [input === null, typeof input]", "input": null });
    assert_eq!(text_of(&host.call("mcpx_exec", code).await), "[true,\"object\"]");
    let fenced = "```ts\nreturn 'in a fence'\n```";
    assert_eq!(text_of(&exec(&mut host, fenced).await), "in a fence");
    assert_eq!(text_of(&exec(&mut host, r"return 'a\ud800b'").await), "a\u{fffd}b");
    let code = json!({ "code": "1", "timeout": 0 });
    let answer = host.call("mcpx_exec", code).await;
    assert!(failed(&answer) && text_of(&answer).contains("greater than 0"), "{answer}");
}

/// An address of an artifact that is none says what is wrong with it; so does a line that is none.
#[tokio::test]
async fn c14_wrong_addresses_of_artifacts_are_told() {
    let (daemon, _) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    for uri in [
        "mcpx://artifacts/abc",
        "mcpx://artifacts/",
        "mcpx://artifacts",
        "MCPX://Artifacts/00112233445566778899AABBCCDDEEFF",
    ] {
        let answer = host.call("mcpx_read", json!({ "uri": uri })).await;
        let text = text_of(&answer);
        assert!(failed(&answer) && text.contains("32 digits"), "{uri}: {text}");
        assert!(!text.contains("namespace"), "{uri}: {text}");
        let direct = host.request("resources/read", json!({ "uri": uri })).await;
        let message = direct["error"]["message"].as_str().unwrap_or_else(|| panic!("{direct}"));
        assert!(message.contains("32 digits"), "{uri}: {message}");
    }
    let code = "return (await artifacts.write('a', 'one\\ntwo')).uri";
    let uri = text_of(&exec(&mut host, code).await).lines().next().unwrap().to_owned();
    let answer = host.call("mcpx_read", json!({ "uri": uri, "lines": "0" })).await;
    assert!(failed(&answer) && text_of(&answer).contains("count from 1"), "{answer}");
    let answer = host.call("mcpx_read", json!({ "uri": uri, "lines": "1" })).await;
    assert!(text_of(&answer).starts_with("one"), "{answer}");
}

/// Issue 5: the limit that struck is named, with its setting; the calls' own limits are theirs.
#[tokio::test]
async fn limits_are_named() {
    let more = "exec.timeout = \"1s\"\ncall.idle_timeout = \"300ms\"\nexec.max_calls = 3\n\
                exec.output_limit = \"1KiB\"\nexec.warm = 0";
    let (daemon, _) = one("", more);
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "try { await tools.up.hang({}) } catch (e) { return [e.reason, e.message] }";
    let said = value(&mut host, code).await;
    assert_eq!(said[0], "timeout", "{said}");
    assert!(said[1].as_str().unwrap().contains("call.idle_timeout"), "{said}");
    let began = Instant::now();
    let answer = exec(&mut host, "console.log('on'); await new Promise(() => {})").await;
    // A promise that nothing can fulfil is found at once, or else by its time.
    assert!(failed(&answer), "{answer}");
    assert!(began.elapsed() < SOON);
    let code =
        "await tools.up.sleep({ ms: 1 }); await new Promise((wake) => setTimeout(wake, 60000))";
    let answer = exec(&mut host, code).await;
    assert!(failed(&answer) && reason(&answer) == "timeout", "{answer}");
    assert!(text_of(&answer).contains("setting exec.timeout"), "{answer}");
    assert!(text_of(&answer).contains("up.sleep"), "{answer}");
    let code = json!({ "code": code, "timeout": 0.2 });
    let answer = host.call("mcpx_exec", code).await;
    assert!(text_of(&answer).contains("`timeout` of the call"), "{answer}");
    let answer = exec(&mut host, "for (;;) await tools.up.echo({ text: 'x' })").await;
    assert!(failed(&answer) && text_of(&answer).contains("exec.max_calls"), "{answer}");
    let answer = exec(&mut host, "return 'x'.repeat(2000)").await;
    assert!(failed(&answer) && text_of(&answer).contains("exec.output_limit"), "{answer}");
    eventually!(SOON, sandboxes(&daemon) == 0);
}

/// Product 7: more scripts than may run and wait are refused as busy, and the others go on.
#[tokio::test]
async fn more_scripts_than_may_wait_are_busy() {
    let (daemon, _) = one("", "exec.max_running = 1\nexec.max_waiting = 1");
    let mut host = host(&daemon, "2025-11-25").await;
    let code = "return await tools.up.sleep({ ms: 700 })";
    for id in [201, 202] {
        host.start_call(id, "mcpx_exec", json!({ "code": code })).await;
    }
    eventually!(SOON, sandboxes(&daemon) >= 1);
    let answer = exec(&mut host, code).await;
    assert!(failed(&answer) && reason(&answer) == "busy", "{answer}");
    assert!(text_of(&answer).contains("exec.max_waiting"), "{answer}");
    for id in [201, 202] {
        assert_eq!(text_of(&host.expect_response(id).await), "slept");
    }
}

/// Issue 5: a call that nobody waits for is made all the same; nothing returned is said. What is under way
/// when a script fails is cancelled, and that is said, too.
#[tokio::test]
async fn what_a_script_does_not_wait_for() {
    let (daemon, fake) = one("", "");
    let mut host = host(&daemon, "2025-11-25").await;
    let answer = exec(&mut host, "void tools.up.ledger({ text: 'x' })").await;
    assert!(!failed(&answer), "{answer}");
    let said = blocks(&answer);
    assert_eq!(said[0], "The script returned nothing.");
    assert!(said[1].contains("[warn] a call was not awaited"), "{said:?}");
    assert_eq!(fake.ledger("effect").len(), 1);
    let answer = exec(&mut host, "return tools.up.add({ a: 1, b: 2 }).sum").await;
    assert!(text_of(&answer).contains("without `await` it is a promise"), "{answer}");
    let answer = exec(&mut host, "tools.up.add({ a: 1, b: 2 }); return 5").await;
    assert_eq!(text_of(&answer), "5");
    let code = "const slow = tools.up.slow({ ms: 60000 });
        for (let n = 0; n < 100; n++) await tools.up.echo({ text: 'x' })";
    let code = json!({ "code": code, "timeout": 2 });
    let answer = host.call("mcpx_exec", code).await;
    assert!(failed(&answer), "{answer}");
    assert!(text_of(&answer).contains("1 had no answer yet and were cancelled"), "{answer}");
    eventually!(SOON, fake.ledger("stopped").len() == 1);
}

/// What is denied is not there for scripts either.
#[tokio::test]
async fn a_denied_tool_is_not_there() {
    let (daemon, fake) = one("", "\n[policy]\n\"up.ledger\" = \"deny\"");
    let mut host = host(&daemon, "2025-11-25").await;
    let answer = exec(&mut host, "await tools.up.ledger({ text: 'x' })").await;
    assert!(failed(&answer), "{answer}");
    assert!(text_of(&answer).contains("no tool `ledger`"), "{answer}");
    assert!(fake.ledger("effect").is_empty());
}

/// T-04, H-35: a host with tasks has a long script as one, and is asked by it.
#[tokio::test]
async fn a_script_as_a_task() {
    let (daemon, _) = one("--era 2025-11-25 --questions", "");
    let host = http_host(&daemon, "2025-11-25").await;
    let params = json!({ "name": "mcpx_exec", "task": {},
        "arguments": { "code": "return await tools.up.sleep({ ms: 100 })" } });
    let begun = host.request("tools/call", params).await;
    let id = begun["result"]["task"]["taskId"].clone();
    assert!(id.is_string(), "{begun}");
    let done = host.request("tasks/result", json!({ "taskId": id })).await;
    assert_eq!(text_of(&done), "slept", "{done}");
}

/// product.md 4: a host without tasks is handed a long script as a handle.
#[tokio::test]
async fn a_script_as_a_handle() {
    let (daemon, _) = one("", "call.handle_after = \"100ms\"");
    let mut host = host(&daemon, "2025-06-18").await;
    let answer = exec(&mut host, "return await tools.up.sleep({ ms: 500 })").await;
    let text = text_of(&answer);
    let id = text.split('`').find(|part| part.len() == 32).unwrap_or_else(|| panic!("{text}"));
    // It waits for as long as a call would.
    let mut looks = 0;
    let done = loop {
        let done = host.call("mcpx_task", json!({ "task": id })).await;
        if !text_of(&done).contains("still at work") || looks == 100 {
            break done;
        }
        looks += 1;
    };
    assert_eq!(text_of(&done), "slept", "{done}");
}
