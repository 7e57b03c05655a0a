//! What does not work, as the daemon sees it: each server is started, opened and listed, and the
//! step that fails is named with its mend.

use super::super::dispatch::Context;
use super::super::hosts::door::Door;
use super::super::upstreams::{Answers, Caller, Reason, Source, Via};
use super::servers;
use crate::control::ApiError;
use crate::control::types::{DoctorAnswer, Finding, Severity};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::ListKind;
use crate::settings::ServerDef;
use crate::settings::servers::check_url;
use crate::transport::http::address::shown;
use crate::transport::http::net::is_this_machine;

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
        None => context.settings().servers.clone(),
    };
    if server.is_none() {
        findings.extend(over_http(context).await);
    }
    for def in &defs {
        findings.push(one_server(context, def).await);
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

async fn one_server(context: &Context, def: &ServerDef) -> Finding {
    let subject = format!("server {}", def.key);
    let caller = Caller {
        host: None,
        project: None,
        label: "mcpx doctor".into(),
        era: Era::Modern,
        answers: Answers::Nobody,
        source: Source::new(Via::Control),
    };
    match context.upstreams.list_now(&caller, &def.key, ListKind::Tools).await {
        Ok(()) => {
            let snapshot = context.catalog.snapshot();
            let entry = snapshot.servers.iter().find(|entry| entry.def.key == def.key);
            let count = entry.map_or(0, |entry| entry.tools.len());
            let protocol = context.upstreams.protocol().await;
            let spoken = protocol.iter().find(|status| status.server == def.key);
            let revision = spoken.and_then(|status| status.revision.clone());
            let revision = revision.map(|text| format!(", revision {text}")).unwrap_or_default();
            let does = if def.is_remote() { "answers" } else { "starts" };
            Finding::ok(subject, format!("{does} and lists {count} tools{revision}"))
        }
        Err(refused) => {
            let mend = match refused.reason {
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
            };
            Finding::bad(Severity::Error, subject, refused.text, mend)
        }
    }
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
