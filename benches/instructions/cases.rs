//! What is counted. Every case gives the number of bytes that one repetition handles.

use std::hint::black_box;

use bytes::Bytes;
use mcpx::protocol::edge;
use mcpx::protocol::jsonrpc::{Incoming, Message, Method, RawJson, Request, Response, parse};
use mcpx::protocol::revision::Revision;
use mcpx::script::types::{Limits, Namespace, Tool, declare};
use mcpx::transport::link::{Link, LinkEvent, LinkLimits};

/// One row of the table.
pub struct Case {
    /// As it is shown, and picked by.
    pub name: &'static str,
    /// Does it so many times.
    pub run: fn(u64) -> usize,
}

/// All of them.
pub const CASES: [Case; 7] = [
    Case { name: "300 tools, modern upstream to legacy host", run: |n| tools(n, MODERN, LEGACY) },
    Case { name: "300 tools, legacy upstream to modern host", run: |n| tools(n, LEGACY, MODERN) },
    Case { name: "300 tools, legacy both", run: |n| tools(n, LEGACY, LEGACY) },
    Case { name: "300 tools as TypeScript", run: typescript },
    Case { name: "100 B call, there and back, legacy both", run: |n| call(n, 100) },
    Case { name: "1 MB call, there and back, legacy both", run: |n| call(n, 1_000_000) },
    Case { name: "1,000 frames of 200 B through a memory link", run: frames },
];

const MODERN: Revision = Revision::V2026_07_28;
const LEGACY: Revision = Revision::V2025_11_25;

/// parse, lift, downgrade, write: a list's whole way through mcpx.
fn tools(repeat: u64, upstream: Revision, host: Revision) -> usize {
    let frame = tool_list(upstream == MODERN);
    let method = Method::new("tools/list");
    let own = raw(r#"{"name":"mcpx","version":"0.1.0"}"#);
    for _ in 0..repeat {
        let answer = response(black_box(&frame));
        let lifted = edge::lift_result(upstream, &method, answer.outcome.expect("a result"));
        let spelled = edge::downgrade_result(host, &method, &lifted, &own);
        black_box(Response { id: answer.id, outcome: Ok(spelled) }.to_frame());
    }
    frame.len()
}

/// Schemas of a list to declarations for scripts.
fn typescript(repeat: u64) -> usize {
    let frame = tool_list(true);
    let result = response(&frame).outcome.expect("a result");
    let tools = result.member("tools").and_then(|tools| tools.elements()).expect("a list");
    let limits = Limits { depth: 16, nodes: 5000, size: 32 << 10, description: 4 << 10 };
    for _ in 0..repeat {
        let tools = black_box(&tools).iter().enumerate();
        let tools = tools.map(|(at, definition)| Tool { member: format!("tool_{at}"), definition });
        let (member, about) = ("many".to_owned(), String::new());
        let namespace = Namespace { member, about, tools: tools.collect() };
        black_box(declare(&[namespace], &limits, None));
    }
    frame.len()
}

/// A call and its answer, each parsed, spelled and written once.
fn call(repeat: u64, payload: usize) -> usize {
    let text = "x".repeat(payload);
    let asked = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{{"name":"echo","arguments":{{"text":"{text}"}}}}}}"#
    ));
    let answered = Bytes::from(format!(
        r#"{{"jsonrpc":"2.0","id":7,"result":{{"content":[{{"type":"text","text":"{text}"}}]}}}}"#
    ));
    let own = raw(r#"{"name":"mcpx","version":"0.1.0"}"#);
    for _ in 0..repeat {
        let Ok(Incoming::One(Message::Request(request))) = parse(black_box(&asked)) else {
            panic!("the call was not read")
        };
        let Request { id, method, params } = request;
        let params = params.map(|params| edge::downgrade_params(LEGACY, &method, &params, &[]));
        black_box(Request { id, method: method.clone(), params }.to_frame());
        let answer = response(black_box(&answered));
        let lifted = edge::lift_result(LEGACY, &method, answer.outcome.expect("a result"));
        let spelled = edge::downgrade_result(LEGACY, &method, &lifted, &own);
        black_box(Response { id: answer.id, outcome: Ok(spelled) }.to_frame());
    }
    asked.len() + answered.len()
}

/// Frames through the two ends of a link, as many waiting as its queue takes.
fn frames(repeat: u64) -> usize {
    const COUNT: usize = 1000;
    let frame = Bytes::from(format!("{{\"text\":\"{}\"}}", "x".repeat(189)));
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    runtime.block_on(async {
        let (near, far) = Link::pair(LinkLimits {
            max_frame: 1 << 20,
            write_queue: 64,
            write_queue_bytes: 32 << 20,
        });
        let mut reader = far.reader;
        // The far writer is kept so that the pair stays whole.
        let _far = (far.sender, far.writer);
        let sender = near.sender;
        let writing = near.writer.run();
        let moving = async {
            for _ in 0..repeat {
                let sending = async {
                    for _ in 0..COUNT {
                        sender.send(frame.clone()).await.expect("an open link");
                    }
                };
                let reading = async {
                    for _ in 0..COUNT {
                        let LinkEvent::Frame(got) = reader.next().await else { panic!("closed") };
                        black_box(got);
                    }
                };
                tokio::join!(sending, reading);
            }
        };
        tokio::select! {
            () = moving => {}
            why = writing => panic!("the writer ended: {why}"),
        }
    });
    COUNT * frame.len()
}

fn response(frame: &Bytes) -> Response {
    match parse(frame) {
        Ok(Incoming::One(Message::Response(response))) => response,
        other => panic!("not a response: {other:?}"),
    }
}

fn raw(text: &'static str) -> RawJson {
    RawJson::parse(Bytes::from_static(text.as_bytes())).expect("good JSON")
}

/// A list as servers of the field send it: descriptions of a few lines, schemas with nesting.
fn tool_list(modern: bool) -> Bytes {
    let tool = |number: usize| {
        format!(
            r#"{{"name":"tool_{number}","title":"Tool number {number}","description":"{}","inputSchema":{{"type":"object","properties":{{"path":{{"type":"string","description":"Where to look, relative to the root of the project."}},"options":{{"type":"object","properties":{{"depth":{{"type":"integer","minimum":0}},"follow":{{"type":"boolean","default":false}},"kinds":{{"type":"array","items":{{"enum":["file","folder","link"]}}}}}}}}}},"required":["path"],"additionalProperties":false}},"annotations":{{"readOnlyHint":true,"openWorldHint":false}}}}"#,
            "Does one thing, and says what it did. ".repeat(6),
        )
    };
    let tools: Vec<String> = (0..300).map(tool).collect();
    let envelope = if modern {
        r#","resultType":"complete","ttlMs":0,"cacheScope":"public","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"many","version":"1.0.0"}}"#
    } else {
        ""
    };
    let list = tools.join(",");
    Bytes::from(format!(r#"{{"jsonrpc":"2.0","id":7,"result":{{"tools":[{list}]{envelope}}}}}"#))
}
