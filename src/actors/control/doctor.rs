//! What does not work, as the daemon sees it: each server is started, opened and listed, and the
//! step that fails is named with its mend.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use super::super::catalog::Listing;
use super::super::dispatch::Context;
use super::super::hosts::door::Door;
use super::super::inside::metrics::Window;
use super::super::upstreams::{Answers, Caller, Reason, Refused, Source, Via};
use super::servers;
use crate::control::ApiError;
use crate::control::types::{DoctorAnswer, Finding, Severity};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::ListKind;
use crate::settings::ServerDef;
use crate::settings::servers::check_url;
use crate::settings::value::duration_text;
use crate::transport::http::address::shown;
use crate::transport::http::net::is_this_machine;
use crate::transport::stdio::locate::locate;
use crate::transport::{clock, process};

pub(super) async fn examine(context: &Context, server: Option<&str>) -> Result<RawJson, ApiError> {
    let mut findings = Vec::new();
    for problem in &context.settings.current().problems {
        findings.push(Finding::bad(
            Severity::Error,
            "configuration",
            problem.clone(),
            "mend the file, then run `mcpx reload`; the configuration before it is in force",
        ));
    }
    let defs = match server {
        Some(name) => vec![servers::find(context, name)?],
        // Those of projects are started where their hosts are, or by name.
        None => context.settings().servers.clone(),
    };
    if server.is_none() {
        findings.extend(over_http(context).await);
        findings.extend(inside(context));
        findings.extend(programs(context).await);
    }
    for (def, finding) in defs.iter().zip(each_server(context, &defs).await) {
        findings.push(finding);
        findings.extend(in_clear(def));
    }
    Ok(RawJson::write(&DoctorAnswer { findings }))
}

/// The side towards hosts over HTTP, where there is to be one.
async fn over_http(context: &Context) -> Option<Finding> {
    let subject = "hosts over HTTP";
    let door = context.door.settled(context.settings().daemon.ask).await;
    let url = door.url().unwrap_or_default();
    match door {
        Door::Shut => None,
        Door::Open { address, .. } if !address.ip().is_loopback() => Some(Finding::bad(
            Severity::Warning,
            subject,
            format!("served at {address} to other machines, in clear text and with the token"),
            "put a proxy that speaks TLS in front, or set http.listen to a loopback address",
        )),
        Door::Open { open, .. } => {
            let how = if open { "without a token" } else { "with the token" };
            Some(Finding::ok(subject, format!("served at {url}, {how}")))
        }
        Door::Opening => Some(Finding::bad(
            Severity::Warning,
            subject,
            "not served yet",
            "ask again in a moment",
        )),
        Door::Stuck { why } => Some(Finding::bad(
            Severity::Error,
            subject,
            why,
            "set http.listen to a port that is free (or to \"off\"), then run `mcpx reload`",
        )),
    }
}

/// Looks at as many servers at once as `upstream.list_parallel` admits; what is found has their order.
async fn each_server(context: &Context, defs: &[Arc<ServerDef>]) -> Vec<Finding> {
    let at_once = Arc::new(Semaphore::new(context.settings().upstream.list_parallel));
    let mut looking = JoinSet::new();
    for (place, def) in defs.iter().cloned().enumerate() {
        let (context, at_once) = (context.clone(), Arc::clone(&at_once));
        looking.spawn(async move {
            // The semaphore is never closed.
            let _permit = at_once.acquire().await.ok();
            (place, one_server(&context, &def).await)
        });
    }
    let mut found = BTreeMap::new();
    while let Some(looked) = looking.join_next().await {
        found.extend(looked.ok());
    }
    let told = |(place, def): (usize, &Arc<ServerDef>)| {
        found.remove(&place).unwrap_or_else(|| {
            let mend = "run `mcpx doctor` again; if it stays, please report it with the log";
            let subject = format!("server {}", def.key);
            Finding::bad(Severity::Error, subject, "looking at it failed inside mcpx", mend)
        })
    };
    defs.iter().enumerate().map(told).collect()
}

/// Starts, opens and lists a server, and names the step that fails, or that takes longest.
async fn one_server(context: &Context, def: &ServerDef) -> Finding {
    let subject = format!("server {}", def.key);
    let caller = Caller {
        host: None,
        project: None,
        label: "mcpx doctor".into(),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: Source { who: context.asks, ..Source::new(Via::Control) },
    };
    let begun = clock::now();
    let listed = context.upstreams.list_now(&caller, &def.key, ListKind::Tools).await;
    let took = millis(clock::now().saturating_duration_since(begun));
    match listed {
        Ok(()) => works(context, def, subject, took).await,
        Err(refused) => {
            let step = failing_step(context, def, &refused).await;
            let mend = mend(def, &refused);
            let text = format!("{} (at its {step}, after {})", refused.text, shown_ms(took));
            Finding::bad(Severity::Error, subject, text, mend).at(step, took)
        }
    }
}

async fn works(context: &Context, def: &ServerDef, subject: String, took: u64) -> Finding {
    let snapshot = context.catalog.snapshot();
    let entry = snapshot.servers.iter().find(|entry| entry.def.key == def.key);
    let count = entry.map_or(0, |entry| entry.tools.len());
    if let Some(Listing::Incomplete(why)) = entry.map(|entry| &entry.listing) {
        let text = format!("its list of tools is not whole, {count} are known: {why}");
        let mend =
            format!("`mcpx logs {0}` shows what it wrote, `mcpx trace {0}` its answers", def.key);
        return Finding::bad(Severity::Error, subject, text, mend).at("list", took);
    }
    let protocol = context.upstreams.protocol().await;
    let spoken = protocol.into_iter().find(|status| status.server == def.key);
    let spoken = spoken.and_then(|status| {
        let how = status.era_source.map(|source| format!(", by {}", source.as_str()));
        Some(format!(
            ", revision {} ({}{})",
            status.revision?,
            status.era?,
            how.unwrap_or_default()
        ))
    });
    let status = context.upstreams.status_of(&def.key).await;
    let instance = status.as_ref().and_then(|status| status.instances.first());
    let opened = instance.and_then(|instance| instance.opened_ms);
    let does = if def.is_remote() { "answers" } else { "starts" };
    let (when, step, longest) = match opened {
        // It was started for this: the rest of the time went into its list.
        Some(opened) if opened <= took => {
            let list = took - opened;
            let (step, longest) =
                if opened >= list { ("handshake", opened) } else { ("list", list) };
            let text = format!(
                " within {} and lists {count} tools within {}",
                shown_ms(opened),
                shown_ms(list)
            );
            (text, step, longest)
        }
        Some(opened) => {
            (format!(" (within {}) and lists {count} tools", shown_ms(opened)), "handshake", opened)
        }
        None => (format!(" and lists {count} tools"), "list", took),
    };
    let text = format!("{does}{when}{}", spoken.unwrap_or_default());
    Finding::ok(subject, text).at(step, longest)
}

/// At which step a server failed: by the limit that struck, else by how far it came.
async fn failing_step(context: &Context, def: &ServerDef, refused: &Refused) -> &'static str {
    match refused.limit.as_ref().map(|limit| limit.setting) {
        Some("process.spawn_timeout") => return "start",
        Some("upstream.handshake_timeout") => return "handshake",
        Some("upstream.list_timeout" | "expose.list_wait") => return "list",
        _ => {}
    }
    let status = context.upstreams.status_of(&def.key).await;
    let is = |state| {
        status.as_ref().is_some_and(|status| status.instances.iter().any(|one| one.state == state))
    };
    match () {
        () if is("ready") => "list",
        () if is("starting") => "handshake",
        () => "start",
    }
}

fn mend(def: &ServerDef, refused: &Refused) -> String {
    match refused.reason {
        Reason::Timeout => match &refused.limit {
            Some(limit) => format!(
                "raise the setting {} (now {}) if the server is only slow",
                limit.setting, limit.value
            ),
            None => "see `mcpx logs` for what it does meanwhile".to_owned(),
        },
        _ if def.is_remote() => format!(
            "see to its `url`, its `auth` and the network (settings proxy.* and tls.*); \
             then `mcpx restart {}`",
            def.key
        ),
        _ => format!(
            "`mcpx logs {0}` shows what it wrote; after a change `mcpx restart {0}`",
            def.key
        ),
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn shown_ms(ms: u64) -> String {
    if ms == 0 { "1ms".to_owned() } else { duration_text(Duration::from_millis(ms)) }
}

/// The PATH that servers get, and the programs that several of them are started with.
async fn programs(context: &Context) -> Vec<Finding> {
    let around = context.upstreams.around();
    let env = around.base().await;
    let path = env.iter().rev().find(|(name, _)| name == "PATH");
    let path = path.map(|(_, value)| value.to_string_lossy().into_owned()).unwrap_or_default();
    let mut findings = vec![if path.is_empty() {
        let mend = "set PATH in the environment of the daemon, or in that of the login shell";
        Finding::bad(Severity::Warning, "PATH", "servers get none", mend)
    } else {
        Finding::ok("PATH", format!("servers get {path}"))
    }];
    let settings = context.settings.everywhere();
    let own = settings.servers.iter().filter(|def| !def.is_remote() && !def.builtin);
    let named: BTreeSet<&str> = own
        .filter_map(|def| def.command.first())
        .map(String::as_str)
        // What has a path, or a reference in it, is its server's own.
        .filter(|program| !program.contains(['/', '$']))
        .collect();
    let home = around.home();
    for program in named {
        let subject = format!("program {program}");
        findings.push(match locate(OsStr::new(program), &env, home) {
            Ok(file) => Finding::ok(subject, format!("{}", file.display())),
            Err(error) => Finding::bad(
                Severity::Error,
                subject,
                error.to_string(),
                "install it, or see to the PATH of the login shell; then `mcpx restart` its servers",
            ),
        });
    }
    findings
}

/// What the daemon itself is short of.
fn inside(context: &Context) -> Vec<Finding> {
    let mut findings = Vec::new();
    if let (Some(open), Some(most)) = (process::open_files(), process::most_open_files()) {
        let text = format!("{open} of {most} files and sockets are open");
        let much =
            u64::try_from(open).unwrap_or(u64::MAX).saturating_mul(10) > most.saturating_mul(8);
        findings.push(if much {
            let mend =
                "raise the limit: LimitNOFILE= in the unit, or `ulimit -n` where it is started";
            Finding::bad(Severity::Warning, "daemon", text, mend)
        } else {
            Finding::ok("daemon", text)
        });
    }
    if let Window::Stuck(why) = context.inside.metrics.window() {
        let mend = "set metrics.listen to a port that is free, or to \"off\"";
        findings.push(Finding::bad(Severity::Error, "metrics", why, mend));
    }
    let dropped = context.inside.audit.dropped();
    if dropped > 0 {
        let text = format!("{dropped} calls were not recorded in the audit");
        let mend = "see `mcpx events --kind daemon.warning`; the state folder may be full";
        findings.push(Finding::bad(Severity::Warning, "audit", text, mend));
    }
    if let Some(last) = context.inside.chronicle.failures().last() {
        let text = format!("{} failed inside mcpx and was started again: {}", last.part, last.why);
        let mend = "`mcpx ps --tree` shows how often; please report it with the log";
        findings.push(Finding::bad(Severity::Warning, "daemon", text, mend));
    }
    findings
}

/// A credential that everybody on the way can read.
fn in_clear(def: &ServerDef) -> Option<Finding> {
    let url = check_url(def.url.as_deref()?).ok()?;
    let secret = def.auth.is_some() || !def.headers.is_empty();
    if url.scheme_str() != Some("http") || !secret || is_this_machine(url.host()?) {
        return None;
    }
    let text = format!("its credentials go to {} unencrypted", shown(&url));
    let mend = "write its url with https:, or reach it through a tunnel on this machine";
    Some(Finding::bad(Severity::Warning, format!("server {}", def.key), text, mend))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::settings::AuthDef;

    #[test]
    fn credentials_over_plain_http_are_noticed() {
        let auth = Some(AuthDef::Bearer { token: "${T}".to_owned() });
        let def = |url: &str, auth: &Option<AuthDef>| {
            let (url, auth) = (Some(url.to_owned()), auth.clone());
            ServerDef { url, auth, ..ServerDef::demo(Path::new("/bin/x")) }
        };
        assert!(in_clear(&def("http://a.example/mcp", &auth)).is_some());
        for url in ["https://a.example/mcp", "http://localhost:3000/", "http://[::1]/", "${U}"] {
            assert_eq!(in_clear(&def(url, &auth)), None, "{url}");
        }
        assert_eq!(in_clear(&def("http://a.example/mcp", &None)), None);
    }
}
