//! `mcpx __sandbox`, the real program: what scripts can do, how they fail, and that whatever they do they
//! end within their limits, with one well-formed frame at the end.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use serde_json::{Value, json};

/// A sandbox that is ready.
struct Sandbox {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
}

/// How a run ended.
#[derive(Debug)]
struct Ended {
    end: Value,
    logs: Vec<String>,
    calls: Vec<Value>,
}

impl Sandbox {
    fn start() -> Self {
        let mut child = Command::new(env!("CARGO_BIN_EXE_mcpx"))
            .arg("__sandbox")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().unwrap());
        let mut sandbox = Self { child, stdin, stdout };
        assert_eq!(sandbox.read().unwrap(), json!("ready"));
        sandbox
    }

    fn read(&mut self) -> Option<Value> {
        let mut line = String::new();
        let read = self.stdout.read_line(&mut line).unwrap();
        (read > 0).then(|| serde_json::from_str(&line).unwrap())
    }

    /// Where the sandbox has ended meanwhile, nobody reads it.
    fn write(&mut self, line: &str) {
        let stdin = self.stdin.as_mut().unwrap();
        let _ = stdin.write_all(format!("{line}\n").as_bytes());
    }

    /// Runs a script; `answer` gives the outcome of a call as JSON, or nothing at all.
    fn run(self, run: &Value, answer: impl Fn(&Value) -> Option<String>) -> Ended {
        self.run_line(&json!({ "run": run }).to_string(), answer)
    }

    /// The same of a script whose line is written by hand.
    fn run_line(mut self, line: &str, answer: impl Fn(&Value) -> Option<String>) -> Ended {
        self.write(line);
        let (mut logs, mut calls, mut end) = (Vec::new(), Vec::new(), None);
        while let Some(frame) = self.read() {
            assert!(end.is_none(), "{frame} after the end");
            if let Some(call) = frame.get("call") {
                if let Some(outcome) = answer(call) {
                    let number = &call["call"];
                    self.write(&format!(r#"{{"answer":{{"call":{number},"outcome":{outcome}}}}}"#));
                }
                calls.push(call.clone());
            } else if frame == "offered" {
                self.write(&format!(r#"{{"offered":{}}}"#, OFFERED.replace('\n', " ")));
            } else if let Some(log) = frame.get("log") {
                let (level, text) = (log["level"].as_str().unwrap(), log["text"].as_str().unwrap());
                logs.push(format!("{level}: {text}"));
            } else {
                end = Some(frame);
            }
        }
        assert!(self.child.wait().unwrap().success(), "it ended with {end:?}");
        Ended { end: end.expect("it says how it ended"), logs, calls }
    }
}

/// What there is to call, where a script looks around.
const OFFERED: &str = r#"[
    {"name":"my-up","member":"my_up","tools":[
        {"name":"get-issue","member":"get_issue_2"},{"name":"get_issue","member":"get_issue"},
        {"name":"then","member":"_then"},{"name":"constructor","member":"_constructor"},
        {"name":"toString","member":"_toString"},{"name":"__proto__","member":"___proto__"}]},
    {"name":"b","member":"b","tools":[]}]"#;

fn limits() -> Value {
    json!({
        "source": 64 << 10, "memory": 32 << 20, "stack": 512 << 10, "cpu_ms": 20_000, "output": 1 << 20,
        "log": 4096, "calls": 100, "concurrent": 4,
    })
}

/// Every call is answered with who was called and with what.
#[expect(clippy::unnecessary_wraps, reason = "others leave calls unanswered")]
fn echo(call: &Value) -> Option<String> {
    let (target, arguments) = (&call["target"], &call["arguments"]);
    Some(json!({"value": {"target": target, "arguments": arguments}}).to_string())
}

fn run(source: &str) -> Ended {
    Sandbox::start().run(&json!({"source": source, "limits": limits()}), echo)
}

fn run_within(source: &str, name: &str, limit: u64) -> Ended {
    let mut limits = limits();
    limits[name] = json!(limit);
    Sandbox::start().run(&json!({"source": source, "limits": limits}), echo)
}

fn answered(source: &str, outcome: &str) -> Ended {
    let run = json!({"source": source, "limits": limits()});
    Sandbox::start().run(&run, |_| Some(outcome.to_owned()))
}

#[track_caller]
fn gives(source: &str, value: &Value) {
    let ended = run(source);
    assert_eq!(&ended.end["done"]["value"], value, "{source}: {}", ended.end);
}

/// The failure of a script.
#[track_caller]
fn fails(ended: &Ended) -> &Value {
    let failure = &ended.end["failed"];
    assert!(failure.is_object(), "{}", ended.end);
    assert!(!failure["message"].as_str().unwrap().contains("fault of mcpx"), "{failure}");
    failure
}

#[test]
fn the_value_of_a_script() {
    gives("1 + 1", &json!(2));
    gives("return 5; 6", &json!(5));
    gives("const x: number = 2;\nx * 2", &json!(4));
    gives("'text'", &json!("text"));
    for none in ["const x = 1", "return", "undefined"] {
        assert_eq!(run(none).end, json!({"done": {}}), "{none}");
    }
    assert_eq!(run("return null").end, json!({"done": {"value": null}}));
    gives("await Promise.resolve([1])", &json!([1]));
    gives("async () => { return await tools.a.b() ? 'called' : 0 }", &json!("called"));
    gives("export default async function main() { return 7 }\nexport const x = 1", &json!(7));
    gives("export default 8\nfunction later(): void {}", &json!(8));
    gives("#!/usr/bin/env node\n9", &json!(9));
    gives("```ts\nconst x: number = 9;\nx\n```", &json!(9));
    gives("let n = 0;\nfor await (const x of [1, Promise.resolve(2)]) n += x;\nn", &json!(3));
    let ended = run("{ using a = { [Symbol.dispose]() { console.log('a') } }; }\n\
         await using b = { async [Symbol.asyncDispose]() { console.log('b') } };\nreturn 1");
    assert_eq!((&ended.end["done"]["value"], ended.logs.len()), (&json!(1), 2), "{ended:?}");
    gives("enum E { A = 3, B }\nnamespace N { export const c = E.B }\nN.c", &json!(4));
    gives("class C { constructor(private a = 1) {} }\nnew C()", &json!({"a": 1}));
    let run = json!({"source": "(given) => [given, input]", "input": {"a": 1}, "limits": limits()});
    let ended = Sandbox::start().run(&run, echo);
    assert_eq!(ended.end["done"]["value"], json!([{"a": 1}, {"a": 1}]));
    let run =
        json!({"source": "[input === null, typeof input]", "input": null, "limits": limits()});
    let ended = Sandbox::start().run(&run, echo);
    assert_eq!(ended.end["done"]["value"], json!([true, "object"]));
}

/// What JSON.stringify calls `{}` has a form, in values, in arguments, in artifacts and in JSON of the script's own.
#[test]
fn values_that_are_not_plain() {
    gives(
        "({ e: new RangeError('r'), m: new Map([['k', new Set([1])]]), n: new Map([[1, 'x']]), none: new Map(),\n\
         d: new Date(0), never: new Date(NaN), r: /x/g, u: new Uint8Array([1, 2]), f: new Float32Array([1.5]),\n\
         b: new ArrayBuffer(2), v: new DataView(new ArrayBuffer(3), 1), g: (function* () { yield [1] })(),\n\
         k: new Map([['a', 1]]).keys() })",
        &json!({
            "e": {"name": "RangeError", "message": "r"}, "m": {"k": [1]}, "n": [[1, "x"]], "none": {},
            "d": "1970-01-01T00:00:00.000Z", "never": null, "r": "/x/g", "u": [1, 2], "f": [1.5],
            "b": [0, 0], "v": [0, 0], "g": [[1]], "k": ["a"],
        }),
    );
    gives(
        "class Odd extends Error { code = 5 }\n\
         [new Odd('o', { cause: new Error('c') }), new AggregateError([new Error('a')], 'all'), new DOMException('d', 'AbortError')]",
        &json!([
            {"name": "Error", "message": "o", "code": 5, "cause": {"name": "Error", "message": "c"}},
            {"name": "AggregateError", "message": "all", "errors": [{"name": "Error", "message": "a"}]},
            {"name": "AbortError", "message": "d"},
        ]),
    );
    let thrown = r#"{"thrown":{"name":"ToolError","message":"no","content":[{"type":"text","text":"no"}],"reason":"busy"}}"#;
    let ended = answered("return await Promise.allSettled([tools.a.b(), 1])", thrown);
    let reason = json!({"name": "ToolError", "message": "no", "reason": "busy"});
    let all =
        json!([{"status": "rejected", "reason": reason}, {"status": "fulfilled", "value": 1}]);
    assert_eq!(ended.end["done"]["value"], all);
    gives("(await tools.a.b({ m: new Map([['k', 1]]) })).arguments", &json!({"m": {"k": 1}}));
    gives("JSON.stringify([new Set([1n]), /x/])", &json!(r#"[[1],"/x/"]"#));
    let odd = "return (async function* () {})()";
    assert!(fails(&run(odd))["message"].as_str().unwrap().contains("Array.fromAsync"));
}

/// An agent looks around; what has no tool of such a name is nothing that could be awaited by mistake.
#[test]
fn what_there_is_to_call() {
    let names = json!(["get-issue", "get_issue", "then", "constructor", "toString", "__proto__"]);
    gives(
        "[Object.keys(tools), Object.keys(tools.my_up), Object.keys(tools['my-up']), Object.keys(tools.none)]",
        &json!([["my-up", "b"], names, names, []]),
    );
    gives(
        "['my-up' in tools, 'my_up' in tools, 'x' in tools, 'get_issue_2' in tools.my_up, 'x' in tools.my_up]",
        &json!([true, true, false, true, false]),
    );
    gives("const all = []; for (const name in tools) all.push(name); all", &json!(["my-up", "b"]));
    gives("tools", &json!({"my-up": names, "b": []}));
    gives(
        "['then', 'constructor', 'toString', '__proto__', 'toJSON'].map((name) => [typeof tools.my_up[name], typeof tools.b[name]])",
        &json!([
            ["function", "undefined"],
            ["function", "undefined"],
            ["function", "undefined"],
            ["function", "undefined"],
            ["function", "function"],
        ]),
    );
    let ended = run(
        "await tools['my-up']['then']({ n: 1 });\nawait tools.my_up.constructor({});\nawait tools.b",
    );
    let called: Vec<_> = ended.calls.iter().map(|call| &call["target"]["tool"]["tool"]).collect();
    assert_eq!(called, ["then", "constructor"], "{ended:?}");
    assert!(fails(&run("await tools.my_up"))["message"].as_str().unwrap().contains("is a tool"));
    for change in ["tools.x = 1", "delete tools.b", "Object.freeze(tools)"] {
        assert_eq!(fails(&run(change))["name"], "TypeError", "{change}");
    }
}

#[test]
fn errors_name_their_place_in_the_script_as_given() {
    let cases = [
        ("let x: number = ;", "SyntaxError", 1, 17),
        ("const a = 1;\nlet b: string = 'x;\n", "SyntaxError", 2, 17),
        ("let a = 1;\nlet a = 2", "SyntaxError", 1, 5),
        ("import fs from 'fs';\nfs.x()", "SyntaxError", 1, 1),
        ("interface A { b: { c: number } }\n\n  const a = {} as A;\n  a.b.c", "TypeError", 4, 3),
        ("type T<X> = X[];\nfunction f(x?: T<number>): void {\n\tx!.y;\n}\nf()", "TypeError", 3, 2),
        ("enum E { A }\r\nconst s: string = 'ü𝒳';  unknown.x", "ReferenceError", 2, 27),
        ("const x: any = 1;\nawait tools.a.b(5)", "TypeError", 2, 15),
        ("throw new RangeError('r')", "RangeError", 1, 11),
        // For these the engine itself notes no place.
        ("parseInt('1');\nconst { b } = null", "TypeError", 2, 1),
        ("parseInt('1');\nconst { b: { c } } = { b: undefined };", "TypeError", 2, 1),
        ("parseInt('1');\n  const [b] = null;", "TypeError", 2, 3),
        ("parseInt('1');\nlet q: any;\n({ q } = null)", "TypeError", 3, 1),
        ("parseInt('1');\nfor (const { a } of [null]) {}", "TypeError", 2, 1),
        ("parseInt('1');\nfor (const a of null) {}", "TypeError", 2, 1),
        ("parseInt('1');\nreturn null.x", "TypeError", 2, 1),
        ("parseInt('1');\nif (null.x) {}", "TypeError", 2, 1),
        ("parseInt('1');\nif (1) {\n  const a = null!.x\n}", "TypeError", 3, 3),
        ("parseInt('1');\nconst f = () => {\n\treturn [...null] };\nf()", "TypeError", 3, 2),
        ("parseInt('1');\nswitch (1) { case 1:\n const { a } = null }", "TypeError", 3, 2),
        ("decodeURIComponent('%')", "URIError", 1, 1),
        ("1;\nreturn structuredClone(() => 1)", "DataCloneError", 2, 8),
        ("```ts\nlet x: number = ;\n```", "SyntaxError", 2, 17),
    ];
    for (source, name, line, column) in cases {
        let ended = run(source);
        let failure = fails(&ended);
        let found = (&failure["name"], &failure["line"], &failure["column"]);
        assert_eq!(found, (&json!(name), &json!(line), &json!(column)), "{source}: {failure}");
    }
    let ended = run(
        "type T = 1;\nfunction f() { throw new Error('x') }\ntry { f() } catch (e) { e.stack }\ntry { f() } catch (e) { return e.stack }",
    );
    let stack = ended.end["done"]["value"].as_str().unwrap();
    assert_eq!(stack, "    at f (script:2:26)\n    at <anonymous> (script:4:7)\n");
}

#[test]
fn calls() {
    let ended = run("const a = await tools.github['get-issue']({n: 1, __proto__: null});\n\
         await Promise.all([mcpx.search('x'), mcpx.types({namespace: 'n'}), mcpx.read('mcpx://u')]);\n\
         await artifacts.write('a.json', {x: 12345678901234567890n});\n\
         await artifacts.write('b.bin', new Uint16Array([1, 2]).subarray(1), 'x/y');\n\
         await artifacts.write('c.txt', 'text');\n\
         tools.x.unawaited();\n\
         a.arguments");
    assert_eq!(ended.end["done"]["value"], json!({"n": 1}));
    let seen: Vec<Value> =
        ended.calls.iter().map(|call| json!([call["target"], call["arguments"]])).collect();
    let expected = json!([
        [{"tool": {"namespace": "github", "tool": "get-issue"}}, {"n": 1}],
        [{"own": {"name": "search"}}, {"query": "x"}],
        [{"own": {"name": "types"}}, {"namespace": "n"}],
        [{"own": {"name": "read"}}, {"uri": "mcpx://u"}],
        ["artifact", {"name": "a.json", "type": "application/json", "text": r#"{"x":12345678901234567890}"#}],
        ["artifact", {"name": "b.bin", "type": "x/y", "base64": "AgA="}],
        ["artifact", {"name": "c.txt", "text": "text"}],
        [{"tool": {"namespace": "x", "tool": "unawaited"}}, {}],
    ]);
    assert_eq!(json!(seen), expected);
    gives(
        "[typeof tools.then, typeof await tools.a, typeof tools.toJSON]",
        &json!(["undefined", "object", "undefined"]),
    );
}

/// At most `concurrent` at once, in order; `Promise.all` uses all of them.
#[test]
fn calls_at_once() {
    let mut limits = limits();
    limits["concurrent"] = json!(3);
    let source = "await Promise.all([1, 2, 3, 4].map((i) => tools.a.b({ i })))";
    let mut sandbox = Sandbox::start();
    sandbox.write(&json!({"run": {"source": source, "limits": limits}}).to_string());
    let call = |frame: Value| frame["call"]["arguments"]["i"].as_i64().unwrap();
    let first: Vec<i64> = (0..3).map(|_| call(sandbox.read().unwrap())).collect();
    assert_eq!(first, [1, 2, 3]);
    sandbox.write(r#"{"answer":{"call":2,"outcome":{"value":20}}}"#);
    assert_eq!(call(sandbox.read().unwrap()), 4);
    for number in [1, 3, 4] {
        sandbox
            .write(&format!(r#"{{"answer":{{"call":{number},"outcome":{{"value":{number}}}}}}}"#));
    }
    assert_eq!(sandbox.read().unwrap()["done"]["value"], json!([1, 20, 3, 4]));
}

#[test]
fn errors_of_calls() {
    let thrown = r#"{"thrown":{"name":"ToolError","message":"no","content":[{"type":"text","text":"t"}],"reason":"why"}}"#;
    let source = "try { await tools.a.b() } catch (e) { return [e instanceof ToolError, e instanceof Error, e.name, e.message, e.content[0].text, e.reason] }";
    let ended = answered(source, thrown);
    assert_eq!(ended.end["done"]["value"], json!([true, true, "ToolError", "no", "t", "why"]));
    let ended = answered("const x: string = 'a';\nawait tools.a.b()", thrown);
    let failure = fails(&ended);
    assert_eq!(failure["content"], json!([{"type": "text", "text": "t"}]));
    assert_eq!((&failure["name"], &failure["line"]), (&json!("ToolError"), &json!(2)));
    let ended = run("return { a: tools.a.b() }");
    assert!(fails(&ended)["message"].as_str().unwrap().contains("await it"));
    let ended = run("async function f() { throw new Error('lost') }\nf();\nreturn 5");
    assert_eq!(ended.end["done"]["value"], json!(5));
    assert_eq!(
        ended.logs,
        ["error: in a promise that nobody awaited: Error: lost (line 1, column 32)"]
    );
    let ended = run("structuredClone(() => 1)");
    assert_eq!(fails(&ended)["message"], "structuredClone: a function cannot be cloned");
    let ended = run("console.log(new DOMException('gone', 'AbortError'))");
    assert_eq!(ended.logs, ["log: AbortError: gone (line 1, column 17)"]);
    let ended = run("async function f() { throw new Error('lost') }\nf();\nreturn");
    assert_eq!(fails(&ended)["message"], "lost");
}

/// F14: what a double does not hold arrives as `bigint` where it is a whole number, else as text.
#[test]
fn f14_numbers_are_not_rounded_however_they_are_written() {
    for (written, kind, read) in [
        ("9007199254740993.0", "bigint", "9007199254740993"),
        ("9007199254740993e0", "bigint", "9007199254740993"),
        ("-9.007199254740993E+15", "bigint", "-9007199254740993"),
        ("1e23", "bigint", "100000000000000000000000"),
        ("1e20", "number", "100000000000000000000"),
        ("9007199254740992", "bigint", "9007199254740992"),
        ("9007199254740991", "number", "9007199254740991"),
        ("9007199254740993.5", "string", "9007199254740993.5"),
        ("1e400", "string", "1e400"),
        ("-1E400", "string", "-1E400"),
        ("1e-400", "string", "1e-400"),
        ("0.1", "number", "0.1"),
        ("2.5e-7", "number", "2.5e-7"),
        ("0e99999", "number", "0"),
    ] {
        let source =
            "const { n } = await tools.a.b();\n[typeof n, String(n), typeof input, String(input)]";
        let line = format!(
            r#"{{"run":{{"source":{},"input":{written},"limits":{}}}}}"#,
            json!(source),
            limits()
        );
        let ended =
            Sandbox::start().run_line(&line, |_| Some(format!(r#"{{"value":{{"n":{written}}}}}"#)));
        assert_eq!(ended.end["done"]["value"], json!([kind, read, kind, read]), "{written}");
    }
}

/// F14: whole numbers beyond 2^53 arrive as `bigint` and leave as they came; `__proto__` is a key.
#[test]
fn f14_numbers_and_keys_stay_what_they_are() {
    let value = r#"{"big":9007199254740993,"small":9007199254740991,"long":-123456789012345678901234567890,"float":0.1234567890123456789,"exp":1e20,"__proto__":{"x":1},"text":"12345678901234567890"}"#;
    let source = "const r = await tools.a.b({ n: 12345678901234567890n });\n\
        [r, typeof r.big, typeof r.small, typeof r.float, typeof r.exp, Object.keys(r).includes('__proto__'), r.x]";
    let run = json!({"source": source, "limits": limits()});
    let ended = Sandbox::start().run(&run, |call| {
        let arguments = call["arguments"].to_string();
        assert_eq!(arguments, r#"{"n":12345678901234567890}"#);
        Some(format!(r#"{{"value":{value}}}"#))
    });
    let text = ended.end.to_string();
    for exact in ["9007199254740993", "-123456789012345678901234567890", r#""__proto__":{"x":1}"#] {
        // serde_json keeps such numbers as floats; the frame itself is looked at in `wire`.
        assert!(text.contains(exact) || exact.starts_with('-'), "{text}");
    }
    let types = json!(["bigint", "number", "number", "number", true, null]);
    assert_eq!(json!(ended.end["done"]["value"].as_array().unwrap()[1..]), types);
}

#[test]
fn console_and_what_scripts_know_from_elsewhere() {
    let ended = run(
        "console.log('a', 1, -0, 1n, null, undefined, [1, 'x'], {a: 1, 'b c': {}}, new Map([['k', 1]]), new Set([1]));\n\
         const o: any = { d: new Date(0), r: /x/g, f() {}, p: Promise.resolve() }; o.o = o;\n\
         console.warn(o, new Uint8Array([1]), new TypeError('t'), Symbol('s'));\n\
         console.error('%s is %d%%', 'x', 5, 'more'); console.info(tools); console.debug(new (class P { q = 1 })());\n\
         await new Promise((resolve) => setTimeout(resolve, 5));\n\
         let n = 0; await new Promise<void>((resolve) => { const i = setInterval(() => { if (++n === 3) { clearInterval(i); resolve() } }, 1) });\n\
         setTimeout(() => console.log('never'), 3_600_000);\n\
         const bytes = new TextEncoder().encode('hé');\n\
         [n, bytes.length, new TextDecoder().decode(bytes), btoa('abc'), atob('YWJj'), structuredClone({ m: new Map([[1, [2]]]) }).m.get(1)]",
    );
    assert_eq!(ended.end["done"]["value"], json!([3, 3, "hé", "YWJj", "abc", [2]]));
    let expected = [
        r#"log: a 1 -0 1n null undefined [1, "x"] {a: 1, "b c": {}} Map(1) {"k" => 1} Set(1) {1}"#,
        "warn: {d: 1970-01-01T00:00:00.000Z, r: /x/g, f: [Function: f], p: Promise {<fulfilled>}, o: [Circular]} Uint8Array(1) [1] TypeError: t (line 3, column 42) Symbol(s)",
        "error: x is 5% more",
        "info: {\"my-up\": {\"get-issue\": [Function: anonymous], get_issue: [Function: anonymous], then: [Function: anonymous], constructor: [Function: anonymous], toString: [Function: anonymous], __proto__: [Function: anonymous]}, b: {}}",
        "debug: P {q: 1}",
    ];
    assert_eq!(ended.logs, expected);
}

#[test]
fn each_limit_names_its_setting() {
    let cases = [
        ("exec.cpu_time", run_within("while (true) {}", "cpu_ms", 200)),
        ("exec.memory", run("const a = []; for (;;) a.push(new Array(1000).fill(1.5))")),
        ("exec.stack", run("function f(): any { return [f()] }\nf()")),
        ("exec.output_limit", run_within("'x'.repeat(1000)", "output", 1000)),
        ("exec.max_source", run_within("return 'some text'", "source", 10)),
        ("exec.max_calls", run_within("for (;;) await tools.a.b()", "calls", 3)),
    ];
    for (limit, ended) in cases {
        let failure = fails(&ended);
        assert_eq!(failure["limit"], limit, "{failure}");
        assert!(failure["message"].as_str().unwrap().contains(limit), "{failure}");
    }
    // A loop without end is said with its line.
    for (source, line) in [
        ("const a = 1;\nwhile (true) {}", 2),
        ("await null;\n\nfor (;;) {}", 3),
        ("const a = 1;\nfunction f() {\n  do {} while (true) }\nf()", 3),
        ("setTimeout(() => {\n  for (;;) {} }, 0);\nawait new Promise(() => {})", 2),
        ("const a = 1;\n/^(a+)+$/.test('a'.repeat(40) + 'b')", 2),
    ] {
        let ended = run_within(source, "cpu_ms", 200);
        assert_eq!(
            (&fails(&ended)["line"], &fails(&ended)["limit"]),
            (&json!(line), &json!("exec.cpu_time")),
            "{source}"
        );
    }
    let ended =
        run_within("for (let i = 0; i < 100; i++) console.log('x'.repeat(99))", "log", 1000);
    assert_eq!(ended.logs.len(), 12, "ten lines, part of one, and how many were dropped");
    assert!(
        ended.logs[11].contains("89 lines") && ended.logs[11].contains("exec.log_limit"),
        "{:?}",
        ended.logs
    );
    let ended = run("await new Promise(() => {})");
    assert!(fails(&ended)["message"].as_str().unwrap().contains("nothing will ever settle"));
}

/// Loops where the engine looks at its clock, and where it does not.
#[test]
fn hostile_loops_end() {
    let scripts = [
        "while (true) { try { while (true) {} } catch {} finally { continue } }",
        "async function f() { while (true) await null }\nawait f()",
        "return { get a() { while (true) {} } }",
        "const e = new Error('x'); Object.defineProperty(e, 'message', { get() { while (true) {} } }); throw e",
        "const t: any = { then(resolve: any) { resolve(t) } }; return t",
        "/^(a+)+$/.test('a'.repeat(40) + 'b')",
        "new Array(1_000_000_000) + ''",
        "Array(1e8).join('x')",
        "console.log(new Proxy({}, { getPrototypeOf() { while (true) {} } }))",
        "setInterval(() => { while (true) {} }, 0); await new Promise(() => {})",
    ];
    for source in scripts {
        let ended = run_within(source, "cpu_ms", 150);
        assert_eq!(fails(&ended)["limit"], "exec.cpu_time", "{source}");
    }
}

/// Whatever is struck first.
#[test]
fn hostile_allocation_ends() {
    let scripts = [
        "let s = 'x'; for (;;) s += s",
        "const a = []; for (;;) a.push(new ArrayBuffer(1e6))",
        "const m = new Map(); for (let i = 0; ; i++) m.set(i, { i })",
        "let o: any = {}; for (;;) o = { o }",
        "const a: any[] = []; for (;;) { try { for (;;) a.push(new Array(1000).fill(1)) } catch {} }",
        "let b = 2n; for (;;) b = b * b",
        "new Array(1e9).fill(0)",
        "const a = []; for (let i = 0; i < 1e6; i++) a.push(Promise.resolve(i).then((x) => x)); await Promise.all(a)",
        "for (let i = 0; i < 1e6; i++) Promise.reject(new Error('x' + i))",
        "for (let i = 0; i < 1e6; i++) setTimeout(() => {}, 1e9); await new Promise(() => {})",
    ];
    for source in scripts {
        fails(&run_within(source, "cpu_ms", 600));
    }
    // Calls that wait count as the script's memory. (Short answers: this test reads no further while it
    // writes one.)
    let ended = answered(
        "const s = 'x'.repeat(1e6); for (let i = 0; i < 60; i++) tools.a.b({ s, i }); await new Promise(() => {})",
        r#"{"value":1}"#,
    );
    fails(&ended);
}

/// The frames say what they should, whatever a script does to what it shares with the prelude.
#[test]
fn hostile_prototypes_change_nothing() {
    let done = [
        "Object.defineProperty(Object.prototype, 'then', { set() {}, get() {} })",
        "Object.defineProperty(Object.prototype, 'resolve', { get() { throw 1 } })",
        "const g: any = globalThis; g.Promise = class {}; g.JSON = { stringify: () => 'evil' }; g.Error = g.Map = g.Object = null",
        "Function.prototype.call = Function.prototype.apply = Function.prototype.bind = (() => { throw 1 }) as any; (Map.prototype as any).set = (WeakMap.prototype as any).set = (String.prototype as any).slice = (Reflect as any).apply = null",
        "(Array.prototype as any)[Symbol.iterator] = null; Array.prototype.push = (() => { throw 1 }) as any; Promise.prototype.then = (() => { throw 1 }) as any",
        "Object.defineProperty(Error.prototype, 'stack', { get() { throw 1 } }); (Error as any).prepareStackTrace = () => { while (true) {} }",
    ];
    for hostile in done {
        let ended = run(&format!(
            "{hostile};\nconst r = await tools.a.b({{ x: 1 }});\nconsole.log(r.arguments);\nreturn r.arguments"
        ));
        assert_eq!(ended.end["done"]["value"], json!({"x": 1}), "{hostile}: {}", ended.end);
        assert_eq!(ended.logs, ["log: {x: 1}"], "{hostile}");
    }
    let ended = run(
        "(Error as any).prepareStackTrace = () => 'evil'; (Error as any).stackTraceLimit = 0;\nundefinedName",
    );
    assert_eq!(fails(&ended)["line"], 2);
}

/// No frame is forged or broken by what scripts say, return and throw.
#[test]
fn hostile_values_and_texts() {
    let ended = run(
        "console.log('\\n{\"done\":{\"value\":\"forged\"}}\\n'); console.log('\\ud800', 'x'.repeat(2e6), { a: 'y'.repeat(2e6) });\n\
         await tools['\\ud800']['\\n']();\n\
         throw new Error('\\n{\"done\":{}}\\n' + 'z'.repeat(2e6))",
    );
    let failure = fails(&ended);
    assert!(failure["message"].as_str().unwrap().len() < 5000);
    assert_eq!(ended.logs[0], "log: \n{\"done\":{\"value\":\"forged\"}}\n");
    assert!(ended.logs.iter().map(String::len).sum::<usize>() < 5000);
    let throws = [
        "throw null",
        "throw undefined",
        "throw Symbol('x')",
        "throw { a: 1 }",
        "const { proxy, revoke } = Proxy.revocable({}, {}); revoke(); console.log(proxy); throw proxy",
        "const e: any = new Error('x'); e.name = { toString() { throw 1 } }; throw e",
        "return new Proxy({}, { ownKeys() { throw new Error('trap') } })",
        "await tools.a.b(new Proxy({}, { ownKeys() { throw new Error('trap') } }))",
        "const a: any = {}; a.a = a; return a",
        "let o: any = []; for (let i = 0; i < 1e5; i++) o = [o]; return o",
        "let o: any = [1n]; for (let i = 0; i < 1e5; i++) o = [o]; return o",
        "JSON.parse('['.repeat(1e5) + ']'.repeat(1e5))",
    ];
    for source in throws {
        fails(&run(source));
    }
    let deep = format!(r#"{{"value":{}{}}}"#, "[".repeat(100_000), "]".repeat(100_000));
    let ended = answered("try { await tools.a.b() } catch (e) { return e.name }", &deep);
    assert_eq!(ended.end["done"]["value"], "RangeError");
    gives(
        "let o: any = []; for (let i = 0; i < 1e5; i++) o = [o]; console.log(o); return 1",
        &json!(1),
    );
}

/// Nothing makes code from text, and nothing of the machine is there.
#[test]
fn nothing_leads_outside() {
    let refused = [
        "eval('1')",
        "(0, eval)('1')",
        "new Function('return 1')()",
        "(() => {}).constructor('return 1')()",
        "(async () => {}).constructor('return 1')()",
        "(function* () {} as any).constructor('return 1')()",
        "(async function* () {} as any).constructor('return 1')()",
        "Reflect.construct(Function, ['return 1'])",
        "class X extends Function {}; new X('return 1')",
        "tools.a.b.constructor('return 1')",
        "console.log.constructor('return 1')",
        "try { await tools.a.b(1) } catch (e) { e.constructor.constructor('return 1') }",
    ];
    for source in refused {
        let ended = run(source);
        assert_eq!(fails(&ended)["name"], "EvalError", "{source}");
    }
    for source in ["fetch('http://x')", "require('fs')", "process.env", "await import('fs')"] {
        let ended = run(source);
        assert!(fails(&ended)["message"].as_str().unwrap().contains("use `tools`"), "{source}");
    }
    let absent = "[typeof SharedArrayBuffer, typeof Atomics, typeof performance, typeof WebAssembly, typeof std, typeof os]";
    gives(
        absent,
        &json!(["undefined", "undefined", "undefined", "undefined", "undefined", "undefined"]),
    );
    let ended = run("return [typeof arguments.callee]");
    fails(&ended);
}

/// The parser is not what a script can break.
#[test]
fn hostile_sources() {
    let nested = |open: &str, middle: &str, close: &str| {
        const DEEP: usize = 3000;
        format!("{}{middle}{}", open.repeat(DEEP), close.repeat(DEEP))
    };
    let sources = [
        nested("(", "1", ")"),
        nested("[", "1", "]"),
        nested("!", "1", ""),
        nested("1+", "1", ""),
        nested("if (1) ", ";", ""),
        nested("1 ? 1 : ", "1", ""),
        nested("a", "", "()"),
        nested("`${", "1", "}`"),
        nested("a = ", "1", ""),
        nested("{", "", "}"),
        nested("new ", "A", ""),
        nested("(a) => ", "1", ""),
        nested("function f() {", "", "}"),
        format!("type A = {}", nested("{ a: ", "1", "}")),
        format!("type A = {}", nested("B<", "1", ">")),
        "(".repeat(20_000),
        "\0".to_owned(),
        "x".repeat(300_000),
        String::new(),
    ];
    for source in &sources {
        let ended = run_within(source, "cpu_ms", 5000);
        let shown: String = source.chars().take(20).collect();
        assert!(ended.end.get("done").is_some() || fails(&ended).is_object(), "{shown}");
    }
}

/// F10: half a surrogate pair is JSON, and stays in what scripts send and return.
#[test]
fn f10_lone_surrogates() {
    let mut sandbox = Sandbox::start();
    let source = r"await tools.a.b({ x: '\ud800' })";
    sandbox.write(&json!({"run": {"source": source, "limits": limits()}}).to_string());
    let mut line = String::new();
    sandbox.stdout.read_line(&mut line).unwrap();
    assert!(line.contains(r#""arguments":{"x":"\ud800"}"#), "{line}");
    sandbox.write(r#"{"answer":{"call":1,"outcome":{"value":{"y":"\udfff"}}}}"#);
    line.clear();
    sandbox.stdout.read_line(&mut line).unwrap();
    assert_eq!(line, "{\"done\":{\"value\":{\"y\":\"\\udfff\"}}}\n");
}

/// It ends with the daemon, whatever it does; and takes no answer for a script.
#[test]
fn it_ends_with_its_stdin() {
    for source in [
        "while (true) {}",
        "await tools.a.b()",
        "setTimeout(() => {}, 1e8); await new Promise(() => {})",
    ] {
        let mut sandbox = Sandbox::start();
        sandbox.write(&json!({"run": {"source": source, "limits": limits()}}).to_string());
        sandbox.stdin = None;
        assert!(sandbox.child.wait().unwrap().success(), "{source}");
    }
    let mut idle = Sandbox::start();
    idle.stdin = None;
    assert!(idle.child.wait().unwrap().success());
    let mut wrong = Sandbox::start();
    wrong.write(r#"{"answer":{"call":1,"outcome":{"value":1}}}"#);
    assert!(!wrong.child.wait().unwrap().success());
}
