//! Metrics as Prometheus reads them (text format 0.0.4), put together when they are asked for.
//!
//! Written by hand: the format is two kinds of lines, and a metrics crate would keep registries, labels
//! and locks of its own beside the counters that the call path can afford (`meter`). What takes part is
//! documented in `docs/operations.md`.

use std::fmt::{self, Write as _};
use std::time::Duration;

use super::ending::Ending;
use super::meter::{BOUNDS_US, Meter, Restart};
use super::tree;
use crate::actors::dispatch::Context;
use crate::actors::pool::status::PoolStatus;
use crate::transport::{clock, process};

/// What the answer's `Content-Type` says.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// States of a server, as `mcpx ps` shows them.
const STATES: [&str; 6] = ["idle", "starting", "ready", "backoff", "parked", "stopped"];

/// Everything there is to measure, now. Asks the pools and hosts; a part that does not answer within
/// `daemon.ask_timeout` is left out.
pub async fn text(context: &Context) -> String {
    let mut text = Text::default();
    daemon(context, &mut text).await;
    let servers: Vec<_> = context
        .upstreams
        .status()
        .await
        .into_iter()
        .map(|status| (context.upstreams.meters().of(&status.server), status))
        .map(|(meter, status)| Measured { meter, status })
        .collect();
    states(&servers, &mut text);
    calls(&servers, &mut text);
    text.0
}

/// One server.
struct Measured {
    meter: std::sync::Arc<Meter>,
    status: PoolStatus,
}

impl Measured {
    fn name(&self) -> (&'static str, &str) {
        ("server", &self.status.server)
    }
}

async fn daemon(context: &Context, text: &mut Text) {
    let identity = &context.identity;
    text.family("mcpx_build_info", "gauge", "The running daemon's version, in a label.");
    text.sample("mcpx_build_info", &[("version", identity.version)], 1);
    let uptime = clock::now().saturating_duration_since(identity.started);
    text.one("mcpx_uptime_seconds", "gauge", "Since the daemon started.", seconds(uptime));
    if let Some(bytes) = process::resident_bytes() {
        let help = "Memory of the daemon that is in RAM, without its servers.";
        text.one("process_resident_memory_bytes", "gauge", help, bytes);
    }
    if let Some(count) = process::open_files() {
        text.one("process_open_fds", "gauge", "Files and sockets that the daemon holds.", count);
    }
    let limit = context.settings().daemon.ask;
    let hosts = context.hosts.status(limit).await.unwrap_or_default();
    text.family("mcpx_hosts", "gauge", "Host sessions by transport; a modern POST has none.");
    for transport in ["stdio", "http"] {
        let count = hosts.iter().filter(|host| host.transport == transport).count();
        text.sample("mcpx_hosts", &[("transport", transport)], count);
    }
    let requests: usize = hosts.iter().map(|host| host.in_flight).sum();
    text.one("mcpx_host_requests", "gauge", "Open requests of host sessions.", requests);
    let streams = context.listens.count();
    text.one("mcpx_listen_streams", "gauge", "Open streams of subscriptions/listen.", streams);
    text.one("mcpx_tasks_running", "gauge", "Calls that run as tasks.", context.tasks.running());
    let questions = context.broker.questions().len();
    text.one("mcpx_questions_open", "gauge", "Questions that wait for a person.", questions);
    let help = "Calls that wait for their host's next request.";
    text.one("mcpx_calls_parked", "gauge", help, context.parked.waiting());
    let (running, waiting) = context.exec.scripts();
    text.family("mcpx_scripts", "gauge", "Scripts by state.");
    text.sample("mcpx_scripts", &[("state", "running")], running);
    text.sample("mcpx_scripts", &[("state", "waiting")], waiting);
    let sandboxes = context.exec.processes();
    text.one(
        "mcpx_sandboxes",
        "gauge",
        "Processes for scripts, those in stock included.",
        sandboxes,
    );
    let (emitted, missed) = context.events.counts();
    text.one("mcpx_events_total", "counter", "Events so far.", emitted);
    let help = "Events that readers who were too slow have missed.";
    text.one("mcpx_events_missed_total", "counter", help, missed);
    let help = "Calls that were not recorded in the audit although they should have been.";
    text.one("mcpx_audit_dropped_total", "counter", help, context.inside.audit.dropped());
    let (sent, dropped) = context.inside.spans.counts();
    text.family("mcpx_spans_total", "counter", "Spans of traces, by what became of them.");
    text.sample("mcpx_spans_total", &[("fate", "sent")], sent);
    text.sample("mcpx_spans_total", &[("fate", "dropped")], dropped);
    text.family("mcpx_actors", "gauge", "Actors of the supervision tree by kind.");
    for (kind, count) in tree::census(&context.inside.chronicle) {
        text.sample("mcpx_actors", &[("kind", kind)], count);
    }
}

fn states(servers: &[Measured], text: &mut Text) {
    let ready = |server: &Measured| {
        server.status.instances.iter().filter(|instance| instance.state == "ready").count()
    };
    text.family("mcpx_server_up", "gauge", "1 while an instance of the server is usable.");
    for server in servers {
        text.sample("mcpx_server_up", &[server.name()], u8::from(ready(server) > 0));
    }
    text.family("mcpx_server_state", "gauge", "1 for the state that the server is in.");
    for server in servers {
        for state in STATES {
            let labels = [server.name(), ("state", state)];
            text.sample("mcpx_server_state", &labels, u8::from(server.status.state == state));
        }
    }
    text.family("mcpx_server_instances", "gauge", "Running instances.");
    for server in servers {
        text.sample("mcpx_server_instances", &[server.name()], server.status.instances.len());
    }
    text.family("mcpx_server_in_flight", "gauge", "Requests that the server works on.");
    for server in servers {
        let count: usize = server.status.instances.iter().map(|one| one.in_flight).sum();
        text.sample("mcpx_server_in_flight", &[server.name()], count);
    }
    let help = "Callers that wait for an instance or a permit (at most pool.queue in each lane).";
    text.family("mcpx_server_queue", "gauge", help);
    for server in servers {
        text.sample("mcpx_server_queue", &[server.name()], server.status.waiting);
    }
    text.family("mcpx_server_starts_total", "counter", "Instances that became usable.");
    for server in servers {
        text.sample("mcpx_server_starts_total", &[server.name()], server.meter.starts());
    }
    let help = "Instances that failed, died or were ended to be started again, by reason.";
    text.family("mcpx_server_restarts_total", "counter", help);
    for server in servers {
        for why in Restart::ALL {
            let labels = [server.name(), ("reason", why.word())];
            text.sample("mcpx_server_restarts_total", &labels, server.meter.restarts(why));
        }
    }
}

fn calls(servers: &[Measured], text: &mut Text) {
    let help = "Calls of tools, reads of resources and prompts, by how they ended.";
    text.family("mcpx_calls_total", "counter", help);
    for server in servers {
        for ending in Ending::ALL {
            let labels = [server.name(), ("outcome", ending.word())];
            text.sample("mcpx_calls_total", &labels, server.meter.calls(ending));
        }
    }
    let help = "How long such calls took, from their arrival in mcpx to their outcome.";
    text.family("mcpx_call_duration_seconds", "histogram", help);
    for server in servers {
        let counts = server.meter.cumulated();
        for (bound, count) in BOUNDS_US.iter().zip(counts) {
            let bound = seconds(Duration::from_micros(*bound)).to_string();
            let labels = [server.name(), ("le", &bound)];
            text.sample("mcpx_call_duration_seconds_bucket", &labels, count);
        }
        let whole = counts.last().copied().unwrap_or_default();
        let labels = [server.name(), ("le", "+Inf")];
        text.sample("mcpx_call_duration_seconds_bucket", &labels, whole);
        let sum = seconds(server.meter.sum());
        text.sample("mcpx_call_duration_seconds_sum", &[server.name()], sum);
        text.sample("mcpx_call_duration_seconds_count", &[server.name()], whole);
    }
}

fn seconds(time: Duration) -> f64 {
    time.as_secs_f64()
}

/// Lines of the format.
#[derive(Debug, Default)]
struct Text(String);

impl Text {
    fn family(&mut self, name: &str, kind: &str, help: &str) {
        // Writing to a string cannot fail.
        let _ = write!(self.0, "# HELP {name} {help}\n# TYPE {name} {kind}\n");
    }

    fn sample(&mut self, name: &str, labels: &[(&str, &str)], value: impl fmt::Display) {
        self.0.push_str(name);
        for (at, (label, text)) in labels.iter().enumerate() {
            self.0.push(if at == 0 { '{' } else { ',' });
            let _ = write!(self.0, "{label}=\"");
            for letter in text.chars() {
                match letter {
                    '\\' => self.0.push_str("\\\\"),
                    '"' => self.0.push_str("\\\""),
                    '\n' => self.0.push_str("\\n"),
                    other => self.0.push(other),
                }
            }
            self.0.push('"');
        }
        let end = if labels.is_empty() { "" } else { "}" };
        let _ = writeln!(self.0, "{end} {value}");
    }

    /// A family with one sample.
    fn one(&mut self, name: &str, kind: &str, help: &str, value: impl fmt::Display) {
        self.family(name, kind, help);
        self.sample(name, &[], value);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_escaped() {
        let mut text = Text::default();
        text.one("a_total", "counter", "What.", 7);
        text.sample("b", &[("server", "x\"\\\ny"), ("le", "0.5")], 1.5);
        let lines: Vec<_> = text.0.lines().collect();
        assert_eq!(
            lines,
            [
                "# HELP a_total What.",
                "# TYPE a_total counter",
                "a_total 7",
                r#"b{server="x\"\\\ny",le="0.5"} 1.5"#,
            ]
        );
    }
}
