//! Questions of servers, in newest shape: what is asked, what is said to it, and the multi-round-trip
//! form of both (2026-07-28, basic/patterns/mrtr), in which a server answers with questions and the
//! host asks again with the answers. What is asked and answered stays text.

use std::fmt::Write as _;

use memchr::memmem;
use serde_json::json;

use super::extensions;
use crate::protocol::jsonrpc::{
    Code, Method, Object, RawJson, RpcError, URL_ELICITATION_REQUIRED, scan,
};

/// A method that a server may ask, and what a host declares that can answer it.
const QUESTIONS: [(&str, &str); 3] = [
    ("elicitation/create", "elicitation"),
    ("sampling/createMessage", "sampling"),
    ("roots/list", "roots"),
];

/// The answers of a request that is asked again, by the keys of the questions.
pub const RESPONSES: &str = "inputResponses";

/// What a server wants back with the answers, untouched.
pub const STATE: &str = "requestState";

/// By which url questions of 2025-11-25 are named; kept beside their newest shape for hosts that know
/// it.
pub const ELICITATION_ID: &str = "elicitationId";

/// What is said to a question: its result, or an error.
pub type Reply = Result<RawJson, RpcError>;

/// What a question asks for (E-04: what must have been declared for it).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// `elicitation/create` in form mode, which is the one without a `mode`.
    Form,
    /// `elicitation/create` in url mode.
    Url,
    /// `sampling/createMessage`.
    Sampling,
    /// `roots/list`.
    Roots,
}

/// One question.
#[derive(Debug, Clone)]
pub struct Question {
    /// `elicitation/create`, `sampling/createMessage` or `roots/list`.
    pub method: Method,
    /// Its parameters, an object.
    pub params: RawJson,
}

impl Question {
    /// A question of this method; `None` where there is none of that name.
    pub fn new(method: &str, params: Option<RawJson>) -> Option<Self> {
        let (known, _) = QUESTIONS.iter().find(|(name, _)| *name == method)?;
        let params = params.filter(RawJson::is_object).unwrap_or_else(RawJson::empty_object);
        Some(Self { method: Method::known(known), params })
    }

    /// What it asks for.
    pub fn kind(&self) -> Kind {
        match self.method.as_str() {
            "sampling/createMessage" => Kind::Sampling,
            "roots/list" => Kind::Roots,
            _ if self.params.member_str("mode").as_deref() == Some("url") => Kind::Url,
            _ => Kind::Form,
        }
    }

    /// Whether it is sampling in which the model is to have tools.
    pub fn wants_tools(&self) -> bool {
        let says = |key| self.params.member(key).is_some_and(|value| !value.is_null());
        self.kind() == Kind::Sampling && (says("tools") || says("toolChoice"))
    }
}

/// A result that is no outcome yet: what its server wants to know first.
#[derive(Debug, Clone, Default)]
pub struct Asking {
    /// `inputRequests`, in its order: by their keys.
    pub questions: Vec<(String, Question)>,
    /// `requestState`, as it came.
    pub state: Option<RawJson>,
}

impl Asking {
    /// Reads an `input_required` result; an error says in one phrase what is wrong with it.
    pub fn read(result: &RawJson) -> Result<Self, String> {
        let state = result.member(STATE);
        let Some(requests) = result.member("inputRequests") else {
            return match state {
                Some(state) => Ok(Self { questions: Vec::new(), state: Some(state) }),
                None => Err("it has neither `inputRequests` nor a `requestState`".to_owned()),
            };
        };
        let requests =
            Object::read(&requests).map_err(|_| "its `inputRequests` are no object".to_owned())?;
        let mut questions = Vec::with_capacity(requests.len());
        for (key, request) in requests.iter() {
            let method = request.member_str("method").unwrap_or_default();
            let question = Question::new(&method, request.member("params")).ok_or_else(|| {
                format!("its question `{key:.40}` is of the unknown method `{method:.40}`")
            })?;
            questions.push((key.to_owned(), question));
        }
        Ok(Self { questions, state })
    }

    /// The `input_required` result.
    pub fn write(&self) -> RawJson {
        let mut result = Object::new();
        result.set("resultType", RawJson::write("input_required"));
        if !self.questions.is_empty() {
            let mut requests = Object::new();
            for (key, question) in &self.questions {
                let mut request = Object::new();
                request.set("method", RawJson::write(question.method.as_str()));
                request.set("params", without_id(&question.params));
                requests.set(key.clone(), request.write());
            }
            result.set("inputRequests", requests.write());
        }
        if let Some(state) = &self.state {
            result.set(STATE, state.clone());
        }
        result.write()
    }
}

/// Questions have no ids of their own in newest shape (E-03).
fn without_id(params: &RawJson) -> RawJson {
    if params.member(ELICITATION_ID).is_none() {
        return params.clone();
    }
    let mut object = Object::read_or_empty(Some(params));
    object.remove(ELICITATION_ID);
    object.write()
}

/// An `inputResponses` object.
pub fn responses(answers: &[(String, RawJson)]) -> RawJson {
    let mut object = Object::new();
    for (key, answer) in answers {
        object.set(key.clone(), answer.clone());
    }
    if object.is_empty() { RawJson::empty_object() } else { object.write() }
}

/// The answers that a request brings, by the keys of the questions.
pub fn read_responses(params: &RawJson) -> Vec<(String, RawJson)> {
    let answers = Object::read_or_empty(params.member(RESPONSES).as_ref());
    answers.iter().map(|(key, answer)| (key.to_owned(), answer.clone())).collect()
}

/// Whether who declared these capabilities can answer `question` (E-04): an elicitation in its mode,
/// where none named means forms; sampling with tools only with the capability of that name. What
/// sampling includes of other servers' context is a wish that may be ignored, and needs nothing.
pub fn can_answer(declared: &RawJson, question: &Question) -> bool {
    let has = |of: &RawJson, key| of.member(key).is_some_and(|it| it.is_object());
    let capability = |key| declared.member(key).filter(RawJson::is_object);
    match question.kind() {
        Kind::Form => {
            capability("elicitation").is_some_and(|it| has(&it, "form") || !has(&it, "url"))
        }
        Kind::Url => capability("elicitation").is_some_and(|it| has(&it, "url")),
        Kind::Roots => capability("roots").is_some(),
        Kind::Sampling => {
            capability("sampling").is_some_and(|it| !question.wants_tools() || has(&it, "tools"))
        }
    }
}

/// What is declared where somebody answers at the broker, who can be asked any elicitation: that
/// beside what a host declared.
pub fn with_elicitation(declared: Option<&RawJson>) -> RawJson {
    let mut object = Object::read_or_empty(declared);
    let mut elicitation = Object::read_or_empty(object.get("elicitation"));
    for mode in ["form", "url"] {
        elicitation.set_default(mode, RawJson::empty_object());
    }
    object.set("elicitation", elicitation.write());
    object.write()
}

/// What a server may be told that several hosts share, beside elicitation: sampling, with tools, and
/// roots, unless one of them lacks them; and of what there is beside the same, where there is anybody
/// who has it (U-36). `declared` holds the capabilities of each that made a declaration once and for
/// all: hosts without a handshake make one with each request, and are asked or not by that.
pub fn declared_by_all(declared: &[RawJson]) -> Object {
    let all = |capability: &str, member: Option<&str>| {
        let has = |capabilities: &RawJson| {
            let found = capabilities.member(capability).filter(RawJson::is_object);
            found.is_some_and(|found| match member {
                None => true,
                Some(key) => {
                    let value = found.member(key);
                    value.is_some_and(|it| it.is_object() || it.as_bytes() == b"true")
                }
            })
        };
        declared.iter().all(has)
    };
    // Whoever comes can be asked with tools or refuse; these two say what somebody does by himself.
    let said = |capability, member| !declared.is_empty() && all(capability, Some(member));
    let mut by_all = Object::new();
    if all("sampling", None) {
        let mut sampling = Object::new();
        if said("sampling", "context") {
            sampling.set("context", RawJson::empty_object());
        }
        if all("sampling", Some("tools")) {
            sampling.set("tools", RawJson::empty_object());
        }
        by_all.set("sampling", sampling.write());
    }
    if all("roots", None) {
        let mut roots = Object::new();
        if said("roots", "listChanged") {
            roots.set("listChanged", RawJson::write(&true));
        }
        by_all.set("roots", roots.write());
    }
    by_all
}

/// The url questions that a server of 2025-11-25 wants to have seen to before it answers a request
/// (-32042), with their ids; `None` for any other error, and where it names none.
pub fn url_required(error: &RpcError) -> Option<Vec<Question>> {
    if error.code != URL_ELICITATION_REQUIRED {
        return None;
    }
    let elicitations = error.data.as_ref()?.member("elicitations")?.elements()?;
    let questions: Vec<Question> = elicitations
        .into_iter()
        .filter(|params| params.member_str("url").is_some())
        .filter_map(|params| {
            let mut object = Object::read(&params).ok()?;
            object.set_default("mode", RawJson::write("url"));
            Question::new("elicitation/create", Some(object.write()))
        })
        .filter(|question| question.kind() == Kind::Url)
        .collect();
    (!questions.is_empty()).then_some(questions)
}

/// Whether a host with these capabilities can see to the addresses of this error by itself.
pub fn sees_urls(declared: &RawJson, error: &RpcError) -> bool {
    let urls = url_required(error);
    urls.is_some_and(|urls| urls.iter().all(|url| can_answer(declared, url)))
}

/// What an error says in words, with the addresses that it wants to have seen to (see
/// [`url_required`]).
pub fn told_urls(error: &RpcError) -> String {
    let mut text = error.message.clone();
    for question in url_required(error).unwrap_or_default() {
        let member = |key| question.params.member_str(key).unwrap_or_default();
        let (message, url) = (member("message"), member("url"));
        let _ = write!(text, "\n{message}: open {url}, then make the request again");
    }
    text
}

/// What is said to a question that nobody answers: an elicitation is cancelled, the rest fails.
pub fn unanswered(question: &Question) -> Reply {
    match question.kind() {
        Kind::Form | Kind::Url => Ok(cancelled()),
        Kind::Sampling | Kind::Roots => {
            let text = format!("nobody could be asked for {}", question.method.as_str());
            Err(RpcError::new(Code::InternalError, text))
        }
    }
}

/// What is said to an elicitation by who did not choose.
pub fn cancelled() -> RawJson {
    RawJson::write(&json!({ "action": "cancel" }))
}

/// What is said to an elicitation by who chose not to tell.
pub fn declined() -> RawJson {
    RawJson::write(&json!({ "action": "decline" }))
}

/// What a host declared that is of use to an upstream: its capabilities to answer questions, as they
/// came (U-35), and the extensions that are of use to one that is exposed alone. What mcpx does not
/// carry is not declared on.
pub fn declared_on(capabilities: &RawJson) -> RawJson {
    let mut object = Object::read_or_empty(Some(capabilities));
    object.retain(|key, value| {
        let asks = QUESTIONS.iter().any(|(_, capability)| *capability == key);
        value.is_object() && (asks || extensions::holds(key))
    });
    if object.is_empty() { RawJson::empty_object() } else { object.write() }
}

/// Whether a server may answer this method with questions.
pub fn may_ask(method: &str) -> bool {
    matches!(method, "tools/call" | "prompts/get" | "resources/read")
}

/// Whether a result is no outcome yet.
pub fn is_asking(result: &RawJson) -> bool {
    scan::member(result.as_bytes(), "resultType") == Some(br#""input_required""#)
}

/// The method of the first question in `result` that a host with these capabilities cannot answer.
pub fn undeclared(result: &RawJson, capabilities: &RawJson) -> Option<String> {
    let asked = Object::read_or_empty(result.member("inputRequests").as_ref());
    asked.iter().find_map(|(_, asked)| {
        let method = asked.member_str("method").unwrap_or_default();
        let question = Question::new(&method, asked.member("params"));
        let declared = question.is_some_and(|question| can_answer(capabilities, &question));
        (!declared).then_some(method)
    })
}

/// Whether a request brings a state back.
pub fn carries_state(method: &str, params: &RawJson) -> bool {
    may_ask(method)
        && memmem::find(params.as_bytes(), STATE.as_bytes()).is_some()
        && params.member_str(STATE).is_some()
}

/// Carries the answers of a request that is asked again over to the request that it stands for.
pub fn copy_answers(from: &RawJson, to: &mut Object) {
    for key in [RESPONSES, STATE] {
        if let Some(value) = from.member(key) {
            to.set(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    #[test]
    fn u35_only_what_answers_questions_and_extensions_are_declared_on() {
        let came = r#"{"elicitation":{"form":{},"x":1e2},"extensions":{"a/b":{}},"sampling":true,"roots":{"listChanged":true},"experimental":{},"tasks":{}}"#;
        assert_eq!(
            declared_on(&raw(came)).as_str(),
            r#"{"elicitation":{"form":{},"x":1e2},"extensions":{"a/b":{}},"roots":{"listChanged":true},"experimental":{}}"#
        );
        // A server among others is told nothing of extensions.
        assert_eq!(
            extensions::without(&declared_on(&raw(came))).as_str(),
            r#"{"elicitation":{"form":{},"x":1e2},"roots":{"listChanged":true}}"#
        );
        assert_eq!(declared_on(&raw("{}")).as_str(), "{}");
    }

    #[test]
    fn a_question_is_known_and_so_is_one_that_nobody_can_answer() {
        let asking = raw(
            r#"{"resultType":"input_required","inputRequests":{"a":{"method":"roots/list"},"b":{"method":"elicitation/create","params":{}}}}"#,
        );
        assert!(is_asking(&asking));
        assert!(!is_asking(&raw(r#"{"resultType":"complete","inputRequests":{}}"#)));
        assert!(!is_asking(&raw(r#"{"content":[{"resultType":"input_required"}]}"#)));
        let lacking = |capabilities| undeclared(&asking, &raw(capabilities));
        assert_eq!(lacking(r#"{"roots":{},"elicitation":{}}"#), None);
        assert_eq!(lacking(r#"{"roots":{}}"#).as_deref(), Some("elicitation/create"));
        // Only a state: nothing has to be declared.
        assert_eq!(undeclared(&raw(r#"{"requestState":"s"}"#), &raw("{}")), None);
        let odd = raw(r#"{"inputRequests":{"a":{"method":"ping"}}}"#);
        assert_eq!(undeclared(&odd, &raw(r#"{"roots":{}}"#)).as_deref(), Some("ping"));
    }

    /// E-04: an undeclared mode is asked of nobody; sampling with tools needs its own capability.
    #[test]
    fn e04_who_can_answer_what() {
        let can = |declared: &str, method: &str, params: &str| {
            can_answer(&raw(declared), &Question::new(method, Some(raw(params))).unwrap())
        };
        let (form, url) = (r#"{"mode":"form"}"#, r#"{"mode":"url","url":"https://x.test"}"#);
        for (declared, forms, urls) in [
            (r#"{"elicitation":{}}"#, true, false),
            (r#"{"elicitation":{"form":{}}}"#, true, false),
            (r#"{"elicitation":{"url":{}}}"#, false, true),
            (r#"{"elicitation":{"form":{},"url":{}}}"#, true, true),
            (r#"{"elicitation":true,"sampling":{}}"#, false, false),
        ] {
            assert_eq!(can(declared, "elicitation/create", "{}"), forms, "{declared}");
            assert_eq!(can(declared, "elicitation/create", form), forms, "{declared}");
            assert_eq!(can(declared, "elicitation/create", url), urls, "{declared}");
        }
        let (plain, tools) = ("{}", r#"{"tools":[]}"#);
        assert!(can(r#"{"sampling":{}}"#, "sampling/createMessage", plain));
        assert!(!can(r#"{"sampling":{}}"#, "sampling/createMessage", tools));
        assert!(can(r#"{"sampling":{"tools":{}}}"#, "sampling/createMessage", tools));
        assert!(can(r#"{"roots":{}}"#, "roots/list", plain));
        assert!(!can(r#"{"elicitation":{}}"#, "roots/list", plain));
        assert!(Question::new("ping", None).is_none());
    }

    /// U-36: what a server is told that hosts share.
    #[test]
    fn u36_what_all_hosts_declare() {
        let by_all = |declared: &[&str]| {
            let declared: Vec<RawJson> = declared.iter().map(|text| raw(text)).collect();
            declared_by_all(&declared).write().as_str().to_owned()
        };
        let full = r#"{"sampling":{"tools":{},"context":{}},"roots":{"listChanged":true},"elicitation":{}}"#;
        // Hosts without a handshake say so with each request.
        assert_eq!(by_all(&[]), r#"{"sampling":{"tools":{}},"roots":{}}"#);
        assert_eq!(
            by_all(&[full, full]),
            r#"{"sampling":{"context":{},"tools":{}},"roots":{"listChanged":true}}"#
        );
        let less = r#"{"sampling":{"tools":{}},"roots":{"listChanged":false}}"#;
        assert_eq!(by_all(&[full, less]), r#"{"sampling":{"tools":{}},"roots":{}}"#);
        assert_eq!(by_all(&[full, r#"{"roots":{}}"#]), r#"{"roots":{}}"#);
        assert_eq!(by_all(&[full, r#"{"roots":true}"#]), "{}");
        let told = |declared: Option<&str>| {
            with_elicitation(declared.map(raw).as_ref()).as_str().to_owned()
        };
        assert_eq!(told(None), r#"{"elicitation":{"form":{},"url":{}}}"#);
        assert_eq!(
            told(Some(r#"{"elicitation":{"url":{"x":1e2}},"roots":{}}"#)),
            r#"{"elicitation":{"url":{"x":1e2},"form":{}},"roots":{}}"#
        );
    }

    /// 2025-11-25 elicitation page, "URL Elicitation Required Error".
    #[test]
    fn urls_that_are_required_first() {
        let error = |code, data: &str| RpcError {
            code,
            message: String::new(),
            data: Some(raw(data)),
            relayed: true,
        };
        let data = r#"{"elicitations":[{"mode":"url","elicitationId":"e\u0041","url":"https://x.test/?a=1","message":"m"},{"elicitationId":"f","url":"https://y.test","message":"n"},{"mode":"form"},7]}"#;
        let required = url_required(&error(-32042, data)).unwrap();
        let shown: Vec<&str> = required.iter().map(|question| question.params.as_str()).collect();
        assert_eq!(
            shown,
            [
                r#"{"mode":"url","elicitationId":"e\u0041","url":"https://x.test/?a=1","message":"m"}"#,
                r#"{"elicitationId":"f","url":"https://y.test","message":"n","mode":"url"}"#,
            ]
        );
        assert!(url_required(&error(-32603, data)).is_none());
        for data in [
            "{}",
            "[]",
            r#"{"elicitations":[]}"#,
            r#"{"elicitations":[{"mode":"form","url":"u"}]}"#,
        ] {
            assert!(url_required(&error(-32042, data)).is_none(), "{data}");
        }
        // Newest shape has no ids of questions (E-03).
        let asking = Asking { questions: vec![("k".to_owned(), required[0].clone())], state: None };
        assert!(!asking.write().as_str().contains("elicitationId"));
    }

    #[test]
    fn an_asking_result_is_read_and_written_as_it_came() {
        let text = r#"{"resultType":"input_required","inputRequests":{"b":{"method":"elicitation/create","params":{"mode":"url","n":1e2}},"a":{"method":"roots/list","params":{}}},"requestState":"s\u0041\/"}"#;
        let asking = Asking::read(&raw(text)).unwrap();
        let kinds: Vec<_> = asking
            .questions
            .iter()
            .map(|(key, question)| (key.as_str(), question.kind()))
            .collect();
        assert_eq!(kinds, [("b", Kind::Url), ("a", Kind::Roots)]);
        assert_eq!(asking.write().as_str(), text);
        let only_state = r#"{"resultType":"input_required","requestState":"s"}"#;
        assert_eq!(Asking::read(&raw(only_state)).unwrap().write().as_str(), only_state);
        for broken in [
            r#"{"resultType":"input_required"}"#,
            r#"{"inputRequests":[]}"#,
            r#"{"inputRequests":{"k":{"method":"tools/list"}}}"#,
            r#"{"inputRequests":{"k":1}}"#,
        ] {
            assert!(Asking::read(&raw(broken)).is_err(), "{broken}");
        }
    }

    #[test]
    fn responses_are_written_and_read_as_they_are() {
        let answers = [("b".to_owned(), raw(r#"{"n":1e2}"#)), ("a".to_owned(), cancelled())];
        let written = responses(&answers);
        assert_eq!(written.as_str(), r#"{"b":{"n":1e2},"a":{"action":"cancel"}}"#);
        let mut params = Object::new();
        params.set("inputResponses", written);
        assert_eq!(read_responses(&params.write()), answers);
        assert_eq!(responses(&[]).as_str(), "{}");
        assert!(read_responses(&raw("{}")).is_empty());
        assert_eq!(declined().as_str(), r#"{"action":"decline"}"#);
    }

    #[test]
    fn answers_are_carried_as_they_came() {
        let mut to = Object::new();
        to.set("name", RawJson::write("t"));
        let from = r#"{"name":"x","requestState":"a\u0041\/=","inputResponses":{"k":{"n":1e2}}}"#;
        copy_answers(&raw(from), &mut to);
        assert_eq!(
            to.write().as_str(),
            r#"{"name":"t","inputResponses":{"k":{"n":1e2}},"requestState":"a\u0041\/="}"#
        );
        let mut none = Object::new();
        copy_answers(&raw(r#"{"name":"x"}"#), &mut none);
        assert!(none.is_empty());
    }
}
