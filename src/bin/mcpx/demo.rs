//! `mcpx demo-server`: the built-in upstream, for people who want to see each feature before they
//! trust mcpx with servers of their own (product.md 2).
//!
//! Small, on stdin and stdout, in every revision. The conversation is a [`HostSession`], which is what
//! mcpx speaks to hosts with; [`offers`] holds what there is to see. Its limits are its own: nobody
//! configures a demonstration.

mod offers;

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use mcpx::protocol::jsonrpc::{Frame, Id, RawJson, RpcError};
use mcpx::protocol::model::questions::Question;
use mcpx::protocol::session::host::{
    Answered, HostConfig, HostEvent, HostOutput, HostSession, ProgressPace,
};
use mcpx::protocol::session::listen::ListenFilter;
use mcpx::protocol::session::{CallKey, HostRequest};
use mcpx::transport::link::{Link, LinkEvent, LinkLimits, LinkSender};
use mcpx::transport::stdio::own;
use mcpx::transport::{clock, task};
use tokio::sync::mpsc;
use tokio::task::AbortHandle;

use self::offers::{Begun, Slow};
use crate::commands;
use crate::ended::{Ended, Outcome as Ending};

/// Frames as large as mcpx passes on by default.
const LIMITS: LinkLimits =
    LinkLimits { max_frame: 64 << 20, write_queue: 64, write_queue_bytes: 32 << 20 };
/// More than a person tries out at once.
const MAX_IN_FLIGHT: usize = 1024;
const MAX_LISTENS: usize = 64;
/// Steps of slow calls that wait for the loop.
const STEPS: usize = 64;

/// See the module.
pub(crate) fn run() -> Ending {
    commands::runtime()?.block_on(Box::pin(async {
        let link = own::link(LIMITS)
            .map_err(|error| Ended::Failed(format!("stdin and stdout cannot be used: {error}")))?;
        serve(link).await;
        Ok(())
    }))
}

/// Serves one host to the end of its input.
async fn serve(link: Link) {
    let Link { mut reader, sender, writer } = link;
    let mut writer = task::spawn_named("writer", writer.run());
    let (steps, mut stepped) = mpsc::channel(STEPS);
    let mut demo = Demo::new(steps);
    loop {
        demo.pump(&sender);
        let full = !demo.unsent.is_empty();
        tokio::select! {
            event = reader.next(), if !full => match event {
                LinkEvent::Frame(frame) => demo.session.handle_frame(clock::now(), &frame),
                LinkEvent::TooLarge { head, bytes } => {
                    demo.session.handle_oversized(clock::now(), &head, bytes, LIMITS.max_frame);
                }
                LinkEvent::Closed { .. } => break,
            },
            Some(step) = stepped.recv() => demo.step(clock::now(), step),
            () = sender.room(), if full => {}
            _ = &mut writer => return,
        }
    }
    // What is answered is still written; what is slow ends with its host.
    demo.pump(&sender);
    sender.close();
    let _ = writer.await;
}

/// What a slow call's task has to say.
struct Step {
    key: CallKey,
    what: Said,
}

enum Said {
    Progress(RawJson),
    Done(RawJson),
}

struct Demo {
    session: HostSession,
    slow: HashMap<CallKey, AbortHandle>,
    /// Calls that wait for the host's answer to a question, by the id of the question.
    asked: HashMap<Id, CallKey>,
    questions: u64,
    unsent: VecDeque<Frame>,
    steps: mpsc::Sender<Step>,
}

impl Demo {
    fn new(steps: mpsc::Sender<Step>) -> Self {
        let config = HostConfig {
            info: offers::info(),
            capabilities: offers::capabilities(),
            instructions: offers::INSTRUCTIONS.to_owned(),
            max_in_flight: MAX_IN_FLIGHT,
            max_listens: MAX_LISTENS,
            // Every step is shown.
            progress_pace: ProgressPace::FREE,
            log_rate: 0,
            max_open_questions: MAX_IN_FLIGHT,
            over_stdio: true,
        };
        Self {
            session: HostSession::new(Arc::new(config)),
            slow: HashMap::new(),
            asked: HashMap::new(),
            questions: 0,
            unsent: VecDeque::new(),
            steps,
        }
    }

    fn step(&mut self, now: Instant, step: Step) {
        match step.what {
            Said::Progress(params) => self.session.progress(now, step.key, &params),
            Said::Done(result) => {
                self.slow.remove(&step.key);
                self.session.finish(now, step.key, Ok(result));
            }
        }
    }

    /// Executes what the session wants, as far as the host takes it.
    fn pump(&mut self, sender: &LinkSender) {
        while let Some(output) = self.session.poll_output() {
            match output {
                HostOutput::Send { frame, .. } => self.unsent.push_back(frame),
                HostOutput::Event(HostEvent::Request(request)) => self.request(&request),
                HostOutput::Event(HostEvent::Cancelled { key }) => self.cancelled(key),
                // Nothing of it ever changes, and it has no tasks.
                HostOutput::Event(HostEvent::Listen(want)) => {
                    let filter = ListenFilter { tasks: BTreeSet::new(), ..want.filter };
                    self.session.agree(clock::now(), want.key, filter);
                }
                HostOutput::Event(HostEvent::Answered(answered)) => self.answered(answered),
                HostOutput::Event(
                    HostEvent::Opened { .. }
                    | HostEvent::Agreed
                    | HostEvent::Foreign { .. }
                    | HostEvent::Notification { .. },
                )
                | HostOutput::PostDone(_)
                | HostOutput::Notice(_) => {}
            }
        }
        while sender.has_room() {
            let Some(frame) = self.unsent.pop_front() else { break };
            // A writer that has ended is noticed by its own end.
            let _ = sender.try_send(frame);
        }
    }

    fn request(&mut self, request: &HostRequest) {
        let key = request.key;
        let begun = match request.method.as_str() {
            "tools/call" => offers::call(request),
            _ => offers::answer(request).map(Begun::Done),
        };
        match begun {
            Ok(Begun::Done(result)) => self.session.finish(clock::now(), key, Ok(result)),
            Ok(Begun::Slow(slow)) => self.start(key, slow),
            Ok(Begun::Ask(question)) => self.ask(key, &question),
            Err(error) => self.refuse(key, error),
        }
    }

    fn refuse(&mut self, key: CallKey, error: RpcError) {
        self.session.finish(clock::now(), key, Err(error));
    }

    fn start(&mut self, key: CallKey, slow: Slow) {
        let steps = self.steps.clone();
        let task = task::spawn_named("slow", async move {
            for done in 1..=slow.steps {
                tokio::time::sleep(slow.pause).await;
                let progress = Said::Progress(slow.progress(done));
                // The loop has ended: nobody is left to tell.
                let _ = steps.send(Step { key, what: progress }).await;
            }
            let _ = steps.send(Step { key, what: Said::Done(slow.result()) }).await;
        });
        self.slow.insert(key, task.abort_handle());
    }

    /// Puts a question to a host of a legacy revision, by a request of our own.
    fn ask(&mut self, key: CallKey, question: &Question) {
        self.questions += 1;
        let id = Id::text(&format!("demo-{}", self.questions));
        self.asked.insert(id.clone(), key);
        self.session.ask(clock::now(), key, id, question);
    }

    /// Comes in any case, also where the call has ended meanwhile.
    fn answered(&mut self, Answered { ask, reply }: Answered) {
        if let Some(key) = self.asked.remove(&ask) {
            let result = offers::answered(reply.ok().as_ref());
            self.session.finish(clock::now(), key, Ok(result));
        }
    }

    fn cancelled(&mut self, key: CallKey) {
        if let Some(task) = self.slow.remove(&key) {
            task.abort();
        }
    }
}
