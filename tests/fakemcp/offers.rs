//! Resources, templates, prompts and completions (`--offers`).
//!
//! Resources: `file:///README.md` (a text that names the fake), `fake://rich` (every member that some
//! revision has), `fake://blob` (`--blob-size` bytes), `fake://many` (several
//! contents). Templates: `db://{table}/{row}`, which answers with what was filled in. Prompts: `greet
//! {name}`, `media` (a message with a block of every type), `link`. Completions: of every argument,
//! `VALUE-one` and `VALUE-two`.

use base64::Engine as _;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::args::Args;
use crate::calls;
use crate::state::{Ask, Fake};
use crate::tools;

/// What is offered now.
#[derive(Debug, Default)]
pub struct Offers {
    pub resources: Vec<Value>,
    pub templates: Vec<Value>,
    pub prompts: Vec<Value>,
    /// URIs that mcpx subscribed to (legacy).
    pub subscribed: Vec<String>,
}

impl Offers {
    pub fn initial(args: &Args) -> Self {
        let mut offers = Self::default();
        if args.flag("offers") {
            offers.resources = resources();
            offers.templates = vec![json!({
                "uriTemplate": "db://{table}/{row}", "name": "row", "description": "A row." })];
            offers.prompts = prompts();
        }
        if args.flag("questions") {
            offers.resources.push(json!({ "uri": "fake://ask", "name": "ask" }));
            offers.prompts.push(json!({ "name": "ask_prompt" }));
        }
        let given = |name: &str| {
            let all = args.all_of(name).iter();
            all.map(|text| serde_json::from_str::<Value>(text).expect("JSON")).collect::<Vec<_>>()
        };
        offers.resources.extend(given("resource"));
        offers.templates.extend(given("template"));
        offers.prompts.extend(given("prompt"));
        offers
    }
}

/// The tools that belong to it.
pub fn tools(args: &Args) -> Vec<Value> {
    let names: &[&str] =
        if args.flag("offers") { &["links", "set_offers", "touch", "end_listens"] } else { &[] };
    names.iter().map(|name| crate::lists::plain(name)).collect()
}

/// More capabilities of the server.
pub fn declare(args: &Args, revision: &str, capabilities: &mut Value) {
    if args.flag("offers") || args.flag("questions") {
        capabilities["resources"] = json!({ "listChanged": true, "subscribe": true });
        capabilities["prompts"] = json!({ "listChanged": true });
        // Completions came with the first revision, their capability with the second.
        if revision != "2024-11-05" {
            capabilities["completions"] = json!({});
        }
    }
}

fn resources() -> Vec<Value> {
    vec![
        json!({ "uri": "file:///README.md", "name": "README.md", "mimeType": "text/markdown" }),
        json!({
            "uri": "fake://rich", "name": "rich", "title": "A rich resource", "description": "All.",
            "mimeType": "text/plain", "size": 3,
            "annotations": { "audience": ["user"], "priority": 1, "lastModified": "2025-01-12T15:00:58Z" },
            "icons": [{ "src": "https://icons.test/i.png" }],
            "_meta": { "vendor.test/key": [1, 2] },
        }),
        json!({ "uri": "fake://blob", "name": "blob", "mimeType": "application/octet-stream" }),
        json!({ "uri": "fake://many", "name": "many" }),
    ]
}

fn prompts() -> Vec<Value> {
    vec![
        json!({
            "name": "greet", "title": "A greeting", "description": "Greets.",
            "arguments": [{ "name": "name", "title": "Whom", "required": true }],
            "icons": [{ "src": "https://icons.test/i.png" }], "_meta": { "vendor.test/key": 1 },
        }),
        json!({ "name": "media" }),
        json!({ "name": "link" }),
    ]
}

/// Takes a request, if it is one of these; whether it was.
pub fn take(fake: &Arc<Fake>, ask: &Ask) -> bool {
    let flags = fake.args.flag("offers") || fake.args.flag("questions");
    if !flags && fake.args.all_of("resource").is_empty() {
        return false;
    }
    match ask.method.as_str() {
        "resources/list" => list(fake, ask, "resources", |offers| &offers.resources),
        "resources/templates/list" if fake.args.flag("no-templates") => return false,
        "resources/templates/list" => {
            list(fake, ask, "resourceTemplates", |offers| &offers.templates);
        }
        "prompts/list" => list(fake, ask, "prompts", |offers| &offers.prompts),
        "resources/read" if questions(fake, ask, "uri", "fake://ask") => {
            crate::questions::later(fake, ask, crate::questions::resource);
        }
        "prompts/get" if questions(fake, ask, "name", "ask_prompt") => {
            crate::questions::later(fake, ask, crate::questions::prompt);
        }
        "resources/read" => read(fake, ask),
        "prompts/get" => get(fake, ask),
        "completion/complete" => complete(fake, ask),
        "resources/subscribe" | "resources/unsubscribe" if !ask.modern() => {
            let uri = ask.params["uri"].as_str().unwrap_or_default().to_owned();
            fake.out.ledger(&format!("{} {uri}", ask.method));
            let mut state = fake.state.lock().unwrap();
            let on = ask.method == "resources/subscribe";
            state.offers.subscribed.retain(|known| *known != uri);
            state.offers.subscribed.extend(on.then_some(uri));
            drop(state);
            fake.result(ask, json!({}));
        }
        _ => return false,
    }
    true
}

fn questions(fake: &Fake, ask: &Ask, key: &str, value: &str) -> bool {
    fake.args.flag("questions") && ask.params[key] == value
}

pub fn hints(ask: &Ask, result: &mut Value) {
    if ask.modern() {
        result["ttlMs"] = json!(7);
        result["cacheScope"] = json!("public");
    }
}

fn list(fake: &Arc<Fake>, ask: &Ask, key: &'static str, of: fn(&Offers) -> &Vec<Value>) {
    let items = of(&fake.state.lock().unwrap().offers).clone();
    let mut result = json!({});
    result[key] = json!(items);
    hints(ask, &mut result);
    fake.result(ask, result);
}

fn read(fake: &Arc<Fake>, ask: &Ask) {
    let uri = ask.params["uri"].as_str().unwrap_or_default();
    let name = fake.args.get("name").unwrap_or("fakemcp");
    let text = |text: String| json!([{ "uri": uri, "mimeType": "text/plain", "text": text }]);
    let contents = match uri {
        "fake://blob" => {
            let size = fake.args.number("blob-size").unwrap_or(3);
            let bytes: Vec<u8> =
                (0..size).map(|at: usize| u8::try_from(at % 251).unwrap()).collect();
            let blob = base64::engine::general_purpose::STANDARD.encode(bytes);
            json!([{ "uri": uri, "mimeType": "application/octet-stream", "blob": blob }])
        }
        "fake://rich" => json!([{ "uri": uri, "text": "one\ntwo\nthree\n", "_meta": { "k": 1 } }]),
        "fake://many" => json!([{ "uri": uri, "text": "first" },
            { "uri": "file:///README.md", "text": "second" }]),
        _ if uri.starts_with("db://") => text(format!("row {uri}")),
        "fake://broken" => return fake.error(ask, -32000, "the disk is on fire", Value::Null),
        _ if fake
            .state
            .lock()
            .unwrap()
            .offers
            .resources
            .iter()
            .any(|known| known["uri"] == uri) =>
        {
            text(format!("{uri} of {name}"))
        }
        _ => {
            let code = if ask.modern() { -32602 } else { -32002 };
            let code = fake.args.number("missing").unwrap_or(code);
            return fake.error(ask, code, "no such resource", json!({ "uri": uri }));
        }
    };
    let mut result = json!({ "contents": contents });
    hints(ask, &mut result);
    fake.result(ask, result);
}

fn get(fake: &Arc<Fake>, ask: &Ask) {
    let user = |content: Value| json!({ "role": "user", "content": content });
    let messages = match ask.params["name"].as_str().unwrap_or_default() {
        "greet" => {
            let Some(name) = ask.params["arguments"]["name"].as_str() else {
                return fake.error(ask, -32602, "greet needs a name", Value::Null);
            };
            let mut text = tools::block(&format!("Hello, {name}!"));
            if ask.revision.as_str() >= "2025-06-18" {
                text["_meta"] = json!({ "k": 1 });
            }
            vec![user(text)]
        }
        "media" => calls::blocks(ask).into_iter().map(user).collect(),
        "link" => vec![user(json!({ "type": "resource",
            "resource": { "uri": "file:///README.md", "text": "inside" } }))],
        name => {
            let text = format!("no such prompt: {name}");
            return fake.error(ask, -32602, &text, Value::Null);
        }
    };
    fake.result(ask, json!({ "description": "A prompt.", "messages": messages }));
}

fn complete(fake: &Arc<Fake>, ask: &Ask) {
    let value = ask.params["argument"]["value"].as_str().unwrap_or_default();
    fake.out.ledger(&format!("complete {}", ask.params));
    let values = [format!("{value}-one"), format!("{value}-two")];
    fake.result(ask, json!({ "completion": { "values": values, "total": 2, "hasMore": false } }));
}

/// `links {uri}`: a link to it, the resource itself, and a user interface there.
pub fn links(fake: &Arc<Fake>, ask: &Ask) {
    let uri = ask.text("uri");
    let mut content = vec![json!({ "type": "resource", "resource": { "uri": uri, "text": "x" } })];
    if ask.revision.as_str() >= "2025-06-18" {
        content.push(json!({ "type": "resource_link", "uri": uri, "name": "linked" }));
    }
    fake.result(ask, json!({ "content": content, "_meta": { "ui": { "resourceUri": uri } } }));
}

/// `set_offers {kind, add, remove, notify}`: adds and removes resources by URI (or prompts by name),
/// then says `notify` times (1) that the list changed.
pub fn set(fake: &Arc<Fake>, ask: &Ask) {
    let names = |key: &str| {
        let list = ask.arg(key).as_array().cloned().unwrap_or_default();
        list.iter().filter_map(Value::as_str).map(str::to_owned).collect::<Vec<_>>()
    };
    let (add, remove) = (names("add"), names("remove"));
    let prompts = ask.text("kind") == "prompts";
    {
        let offers = &mut fake.state.lock().unwrap().offers;
        let list = if prompts { &mut offers.prompts } else { &mut offers.resources };
        let key = if prompts { "name" } else { "uri" };
        list.retain(|item| !remove.iter().any(|name| item[key] == **name));
        list.extend(add.iter().map(|name| json!({ key: name, "name": name })));
    }
    let kind = if prompts { "prompts" } else { "resources" };
    for _ in 0..ask.number("notify", 1) {
        tell(fake, ask, &format!("notifications/{kind}/list_changed"), json!({}));
    }
    tools::text(fake, ask, "changed");
}

/// `touch {uri}`: tells whoever subscribed that a resource has changed; a modern one tells every
/// listen stream.
pub fn touch(fake: &Arc<Fake>, ask: &Ask) {
    let uri = ask.text("uri");
    let told = ask.modern() || fake.state.lock().unwrap().offers.subscribed.contains(&uri);
    if told {
        tell(fake, ask, "notifications/resources/updated", json!({ "uri": uri }));
    }
    tools::text(fake, ask, if told { "told" } else { "nobody listens" });
}

/// `end_listens {how}`: ends the listen streams of a modern one, by the `result` of the request (or an
/// `error`), or by a notification that they are `cancelled`.
pub fn end_listens(fake: &Arc<Fake>, ask: &Ask) {
    let listens = std::mem::take(&mut fake.state.lock().unwrap().listens);
    for id in &listens {
        let meta = json!({ "io.modelcontextprotocol/subscriptionId": id });
        let ended = Ask { id: id.clone(), ..ask.clone() };
        match ask.text("how").as_str() {
            "cancelled" => fake.notify("notifications/cancelled", json!({ "requestId": id })),
            "error" => fake.error(&ended, -32000, "no more", Value::Null),
            _ => fake.result(&ended, json!({ "_meta": meta })),
        }
    }
    tools::text(fake, ask, &format!("{} ended", listens.len()));
}

fn tell(fake: &Arc<Fake>, ask: &Ask, method: &str, params: Value) {
    let listens = fake.state.lock().unwrap().listens.clone();
    if !ask.modern() {
        let params = if params == json!({}) { Value::Null } else { params };
        return fake.notify(method, params);
    }
    for id in listens {
        let mut params = params.clone();
        params["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": id });
        fake.notify(method, params);
    }
}
