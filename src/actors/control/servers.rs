//! Ops on servers: status, restart, stop, start, logs, protocol.

use std::sync::Arc;

use super::super::dispatch::Context;
use super::super::hosts::door::Door;
use super::super::pool::status::{InstanceStatus, PoolStatus, ProtocolStatus};
use super::{Status, not_asked, refused};
use crate::control::ApiError;
use crate::control::types::{
    DaemonView, FailureCode, HostView, InstanceView, LogLine, LogsAnswer, ProtocolAnswer,
    ProtocolView, ServerChanged, ServerState, ServerView, StatusAnswer,
};
use crate::protocol::jsonrpc::RawJson;
use crate::settings::ServerDef;
use crate::settings::mistake::hint;
use crate::transport::{clock, process};

/// The server that a person names by key or namespace.
pub(super) fn find(context: &Context, name: &str) -> Result<Arc<ServerDef>, ApiError> {
    let settings = context.settings.everywhere();
    let found = settings.servers.iter().find(|def| def.key == name || def.namespace == name);
    found.cloned().ok_or_else(|| {
        let names: Vec<&str> = settings.servers.iter().map(|def| def.key.as_str()).collect();
        let text = format!("no server `{name}` is configured; {}", hint(name, names));
        ApiError::new(FailureCode::NotFound, text)
    })
}

pub(super) async fn status(context: &Context, server: Option<&str>) -> Result<Status, ApiError> {
    let only = server.map(|name| find(context, name)).transpose()?;
    let servers = context.upstreams.status().await.into_iter();
    let servers = servers
        .filter(|server| only.as_ref().is_none_or(|def| def.key == server.server))
        .map(server_view)
        .collect();
    let ask = context.settings().daemon.ask;
    let hosts = context.hosts.status(ask).await.map_err(not_asked)?;
    let hosts = hosts
        .into_iter()
        .map(|host| HostView {
            id: host.id,
            label: host.label,
            revision: host.revision,
            project: host.project,
            in_flight: host.in_flight,
        })
        .collect();
    Ok(StatusAnswer { daemon: daemon_view(context), servers, hosts })
}

fn daemon_view(context: &Context) -> DaemonView {
    let (identity, door) = (&context.identity, context.door.door());
    let uptime = clock::now().saturating_duration_since(identity.started);
    DaemonView {
        version: identity.version.to_owned(),
        pid: std::process::id(),
        uptime_ms: u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
        socket: identity.socket.display().to_string(),
        http: door.url(),
        http_problem: match door {
            Door::Stuck { why } => Some(why),
            Door::Opening | Door::Shut | Door::Open { .. } => None,
        },
        state_dir: identity.state.display().to_string(),
        memory: process::resident_bytes(),
        tasks: context.tasks.running(),
        parked: context.parked.waiting(),
        listens: context.listens.count(),
        configuration: context.settings.current().problems.clone(),
    }
}

fn server_view(status: PoolStatus) -> ServerView {
    ServerView {
        server: status.server,
        namespace: status.namespace,
        state: ServerState::of_word(status.state).unwrap_or(ServerState::Idle),
        retry_in_ms: status.retry_in_ms,
        permanent: status.permanent,
        reason: status.reason,
        stderr: status.stderr,
        failures: status.failures,
        restarts: status.restarts,
        waiting: status.waiting,
        instances: status.instances.into_iter().map(instance_view).collect(),
    }
}

fn instance_view(status: InstanceStatus) -> InstanceView {
    InstanceView {
        id: status.id,
        pid: status.pid,
        transport: status.transport.map(str::to_owned),
        url: status.url,
        session: status.session,
        state: status.state.to_owned(),
        lane: status.lane.to_owned(),
        scope: status.scope,
        revision: status.revision,
        uptime_ms: status.uptime_ms,
        in_flight: status.in_flight,
        interactive: status.interactive,
    }
}

pub(super) async fn restart(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    let def = find(context, name)?;
    let running = running(context, &def).await;
    context.upstreams.restart_server(&def.key).await.map_err(refused)?;
    changed(context, &def, running).await
}

pub(super) async fn stop(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    let def = find(context, name)?;
    let running = running(context, &def).await;
    context.upstreams.stop_server(&def.key).await.map_err(refused)?;
    changed(context, &def, running).await
}

pub(super) async fn start(context: &Context, name: &str) -> Result<RawJson, ApiError> {
    let def = find(context, name)?;
    context.upstreams.start_server(&def.key).await.map_err(refused)?;
    changed(context, &def, 0).await
}

async fn one(context: &Context, def: &ServerDef) -> Option<PoolStatus> {
    context.upstreams.status().await.into_iter().find(|status| status.server == def.key)
}

async fn running(context: &Context, def: &ServerDef) -> usize {
    one(context, def).await.map_or(0, |status| status.instances.len())
}

async fn changed(context: &Context, def: &ServerDef, stopped: usize) -> Result<RawJson, ApiError> {
    let state = one(context, def).await.and_then(|status| ServerState::of_word(status.state));
    Ok(RawJson::write(&ServerChanged {
        server: def.key.clone(),
        state: state.unwrap_or(ServerState::Idle),
        stopped,
    }))
}

pub(super) async fn logs(
    context: &Context,
    server: Option<&str>,
    lines: Option<usize>,
) -> Result<RawJson, ApiError> {
    let settings = context.settings();
    let lines = lines.unwrap_or(settings.cli.log_lines);
    let defs = match server {
        Some(name) => vec![find(context, name)?],
        None => context.settings.everywhere().servers.clone(),
    };
    let mut all = Vec::new();
    for def in defs {
        let logs = context.upstreams.logs(&def.key).await.map_err(refused)?;
        all.extend(logs.into_iter().flat_map(|log| {
            let (server, instance) = (def.key.clone(), log.instance);
            log.ring.tail(lines).into_iter().map(move |text| LogLine {
                server: server.clone(),
                instance,
                text,
            })
        }));
    }
    Ok(RawJson::write(&LogsAnswer { lines: all }))
}

pub(super) async fn protocol(context: &Context) -> RawJson {
    let servers = context.upstreams.protocol().await.into_iter().map(protocol_view).collect();
    RawJson::write(&ProtocolAnswer { servers })
}

fn protocol_view(status: ProtocolStatus) -> ProtocolView {
    ProtocolView {
        server: status.server,
        preference: status.preference.to_owned(),
        pin: status.pin,
        era: status.era,
        revision: status.revision,
        era_source: status.era_source,
        cached: status.cached,
        legacy_lane: status.legacy_lane,
    }
}
