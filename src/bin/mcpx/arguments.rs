//! The arguments of `mcpx call`: one JSON object, or KEY=VALUE each, typed by the tool's schema.

use clap::ArgMatches;
use mcpx::protocol::jsonrpc::{Object, RawJson};

use crate::ended::Ended;

/// What was typed.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Typed {
    /// One JSON object.
    Whole(RawJson),
    /// Pairs; the schema is still to be asked for.
    Pairs(Vec<Pair>),
}

/// One KEY=VALUE.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Pair {
    key: String,
    text: String,
    /// KEY:=JSON.
    json: bool,
}

/// The arguments of a command.
pub(crate) fn of(matches: &ArgMatches) -> Result<Typed, Ended> {
    let words: Vec<String> =
        matches.get_many("arguments").map(|words| words.cloned().collect()).unwrap_or_default();
    let stdin = || {
        std::io::read_to_string(std::io::stdin())
            .map_err(|error| format!("the arguments cannot be read from stdin: {error}"))
    };
    read(&words, stdin).map_err(Ended::Usage)
}

/// Reads the words; `input` gives what stands on stdin.
pub(crate) fn read(
    words: &[String],
    input: impl FnOnce() -> Result<String, String>,
) -> Result<Typed, String> {
    match words {
        [word] if word == "-" => whole(&input()?),
        [word] if word.trim_start().starts_with('{') => whole(word),
        words => words.iter().map(|word| pair(word)).collect::<Result<_, _>>().map(Typed::Pairs),
    }
}

fn whole(text: &str) -> Result<Typed, String> {
    let raw =
        RawJson::parse(text.to_owned().into()).map_err(|error| match std::error::Error::source(
            &error,
        ) {
            Some(cause) => format!("the arguments are no JSON: {cause}"),
            None => "the arguments are no JSON".to_owned(),
        })?;
    if raw.is_object() {
        Ok(Typed::Whole(raw))
    } else {
        Err("the arguments are one JSON object, in braces".to_owned())
    }
}

fn pair(word: &str) -> Result<Pair, String> {
    let (key, text) = word
        .split_once('=')
        .filter(|(key, _)| !key.trim_matches(':').is_empty())
        .ok_or_else(|| format!("{word:?} is neither KEY=VALUE nor one JSON object"))?;
    let (key, json) = match key.strip_suffix(':') {
        Some(key) => (key, true),
        None => (key, false),
    };
    Ok(Pair { key: key.to_owned(), text: text.to_owned(), json })
}

/// The object of pairs, each value of the type that the tool's input schema gives to its key. A key
/// that the schema does not know stays text: the server judges it. An error names every mistake.
pub(crate) fn typed(pairs: &[Pair], schema: Option<&RawJson>) -> Result<RawJson, String> {
    object_of(pairs, schema, Err)
}

/// The same for who judges the whole, and says all that is wrong at once: a value that does not fit stays text.
pub(crate) fn guessed(pairs: &[Pair], schema: &RawJson) -> Result<RawJson, String> {
    object_of(pairs, Some(schema), |_| Ok(()))
}

/// `unfit` says what becomes of a value that has another type.
fn object_of(
    pairs: &[Pair],
    schema: Option<&RawJson>,
    unfit: impl Fn(String) -> Result<(), String>,
) -> Result<RawJson, String> {
    let properties = schema.and_then(|schema| schema.member("properties"));
    let (mut object, mut mistakes) = (Object::new(), Vec::new());
    for pair in pairs {
        let property = properties.as_ref().and_then(|properties| properties.member(&pair.key));
        let text = RawJson::write(&pair.text);
        let value = match value(pair, property.as_ref()) {
            Ok(value) => value,
            Err(Unfit::NoJson(why)) => {
                mistakes.push(why);
                text
            }
            Err(Unfit::Other(why)) => {
                mistakes.extend(unfit(why).err());
                text
            }
        };
        if object.contains(&pair.key) {
            mistakes.push(format!("`{}` is given twice", pair.key));
        }
        object.set(pair.key.clone(), value);
    }
    if mistakes.is_empty() { Ok(object.write()) } else { Err(mistakes.join("; ")) }
}

/// Why a value is not taken.
enum Unfit {
    /// It was to be JSON.
    NoJson(String),
    /// It has another type than its schema says.
    Other(String),
}

fn value(pair: &Pair, property: Option<&RawJson>) -> Result<RawJson, Unfit> {
    let types = property.map(types_of).unwrap_or_default();
    let takes = |name: &str| types.iter().any(|of| of == name);
    if !pair.json && (types.is_empty() || takes("string")) {
        return Ok(RawJson::write(&pair.text));
    }
    let parsed = RawJson::parse(pair.text.clone().into());
    let fits = |raw: &RawJson| pair.json || types.iter().any(|of| is_of(raw, of));
    match parsed {
        Ok(raw) if fits(&raw) => Ok(raw),
        _ if pair.json => Err(Unfit::NoJson(format!("`{}`: {:?} is no JSON", pair.key, pair.text))),
        _ => Err(Unfit::Other(format!(
            "`{}` is of type {}, not {:?}",
            pair.key,
            types.join(" or "),
            pair.text
        ))),
    }
}

/// `type` of a property: one name, or several.
fn types_of(property: &RawJson) -> Vec<String> {
    let Some(types) = property.member("type") else { return Vec::new() };
    types
        .read::<Vec<String>>()
        .or_else(|_| types.read::<String>().map(|of| vec![of]))
        .unwrap_or_default()
}

fn is_of(raw: &RawJson, of: &str) -> bool {
    let first = raw.as_bytes().first().copied().unwrap_or_default();
    match of {
        "number" => first == b'-' || first.is_ascii_digit(),
        "integer" => raw.read::<i128>().is_ok(),
        "boolean" => first == b't' || first == b'f',
        "array" => first == b'[',
        "object" => first == b'{',
        "null" => first == b'n',
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SCHEMA: &str = r#"{"properties":{"n":{"type":"integer"},"x":{"type":"number"},
        "b":{"type":"boolean"},"l":{"type":"array"},"o":{"type":"object"},"t":{"type":"string"},
        "m":{"type":["integer","null"]},"any":{}}}"#;

    fn typed_words(words: &[&str]) -> Result<String, String> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        let schema = RawJson::parse(SCHEMA.into()).unwrap();
        match read(&words, || Ok("{\"from\":\"stdin\"}".to_owned()))? {
            Typed::Whole(raw) => Ok(raw.as_str().to_owned()),
            Typed::Pairs(pairs) => typed(&pairs, Some(&schema)).map(|raw| raw.as_str().to_owned()),
        }
    }

    #[test]
    fn values_get_the_types_of_the_schema() {
        for (words, expected) in [
            (&["t=hello", "n=3"][..], r#"{"t":"hello","n":3}"#),
            (&["t=3"], r#"{"t":"3"}"#),
            (&["x=1e400", "b=true"], r#"{"x":1e400,"b":true}"#),
            (&["l=[1,2]", "o={\"a\": 1.0}"], r#"{"l":[1,2],"o":{"a": 1.0}}"#),
            (&["m=null"], r#"{"m":null}"#),
            (&["unknown=5", "any=x"], r#"{"unknown":"5","any":"x"}"#),
            (&["unknown:=5", "t:=[1]"], r#"{"unknown":5,"t":[1]}"#),
            (&["t=a=b"], r#"{"t":"a=b"}"#),
            (&["t="], r#"{"t":""}"#),
            (&[], "{}"),
            (&["{\"a\": 1e2}"], "{\"a\": 1e2}"),
            (&["-"], "{\"from\":\"stdin\"}"),
        ] {
            assert_eq!(typed_words(words).as_deref(), Ok(expected), "{words:?}");
        }
    }

    #[test]
    fn what_does_not_fit_is_named() {
        assert_eq!(typed_words(&["n=1.5"]).unwrap_err(), "`n` is of type integer, not \"1.5\"");
        assert_eq!(typed_words(&["m=x"]).unwrap_err(), "`m` is of type integer or null, not \"x\"");
        assert!(typed_words(&["n:=x"]).unwrap_err().contains("no JSON"));
        assert!(typed_words(&["hello"]).unwrap_err().contains("KEY=VALUE"));
        assert!(typed_words(&["=x"]).unwrap_err().contains("KEY=VALUE"));
        assert!(typed_words(&["t=1", "t=2"]).unwrap_err().contains("twice"));
        assert_eq!(
            typed_words(&["n=x", "b=y", "n=1"]).unwrap_err(),
            "`n` is of type integer, not \"x\"; `b` is of type boolean, not \"y\"; `n` is given twice"
        );
        assert!(typed_words(&["{\"a\":"]).unwrap_err().contains("no JSON"));
    }
}
