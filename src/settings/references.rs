//! References in server definitions: `${env:NAME}`, `${file:PATH}`, `${cmd:COMMAND}`.
//!
//! Checked when the configuration is read, replaced when a server starts, in one pass: what a
//! reference gives is never looked at again (F34). `${NAME}` is short for `${env:NAME}`;
//! `${NAME:-text}` stands for `text` where the variable is not set; `$$` is a dollar sign, and any
//! other `$` stands for itself.

/// Something a value refers to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reference<'a> {
    /// An environment variable.
    Env(&'a str),
    /// The content of a file, without the line break at its end.
    File(&'a str),
    /// What a shell command prints, without the line break at its end.
    Command(&'a str),
}

impl std::fmt::Display for Reference<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Env(name) => write!(f, "environment variable {name}"),
            Self::File(path) => write!(f, "file {path}"),
            Self::Command(command) => write!(f, "command `{command}`"),
        }
    }
}

/// A part of a text.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Part<'a> {
    Text(&'a str),
    Reference { of: Reference<'a>, otherwise: Option<&'a str> },
}

/// Whether every reference in a text is well formed.
pub fn check(text: &str) -> Result<(), String> {
    parts(text).map(|_| ())
}

/// The references of a text, in order.
pub fn references(text: &str) -> Vec<Reference<'_>> {
    let mut found = Vec::new();
    for part in parts(text).unwrap_or_default() {
        if let Part::Reference { of, .. } = part {
            found.push(of);
        }
    }
    found
}

/// The pieces of a text between `mark`; one within a reference does not divide.
pub fn split(text: &str, mark: char) -> Result<Vec<&str>, String> {
    parts(text)?;
    let (mut pieces, mut begun, mut inside) = (Vec::new(), 0, false);
    let mut letters = text.char_indices().peekable();
    while let Some((at, letter)) = letters.next() {
        match letter {
            // A dollar sign that stands for itself begins no reference.
            '$' if !inside && letters.peek().is_some_and(|(_, next)| *next == '$') => {
                letters.next();
            }
            '$' if letters.peek().is_some_and(|(_, next)| *next == '{') => inside = true,
            '}' => inside = false,
            _ if letter == mark && !inside => {
                pieces.extend(text.get(begun..at));
                begun = at + letter.len_utf8();
            }
            _ => {}
        }
    }
    pieces.extend(text.get(begun..));
    Ok(pieces)
}

/// Whether a text is nothing but references, so that it shows no secret itself.
pub fn are_all_of(text: &str) -> bool {
    let of_ours = |part: &Part<'_>| match part {
        Part::Text(text) => text.is_empty(),
        Part::Reference { otherwise, .. } => otherwise.is_none(),
    };
    parts(text).is_ok_and(|parts| parts.iter().all(of_ours))
}

/// The text with every reference replaced by what `value` gives for it; `Ok(None)` means that it is
/// not set. One that is not set and has no text of its own is an error with its name.
pub fn expand(
    text: &str,
    mut value: impl FnMut(Reference<'_>) -> Result<Option<String>, String>,
) -> Result<String, String> {
    let mut whole = String::with_capacity(text.len());
    for part in parts(text)? {
        match part {
            Part::Text(text) => whole.push_str(text),
            Part::Reference { of, otherwise } => match (value(of)?, otherwise) {
                (Some(value), _) => whole.push_str(&value),
                (None, Some(otherwise)) => whole.push_str(otherwise),
                (None, None) => return Err(format!("{of} is not set")),
            },
        }
    }
    Ok(whole)
}

/// A text without references, as [`expand`] gives it.
pub fn plain(text: &str) -> Result<String, String> {
    expand(text, |of| Err(format!("{of} cannot be looked up here")))
}

/// A text that [`expand`] gives back unchanged.
pub fn escape(text: &str) -> String {
    text.replace('$', "$$")
}

fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let mut parts = Vec::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('$') {
        parts.push(Part::Text(before));
        if let Some(after) = after.strip_prefix('$') {
            parts.push(Part::Text("$"));
            rest = after;
        } else if let Some(after) = after.strip_prefix('{') {
            let (inner, after) = after
                .split_once('}')
                .ok_or("a reference begins with ${ but has no }; $$ is a dollar sign")?;
            parts.push(reference(inner)?);
            rest = after;
        } else {
            parts.push(Part::Text("$"));
            rest = after;
        }
    }
    parts.push(Part::Text(rest));
    Ok(parts)
}

fn reference(inner: &str) -> Result<Part<'_>, String> {
    let wrong = |why: &str| {
        Err(format!(
            "${{{inner}}} {why}; references are ${{env:NAME}}, ${{file:PATH}} and ${{cmd:COMMAND}}"
        ))
    };
    if let Some(path) = inner.strip_prefix("file:") {
        if path.is_empty() {
            return wrong("names no file");
        }
        return Ok(Part::Reference { of: Reference::File(path), otherwise: None });
    }
    if let Some(command) = inner.strip_prefix("cmd:") {
        if command.trim().is_empty() {
            return wrong("names no command");
        }
        return Ok(Part::Reference { of: Reference::Command(command), otherwise: None });
    }
    let variable = inner.strip_prefix("env:").unwrap_or(inner);
    let (name, otherwise) = match variable.split_once(":-") {
        Some((name, otherwise)) => (name, Some(otherwise)),
        None => (variable, None),
    };
    let fits = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if fits {
        Ok(Part::Reference { of: Reference::Env(name), otherwise })
    } else {
        wrong("names no variable")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::unnecessary_wraps, reason = "the shape `expand` asks for")]
    fn value(of: Reference<'_>) -> Result<Option<String>, String> {
        Ok(match of {
            Reference::Env("A") => Some("${SECRET}".to_owned()),
            Reference::Env("EMPTY") => Some(String::new()),
            Reference::Env(_) => None,
            Reference::File(path) => Some(format!("<{path}>")),
            Reference::Command(command) => Some(format!("({command})")),
        })
    }

    #[test]
    fn f34_one_pass_with_escapes_and_defaults() {
        for (text, expected) in [
            ("${A}", "${SECRET}"),
            ("${env:A}", "${SECRET}"),
            ("$${A}", "${A}"),
            ("$$${A}$$", "$${SECRET}$"),
            ("${B:-x y}", "x y"),
            ("${env:B:-}", ""),
            ("[${EMPTY:-x}]", "[]"),
            ("cost $5 $", "cost $5 $"),
            ("a=${file:/run/s}=b", "a=</run/s>=b"),
            ("${cmd:pass show x:y}", "(pass show x:y)"),
            ("", ""),
        ] {
            assert_eq!(expand(text, value).unwrap(), expected, "{text}");
        }
    }

    #[test]
    fn f34_a_missing_variable_is_named() {
        assert_eq!(
            expand("x${MISSING}", value).unwrap_err(),
            "environment variable MISSING is not set"
        );
    }

    #[test]
    fn malformed_references_are_refused() {
        for text in ["${", "${}", "${env:}", "${file:}", "${cmd: }", "${a b}", "x ${env:A"] {
            assert!(check(text).is_err(), "{text}");
        }
    }

    #[test]
    fn an_escaped_text_is_itself() {
        for text in ["/opt/$HOME/${A}", "$$", "plain"] {
            assert_eq!(expand(&escape(text), value).unwrap(), text);
        }
    }

    #[test]
    fn references_are_listed() {
        let found = references("${A} ${file:x} $$");
        assert_eq!(found, [Reference::Env("A"), Reference::File("x")]);
    }
}
