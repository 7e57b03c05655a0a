//! Answers as text for people.

use std::fmt::Write as _;

use comfy_table::{Attribute, Cell, Color, ContentArrangement, Table, presets};
use mcpx::control::types::{self as t, ServerState, Severity};
use mcpx::control::views::plain;
use mcpx::protocol::jsonrpc::RawJson;
use mcpx::script::search;

use crate::output::Printer;

pub(crate) fn table(printer: Printer, header: &[&str]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_content_arrangement(ContentArrangement::Dynamic);
    if !printer.colour {
        table.force_no_tty();
    }
    table.set_header(header.iter().map(|title| {
        let cell = Cell::new(title);
        if printer.colour { cell.add_attribute(Attribute::Bold) } else { cell }
    }));
    table
}

/// Without the padding at the edges.
pub(crate) fn finish(table: &Table) -> String {
    let trim = |line: String| line.strip_prefix(' ').unwrap_or(&line).trim_end().to_owned();
    table.lines().map(trim).collect::<Vec<_>>().join("\n")
}

fn coloured(printer: Printer, text: &str, colour: Color) -> Cell {
    let cell = Cell::new(text);
    if printer.colour { cell.fg(colour) } else { cell }
}

const fn colour_of(state: ServerState) -> Color {
    match state {
        ServerState::Ready => Color::Green,
        ServerState::Idle | ServerState::Stopped => Color::Grey,
        ServerState::Starting => Color::Cyan,
        ServerState::Backoff => Color::Yellow,
        ServerState::Parked => Color::Red,
    }
}

/// `1h 2m`, `3m 4s`, `5s`: two units are enough for an uptime.
pub(crate) fn ago(ms: u64) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = ms / 1000;
    if seconds < MINUTE {
        format!("{seconds}s")
    } else if seconds < HOUR {
        format!("{}m {}s", seconds / MINUTE, seconds % MINUTE)
    } else if seconds < DAY {
        format!("{}h {}m", seconds / HOUR, seconds % HOUR / MINUTE)
    } else {
        format!("{}d {}h", seconds / DAY, seconds % DAY / HOUR)
    }
}

/// `mcpx status`.
pub(crate) fn status(printer: Printer, answer: &t::StatusAnswer) -> String {
    let daemon = &answer.daemon;
    let memory = daemon.memory.map(|bytes| format!(", {} MiB", bytes >> 20)).unwrap_or_default();
    let mut parts = vec![format!(
        "daemon {} (pid {}) up {}{memory}, {}",
        daemon.version,
        daemon.pid,
        ago(daemon.uptime_ms),
        daemon.socket
    )];
    if daemon.tasks > 0 {
        parts.push(format!("{} calls run as tasks (mcpx tasks list)", daemon.tasks));
    }
    if daemon.parked > 0 {
        parts.push(format!("{} calls wait for their hosts to bring an answer", daemon.parked));
    }
    if daemon.listens > 0 {
        parts.push(format!("{} streams of changes are open to hosts", daemon.listens));
    }
    if !daemon.configuration.is_empty() {
        parts.push(format!(
            "the configuration was refused, the one before is in force:\n  {}",
            daemon.configuration.join("\n  ")
        ));
    }
    match (&daemon.http, &daemon.http_problem) {
        (Some(url), _) => parts.push(format!("hosts over HTTP: {url}")),
        (None, Some(why)) => parts.push(format!("hosts over HTTP are not served: {why}")),
        (None, None) => {}
    }
    parts.push(servers(printer, &answer.servers));
    for server in &answer.servers {
        parts.extend(trouble(server));
    }
    let remote: Vec<String> = answer.servers.iter().flat_map(reached).collect();
    if !remote.is_empty() {
        parts.push(remote.join("\n"));
    }
    if !answer.hosts.is_empty() {
        parts.push(hosts(printer, &answer.hosts));
    }
    parts.join("\n\n")
}

/// `mcpx status --http`.
pub(crate) fn http(answer: &t::HttpAnswer) -> String {
    let Some(url) = &answer.url else {
        return match &answer.problem {
            Some(why) => format!("hosts over HTTP are not served: {why}"),
            None => "hosts over HTTP are not served: the setting http.listen is empty".to_owned(),
        };
    };
    let mut lines = vec![format!("url     {url}")];
    if let Some(token) = &answer.token {
        let from = answer.token_from.as_deref().unwrap_or_default();
        lines.push(format!("token   {token}"));
        lines.push(format!("        from {from}"));
        lines.push(format!("header  Authorization: Bearer {token}"));
    }
    if answer.open {
        lines.push("        not asked of hosts: http.open is on".to_owned());
    }
    lines.join("\n")
}

fn servers(printer: Printer, servers: &[t::ServerView]) -> String {
    let header = [
        "SERVER", "STATE", "INSTANCE", "PID", "LANE", "SCOPE", "REVISION", "UP", "CALLS",
        "RESTARTS",
    ];
    let mut table = table(printer, &header);
    for server in servers {
        let state = || coloured(printer, server.state.as_str(), colour_of(server.state));
        if server.instances.is_empty() {
            let mut row = vec![Cell::new(called(server)), state()];
            row.extend((0..6).map(|_| Cell::new("-")));
            row.extend([Cell::new(server.waiting), Cell::new(server.restarts)]);
            table.add_row(row);
        }
        for instance in &server.instances {
            // A remote server has no process; how it is reached says more.
            let transport = || instance.transport.clone().unwrap_or_else(|| "-".to_owned());
            let pid = instance.pid.map_or_else(transport, |pid| pid.to_string());
            // One call at a time.
            let interactive = if instance.interactive { ", interactive" } else { "" };
            table.add_row(vec![
                Cell::new(called(server)),
                state(),
                Cell::new(format!("#{} {}{interactive}", instance.id, instance.state)),
                Cell::new(pid),
                Cell::new(&instance.lane),
                Cell::new(&instance.scope),
                Cell::new(instance.revision.as_deref().unwrap_or("-")),
                Cell::new(ago(instance.uptime_ms)),
                Cell::new(instance.in_flight),
                Cell::new(server.restarts),
            ]);
        }
    }
    finish(&table)
}

/// Its namespace; that of a project's own server may be several servers', and its key is not.
fn called(server: &t::ServerView) -> &str {
    if server.server.contains("@/") { &server.server } else { &server.namespace }
}

/// Where the instances of a remote server are, a line each.
fn reached(server: &t::ServerView) -> impl Iterator<Item = String> + '_ {
    server.instances.iter().filter_map(|instance| {
        let (transport, url) = (instance.transport.as_ref()?, instance.url.as_ref()?);
        let session = instance.session.as_ref().map(|session| format!(", session {session}"));
        let session = session.unwrap_or_default();
        Some(format!("{} #{}: {transport} {url}{session}", called(server), instance.id))
    })
}

/// Why a server does not run, with what to do.
fn trouble(server: &t::ServerView) -> Option<String> {
    let reason = server.reason.as_ref()?;
    let after = match server.state {
        ServerState::Backoff => server
            .retry_in_ms
            .map_or_else(String::new, |ms| format!("; started again in {}", ago(ms))),
        ServerState::Parked if server.permanent => {
            "; mend its configuration or the machine, then `mcpx reload`".to_owned()
        }
        ServerState::Parked => format!("; `mcpx restart {}` tries again", server.server),
        ServerState::Stopped => format!("; `mcpx start {}` lets it run again", server.server),
        ServerState::Idle | ServerState::Starting | ServerState::Ready => return None,
    };
    let mut lines = vec![format!("{}: {reason}{after}", called(server))];
    lines.extend(server.stderr.iter().map(|line| format!("  | {line}")));
    Some(lines.join("\n"))
}

fn hosts(printer: Printer, hosts: &[t::HostView]) -> String {
    let mut table = table(printer, &["HOST", "NAME", "REVISION", "PROJECT", "CALLS"]);
    for host in hosts {
        table.add_row(vec![
            Cell::new(format!("#{}", host.id)),
            Cell::new(&host.label),
            Cell::new(&host.revision),
            Cell::new(host.project.as_deref().unwrap_or("-")),
            Cell::new(host.in_flight),
        ]);
    }
    finish(&table)
}

/// `mcpx restart`, `stop`, `start`.
pub(crate) fn changed(answer: &t::ServerChanged) -> String {
    let stopped = match answer.stopped {
        0 => String::new(),
        1 => ", 1 instance stopped".to_owned(),
        count => format!(", {count} instances stopped"),
    };
    format!("{} is {}{stopped}", answer.server, answer.state.as_str())
}

/// `mcpx reload`.
pub(crate) fn reload(answer: &t::ReloadAnswer) -> String {
    let lines: Vec<_> = [
        ("new", &answer.added),
        ("gone", &answer.removed),
        ("changed", &answer.changed),
        ("settings", &answer.settings),
        ("obeyed when the daemon starts again", &answer.after_restart),
    ]
    .into_iter()
    .filter(|(_, names)| !names.is_empty())
    .map(|(what, names)| format!("{what}: {}", names.join(", ")))
    .collect();
    if lines.is_empty() { "nothing has changed".to_owned() } else { lines.join("\n") }
}

/// `mcpx tools`.
pub(crate) fn tools(printer: Printer, answer: &t::ToolsAnswer) -> String {
    let part = |of: &t::NamespaceTools| {
        let rows = of.tools.iter().map(|tool| (member(tool, "name"), first_sentence(tool)));
        offers(printer, &of.namespace, &of.listing, of.reason.as_deref(), rows)
    };
    answer.namespaces.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

/// `mcpx resources`.
pub(crate) fn resources(printer: Printer, answer: &t::ResourcesAnswer) -> String {
    let part = |of: &t::NamespaceResources| {
        let about = |item: &RawJson| {
            let name = item.member_str("title").unwrap_or_else(|| member(item, "name"));
            let description = member(item, "description");
            let first = description.lines().next().unwrap_or_default();
            if first.is_empty() { name } else { format!("{name}: {first}") }
        };
        let resources = of.resources.iter().map(|item| (member(item, "uri"), about(item)));
        let templates = of.templates.iter().map(|item| (member(item, "uriTemplate"), about(item)));
        let rows = resources.chain(templates);
        offers(printer, &of.namespace, &of.listing, of.reason.as_deref(), rows)
    };
    answer.namespaces.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

/// `mcpx prompts`: each with its arguments, those that may be left out in brackets.
pub(crate) fn prompts(printer: Printer, answer: &t::PromptsAnswer) -> String {
    let named = |prompt: &RawJson| {
        let arguments = prompt.member("arguments").and_then(|list| list.elements());
        let words = arguments.unwrap_or_default().into_iter().map(|argument| {
            let needed = argument.member("required").is_some_and(|it| it.as_bytes() == b"true");
            let name = member(&argument, "name");
            if needed { format!(" {name}=…") } else { format!(" [{name}=…]") }
        });
        format!("{}{}", member(prompt, "name"), words.collect::<String>())
    };
    let part = |of: &t::NamespacePrompts| {
        let rows = of.prompts.iter().map(|prompt| (named(prompt), first_sentence(prompt)));
        offers(printer, &of.namespace, &of.listing, of.reason.as_deref(), rows)
    };
    answer.namespaces.iter().map(part).collect::<Vec<_>>().join("\n\n")
}

fn member(item: &RawJson, key: &str) -> String {
    item.member_str(key).unwrap_or_default()
}

/// What one server offers, under its namespace and how far that is known.
fn offers(
    printer: Printer,
    namespace: &str,
    listing: &str,
    reason: Option<&str>,
    rows: impl Iterator<Item = (String, String)>,
) -> String {
    let note = match (listing, reason) {
        (_, Some(reason)) => format!(" ({listing}: {reason})"),
        ("never", None) => " (never listed)".to_owned(),
        _ => String::new(),
    };
    let mut table = table(printer, &[&format!("{namespace}{note}"), ""]);
    for (name, about) in rows {
        table.add_row(vec![Cell::new(format!("  {name}")), Cell::new(about)]);
    }
    finish(&table)
}

fn first_sentence(tool: &RawJson) -> String {
    let description = tool.member_str("description").or_else(|| tool.member_str("title"));
    let description = description.unwrap_or_default();
    search::first_sentence(&description).to_owned()
}

/// `mcpx types`: text for a compiler; what is missing is said in a comment.
pub(crate) fn types(answer: &t::TypesAnswer) -> String {
    let mut text = answer.declarations.trim_end().to_owned();
    if !answer.unlisted.is_empty() {
        let names = answer.unlisted.join(", ");
        // Writing to a string cannot fail.
        let _ = write!(text, "\n// Never listed yet: {names}; `mcpx status` says why.");
    }
    text
}

/// `mcpx tasks list`.
pub(crate) fn tasks(printer: Printer, answer: &t::TasksAnswer) -> String {
    let mut table = table(printer, &["TASK", "STATUS", "WHAT", "HOST", "NOTE"]);
    for task in &answer.tasks {
        table.add_row(vec![
            Cell::new(&task.task),
            Cell::new(&task.status),
            Cell::new(&task.what),
            Cell::new(&task.host),
            Cell::new(task_note(task)),
        ]);
    }
    finish(&table)
}

fn task_note(task: &t::TaskView) -> String {
    let waits = match task.questions {
        0 => None,
        1 => Some("1 question waits".to_owned()),
        more => Some(format!("{more} questions wait")),
    };
    waits.into_iter().chain(task.message.clone()).collect::<Vec<_>>().join("; ")
}

/// `mcpx tasks get`: how it stands, then what it asks or ended with.
pub(crate) fn task(answer: &t::TaskAnswer) -> String {
    let task = &answer.task;
    let mut lines = vec![format!("{}: {}, {}", task.task, task.what, task.status)];
    lines.extend(task.message.clone());
    let details = [&answer.asks, &answer.result, &answer.error];
    lines.extend(details.into_iter().flatten().map(|detail| detail.as_str().to_owned()));
    lines.join("\n")
}

/// `mcpx tasks cancel`.
pub(crate) fn task_cancelled(answer: &t::TaskCancelled) -> String {
    let task = &answer.task;
    if answer.cancelled {
        format!("{} is cancelled", task.what)
    } else {
        format!("{} had ended already, as {}", task.what, task.status)
    }
}

/// `mcpx logs`.
pub(crate) fn logs(answer: &t::LogsAnswer) -> String {
    answer.lines.iter().map(log_line).collect::<Vec<_>>().join("\n")
}

/// One line of `mcpx logs`.
pub(crate) fn log_line(line: &t::LogLine) -> String {
    format!("{}#{} | {}", line.server, line.instance, line.text)
}

/// `mcpx events`.
pub(crate) fn events(answer: &t::EventsAnswer) -> String {
    answer.events.iter().map(event).collect::<Vec<_>>().join("\n")
}

/// One line of `mcpx events`.
pub(crate) fn event(event: &t::EventView) -> String {
    let server = event.server.as_ref().map(|server| format!(" {server}")).unwrap_or_default();
    let instance =
        event.instance.as_ref().map(|instance| format!("#{instance}")).unwrap_or_default();
    let host = event.host.as_ref().map(|host| format!(" host {host}")).unwrap_or_default();
    format!("{} {}{server}{instance}{host}: {}", clock_text(event.at), event.kind, event.text)
}

/// Time of day in UTC: `12:34:56Z`. Events live as long as their daemon; the day is rarely asked.
pub(crate) fn clock_text(ms: u64) -> String {
    let seconds = ms / 1000 % 86_400;
    format!("{:02}:{:02}:{:02}Z", seconds / 3600, seconds % 3600 / 60, seconds % 60)
}

/// `mcpx settings`.
pub(crate) fn settings(printer: Printer, settings: &[t::SettingView]) -> String {
    let mut table = table(printer, &["SETTING", "VALUE", "FROM"]);
    for setting in settings {
        table.add_row(vec![
            Cell::new(&setting.key),
            Cell::new(plain(&setting.value)),
            Cell::new(&setting.origin),
        ]);
    }
    match settings {
        [only] => {
            let about = format!("{}\n{}; {}", only.doc, only.expected, only.applies);
            format!("{}\n\n{about}", finish(&table))
        }
        _ => finish(&table),
    }
}

/// `mcpx settings set`.
pub(crate) fn settings_changed(printer: Printer, answer: &t::SettingsChanged) -> String {
    let shown = settings(printer, &answer.settings);
    if answer.after_restart.is_empty() {
        return shown;
    }
    let names = answer.after_restart.join(", ");
    format!("{shown}\n\nobeyed when the daemon starts again: {names}")
}

/// `mcpx protocol`.
pub(crate) fn protocol(printer: Printer, answer: &t::ProtocolAnswer) -> String {
    let header =
        ["SERVER", "PREFERENCE", "PIN", "ERA", "REVISION", "KNOWN BY", "REMEMBERED", "LEGACY LANE"];
    let mut table = table(printer, &header);
    for server in &answer.servers {
        let or_dash = |text: &Option<String>| text.clone().unwrap_or_else(|| "-".to_owned());
        let source = server.era_source.map(|source| format!("{source:?}").to_lowercase());
        let cached =
            server.cached.as_ref().map(|record| format!("{} {}", record.era, record.revision));
        table.add_row(vec![
            server.server.clone(),
            server.preference.clone(),
            or_dash(&server.pin),
            or_dash(&server.era),
            or_dash(&server.revision),
            or_dash(&source),
            or_dash(&cached),
            or_dash(&server.legacy_lane),
        ]);
    }
    finish(&table)
}

/// `mcpx health`.
pub(crate) fn health(answer: &t::HealthAnswer) -> String {
    let state = match (answer.ready, answer.draining) {
        (_, true) => "the daemon is ending",
        (true, false) => "the daemon serves hosts",
        (false, false) => "the daemon is starting",
    };
    let mut lines = vec![state.to_owned()];
    if !answer.troubled.is_empty() {
        let names = answer.troubled.join(", ");
        lines.push(format!("in trouble: {names}; `mcpx status` says why"));
    }
    lines.extend(answer.configuration.iter().map(|line| format!("configuration: {line}")));
    lines.join("\n")
}

/// `mcpx doctor`.
pub(crate) fn findings(printer: Printer, findings: &[t::Finding]) -> String {
    let mut table = table(printer, &["", "WHAT", "FOUND"]);
    for finding in findings {
        let (word, colour) = match finding.severity {
            Severity::Ok => ("ok", Color::Green),
            Severity::Warning => ("look", Color::Yellow),
            Severity::Error => ("bad", Color::Red),
        };
        let mend = finding.mend.as_ref().map(|mend| format!("\n→ {mend}")).unwrap_or_default();
        table.add_row(vec![
            coloured(printer, word, colour),
            Cell::new(&finding.subject),
            Cell::new(format!("{}{mend}", finding.text)),
        ]);
    }
    finish(&table)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PLAIN: Printer = Printer { json: false, colour: false, lively: false };

    fn server(state: ServerState) -> t::ServerView {
        t::ServerView {
            server: "Git Hub".to_owned(),
            namespace: "Git_Hub".to_owned(),
            state,
            retry_in_ms: Some(4_200),
            permanent: false,
            reason: Some("exited with status 1".to_owned()),
            stderr: vec!["no token".to_owned()],
            failures: 2,
            restarts: 3,
            waiting: 1,
            instances: Vec::new(),
        }
    }

    #[test]
    fn a_server_in_trouble_says_why_and_what_to_do() {
        let told = |state| trouble(&server(state)).unwrap_or_default();
        assert_eq!(
            told(ServerState::Backoff),
            "Git_Hub: exited with status 1; started again in 4s\n  | no token"
        );
        assert!(told(ServerState::Parked).contains("`mcpx restart Git Hub` tries again"));
        assert!(told(ServerState::Stopped).contains("`mcpx start Git Hub`"));
        assert_eq!(told(ServerState::Ready), "");
        let broken = t::ServerView { permanent: true, ..server(ServerState::Parked) };
        assert!(trouble(&broken).unwrap().contains("`mcpx reload`"));
    }

    #[test]
    fn status_is_aligned_and_names_instances() {
        let mut ready = server(ServerState::Ready);
        ready.reason = None;
        ready.instances = vec![t::InstanceView {
            id: 7,
            pid: Some(42),
            transport: Some("stdio".to_owned()),
            url: None,
            session: None,
            state: "ready".to_owned(),
            lane: "shared".to_owned(),
            scope: "global".to_owned(),
            revision: Some("2025-11-25".to_owned()),
            uptime_ms: 61_000,
            in_flight: 2,
            interactive: false,
        }];
        let mut remote = ready.clone();
        for instance in &mut remote.instances {
            instance.url = Some("https://docs.example/mcp".to_owned());
            instance.session = Some("1868a90c…".to_owned());
        }
        let told: Vec<String> = reached(&remote).collect();
        assert_eq!(told, ["Git_Hub #7: stdio https://docs.example/mcp, session 1868a90c…"]);
        assert_eq!(reached(&ready).count(), 0);
        let text = servers(PLAIN, &[ready, server(ServerState::Parked)]);
        let columns: Vec<Vec<&str>> =
            text.lines().map(|line| line.split_whitespace().collect()).collect();
        let expected = [
            "Git_Hub",
            "ready",
            "#7",
            "ready",
            "42",
            "shared",
            "global",
            "2025-11-25",
            "1m",
            "1s",
            "2",
            "3",
        ];
        assert_eq!(columns[1], expected);
        assert_eq!(columns[2][..3], ["Git_Hub", "parked", "-"]);
        let state = |line: &str| line.find("STATE").or_else(|| line.find("ready"));
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(state(lines[0]), state(lines[1]));
    }

    #[test]
    fn times_are_short() {
        for (ms, text) in [
            (0, "0s"),
            (59_999, "59s"),
            (61_000, "1m 1s"),
            (3_660_000, "1h 1m"),
            (90_000_000, "1d 1h"),
        ] {
            assert_eq!(ago(ms), text);
        }
        assert_eq!(clock_text(1_796_008_171_891), "03:09:31Z");
    }

    #[test]
    fn one_setting_is_explained_and_restart_only_ones_are_told_apart() {
        let setting = t::SettingView {
            key: "link.max_frame".to_owned(),
            value: "64MiB".into(),
            origin: "default".to_owned(),
            applies: "restart".to_owned(),
            expected: "a size from 1KiB to 1GiB".to_owned(),
            doc: "Longest message.".to_owned(),
        };
        let text = settings(PLAIN, std::slice::from_ref(&setting));
        assert!(text.ends_with("Longest message.\na size from 1KiB to 1GiB; restart"), "{text}");
        let names = vec!["link.max_frame".to_owned()];
        let changed = t::SettingsChanged { settings: vec![setting], after_restart: names };
        assert!(settings_changed(PLAIN, &changed).ends_with("starts again: link.max_frame"));
    }

    #[test]
    fn a_reload_lists_only_what_changed() {
        assert_eq!(reload(&t::ReloadAnswer::default()), "nothing has changed");
        let answer = t::ReloadAnswer {
            added: vec!["a".to_owned()],
            settings: vec!["pool.max".to_owned()],
            ..t::ReloadAnswer::default()
        };
        assert_eq!(reload(&answer), "new: a\nsettings: pool.max");
    }
}
