//! Open questions, for those who look at them and answer.

use super::super::broker::{NotTaken, Said};
use super::super::dispatch::Context;
use crate::control::ApiError;
use crate::control::types::{AnswerRequest, FailureCode, QuestionAnswered, QuestionsAnswer};
use crate::protocol::jsonrpc::RawJson;

/// Those that are shown are on disk: whoever has seen one finds it after a daemon that was killed.
pub(super) async fn list(context: &Context) -> RawJson {
    context.broker.flush(context.settings().daemon.ask).await;
    RawJson::write(&QuestionsAnswer { questions: context.broker.questions() })
}

pub(super) fn show(context: &Context, id: &str) -> Result<RawJson, ApiError> {
    context.broker.question(id).map(|view| RawJson::write(&view)).ok_or_else(|| {
        let open = context.broker.questions().into_iter().map(|view| view.id);
        unknown(id, &open.collect::<Vec<_>>())
    })
}

pub(super) fn accept(context: &Context, answer: AnswerRequest) -> Result<RawJson, ApiError> {
    let AnswerRequest { id, content, value } = answer;
    say(context, &id, &Said::Accept { content, value })
}

/// Says something to a question.
pub(super) fn say(context: &Context, id: &str, said: &Said) -> Result<RawJson, ApiError> {
    context.broker.answer(id, said).map_err(|not_taken| match not_taken {
        NotTaken::Unknown(open) => unknown(id, &open),
        NotTaken::Lost => {
            let text = format!(
                "question `{id}` cannot be answered any more: an earlier daemon asked it, and ended"
            );
            ApiError::new(FailureCode::NotFound, text)
        }
        NotTaken::Unfit(why) => ApiError::new(FailureCode::BadRequest, why)
            .with_hint(format!("`mcpx elicit show {id}` shows what it takes; it is still open")),
    })?;
    Ok(RawJson::write(&QuestionAnswered { id: id.to_owned(), action: said.action().to_owned() }))
}

fn unknown(id: &str, open: &[String]) -> ApiError {
    let hint = if open.is_empty() {
        "none is open".to_owned()
    } else {
        format!("open are {}", open.join(", "))
    };
    let text = format!("there is no open question `{id}`: it was answered, or its call has ended");
    ApiError::new(FailureCode::NotFound, text).with_hint(hint)
}
