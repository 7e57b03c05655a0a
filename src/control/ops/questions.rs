//! The ops on open questions.

use super::{Needs, OUTSIDE, Op, OpName, Param, ParamKind, Place, READ, Verb, follow, text};

const ID: Param = text("id", Place::Path, true, "The question's id, as `elicit list` shows it.");

pub(super) const LIST: Op = Op {
    name: OpName::ElicitList,
    id: "elicit_list",
    command: Some(&["elicit", "list"]),
    verb: Verb::Get,
    route: "/v1/questions",
    params: &[follow(
        "Go on with new questions, as a stream; they are kept while somebody follows.",
    )],
    effect: READ,
    title: "List open questions",
    summary: "Lists the questions of servers that no host could be asked, and those that were lost with \
              an earlier daemon.",
    needs: Needs::Running,
    answer: "QuestionsAnswer",
};

pub(super) const SHOW: Op = Op {
    name: OpName::ElicitShow,
    id: "elicit_show",
    command: Some(&["elicit", "show"]),
    verb: Verb::Get,
    route: "/v1/questions/{id}",
    params: &[ID],
    effect: READ,
    title: "Show a question",
    summary: "Shows one question: who asks, what, and what an answer looks like.",
    needs: Needs::Running,
    answer: "QuestionView",
};

pub(super) const ANSWER: Op = Op {
    name: OpName::ElicitAnswer,
    id: "elicit_answer",
    command: Some(&["elicit", "answer"]),
    verb: Verb::Post,
    route: "/v1/questions/{id}/answer",
    params: &[
        ID,
        Param {
            name: "content",
            kind: ParamKind::Object,
            place: Place::Body,
            required: false,
            doc: "The fields of its form, or the whole result that it asks for.",
        },
        text(
            "value",
            Place::Body,
            false,
            "The one value of a form with one field, in place of them.",
        ),
    ],
    effect: OUTSIDE,
    title: "Answer a question",
    summary: "Accepts what a question asks for. An answer that does not fit is refused, and the \
              question stays open.",
    needs: Needs::Running,
    answer: "QuestionAnswered",
};

pub(super) const DECLINE: Op = Op {
    name: OpName::ElicitDecline,
    id: "elicit_decline",
    command: Some(&["elicit", "decline"]),
    verb: Verb::Post,
    route: "/v1/questions/{id}/decline",
    params: &[ID],
    effect: OUTSIDE,
    title: "Decline a question",
    summary: "Says no to what a question asks for.",
    needs: Needs::Running,
    answer: "QuestionAnswered",
};

pub(super) const CANCEL: Op = Op {
    name: OpName::ElicitCancel,
    id: "elicit_cancel",
    command: Some(&["elicit", "cancel"]),
    verb: Verb::Post,
    route: "/v1/questions/{id}/cancel",
    params: &[ID],
    effect: OUTSIDE,
    title: "Dismiss a question",
    summary: "Closes a question without a decision.",
    needs: Needs::Running,
    answer: "QuestionAnswered",
};
