//! Forms that people fill in: what an elicitation's `requestedSchema` asks for, and whether an answer
//! fits it (2026-07-28, client/elicitation, "Requested Schema").
//!
//! Read leniently, answered strictly: a field of a kind that is not known takes any JSON, and what is
//! given must fit what is known. A missing field gets its default, a given one is never replaced (U-37).

use crate::protocol::jsonrpc::{Object, RawJson};

/// A form.
#[derive(Debug, Clone)]
pub struct Form {
    /// Its fields, in their order.
    pub fields: Vec<Field>,
}

/// One field of a form.
#[derive(Debug, Clone)]
pub struct Field {
    /// The key of its value.
    pub name: String,
    /// What it is called.
    pub title: Option<String>,
    /// What it is for.
    pub description: Option<String>,
    /// Whether it must be given.
    pub required: bool,
    /// Its value where none is given, as it came.
    pub default: Option<RawJson>,
    kind: Kind,
}

#[derive(Debug, Clone)]
enum Kind {
    Text { least: Option<u64>, most: Option<u64>, format: Option<String> },
    Number { whole: bool, least: Option<f64>, most: Option<f64> },
    Switch,
    One(Vec<Choice>),
    Many { choices: Vec<Choice>, least: Option<u64>, most: Option<u64> },
    Any,
}

#[derive(Debug, Clone)]
struct Choice {
    value: String,
    title: Option<String>,
}

impl Form {
    /// The form of an elicitation with these parameters; without a schema it has no fields.
    pub fn of(params: &RawJson) -> Self {
        let schema = params.member("requestedSchema");
        let properties = schema.as_ref().and_then(|schema| schema.member("properties"));
        let required: Vec<String> = schema
            .and_then(|schema| schema.member("required"))
            .and_then(|names| names.read().ok())
            .unwrap_or_default();
        let properties = Object::read_or_empty(properties.as_ref());
        let field = |(name, raw): (&str, &RawJson)| {
            Field::of(name, raw, required.iter().any(|required| required == name))
        };
        Self { fields: properties.iter().map(field).collect() }
    }

    /// The content of an answer: what was given, with every text read as its field takes it, and
    /// defaults for what was not. An error says what to change.
    pub fn fill(&self, given: &RawJson) -> Result<RawJson, String> {
        let given = Object::read(given).map_err(|_| "the answer is one JSON object".to_owned())?;
        let mut content = Object::new();
        for (name, value) in given.iter() {
            let known = self.fields.iter().find(|field| field.name == name);
            let field = known.ok_or_else(|| self.no_field(name))?;
            content.set(name.to_owned(), field.accept(value)?);
        }
        for field in &self.fields {
            match &field.default {
                _ if content.contains(&field.name) => {}
                Some(default) => content.set(field.name.clone(), default.clone()),
                None if field.required => {
                    return Err(format!("`{}` is missing: {}", field.name, field.expects()));
                }
                None => {}
            }
        }
        Ok(if content.is_empty() { RawJson::empty_object() } else { content.write() })
    }

    /// The same where the form has one field, or none that must be given: a single value answers it.
    pub fn fill_one(&self, text: &str) -> Result<RawJson, String> {
        let mut required = self.fields.iter().filter(|field| field.required);
        let field = match (self.fields.as_slice(), required.next(), required.next()) {
            ([field], _, _) | (_, Some(field), None) => field,
            ([], _, _) => return Err("the form has no field".to_owned()),
            _ => return Err(format!("the form has several fields: {}", self.names())),
        };
        let mut given = Object::new();
        given.set(field.name.clone(), field.read(text)?);
        self.fill(&given.write())
    }

    fn no_field(&self, name: &str) -> String {
        if self.fields.is_empty() {
            return format!("the form has no field `{name}`; it has none");
        }
        format!("the form has no field `{name}`; it has {}", self.names())
    }

    fn names(&self) -> String {
        let names: Vec<_> = self.fields.iter().map(|field| format!("`{}`", field.name)).collect();
        names.join(", ")
    }
}

impl Field {
    fn of(name: &str, raw: &RawJson, required: bool) -> Self {
        Self {
            name: name.to_owned(),
            title: raw.member_str("title"),
            description: raw.member_str("description"),
            required,
            default: raw.member("default").filter(|default| !default.is_null()),
            kind: Kind::of(raw),
        }
    }

    /// What it takes, in words.
    pub fn expects(&self) -> String {
        match &self.kind {
            Kind::Text { least, most, format } => {
                let what = format.as_deref().map_or("text", format_words);
                let bounds = bounds(least.as_ref(), most.as_ref());
                if bounds.is_empty() {
                    what.to_owned()
                } else {
                    format!("{what} of {bounds} characters")
                }
            }
            Kind::Number { whole, least, most } => {
                let what = if *whole { "a whole number" } else { "a number" };
                let bounds = bounds(least.as_ref(), most.as_ref());
                if bounds.is_empty() { what.to_owned() } else { format!("{what}, {bounds}") }
            }
            Kind::Switch => "yes or no".to_owned(),
            Kind::One(choices) => format!("one of {}", list(choices)),
            Kind::Many { choices, least, most } => {
                let bounds = bounds(least.as_ref(), most.as_ref());
                let several = if bounds.is_empty() { "any".to_owned() } else { bounds };
                format!("{several} of {}, with commas between", list(choices))
            }
            Kind::Any => "JSON".to_owned(),
        }
    }

    /// The value that a person's text means.
    pub fn read(&self, text: &str) -> Result<RawJson, String> {
        let json = || RawJson::parse(text.trim().to_owned().into()).ok();
        let value = match &self.kind {
            Kind::Text { .. } | Kind::One(_) => RawJson::write(text),
            Kind::Number { .. } => json().ok_or_else(|| self.wrong(&quoted(text)))?,
            Kind::Switch => match text.trim().to_ascii_lowercase().as_str() {
                "yes" | "y" | "true" | "on" => RawJson::write(&true),
                "no" | "n" | "false" | "off" => RawJson::write(&false),
                _ => return Err(self.wrong(&quoted(text))),
            },
            Kind::Many { .. } => {
                json().filter(|raw| raw.elements().is_some()).unwrap_or_else(|| {
                    let parts = text.split(',').map(str::trim).filter(|part| !part.is_empty());
                    RawJson::write(&parts.collect::<Vec<_>>())
                })
            }
            Kind::Any => return Ok(json().unwrap_or_else(|| RawJson::write(text))),
        };
        self.check(&value)
    }

    /// A value as given: JSON of its kind, or text that means one.
    fn accept(&self, value: &RawJson) -> Result<RawJson, String> {
        match value.text() {
            Some(text) if !matches!(self.kind, Kind::Any) => self.read(&text),
            _ => self.check(value),
        }
    }

    /// The value, with a choice's title replaced by what it stands for.
    fn check(&self, value: &RawJson) -> Result<RawJson, String> {
        let wrong = || self.wrong(&format!("`{}`", value.as_str()));
        let fits = match &self.kind {
            Kind::Text { least, most, format } => {
                let text = value.text().ok_or_else(wrong)?;
                within(&(text.chars().count() as u64), least.as_ref(), most.as_ref())
                    && format.as_deref().is_none_or(|format| has_format(&text, format))
            }
            Kind::Number { whole, least, most } => {
                let number: f64 = value.read().map_err(|_| wrong())?;
                (!whole || number.fract() == 0.0) && within(&number, least.as_ref(), most.as_ref())
            }
            Kind::Switch => value.read::<bool>().is_ok(),
            Kind::One(choices) => {
                let text = value.text().ok_or_else(wrong)?;
                return chosen(choices, &text).map(RawJson::write).ok_or_else(wrong);
            }
            Kind::Many { choices, least, most } => {
                let texts: Vec<String> = value.read().map_err(|_| wrong())?;
                let values = texts.iter().map(|text| chosen(choices, text));
                let values: Vec<&str> = values.collect::<Option<_>>().ok_or_else(wrong)?;
                let fits = within(&(values.len() as u64), least.as_ref(), most.as_ref());
                return fits.then(|| RawJson::write(&values)).ok_or_else(wrong);
            }
            Kind::Any => true,
        };
        if fits { Ok(value.clone()) } else { Err(wrong()) }
    }

    fn wrong(&self, given: &str) -> String {
        format!("`{}` is {}, not {given}", self.name, self.expects())
    }
}

impl Kind {
    fn of(raw: &RawJson) -> Self {
        let count = |key: &str| raw.member(key).and_then(|value| value.read::<u64>().ok());
        let number = |key: &str| raw.member(key).and_then(|value| value.read::<f64>().ok());
        match raw.member_str("type").as_deref() {
            Some("string") => match choices(raw) {
                choices if choices.is_empty() => Self::Text {
                    least: count("minLength"),
                    most: count("maxLength"),
                    format: raw.member_str("format"),
                },
                choices => Self::One(choices),
            },
            Some(of @ ("number" | "integer")) => Self::Number {
                whole: of == "integer",
                least: number("minimum"),
                most: number("maximum"),
            },
            Some("boolean") => Self::Switch,
            Some("array") => match raw.member("items").map(|items| choices(&items)) {
                Some(choices) if !choices.is_empty() => {
                    Self::Many { choices, least: count("minItems"), most: count("maxItems") }
                }
                _ => Self::Any,
            },
            _ => Self::Any,
        }
    }
}

/// The choices of a schema: `enum` (with `enumNames`, as before 2025-11-25), `oneOf` or `anyOf`.
fn choices(raw: &RawJson) -> Vec<Choice> {
    let texts = |key: &str| raw.member(key).and_then(|list| list.read::<Vec<String>>().ok());
    if let Some(values) = texts("enum") {
        let mut titles = texts("enumNames").unwrap_or_default().into_iter();
        return values.into_iter().map(|value| Choice { value, title: titles.next() }).collect();
    }
    let titled = ["oneOf", "anyOf"].into_iter().find_map(|key| raw.member(key)?.elements());
    let choice = |raw: &RawJson| {
        Some(Choice { value: raw.member_str("const")?, title: raw.member_str("title") })
    };
    titled.unwrap_or_default().iter().filter_map(choice).collect()
}

/// The value that a text chooses: by the value itself, else by its title.
fn chosen<'a>(choices: &'a [Choice], text: &str) -> Option<&'a str> {
    let by_value = choices.iter().find(|choice| choice.value == text);
    let titled = |choice: &&Choice| choice.title.as_deref() == Some(text);
    by_value.or_else(|| choices.iter().find(titled)).map(|choice| choice.value.as_str())
}

fn list(choices: &[Choice]) -> String {
    let shown = choices.iter().map(|choice| match &choice.title {
        Some(title) if *title != choice.value => format!("{} ({title})", choice.value),
        _ => choice.value.clone(),
    });
    shown.collect::<Vec<_>>().join(", ")
}

fn quoted(text: &str) -> String {
    format!("{text:?}")
}

fn within<T: PartialOrd>(value: &T, least: Option<&T>, most: Option<&T>) -> bool {
    least.is_none_or(|least| value >= least) && most.is_none_or(|most| value <= most)
}

fn bounds<T: std::fmt::Display>(least: Option<&T>, most: Option<&T>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!("{least} to {most}"),
        (Some(least), None) => format!("{least} or more"),
        (None, Some(most)) => format!("at most {most}"),
        (None, None) => String::new(),
    }
}

fn format_words(format: &str) -> &str {
    match format {
        "email" => "an e-mail address",
        "uri" => "a URI",
        "date" => "a date like 2026-07-28",
        "date-time" => "a time like 2026-07-28T12:00:00Z",
        _ => "text",
    }
}

/// Enough to find a slip of the finger; the server judges the rest.
fn has_format(text: &str, format: &str) -> bool {
    let spaced = text.contains(char::is_whitespace);
    match format {
        "email" => {
            let parts = text.split_once('@');
            !spaced && parts.is_some_and(|(name, place)| !name.is_empty() && !place.is_empty())
        }
        "uri" => !spaced && text.split_once(':').is_some_and(|(scheme, _)| !scheme.is_empty()),
        "date" => is_date(text),
        "date-time" => text
            .split_once(['T', 't'])
            .is_some_and(|(date, time)| is_date(date) && time.len() > "12:00:00".len()),
        _ => true,
    }
}

fn is_date(text: &str) -> bool {
    const SHAPE: &str = "0000-00-00";
    let fits = |(given, shape): (char, char)| {
        if shape == '0' { given.is_ascii_digit() } else { given == shape }
    };
    text.len() == SHAPE.len() && text.chars().zip(SHAPE.chars()).all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARAMS: &str = r##"{"message":"m","requestedSchema":{"type":"object","properties":{
        "name":{"type":"string","minLength":2,"maxLength":4},
        "mail":{"type":"string","format":"email"},
        "day":{"type":"string","format":"date"},
        "age":{"type":"integer","minimum":18,"default":30},
        "share":{"type":"number","maximum":1},
        "sure":{"type":"boolean","default":false},
        "colour":{"type":"string","oneOf":[{"const":"#f00","title":"Red"},{"const":"#0f0","title":"Green"}]},
        "size":{"type":"string","enum":["s","m"],"enumNames":["Small","Medium"]},
        "tags":{"type":"array","minItems":1,"items":{"type":"string","enum":["a","b","c"]}},
        "odd":{"type":"object"}},"required":["name"]}}"##;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text.to_owned().into()).unwrap()
    }

    fn fill(given: &str) -> Result<String, String> {
        Form::of(&raw(PARAMS)).fill(&raw(given)).map(|content| content.as_str().to_owned())
    }

    /// U-37: defaults for missing fields, never over a set one.
    #[test]
    fn u37_defaults_fill_what_is_missing() {
        assert_eq!(fill(r#"{"name":"Ada"}"#).unwrap(), r#"{"name":"Ada","age":30,"sure":false}"#);
        let set = r#"{"age":1e2,"name":"Ada","sure":true}"#;
        assert_eq!(fill(set).unwrap(), set);
    }

    #[test]
    fn texts_mean_what_their_field_takes() {
        let given = r#"{"name":"Bob","age":"42","sure":"Yes","colour":"Green","size":"m","tags":"a, c","share":"0.5"}"#;
        let filled = r##"{"name":"Bob","age":42,"sure":true,"colour":"#0f0","size":"m","tags":["a","c"],"share":0.5}"##;
        assert_eq!(fill(given).unwrap(), filled);
        assert_eq!(
            fill(r#"{"name":"Bob","tags":["b"],"odd":{"x":1.0}}"#).unwrap(),
            r#"{"name":"Bob","tags":["b"],"odd":{"x":1.0},"age":30,"sure":false}"#
        );
    }

    #[test]
    fn what_does_not_fit_is_named() {
        for (given, told) in [
            (r"{}", "`name` is missing: text of 2 to 4 characters"),
            (r#"{"name":"A"}"#, "`name` is text of 2 to 4 characters, not `\"A\"`"),
            (r#"{"name":"Ada","age":17}"#, "`age` is a whole number, 18 or more, not `17`"),
            (r#"{"name":"Ada","age":"x"}"#, "`age` is a whole number, 18 or more, not \"x\""),
            (r#"{"name":"Ada","age":18.5}"#, "`age` is a whole number, 18 or more, not `18.5`"),
            (r#"{"name":"Ada","share":2}"#, "`share` is a number, at most 1, not `2`"),
            (r#"{"name":"Ada","sure":"maybe"}"#, "`sure` is yes or no, not \"maybe\""),
            (r#"{"name":"Ada","mail":"x"}"#, "`mail` is an e-mail address, not `\"x\"`"),
            (
                r#"{"name":"Ada","day":"tomorrow"}"#,
                "`day` is a date like 2026-07-28, not `\"tomorrow\"`",
            ),
            (r#"{"name":"Ada","size":"l"}"#, "`size` is one of s (Small), m (Medium), not `\"l\"`"),
            (
                r#"{"name":"Ada","tags":[]}"#,
                "`tags` is 1 or more of a, b, c, with commas between, not `[]`",
            ),
            (
                r#"{"name":"Ada","tags":"a,z"}"#,
                "`tags` is 1 or more of a, b, c, with commas between, not `[\"a\",\"z\"]`",
            ),
        ] {
            assert_eq!(fill(given).unwrap_err(), told);
        }
        assert!(
            fill(r#"{"nme":"x"}"#)
                .unwrap_err()
                .starts_with("the form has no field `nme`; it has `name`")
        );
        assert_eq!(fill("[]").unwrap_err(), "the answer is one JSON object");
    }

    #[test]
    fn one_value_answers_a_form_with_one_field() {
        let one = r#"{"requestedSchema":{"properties":{"approve":{"type":"boolean"}},"required":["approve"]}}"#;
        let form = Form::of(&raw(one));
        assert_eq!(form.fill_one("yes").unwrap().as_str(), r#"{"approve":true}"#);
        assert_eq!(form.fill_one("x").unwrap_err(), "`approve` is yes or no, not \"x\"");
        let filled = Form::of(&raw(PARAMS)).fill_one("Ada").unwrap();
        assert_eq!(filled.as_str(), r#"{"name":"Ada","age":30,"sure":false}"#);
        assert_eq!(Form::of(&raw("{}")).fill(&raw("{}")).unwrap().as_str(), "{}");
        assert!(Form::of(&raw("{}")).fill_one("x").unwrap_err().contains("no field"));
    }
}
