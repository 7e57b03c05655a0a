//! Questions as text for people. What servers wrote is shown without control characters: a terminal
//! obeys those.

use mcpx::control::types::{
    QuestionAnswered, QuestionKind, QuestionState, QuestionView, QuestionsAnswer,
};
use mcpx::protocol::model::forms::Form;

/// Without what a terminal would obey; line breaks stay.
pub(crate) fn clean(text: &str) -> String {
    text.chars().map(|c| if c.is_control() && c != '\n' { ' ' } else { c }).collect()
}

/// `mcpx elicit list`.
pub(crate) fn list(answer: &QuestionsAnswer) -> String {
    if answer.questions.is_empty() {
        return "no question is open".to_owned();
    }
    // What can be answered comes first.
    let lost = |view: &&QuestionView| view.state == QuestionState::Lost;
    let (lost, open): (Vec<_>, Vec<_>) = answer.questions.iter().partition(lost);
    open.into_iter().chain(lost).map(question).collect::<Vec<_>>().join("\n\n")
}

/// One question: its id, who asks and for whom, what, and what an answer looks like.
pub(crate) fn question(view: &QuestionView) -> String {
    let host = view.host.as_ref().map(|host| format!(", called by {host}")).unwrap_or_default();
    let task = view.task.as_ref().map(|task| format!(", task {task}")).unwrap_or_default();
    let asks = match view.kind {
        QuestionKind::Form => "asks",
        QuestionKind::Url => "asks you to go to an address",
        QuestionKind::Sampling => "asks for a completion by a language model",
        QuestionKind::Roots => "asks for the folders that are worked in",
    };
    let mut lines = vec![format!("{} {}{host}{task} {asks}:", view.id, view.what)];
    lines.extend(view.message.lines().map(|line| format!("  {line}")));
    lines.extend(view.url.iter().flat_map(|url| address(url)));
    if view.kind == QuestionKind::Form {
        lines.extend(fields(view));
    }
    match (view.state, &view.fate) {
        (QuestionState::Lost, fate) => {
            lines.push(format!("  lost: {}", fate.as_deref().unwrap_or_default()));
        }
        (QuestionState::Open, _) => {}
    }
    clean(&lines.join("\n"))
}

/// `mcpx elicit show`: with what to type.
pub(crate) fn shown(view: &QuestionView) -> String {
    let text = question(view);
    if view.state == QuestionState::Lost {
        return text;
    }
    let id = &view.id;
    format!(
        "{text}\nanswer with `mcpx elicit answer {id}{}`, or `mcpx elicit decline {id}`, or \
         `mcpx elicit cancel {id}`",
        example(view),
    )
}

/// An address whole, with its host apart, and what is odd about it.
fn address(url: &str) -> Vec<String> {
    let rest = url.split_once("://").map(|(_, rest)| rest);
    let place = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
    let host = place.rsplit_once('@').map_or(place, |(_, host)| host);
    let mut lines = vec![format!("  address: {url}"), format!("  host:    {host}")];
    let mut odd = |what: &str| lines.push(format!("  beware:  {what}"));
    if !url.starts_with("https://") {
        odd("it is not https, so others may read along");
    }
    if host.split('.').any(|label| label.starts_with("xn--")) || !url.is_ascii() {
        odd("its name has letters that look like others");
    }
    if host != place {
        odd("what stands before the @ is not the host");
    }
    lines
}

fn fields(view: &QuestionView) -> Vec<String> {
    let form = Form::of(&view.params);
    let field = |field: &mcpx::protocol::model::forms::Field| {
        let need = match &field.default {
            Some(default) => format!(", else {}", default.as_str()),
            None if field.required => String::new(),
            None => ", may be left out".to_owned(),
        };
        let about = field.description.as_ref().or(field.title.as_ref());
        let about = about.map(|about| format!(": {about}")).unwrap_or_default();
        format!("  - {} ({}{need}){about}", field.name, field.expects())
    };
    form.fields.iter().map(field).collect()
}

/// What stands behind the id in the command that answers it.
pub(crate) fn example(view: &QuestionView) -> String {
    match view.kind {
        QuestionKind::Url => String::new(),
        QuestionKind::Sampling => " TEXT".to_owned(),
        QuestionKind::Roots => " file:///FOLDER".to_owned(),
        QuestionKind::Form => {
            let form = Form::of(&view.params);
            let needed = form.fields.iter().filter(|field| field.required);
            let words: Vec<String> = needed.map(|field| format!(" {}=…", field.name)).collect();
            clean(&words.concat())
        }
    }
}

/// What was said to one.
pub(crate) fn answered(answer: &QuestionAnswered) -> String {
    match answer.action.as_str() {
        "accept" => format!("{} is answered", answer.id),
        "decline" => format!("{} is declined", answer.id),
        _ => format!("{} is dismissed", answer.id),
    }
}

#[cfg(test)]
mod tests {
    use mcpx::protocol::jsonrpc::RawJson;

    use super::*;

    fn view(kind: QuestionKind, params: &str) -> QuestionView {
        let params = RawJson::parse(params.to_owned().into()).unwrap();
        QuestionView {
            id: "k3fp".to_owned(),
            state: QuestionState::Open,
            kind,
            server: "demo".to_owned(),
            what: "tool `ask` of server `demo`".to_owned(),
            host: Some("opencode".to_owned()),
            task: None,
            message: params.member_str("message").unwrap_or_default(),
            url: params.member_str("url"),
            params,
            asked_at: 0,
            expires_at: 0,
            fate: None,
        }
    }

    #[test]
    fn a_form_tells_its_fields_and_how_to_answer() {
        let params = r#"{"message":"Tea?\u001b[31m","requestedSchema":{"properties":{"cups":{"type":"integer","description":"How many"},"milk":{"type":"boolean","default":false}},"required":["cups"]}}"#;
        let view = view(QuestionKind::Form, params);
        assert_eq!(
            shown(&view),
            "k3fp tool `ask` of server `demo`, called by opencode asks:\n  Tea? [31m\n  - cups (a whole \
             number): How many\n  - milk (yes or no, else false)\nanswer with `mcpx elicit answer k3fp \
             cups=…`, or `mcpx elicit decline k3fp`, or `mcpx elicit cancel k3fp`"
        );
    }

    /// client/elicitation, "Safe URL Handling": whole, with its host, and with warnings.
    #[test]
    fn e02_an_address_is_shown_for_examination() {
        let told = |url: &str| {
            let params = format!(r#"{{"message":"m","url":"{url}"}}"#);
            question(&view(QuestionKind::Url, &params))
        };
        let plain = told("https://docs.example/a?b=c");
        assert!(
            plain.contains("address: https://docs.example/a?b=c\n  host:    docs.example"),
            "{plain}"
        );
        assert!(!plain.contains("beware"), "{plain}");
        for odd in [
            "http://docs.example/",
            "https://docs.example@evil.example/",
            "https://xn--e1a.example",
        ] {
            assert!(told(odd).contains("beware"), "{odd}");
        }
    }
}
