//! Answers and requests about open questions.

use serde::{Deserialize, Serialize};

use crate::protocol::jsonrpc::RawJson;

/// `GET /v1/questions`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionsAnswer {
    /// The open ones and those that were lost, oldest first.
    pub questions: Vec<QuestionView>,
}

/// One question. Never with an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionView {
    /// Its id, as `mcpx elicit answer` takes it.
    pub id: String,
    /// Whether it can be answered.
    pub state: QuestionState,
    /// What it asks for.
    pub kind: QuestionKind,
    /// The server that asks, by its configuration key.
    pub server: String,
    /// What asks, as in "tool `search` of server `github`".
    pub what: String,
    /// The host whose call it is, by its label.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// The task that waits for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub task: Option<String>,
    /// What is asked, for people, as the server wrote it.
    pub message: String,
    /// The address to go to, of a url question. mcpx never opens it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// Its parameters as they came, in newest shape; a form's fields stand in `requestedSchema`.
    pub params: RawJson,
    /// When it was asked, in milliseconds since 1970.
    pub asked_at: u64,
    /// Until when it is kept, likewise.
    pub expires_at: u64,
    /// What became of the call of one that was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fate: Option<String>,
}

/// Whether a question can be answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionState {
    /// It waits for an answer.
    Open,
    /// Its call ended with an earlier daemon.
    Lost,
}

/// What a question asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum QuestionKind {
    /// The fields of a form.
    Form,
    /// A visit to an address.
    Url,
    /// A completion by a language model.
    Sampling,
    /// The folders that the host works in.
    Roots,
}

impl QuestionKind {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Form => "form",
            Self::Url => "url",
            Self::Sampling => "sampling",
            Self::Roots => "roots",
        }
    }
}

/// `POST /v1/questions/{id}/…`: what was said to it. Never with what was answered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionAnswered {
    /// The question.
    pub id: String,
    /// `accept`, `decline` or `cancel`.
    pub action: String,
}

/// A question that is no longer open, in a stream.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct QuestionClosed {
    /// The question.
    pub id: String,
}

/// Who answers the questions of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhoAnswers {
    /// A person at this end: they are kept for `elicit.timeout`.
    Here,
    /// Somebody who is told of them: they are kept for `elicit.linger` where nobody listens.
    Elsewhere,
}

impl WhoAnswers {
    /// As on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Here => "here",
            Self::Elsewhere => "elsewhere",
        }
    }

    /// The one of a word.
    pub fn of_word(word: &str) -> Option<Self> {
        [Self::Here, Self::Elsewhere].into_iter().find(|who| who.as_str() == word)
    }
}

/// `POST /v1/questions/{id}/answer`. What it holds is a secret: it is not shown by `Debug`.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AnswerRequest {
    /// The question.
    pub id: String,
    /// The fields of a form, or the whole result of another question.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<RawJson>,
    /// The one value of a form with one field, or the text of a completion.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub value: Option<String>,
}

impl std::fmt::Debug for AnswerRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AnswerRequest").field("id", &self.id).finish_non_exhaustive()
    }
}
