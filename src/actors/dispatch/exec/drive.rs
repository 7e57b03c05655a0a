//! One run, from its place in the queue to its result: between the sandbox, which says what the script
//! wants, and the calls that are made for it.

use std::future::{pending, poll_fn};
use std::pin::Pin;
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use super::{Errand, Script, calls, report};
use crate::actors::artifacts::Stored;
use crate::actors::events::Event;
use crate::actors::exec::{Deadline, Sandbox};
use crate::actors::upstreams::Refused;
use crate::protocol::framing::line::blank_line_ends;
use crate::protocol::jsonrpc::RawJson;
use crate::script::wire::{Call, Failure, FromSandbox, Limits, Log, Run as Order, ToSandbox};
use crate::settings::Settings;
use crate::settings::typed::ExecSettings;
use crate::transport::link::LinkEvent;

/// A run and what is known of it.
pub(super) struct Run {
    errand: Arc<Errand>,
    script: Script,
    pub(super) limit: Duration,
    /// It has a sandbox.
    pub(super) begun: bool,
    /// What it told `console`.
    pub(super) logs: Vec<Log>,
    log_bytes: usize,
    /// What it has called, by name, in the order of the first calls.
    pub(super) made: Vec<(String, usize)>,
    /// How often in all.
    pub(super) calls: usize,
    /// Whether one of them may have made a tool run.
    pub(super) reached: bool,
    /// Calls that had no answer yet when it ended.
    pub(super) open: usize,
}

/// How it ended.
pub(super) enum End {
    /// The script has; its value.
    Value(Option<RawJson>),
    /// The script failed.
    Failed(Failure),
    /// It took too long.
    Late,
    /// There was no sandbox for it.
    Refused(Refused),
    /// The sandbox ended before the script; how, and its last words.
    Died(String, Option<String>),
    /// The daemon stops.
    Stopped,
    /// The sandbox does what it may not.
    Broken(String),
}

type Calling = Pin<Box<dyn Future<Output = calls::Done> + Send>>;

/// The sandbox has asked what there is to call, and waits.
type Asked = Option<Pin<Box<dyn Future<Output = RawJson> + Send>>>;

impl Run {
    pub(super) fn new(errand: Arc<Errand>, script: Script, limit: Duration) -> Self {
        let (logs, made) = (Vec::new(), Vec::new());
        Self {
            errand,
            script,
            limit,
            begun: false,
            logs,
            log_bytes: 0,
            made,
            calls: 0,
            reached: false,
            open: 0,
        }
    }

    /// Runs it, until `deadline` at the latest; the result of a tool.
    pub(super) async fn into_result(mut self, deadline: Deadline) -> RawJson {
        let settings = self.errand.context.settings();
        let end = tokio::select! {
            biased;
            end = self.run(&settings) => end,
            () = deadline.passed() => End::Late,
        };
        self.say(&end);
        report::result(&self, end, &settings)
    }

    /// That it is over, for those who look at what happens: whose it was, and what it called.
    fn say(&self, end: &End) {
        let how = match end {
            End::Value(_) => "returned a value".to_owned(),
            End::Failed(failure) => format!("failed with {}", failure.name),
            End::Refused(_) => "was not run".to_owned(),
            End::Late => "took longer than exec.timeout".to_owned(),
            End::Stopped => "was ended with the daemon".to_owned(),
            End::Died(how, _) => format!("lost its process: {how}"),
            End::Broken(why) => format!("was ended: {why}"),
        };
        let called = match self.calls {
            0 => "no calls".to_owned(),
            1 => "1 call".to_owned(),
            count => format!("{count} calls"),
        };
        let who = &self.errand.caller.label;
        let text = format!("{} of {who} made {called} and {how}", self.errand.maker);
        let event = Event::new("exec.ended", text);
        let event = match self.errand.caller.host {
            Some(host) => event.of_host(format!("{who}#{}", host.0)),
            None => event,
        };
        self.errand.context.events.emit(event);
    }

    /// Whether somebody hears what it tells `console` as it comes.
    pub(super) fn is_heard(&self) -> bool {
        self.script.console.is_some()
    }

    /// What it has written.
    pub(super) fn files(&self) -> Vec<Stored> {
        self.errand.files.all().clone()
    }

    /// `text` of a script that has a name.
    pub(super) fn named(&self, text: String) -> String {
        match &self.script.name {
            Some(name) => format!("script `{name}`: {text}"),
            None => text,
        }
    }

    async fn run(&mut self, settings: &Settings) -> End {
        // Falls with this future: the place is free, and the process killed.
        let mut taken = match self.errand.context.exec.take().await {
            Ok(taken) => taken,
            Err(refused) => return End::Refused(refused),
        };
        self.begun = true;
        let order = Order {
            source: std::mem::take(&mut self.script.source),
            input: self.script.input.take(),
            limits: limits(&settings.exec),
        };
        tell(&taken.sandbox, &ToSandbox::Run(order));
        let (mut calling, mut asked): (Vec<Calling>, Asked) = (Vec::new(), None);
        loop {
            let event = tokio::select! {
                biased;
                calls::Done { answer, reached } = next_done(&mut calling) => {
                    self.open = calling.len();
                    self.reached |= reached;
                    tell(&taken.sandbox, &ToSandbox::Answer(answer));
                    continue;
                }
                offered = next_offered(&mut asked) => {
                    tell(&taken.sandbox, &ToSandbox::Offered(offered));
                    continue;
                }
                event = taken.sandbox.reader.next() => event,
            };
            let said = match event {
                LinkEvent::Frame(frame) => serde_json::from_slice(&frame),
                LinkEvent::TooLarge { bytes, .. } => {
                    return End::Failed(too_large(bytes));
                }
                LinkEvent::Closed { .. } if self.errand.context.exec.is_stopping() => {
                    return End::Stopped;
                }
                LinkEvent::Closed { .. } => return died(taken.sandbox, settings).await,
            };
            match said {
                Ok(FromSandbox::Ready) => {}
                Ok(FromSandbox::Call(call)) => {
                    if let Some(broken) = self.call(call, &mut calling, &settings.exec) {
                        return broken;
                    }
                }
                Ok(FromSandbox::Offered) if asked.is_some() => {
                    return End::Broken("it asked twice for what there is to call".to_owned());
                }
                Ok(FromSandbox::Offered) => {
                    asked = Some(Box::pin(calls::offered(Arc::clone(&self.errand))));
                }
                Ok(FromSandbox::Log(log)) => self.log(log, settings.exec.log_limit),
                Ok(FromSandbox::Done { value }) => return End::Value(value),
                Ok(FromSandbox::Failed(failure)) => return End::Failed(failure),
                Err(error) => return End::Broken(format!("it said what nobody knows: {error}")),
            }
        }
    }

    /// Begins a call. The sandbox keeps to the limits; one that does not is none of ours any more.
    fn call(
        &mut self,
        call: Call,
        calling: &mut Vec<Calling>,
        limits: &ExecSettings,
    ) -> Option<End> {
        /// Names that are told; a script that makes them up could have any number.
        const NAMES: usize = 32;
        if self.calls >= limits.max_calls || calling.len() >= limits.concurrent_calls {
            return Some(End::Broken("it made more calls than it may".to_owned()));
        }
        let name = calls::name_of(&call.target);
        let room = self.made.len() < NAMES;
        match self.made.iter_mut().find(|(made, _)| *made == name) {
            Some((_, times)) => *times += 1,
            None if room => self.made.push((name, 1)),
            None => {}
        }
        self.calls += 1;
        calling.push(Box::pin(calls::answer(Arc::clone(&self.errand), call)));
        self.open = calling.len();
        None
    }

    fn log(&mut self, log: Log, limit: usize) {
        /// What the sandbox adds where it has dropped something.
        const LAST: usize = 256;
        self.log_bytes += log.text.len() + log.level.len();
        // The sandbox keeps to it; one that does not is not believed.
        if self.log_bytes > limit.saturating_add(LAST) {
            return;
        }
        if let Some(console) = &self.script.console {
            // Who listened may have gone.
            let _ = console.try_send(log.clone());
        }
        self.logs.push(log);
    }
}

fn limits(exec: &ExecSettings) -> Limits {
    Limits {
        source: exec.max_source,
        memory: exec.memory,
        stack: exec.stack,
        cpu_ms: u64::try_from(exec.cpu_time.as_millis()).unwrap_or(u64::MAX),
        output: exec.output_limit,
        log: exec.log_limit,
        calls: exec.max_calls,
        concurrent: exec.concurrent_calls,
    }
}

fn tell(sandbox: &Sandbox, message: &ToSandbox) {
    // There is room for an answer to each call. One that cannot be written to is at its end.
    if let Ok(mut frame) = serde_json::to_vec(message) {
        // Values stand in it as they came, and servers like to indent theirs.
        blank_line_ends(&mut frame);
        let _ = sandbox.sender.try_send(bytes::Bytes::from(frame));
    }
}

fn too_large(bytes: usize) -> Failure {
    Failure {
        name: "RangeError".to_owned(),
        message: format!("the script gave {bytes} bytes at once, more than mcpx accepts"),
        line: None,
        column: None,
        limit: Some("link.max_frame".into()),
        content: None,
    }
}

/// Its output has ended: how its process did is known in a moment.
async fn died(mut sandbox: Sandbox, settings: &Settings) -> End {
    let ended = sandbox.ended.wait_for(Option::is_some);
    let ended = tokio::time::timeout(settings.process.term, ended).await;
    let how = ended.ok().and_then(Result::ok).and_then(|how| how.clone());
    let last = sandbox.stderr.tail(1).into_iter().next();
    End::Died(how.unwrap_or_else(|| "it closed its output".to_owned()), last)
}

/// The first that is done; for ever nothing where there is no call. Cancel-safe.
async fn next_done(calling: &mut Vec<Calling>) -> calls::Done {
    poll_fn(|cx| {
        for (at, call) in calling.iter_mut().enumerate() {
            if let Poll::Ready(done) = call.as_mut().poll(cx) {
                drop(calling.swap_remove(at));
                return Poll::Ready(done);
            }
        }
        Poll::Pending
    })
    .await
}

/// What there is to call, once; for ever nothing where nobody asks. Cancel-safe.
async fn next_offered(asked: &mut Asked) -> RawJson {
    match asked.as_mut() {
        Some(offered) => {
            let offered = offered.await;
            *asked = None;
            offered
        }
        None => pending().await,
    }
}
