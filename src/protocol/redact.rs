//! What looks secret in JSON that people are shown: values under names like `token` or `password`.
//!
//! By the letters, not by parsing: it works on the beginning of a message, too, and all else keeps its text.
//! It is a help beside the masking of values that are known to be secret, and knows nothing of a secret
//! that stands in the middle of a text.

use super::jsonrpc::tokens::tokens;

/// What stands in the place of a value.
const MASK: &str = "\"***\"";

/// Words that a name has, without `_`, `-` and capitals, whose value nobody is shown.
const SECRET: [&str; 12] = [
    "token",
    "password",
    "passwd",
    "passphrase",
    "secret",
    "apikey",
    "accesskey",
    "privatekey",
    "credential",
    "authorization",
    "cookie",
    "requeststate",
];

/// Names that have such a word and are none: numbers of tokens, and the protocol's own.
const PLAIN: [&str; 2] = ["progresstoken", "tokens"];

/// Whether the value of this name is nobody's to see.
pub fn is_secret_name(name: &str) -> bool {
    let plain: String = name
        .chars()
        .filter(char::is_ascii_alphanumeric)
        .map(|letter| letter.to_ascii_lowercase())
        .collect();
    SECRET.iter().any(|word| plain.contains(word))
        && !PLAIN.iter().any(|word| plain.ends_with(word))
}

/// The text with each such value replaced: texts and numbers; of objects and lists what is in them.
pub fn json(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    // A string that may be a name, and a name that was followed by a colon and whose value is nobody's.
    let (mut name, mut hide) = (None, false);
    for (token, blanks) in tokens(text) {
        let (first, hidden) = (token.chars().next(), std::mem::take(&mut hide));
        match first {
            Some(':') => hide = hidden || name.take().is_some_and(is_secret_name),
            Some('"') => name = Some(token.trim_matches('"')),
            _ => name = None,
        }
        let masks = hidden && !matches!(first, Some('{' | '[' | '}' | ']' | ',' | ':'));
        out.push_str(if masks { MASK } else { token });
        out.push_str(blanks);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_under_secret_names_go_and_all_else_stays() {
        for (text, shown) in [
            (r#"{"a":1.0, "token" : "x\"y","b":[2]}"#, r#"{"a":1.0, "token" : "***","b":[2]}"#),
            (
                r#"{"API-Key":12,"n":{"client_secret":null}}"#,
                r#"{"API-Key":"***","n":{"client_secret":"***"}}"#,
            ),
            (r#"{"password":["p"],"maxTokens":5}"#, r#"{"password":["p"],"maxTokens":5}"#),
            (r#"{"_meta":{"progressToken":7}}"#, r#"{"_meta":{"progressToken":7}}"#),
            (r#"{"requestState":"sealed","x":"token"}"#, r#"{"requestState":"***","x":"token"}"#),
            (r#"{"text":"a \"token\": \"b\""}"#, r#"{"text":"a \"token\": \"b\""}"#),
            (r#"{"access_token":"cut off in the mid"#, r#"{"access_token":"***""#),
            (r#"{"access_token"#, r#"{"access_token"#),
            ("", ""),
        ] {
            assert_eq!(json(text), shown);
        }
    }
}
