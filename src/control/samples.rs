//! One filled-in answer of each type: the examples of the `OpenAPI` description.

mod inside;

use serde::Serialize;
use serde_json::{Value as Json, json};

use super::types as t;
use crate::protocol::era_record::{EraRecord, EraSource};
use crate::protocol::jsonrpc::RawJson;

/// Answers that are an upstream's own results: their types are the specification's.
pub(super) const CARRIED: [&str; 3] = ["CallToolResult", "ReadResourceResult", "GetPromptResult"];

/// Name and JSON of each.
pub(super) fn answers() -> Vec<(&'static str, Json)> {
    vec![
        ("StatusAnswer", to_json(&status())),
        ("ServerChanged", to_json(&server_changed())),
        ("ReloadAnswer", to_json(&reload())),
        ("ToolsAnswer", to_json(&tools())),
        ("SearchAnswer", to_json(&search())),
        ("TypesAnswer", to_json(&types())),
        ("ResourcesAnswer", to_json(&resources())),
        ("PromptsAnswer", to_json(&prompts())),
        ("AskAnswer", to_json(&ask())),
        ("QuestionsAnswer", to_json(&t::QuestionsAnswer { questions: vec![question()] })),
        ("QuestionView", to_json(&question())),
        ("QuestionAnswered", to_json(&question_answered())),
        ("ScriptsAnswer", to_json(&t::ScriptsAnswer { scripts: vec![script()] })),
        ("ScriptAnswer", to_json(&script_answer())),
        ("ScriptSaved", to_json(&t::ScriptSaved { script: script(), replaced: false })),
        ("ScriptRemoved", to_json(&t::ScriptRemoved { name: text("stale-issues") })),
        ("TasksAnswer", to_json(&t::TasksAnswer { tasks: vec![task()] })),
        ("TaskAnswer", to_json(&task_answer())),
        ("TaskCancelled", to_json(&t::TaskCancelled { task: task(), cancelled: true })),
        ("LogsAnswer", to_json(&logs())),
        ("EventsAnswer", to_json(&events())),
        ("AuditAnswer", to_json(&inside::audit())),
        ("TraceAnswer", to_json(&inside::trace())),
        ("TreeAnswer", to_json(&inside::tree())),
        ("SettingsAnswer", to_json(&t::SettingsAnswer { settings: vec![setting()] })),
        ("SettingsChanged", to_json(&settings_changed())),
        ("ConfigAnswer", to_json(&config())),
        ("ProtocolAnswer", to_json(&protocol())),
        ("HttpAnswer", to_json(&http())),
        ("HealthAnswer", to_json(&health())),
        ("DoctorAnswer", to_json(&doctor())),
        ("VersionAnswer", to_json(&version())),
        ("ShutdownAnswer", to_json(&t::ShutdownAnswer { pid: 4242 })),
        ("ApiError", to_json(&error())),
    ]
}

fn to_json(answer: &impl Serialize) -> Json {
    serde_json::to_value(answer).unwrap_or(Json::Null)
}

fn text(text: &str) -> String {
    text.to_owned()
}

fn script() -> t::ScriptView {
    t::ScriptView {
        name: text("stale-issues"),
        file: text("/home/me/.local/state/mcpx/scripts/stale-issues.ts"),
        description: text("Issues that nobody has touched for some days."),
        signature: text("(repo: string, days?: integer = 30)"),
        problem: Some(text("line 3, column 7: Unexpected token")),
    }
}

fn script_answer() -> t::ScriptAnswer {
    let schema = json!({ "type": "object", "properties": { "repo": { "type": "string" } } });
    t::ScriptAnswer {
        script: script(),
        schema: RawJson::write(&schema),
        code: text("/** Adds. */\nreturn 1 + 1;\n"),
    }
}

fn status() -> t::StatusAnswer {
    t::StatusAnswer {
        daemon: t::DaemonView {
            version: text("0.1.0"),
            pid: 4242,
            uptime_ms: 60_000,
            socket: text("/run/user/1000/mcpx/control.sock"),
            http: Some(text("http://127.0.0.1:7332/mcp")),
            http_problem: Some(text(
                "127.0.0.1:7332 cannot be listened on: another program has it",
            )),
            state_dir: text("/home/me/.local/state/mcpx"),
            memory: Some(9_000_000),
            tasks: 1,
            parked: 1,
            listens: 2,
            configuration: vec![text("config.toml:3:1: unknown key `call.idle`")],
        },
        servers: vec![t::ServerView {
            server: text("github"),
            namespace: text("github"),
            state: t::ServerState::Backoff,
            retry_in_ms: Some(2_000),
            permanent: false,
            reason: Some(text("exited with status 1")),
            stderr: vec![text("Error: no token")],
            failures: 1,
            restarts: 1,
            waiting: 0,
            instances: vec![t::InstanceView {
                id: 1,
                pid: Some(4243),
                transport: Some(text("http")),
                url: Some(text("https://docs.example/mcp")),
                session: Some(text("1868a90c…")),
                state: text("ready"),
                lane: text("modern"),
                scope: text("project /home/me/work"),
                revision: Some(text("2025-11-25")),
                uptime_ms: 1_000,
                in_flight: 1,
                interactive: true,
            }],
        }],
        hosts: vec![t::HostView {
            id: 1,
            label: text("opencode 1.0.0"),
            revision: text("2025-11-25"),
            project: Some(text("/home/me/work")),
            in_flight: 1,
        }],
    }
}

fn server_changed() -> t::ServerChanged {
    t::ServerChanged { server: text("github"), state: t::ServerState::Idle, stopped: 1 }
}

fn reload() -> t::ReloadAnswer {
    t::ReloadAnswer {
        added: vec![text("docs")],
        removed: vec![text("old")],
        changed: vec![text("github")],
        settings: vec![text("link.max_frame")],
        after_restart: vec![text("link.max_frame")],
    }
}

fn tools() -> t::ToolsAnswer {
    t::ToolsAnswer {
        namespaces: vec![t::NamespaceTools {
            namespace: text("demo"),
            server: text("demo"),
            info: Some(RawJson::write(&json!({"name": "mcpx-demo", "version": "0.1.0"}))),
            listing: text("incomplete"),
            reason: Some(text("the second page was no list")),
            tools: vec![RawJson::write(&json!({
                "name": "echo",
                "description": "Says it back.",
                "inputSchema": {"type": "object"},
            }))],
        }],
    }
}

fn search() -> t::SearchAnswer {
    t::SearchAnswer {
        tools: vec![t::FoundTool {
            namespace: text("demo"),
            tool: text("echo"),
            member: text("echo"),
            signature: text("echo(args: { text: string }): Promise<any>"),
            description: text("Says it back."),
        }],
        scripts: vec![script()],
        unlisted: vec![text("docs")],
        near: Vec::new(),
    }
}

fn types() -> t::TypesAnswer {
    t::TypesAnswer { declarations: text("interface Tools {}\n"), unlisted: vec![text("docs")] }
}

fn resources() -> t::ResourcesAnswer {
    let resource = json!({"uri": "mcpx://demo/demo://greeting", "name": "greeting"});
    let template = json!({"uriTemplate": "mcpx://demo/db://{table}", "name": "table"});
    t::ResourcesAnswer {
        namespaces: vec![t::NamespaceResources {
            namespace: text("demo"),
            server: text("demo"),
            listing: text("incomplete"),
            reason: Some(text("the second page was no list")),
            resources: vec![RawJson::write(&resource)],
            templates: vec![RawJson::write(&template)],
        }],
    }
}

fn prompts() -> t::PromptsAnswer {
    let arguments = json!([{"name": "name", "required": true}]);
    t::PromptsAnswer {
        namespaces: vec![t::NamespacePrompts {
            namespace: text("demo"),
            server: text("demo"),
            listing: text("never"),
            reason: Some(text("server demo is parked")),
            prompts: vec![RawJson::write(&json!({"name": "greet", "arguments": arguments}))],
        }],
    }
}

fn ask() -> t::AskAnswer {
    let result = RawJson::write(&json!({"content": [{"type": "text", "text": "hello"}]}));
    t::AskAnswer { failed: false, result }
}

fn question() -> t::QuestionView {
    let properties = json!({"answer": {"type": "string"}});
    let schema = json!({"type": "object", "properties": properties, "required": ["answer"]});
    t::QuestionView {
        id: text("k3fp"),
        state: t::QuestionState::Open,
        kind: t::QuestionKind::Form,
        server: text("demo"),
        what: text("tool `ask` of server `demo`"),
        host: Some(text("opencode 1.0.0")),
        task: Some(text("786512e2")),
        message: text("Tea or coffee?"),
        url: Some(text("https://docs.example/connect")),
        params: RawJson::write(&json!({"message": "Tea or coffee?", "requestedSchema": schema})),
        asked_at: 1_790_000_000_000,
        expires_at: 1_790_001_800_000,
        fate: Some(text("the daemon ended before it was answered")),
    }
}

fn question_answered() -> t::QuestionAnswered {
    t::QuestionAnswered { id: text("k3fp"), action: text("accept") }
}

fn logs() -> t::LogsAnswer {
    let line = t::LogLine { server: text("github"), instance: 1, text: text("listening on stdio") };
    t::LogsAnswer { lines: vec![line] }
}

fn events() -> t::EventsAnswer {
    t::EventsAnswer {
        events: vec![t::EventView {
            seq: 7,
            at: 1_790_000_000_000,
            kind: text("server.crashed"),
            server: Some(text("github")),
            instance: Some(text("1")),
            host: Some(text("#1")),
            text: text("github exited with status 1"),
        }],
    }
}

fn setting() -> t::SettingView {
    t::SettingView {
        key: text("call.idle_timeout"),
        value: json!("5m"),
        origin: text("default"),
        applies: text("live"),
        expected: text("a time from 1ms to 7d"),
        doc: text("A call without an answer and without progress for this long ends."),
    }
}

fn settings_changed() -> t::SettingsChanged {
    t::SettingsChanged { settings: vec![setting()], after_restart: vec![text("link.max_frame")] }
}

fn config() -> t::ConfigAnswer {
    t::ConfigAnswer {
        files: vec![text("/home/me/.config/mcpx/config.toml")],
        settings: [(text("call.idle_timeout"), json!("2m"))].into(),
        policy: [(text("github.create_*"), text("ask"))].into(),
        profiles: vec![t::ProfileConfig {
            profile: text("review"),
            servers: Some(vec![text("github")]),
            expose: Some(text("passthrough")),
            name_limit: Some(40),
            project: Some(text("/home/me/project")),
            policy: [(text("github.*"), text("ask"))].into(),
        }],
        servers: vec![t::ServerConfig {
            server: text("github"),
            namespace: text("github"),
            command: vec![text("npx"), text("-y"), text("@modelcontextprotocol/server-github")],
            url: None,
            transport: None,
            headers: std::collections::BTreeMap::new(),
            auth: [
                (text("type"), text("env")),
                (text("name"), text("GITHUB_TOKEN")),
                (text("value"), text("***")),
            ]
            .into(),
            env: [(text("GITHUB_TOKEN"), text("${env:GITHUB_TOKEN}"))].into(),
            cwd: Some(text(".")),
            scope: text("project"),
            max: 1,
            allow: Some(vec![text("get_*")]),
            deny: vec![text("*_all")],
            protocol: Some(text("prefer-discover")),
            revision: Some(text("2025-11-25")),
            idle_timeout: Some(text("10m")),
            expose: Some(text("core")),
            prefix: Some(text("gh")),
            builtin: false,
            origin: Some(text("/home/me/.config/mcpx/config.toml:1:10")),
        }],
        toml: text("[servers.github]\ncommand = [\"npx\"]\n"),
    }
}

fn protocol() -> t::ProtocolAnswer {
    t::ProtocolAnswer {
        servers: vec![t::ProtocolView {
            server: text("github"),
            preference: text("prefer-discover"),
            pin: Some(text("2025-11-25")),
            era: Some(text("legacy")),
            revision: Some(text("2025-11-25")),
            era_source: Some(EraSource::Cache),
            cached: Some(EraRecord {
                era: text("legacy"),
                revision: text("2025-11-25"),
                learned_at: 1_790_000_000,
                source: EraSource::Probe,
                transport: None,
            }),
            legacy_lane: Some(text("shared")),
        }],
    }
}

fn http() -> t::HttpAnswer {
    t::HttpAnswer {
        url: Some(text("http://127.0.0.1:7332/mcp")),
        problem: Some(text("127.0.0.1:7332 cannot be listened on: another program has it")),
        open: false,
        token: Some(text("…")),
        token_from: Some(text("/home/me/.local/state/mcpx/keys/http-token")),
    }
}

fn health() -> t::HealthAnswer {
    t::HealthAnswer {
        ready: true,
        draining: false,
        troubled: vec![text("github")],
        configuration: vec![text("config.toml:3:1: unknown key `call.idle`")],
    }
}

fn doctor() -> t::DoctorAnswer {
    t::DoctorAnswer {
        findings: vec![t::Finding::bad(
            t::Severity::Error,
            "server github",
            "there is no program `npx` on the daemon's PATH",
            "install Node.js, or give the full path in `command`",
        )],
    }
}

fn version() -> t::VersionAnswer {
    let revisions =
        crate::protocol::revision::Revision::ALL.iter().map(ToString::to_string).collect();
    t::VersionAnswer { version: text("0.1.0"), revisions, attach: 1 }
}

fn task() -> t::TaskView {
    t::TaskView {
        task: text("3f0c9d1e5a7b4c2d8e6f1a2b3c4d5e6f"),
        status: text("input_required"),
        message: Some(text("half of it is done")),
        what: text("tool `build` of server `ci`"),
        server: text("ci"),
        host: text("opencode 1.2.3"),
        created_ms: 1_785_283_200_000,
        ttl_ms: 7_200_000,
        questions: 1,
    }
}

fn task_answer() -> t::TaskAnswer {
    let raw = |json: Json| Some(RawJson::write(&json));
    t::TaskAnswer {
        task: task(),
        asks: raw(json!({ "q1": { "method": "roots/list", "params": {} } })),
        result: raw(json!({ "content": [] })),
        error: raw(json!({ "code": -32603, "message": "it broke" })),
    }
}

fn error() -> t::ApiError {
    t::ApiError::new(t::FailureCode::Unavailable, "server github is parked: exited with status 1")
        .with_reason("unavailable")
        .with_hint("mcpx restart github")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip<T: Serialize + serde::de::DeserializeOwned>(name: &str, json: &Json) {
        let back: T = serde_json::from_value(json.clone()).unwrap();
        assert_eq!(&to_json(&back), json, "{name}");
    }

    #[test]
    fn every_answer_is_read_as_it_is_written_and_every_op_has_one() {
        let answers = answers();
        for (name, json) in &answers {
            match *name {
                "StatusAnswer" => round_trip::<t::StatusAnswer>(name, json),
                "ServerChanged" => round_trip::<t::ServerChanged>(name, json),
                "ReloadAnswer" => round_trip::<t::ReloadAnswer>(name, json),
                "ToolsAnswer" => assert!(json["namespaces"][0]["tools"][0].is_object()),
                "SearchAnswer" => round_trip::<t::SearchAnswer>(name, json),
                "TypesAnswer" => round_trip::<t::TypesAnswer>(name, json),
                "ResourcesAnswer" => assert!(json["namespaces"][0]["templates"][0].is_object()),
                "PromptsAnswer" => assert!(json["namespaces"][0]["prompts"][0].is_object()),
                "AskAnswer" => assert!(json["result"]["content"].is_array()),
                "QuestionsAnswer" => assert!(json["questions"][0]["params"].is_object()),
                "QuestionView" => assert!(json["params"].is_object()),
                "AuditAnswer" => assert!(json["records"][0]["arguments"].is_object()),
                "TraceAnswer" => round_trip::<t::TraceAnswer>(name, json),
                "TreeAnswer" => round_trip::<t::TreeAnswer>(name, json),
                "QuestionAnswered" => round_trip::<t::QuestionAnswered>(name, json),
                "ScriptsAnswer" => round_trip::<t::ScriptsAnswer>(name, json),
                "ScriptAnswer" => assert!(json["schema"]["properties"]["repo"].is_object()),
                "ScriptSaved" => round_trip::<t::ScriptSaved>(name, json),
                "ScriptRemoved" => round_trip::<t::ScriptRemoved>(name, json),
                "TasksAnswer" => round_trip::<t::TasksAnswer>(name, json),
                "TaskAnswer" => assert!(json["asks"]["q1"].is_object()),
                "TaskCancelled" => round_trip::<t::TaskCancelled>(name, json),
                "LogsAnswer" => round_trip::<t::LogsAnswer>(name, json),
                "EventsAnswer" => round_trip::<t::EventsAnswer>(name, json),
                "SettingsAnswer" => round_trip::<t::SettingsAnswer>(name, json),
                "SettingsChanged" => round_trip::<t::SettingsChanged>(name, json),
                "ConfigAnswer" => round_trip::<t::ConfigAnswer>(name, json),
                "ProtocolAnswer" => round_trip::<t::ProtocolAnswer>(name, json),
                "HttpAnswer" => round_trip::<t::HttpAnswer>(name, json),
                "HealthAnswer" => round_trip::<t::HealthAnswer>(name, json),
                "DoctorAnswer" => round_trip::<t::DoctorAnswer>(name, json),
                "VersionAnswer" => round_trip::<t::VersionAnswer>(name, json),
                "ShutdownAnswer" => round_trip::<t::ShutdownAnswer>(name, json),
                "ApiError" => round_trip::<t::ApiError>(name, json),
                other => panic!("no type for {other}"),
            }
        }
        for op in crate::control::OPS {
            let known = answers.iter().any(|(name, _)| *name == op.answer);
            assert!(known || CARRIED.contains(&op.answer), "{}", op.answer);
        }
    }
}
