//! What does not work, as the daemon sees it: each server is started, opened and listed, and the
//! step that fails is named with its mend.

use super::super::dispatch::Context;
use super::super::hosts::door::Door;
use super::super::upstreams::{Caller, Reason};
use super::servers;
use crate::control::ApiError;
use crate::control::types::{DoctorAnswer, Finding, Severity};
use crate::protocol::jsonrpc::RawJson;
use crate::protocol::revision::Era;
use crate::protocol::session::upstream::ListKind;
use crate::settings::ServerDef;

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
    let caller =
        Caller { host: None, project: None, label: "mcpx doctor".into(), era: Era::Modern };
    match context.upstreams.list_now(&caller, &def.key, ListKind::Tools).await {
        Ok(()) => {
            let snapshot = context.catalog.snapshot();
            let entry = snapshot.servers.iter().find(|entry| entry.def.key == def.key);
            let count = entry.map_or(0, |entry| entry.tools.len());
            let protocol = context.upstreams.protocol().await;
            let spoken = protocol.iter().find(|status| status.server == def.key);
            let revision = spoken.and_then(|status| status.revision.clone());
            let revision = revision.map(|text| format!(", revision {text}")).unwrap_or_default();
            Finding::ok(subject, format!("starts and lists {count} tools{revision}"))
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
                _ => format!(
                    "`mcpx logs {0}` shows what it wrote; after a change `mcpx restart {0}`",
                    def.key
                ),
            };
            Finding::bad(Severity::Error, subject, refused.text, mend)
        }
    }
}
