//! The person at the terminal: is asked, one question after the other.
//!
//! A question names who asks; every prompt can be left by declining or dismissing; a form can be looked
//! over before it is sent; an address is shown whole and never opened (2026-07-28, client/elicitation,
//! "User Interaction Model" and "Safe URL Handling").

use std::cell::Cell;
use std::collections::VecDeque;
use std::io::{BufRead as _, IsTerminal as _};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;

use mcpx::control::OpCall;
use mcpx::control::types::{AnswerRequest, ApiError, QuestionKind, QuestionState, QuestionView};
use mcpx::protocol::jsonrpc::{Object, RawJson};
use mcpx::protocol::model::forms::{Field, Form};
use tokio::sync::{Mutex, mpsc};

use crate::ended::Ended;
use crate::output;
use crate::questions;
use crate::reach::Reach;

/// What became of a question.
#[derive(Debug)]
pub(crate) enum Asked {
    /// It was answered; how.
    Answered(&'static str),
    /// It could not be; why.
    Failed(String),
}

type Dialogue<'a> = Pin<Box<dyn Future<Output = Asked> + 'a>>;
type Lines = Arc<Mutex<mpsc::Receiver<String>>>;

/// Asks on a terminal.
pub(crate) struct Person<'a> {
    reach: &'a Reach<'a>,
    lines: Option<Lines>,
    now: Option<Present<'a>>,
    then: VecDeque<QuestionView>,
}

/// The question that is being asked.
struct Present<'a> {
    id: String,
    dialogue: Dialogue<'a>,
    /// Its answer is on its way: that it is closed is our own doing then.
    sending: Rc<Cell<bool>>,
}

/// Lines typed ahead that wait at most.
const TYPED_AHEAD: usize = 16;

impl<'a> Person<'a> {
    /// Where somebody sits at one: both what is typed and what is shown are a terminal's.
    pub(crate) fn at_terminal(reach: &'a Reach<'a>) -> Option<Self> {
        let there = std::io::stdin().is_terminal() && std::io::stderr().is_terminal();
        there.then(|| Self { reach, lines: None, now: None, then: VecDeque::new() })
    }

    /// One more question.
    pub(crate) fn ask(&mut self, view: Box<QuestionView>) {
        if view.state == QuestionState::Open {
            self.then.push_back(*view);
        }
    }

    /// A question that is no longer open.
    pub(crate) fn forget(&mut self, id: &str) {
        self.then.retain(|view| view.id != id);
        if self.now.take_if(|now| now.id == id && !now.sending.get()).is_some() {
            output::remark("\n(no longer asked)");
        }
    }

    /// How the present question went; never where there is nobody, or nothing to ask. Cancel-safe.
    pub(crate) async fn next_of(person: &mut Option<Self>) -> Asked {
        match person {
            Some(person) => person.next().await,
            None => std::future::pending().await,
        }
    }

    async fn next(&mut self) -> Asked {
        if self.now.is_none() {
            let Some(view) = self.then.pop_front() else { return std::future::pending().await };
            let lines = Arc::clone(self.lines.get_or_insert_with(typed));
            let (id, sending) = (view.id.clone(), Rc::new(Cell::new(false)));
            let dialogue = Box::pin(dialogue(self.reach, view, lines, Rc::clone(&sending)));
            self.now = Some(Present { id, dialogue, sending });
        }
        let Some(now) = &mut self.now else { return std::future::pending().await };
        let asked = (&mut now.dialogue).await;
        self.now = None;
        asked
    }
}

/// The lines of stdin. A thread of its own: it cannot be interrupted, and ends with the program.
fn typed() -> Lines {
    let (sender, lines) = mpsc::channel(TYPED_AHEAD);
    let reading = std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        for line in std::io::stdin().lock().lines() {
            let Ok(line) = line else { break };
            if sender.blocking_send(line).is_err() {
                break;
            }
        }
    });
    // Without the thread the lines end at once, which dismisses the question.
    drop(reading);
    Arc::new(Mutex::new(lines))
}

/// Why a prompt was left.
enum Left {
    Decline,
    Cancel,
    Again,
}

async fn dialogue(
    reach: &Reach<'_>,
    view: QuestionView,
    lines: Lines,
    sending: Rc<Cell<bool>>,
) -> Asked {
    let mut lines = lines.lock().await;
    output::remark(&format!(
        "\n{}\n  (`:decline` says no, `:cancel` dismisses it)",
        questions::question(&view)
    ));
    loop {
        let given = match view.kind {
            QuestionKind::Form => form(&view, &mut lines).await,
            QuestionKind::Url => address(&mut lines).await,
            QuestionKind::Sampling | QuestionKind::Roots => result(&view, &mut lines).await,
        };
        let (call, action) = match given {
            Ok((content, value)) => {
                let answer = AnswerRequest { id: view.id.clone(), content, value };
                (OpCall::Answer(answer), "accepted")
            }
            Err(Left::Decline) => (OpCall::Decline { id: view.id.clone() }, "declined"),
            Err(Left::Cancel) => (OpCall::Cancel { id: view.id.clone() }, "dismissed"),
            Err(Left::Again) => continue,
        };
        sending.set(true);
        let said = reach.try_ask(&call).await;
        sending.set(false);
        match said {
            Ok(Ok(_)) => return Asked::Answered(action),
            Ok(Err(refused)) if unfit(&refused) => output::remark(&refused.error.message),
            Ok(Err(refused)) => return Asked::Failed(refused.error.message),
            Err(ended) => return Asked::Failed(told(&ended)),
        }
    }
}

fn told(ended: &Ended) -> String {
    ended.text().unwrap_or_else(|| "the answer could not be sent".to_owned())
}

fn unfit(refused: &ApiError) -> bool {
    refused.error.code == mcpx::control::types::FailureCode::BadRequest
}

type Given = Result<(Option<RawJson>, Option<String>), Left>;

/// Field by field; then all of them once more, where there are several.
async fn form(view: &QuestionView, lines: &mut mpsc::Receiver<String>) -> Given {
    let form = Form::of(&view.params);
    let mut content = Object::new();
    for field in &form.fields {
        if let Some(value) = one_field(field, lines).await? {
            content.set(field.name.clone(), value);
        }
    }
    let content = if content.is_empty() { RawJson::empty_object() } else { content.write() };
    if form.fields.len() != 1 {
        output::remark(&format!("  {}", questions::clean(content.as_str())));
        loop {
            match line("  send this? [yes, no, again]", lines).await?.as_str() {
                "" | "y" | "yes" => break,
                "n" | "no" => return Err(Left::Decline),
                "again" => return Err(Left::Again),
                _ => {}
            }
        }
    }
    Ok((Some(content), None))
}

async fn one_field(
    field: &Field,
    lines: &mut mpsc::Receiver<String>,
) -> Result<Option<RawJson>, Left> {
    if let Some(about) = &field.description {
        output::remark(&format!("  {}", questions::clean(about)));
    }
    let title = field.title.as_ref().unwrap_or(&field.name);
    let usual = match &field.default {
        Some(default) => format!(" [{}]", questions::clean(default.as_str())),
        None if field.required => String::new(),
        None => " [nothing]".to_owned(),
    };
    let prompt = questions::clean(&format!("  {title} ({}){usual}", field.expects()));
    loop {
        let text = line(&prompt, lines).await?;
        if text.is_empty() && (field.default.is_some() || !field.required) {
            // The default is put in where nothing is given.
            return Ok(None);
        }
        match field.read(&text) {
            Ok(value) => return Ok(Some(value)),
            Err(why) => output::remark(&format!("  {}", questions::clean(&why))),
        }
    }
}

async fn address(lines: &mut mpsc::Receiver<String>) -> Given {
    loop {
        match line("  go there yourself; do you agree to it? [yes, no]", lines).await?.as_str() {
            "y" | "yes" => return Ok((None, None)),
            "n" | "no" => return Err(Left::Decline),
            _ => {}
        }
    }
}

/// A completion's text, a root, or either as a whole result.
async fn result(view: &QuestionView, lines: &mut mpsc::Receiver<String>) -> Given {
    output::remark(&format!("  {}", questions::clean(view.params.as_str())));
    let what = match view.kind {
        QuestionKind::Roots => "  a folder as file:///…, or the whole result as JSON",
        _ => "  the text of the completion, or the whole result as JSON",
    };
    let text = line(what, lines).await?;
    let whole = RawJson::parse(text.clone().into()).ok().filter(RawJson::is_object);
    Ok(if whole.is_some() { (whole, None) } else { (None, Some(text)) })
}

/// What is typed after a prompt; the end of input dismisses the question.
async fn line(prompt: &str, lines: &mut mpsc::Receiver<String>) -> Result<String, Left> {
    output::prompt(prompt);
    let text = lines.recv().await.ok_or(Left::Cancel)?;
    match text.trim() {
        ":decline" => Err(Left::Decline),
        ":cancel" => Err(Left::Cancel),
        text => Ok(text.to_owned()),
    }
}
