//! `mcpx elicit answer` and `watch`: what a person says to open questions.

use bytes::Bytes;
use clap::ArgMatches;
use mcpx::control::OpCall;
use mcpx::control::types::{AnswerRequest, QuestionClosed, QuestionView, stream as names};

use crate::arguments::{self, Typed};
use crate::ended::{Ended, Outcome};
use crate::output;
use crate::person::{Asked, Person};
use crate::questions;
use crate::reach::{self, Reach, understood};
use crate::stream::{Event, Events};

/// `mcpx elicit answer ID [JSON | KEY=VALUE… | VALUE]`.
pub(crate) async fn answer(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let id = matches.get_one::<String>("id").cloned().unwrap_or_default();
    let words: Vec<String> =
        matches.get_many("content").map(|words| words.cloned().collect()).unwrap_or_default();
    let call = OpCall::Answer(request(id, &words)?);
    shown(reach, &reach.ask(&call).await?)
}

/// The answer that words mean: nothing, one value, or the fields of a form.
fn request(id: String, words: &[String]) -> Result<AnswerRequest, Ended> {
    let plain = |word: &String| !word.contains('=') && !word.trim_start().starts_with('{');
    match words {
        [] => Ok(AnswerRequest { id, content: None, value: None }),
        [word] if word != "-" && plain(word) => {
            Ok(AnswerRequest { id, content: None, value: Some(word.clone()) })
        }
        words => {
            let stdin = || {
                std::io::read_to_string(std::io::stdin())
                    .map_err(|error| format!("the answer cannot be read from stdin: {error}"))
            };
            let content = match arguments::read(words, stdin).map_err(Ended::Usage)? {
                Typed::Whole(raw) => raw,
                // The daemon knows the form, and reads texts by it.
                Typed::Pairs(pairs) => arguments::typed(&pairs, None).map_err(Ended::Usage)?,
            };
            Ok(AnswerRequest { id, content: Some(content), value: None })
        }
    }
}

fn shown(reach: &Reach<'_>, body: &Bytes) -> Outcome {
    if reach.printer.json {
        return output::bytes(body);
    }
    output::line(&questions::answered(&understood(body)?))
}

/// `mcpx elicit watch`: each question as it comes; on a terminal they are answered there, one after the
/// other.
pub(crate) async fn watch(reach: &Reach<'_>) -> Outcome {
    let mut stream = reach.open(&OpCall::Questions { follow: true }).await?;
    let mut events = Events::default();
    let mut person = Person::at_terminal(reach);
    if person.is_some() {
        output::remark("waiting for questions; Ctrl-C ends it");
    }
    loop {
        let next = tokio::select! {
            next = events.next(&mut stream) => next,
            asked = Person::next_of(&mut person) => {
                said(asked);
                continue;
            }
        };
        let Some(event) = next.map_err(|failed| Ended::Failed(failed.to_string()))? else { break };
        match &mut person {
            Some(person) => {
                if let News::Question(view) = news(&event)? {
                    person.ask(view);
                } else if let News::Closed(id) = news(&event)? {
                    person.forget(&id);
                }
            }
            None if reach.printer.json => output::line(&event.data)?,
            None => {
                if let Some(text) = line(&event)? {
                    output::line(&text)?;
                }
            }
        }
    }
    output::remark("the daemon has ended the stream");
    Ok(())
}

/// How it went with a question, on stderr.
pub(crate) fn said(asked: Asked) {
    match asked {
        Asked::Answered(action) => output::remark(&format!("{action}: sent")),
        Asked::Failed(why) => output::remark(&why),
    }
}

/// What an event of a stream says of questions.
pub(crate) enum News {
    Question(Box<QuestionView>),
    Closed(String),
    Other,
}

/// Reads one.
pub(crate) fn news(event: &Event) -> Result<News, Ended> {
    let data = event.data.as_bytes();
    Ok(match event.name.as_str() {
        names::QUESTION => News::Question(Box::new(understood(data)?)),
        names::CLOSED => News::Closed(understood::<QuestionClosed>(data)?.id),
        names::ERROR => return Err(reach::failed(&understood(data)?)),
        _ => News::Other,
    })
}

/// A line of `mcpx elicit list -f`; `None` for what is not of it.
pub(crate) fn line(event: &Event) -> Result<Option<String>, Ended> {
    Ok(match news(event)? {
        News::Question(view) => Some(questions::question(&view)),
        News::Closed(id) => Some(format!("{id} is closed")),
        News::Other => None,
    })
}

/// Shows a question on stderr to those who cannot be asked here, with how to answer it.
pub(crate) fn show_elsewhere(view: &QuestionView) {
    output::remark(&questions::shown(view));
}
