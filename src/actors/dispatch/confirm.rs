//! Whether a call may go on to its upstream: policy, and the confirmation of what destroys (E-10).
//!
//! What is denied never comes here: the catalog does not show it. A question goes to the host that calls,
//! or else to whoever listens at the broker; where nobody can be asked the call is refused. What a
//! server's own hints say can only add a question, never take one away that the policy wants (A-09).

use super::{Context, Told};
use crate::actors::catalog::ToolRecord;
use crate::actors::upstreams::Reason;
use crate::protocol::jsonrpc::{Method, Object, RawJson};
use crate::protocol::model::questions::{Question, Reply};
use crate::protocol::model::tool::Hints;
use crate::settings::{Rule, Settings};

/// What becomes of a call.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is made.
    Go,
    /// It is not, and this is what the caller is told.
    Deny(Told),
    /// Only if the reply to this question is [`approved`].
    Ask(Question),
}

/// Decides on a call of `tool` of `server`, by its configuration key, with these parameters, which are
/// opened only where there is something to ask.
pub(crate) fn check(
    context: &Context,
    server: &str,
    tool: &ToolRecord,
    params: &RawJson,
) -> Verdict {
    decide(&context.settings(), server, tool, params)
}

fn decide(settings: &Settings, server: &str, tool: &ToolRecord, params: &RawJson) -> Verdict {
    let def = settings.servers.iter().find(|def| def.key == server);
    let rule = match def {
        Some(def) => def.tools.of(&tool.name),
        // Taken out of the configuration, or hidden from this host, since it was found.
        None => Rule::Deny,
    };
    match rule {
        // Denied since it was found: as if it had never been there.
        Rule::Deny => Verdict::Deny(Told::new(
            Reason::Unavailable,
            format!("server `{server}` has no tool `{}`.", tool.name),
        )),
        Rule::Ask => Verdict::Ask(question(server, tool, params)),
        Rule::Allow
            if settings.elicit.confirm_destructive && Hints::of(&tool.raw).is_destructive() =>
        {
            Verdict::Ask(question(server, tool, params))
        }
        Rule::Allow => Verdict::Go,
    }
}

/// Longest part of the arguments in a question, in characters.
const SHOWN: usize = 600;

/// The one field of the question.
const APPROVE: &str = "approve";

fn question(server: &str, tool: &ToolRecord, params: &RawJson) -> Question {
    let arguments = params.member("arguments").unwrap_or_else(RawJson::empty_object);
    let whole = arguments.as_str();
    let shown: String = whole.chars().take(SHOWN).collect();
    let more = if shown.len() < whole.len() {
        format!("… ({} bytes in all)", whole.len())
    } else {
        String::new()
    };
    let mut field = Object::new();
    field.set("type", RawJson::write("boolean"));
    field.set("title", RawJson::write("Call it"));
    field.set("description", RawJson::write("Whether the tool is called with these arguments."));
    let mut properties = Object::new();
    properties.set(APPROVE, field.write());
    let mut schema = Object::new();
    schema.set("type", RawJson::write("object"));
    schema.set("properties", properties.write());
    schema.set("required", RawJson::write(&[APPROVE]));
    let text = format!("Call tool `{}` of server `{server}`?\nArguments: {shown}{more}", tool.name);
    let mut params = Object::new();
    params.set("mode", RawJson::write("form"));
    params.set("message", RawJson::write(&text));
    params.set("requestedSchema", schema.write());
    Question { method: Method::known("elicitation/create"), params: params.write() }
}

/// Whether a reply to the question of [`check`] lets the call go on. Anything but a clear yes does not.
pub(crate) fn approved(reply: &Reply) -> bool {
    let Ok(result) = reply else { return false };
    let content = result.member("content");
    let approve = content.and_then(|content| content.member(APPROVE));
    result.member_str("action").as_deref() == Some("accept")
        && approve.is_some_and(|approve| approve.as_str() == "true")
}

/// What the caller is told where the question was not answered with yes.
pub(crate) fn refused(what: &str) -> Told {
    let text =
        format!("not confirmed: {what} was not called, because the person asked did not agree");
    Told::new(Reason::NotConfirmed, text)
}

/// What the caller is told where nobody can be asked: the call is not made.
pub(crate) fn nobody(what: &str) -> Told {
    let text = format!(
        "not confirmed: {what} is called only once somebody has agreed, and nobody can be asked. Use a host \
         that can be asked (elicitation), or keep `mcpx elicit watch` open in a terminal, or allow the tool \
         in [policy] of the configuration (where elicit.confirm_destructive asks, that can be turned off)"
    );
    Told::new(Reason::NotConfirmed, text)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::protocol::model::tasks::Support;
    use crate::settings::Sources;
    use crate::settings::policy::{Glob, PolicyRule};

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn tool(name: &str, annotations: &str) -> ToolRecord {
        let raw = raw(&format!(r#"{{"name":"{name}","annotations":{annotations}}}"#));
        ToolRecord { name: name.to_owned(), tasks: Support::of(&raw), raw, repeatable: false }
    }

    fn settings(confirm: bool, rules: &[(&str, Rule)]) -> Settings {
        let runtime = vec![("elicit.confirm_destructive".to_owned(), confirm.to_string())];
        let sources = Sources { runtime, ..Sources::default() };
        let loaded = Settings::load(&sources, Path::new("mcpx")).unwrap();
        let mut settings = (*loaded.settings).clone();
        let mut def = (**settings.servers.first().unwrap()).clone();
        let rule = |(tool, rule): &(&str, Rule)| PolicyRule {
            namespace: Glob::parse("demo").unwrap(),
            tool: Glob::parse(tool).unwrap(),
            rule: *rule,
            place: crate::settings::mistake::Place::Runtime,
        };
        def.tools.govern("demo", &rules.iter().map(rule).collect::<Vec<_>>());
        settings.servers = vec![def.into()];
        settings
    }

    fn asks(settings: &Settings, tool: &ToolRecord) -> bool {
        matches!(decide(settings, "demo", tool, &RawJson::empty_object()), Verdict::Ask(_))
    }

    /// E-10: an absent hint counts as destructive unless read-only; idempotent ones destroy as well.
    #[test]
    fn e10_what_may_destroy_is_confirmed() {
        let (on, off) = (settings(true, &[]), settings(false, &[]));
        for (annotations, asked) in [
            ("{}", true),
            ("null", true),
            (r#"{"destructiveHint":true}"#, true),
            (r#"{"idempotentHint":true}"#, true),
            (r#"{"destructiveHint":"false"}"#, true),
            (r#"{"destructiveHint":false}"#, false),
            (r#"{"readOnlyHint":true}"#, false),
            (r#"{"readOnlyHint":true,"destructiveHint":true}"#, false),
        ] {
            assert_eq!(asks(&on, &tool("t", annotations)), asked, "{annotations}");
            assert!(!asks(&off, &tool("t", annotations)));
        }
    }

    /// A-09: hints are no permissions; a policy asks whatever they say.
    #[test]
    fn a09_a_policy_asks_whatever_the_hints_say() {
        let settings = settings(false, &[("write_*", Rule::Ask), ("gone", Rule::Deny)]);
        assert!(asks(&settings, &tool("write_a", r#"{"readOnlyHint":true}"#)));
        assert!(!asks(&settings, &tool("read_a", "{}")));
        let denied = decide(&settings, "demo", &tool("gone", "{}"), &RawJson::empty_object());
        let Verdict::Deny(told) = denied else { panic!("{denied:?}") };
        assert_eq!(told.text, "server `demo` has no tool `gone`.");
    }

    #[test]
    fn a_question_shows_the_call_and_only_a_clear_yes_counts() {
        let params = raw(&format!(r#"{{"arguments":{{"text":"{}"}}}}"#, "x".repeat(1000)));
        let asked = question("demo", &tool("write", "{}"), &params);
        let message = asked.params.member_str("message").unwrap();
        assert!(
            message.starts_with("Call tool `write` of server `demo`?\nArguments: {\"text\":\"xxx")
        );
        assert!(message.ends_with("x… (1011 bytes in all)"), "{message}");
        let form = crate::protocol::model::forms::Form::of(&asked.params);
        let yes = form.fill_one("yes").unwrap();
        let accept =
            |content: &str| Ok(raw(&format!(r#"{{"action":"accept","content":{content}}}"#)));
        assert!(approved(&accept(yes.as_str())));
        for reply in [r#"{"approve":false}"#, r#"{"approve":"true"}"#, "{}"] {
            assert!(!approved(&accept(reply)), "{reply}");
        }
        assert!(!approved(&Ok(raw(r#"{"action":"decline","content":{"approve":true}}"#))));
    }
}
