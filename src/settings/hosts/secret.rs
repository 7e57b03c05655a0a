//! What looks like a secret. The importer never copies one in clear text into another file: it puts it
//! into a file of its own, readable by its owner, and refers to that.
//!
//! Taking a harmless value for a secret costs a small file; the other mistake would spread a credential.

use std::fmt;
use std::path::PathBuf;

/// A secret that goes into a file of its own.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretFile {
    /// The file.
    pub path: PathBuf,
    /// What it holds.
    pub value: String,
}

/// Which file; the value is nobody's business.
impl fmt::Debug for SecretFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SecretFile").field("path", &self.path).finish_non_exhaustive()
    }
}

/// Parts of names whose values are secrets.
const TELLING: [&str; 10] = [
    "key",
    "token",
    "secret",
    "pass",
    "auth",
    "credential",
    "cookie",
    "signature",
    "bearer",
    "dsn",
];

/// What the tokens of well-known services begin with.
const PREFIXES: [&str; 16] = [
    "sk-",
    "pk-",
    "ghp_",
    "gho_",
    "ghu_",
    "ghs_",
    "github_pat_",
    "glpat-",
    "xoxb-",
    "xoxp-",
    "xapp-",
    "AKIA",
    "AIza",
    "eyJ",
    "hf_",
    "npm_",
];

/// Shorter values are settings: `on`, `eu`, `5432`.
const SHORTEST: usize = 6;

/// Whether what bears this name is a secret.
pub(super) fn telling(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|word| name.contains(word)) || name == "pat" || name.ends_with("_pat")
}

/// Whether a value is the kind of text that a secret is: not a path, not an address, not a switch.
fn could_be(value: &str) -> bool {
    let path =
        ["/", "./", "../", "~", "http://", "https://"].iter().any(|start| value.starts_with(start));
    let word =
        ["true", "false", "null", "none"].iter().any(|word| value.eq_ignore_ascii_case(word));
    let number = value.chars().all(|c| c.is_ascii_digit()) && value.len() < 2 * SHORTEST;
    value.len() >= SHORTEST && !path && !word && !number && !placeholder(value)
}

/// Whether a value is a secret, by its name or by itself.
pub(super) fn is(name: &str, value: &str) -> bool {
    let of_a_service = PREFIXES.iter().any(|start| value.starts_with(start)) && value.len() >= 16;
    of_a_service && !placeholder(value) || telling(name) && could_be(value)
}

/// A value that stands for one that somebody is to write there.
pub(super) fn placeholder(value: &str) -> bool {
    let value = value.trim();
    let lower = value.to_ascii_lowercase();
    (value.starts_with('<') && value.ends_with('>'))
        || ["your-", "your_", "my-api", "replace", "changeme", "xxx", "..."]
            .iter()
            .any(|start| lower.starts_with(start))
        || lower.ends_with("-here")
        || lower.ends_with("_here")
}

/// The value of a header that authorizes, cut into its scheme and the credential: `Bearer x`, `x`.
pub(super) fn credential(value: &str) -> (&str, &str) {
    for scheme in ["Bearer ", "bearer ", "Basic ", "basic ", "token ", "Token "] {
        if let Some(rest) = value.strip_prefix(scheme) {
            return (scheme, rest.trim_start());
        }
    }
    ("", value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_told_from_settings() {
        for (name, value) in [
            ("GITHUB_TOKEN", "abcdef123456"),
            ("X-Api-Key", "0123456789ab"),
            ("anything", "ghp_0123456789abcdefABCD"),
            ("DB_PASSWORD", "hunter22"),
        ] {
            assert!(is(name, value), "{name}");
        }
        for (name, value) in [
            ("GITHUB_TOKEN", "<your token>"),
            ("API_KEY", "YOUR_API_KEY"),
            ("API_KEY", "add-your-token-here"),
            ("TOKEN_FILE", "/run/secrets/token"),
            ("AUTH", "true"),
            ("KEY_SIZE", "4096"),
            ("LOG_LEVEL", "information"),
        ] {
            assert!(!is(name, value), "{name}");
        }
        let shown = format!("{:?}", SecretFile { path: "/s/x".into(), value: "hush".to_owned() });
        assert!(!shown.contains("hush"));
    }
}
