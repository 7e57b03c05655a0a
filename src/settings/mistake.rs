//! What is wrong with a configuration, and where. All mistakes are reported together.

use std::fmt;
use std::path::{Path, PathBuf};

/// Where a value or a mistake stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// In a file; line and column count from 1.
    File {
        /// The file.
        path: PathBuf,
        /// The line.
        line: usize,
        /// The column, in characters.
        column: usize,
    },
    /// A file as a whole.
    Whole(PathBuf),
    /// An environment variable.
    Variable(String),
    /// A command-line flag as it was given.
    Flag(String),
    /// Set at run time.
    Runtime,
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Whole(path) => write!(f, "{}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(flag) => f.write_str(flag),
            Self::Runtime => f.write_str("set at run time"),
        }
    }
}

/// One mistake.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong and what would be right; one sentence without full stop.
    pub text: String,
}

impl Mistake {
    /// About a file as a whole.
    pub fn of_file(path: &Path, text: String) -> Self {
        Self { place: Place::Whole(path.to_owned()), text }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.place, self.text)
    }
}

impl std::error::Error for Mistake {}

/// How alike two names must be for one to be offered in place of the other. Below it a hint would
/// mislead more often than help; the list of accepted names is shown instead.
const ALIKE: f64 = 0.72;

/// The nearest of `names` to `given`, where one is near.
pub fn nearest<'a>(given: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let given = given.to_ascii_lowercase();
    names
        .into_iter()
        .map(|name| (strsim::normalized_damerau_levenshtein(&given, name), name))
        .filter(|(alike, _)| *alike >= ALIKE)
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, name)| name)
}

/// `did you mean …` or the list of what is accepted.
pub fn hint<'a>(given: &str, names: impl IntoIterator<Item = &'a str> + Clone) -> String {
    nearest(given, names.clone()).map_or_else(
        || format!("accepted: {}", names.into_iter().collect::<Vec<_>>().join(", ")),
        |name| format!("did you mean `{name}`?"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_offered_and_only_a_near_one() {
        let names = ["call.idle_timeout", "call.total_timeout", "pool.queue"];
        assert_eq!(nearest("call.idle_timout", names), Some("call.idle_timeout"));
        assert_eq!(nearest("Pool.Queu", names), Some("pool.queue"));
        assert_eq!(nearest("http.listen", names), None);
        assert!(hint("x", ["a", "b"]).contains("accepted: a, b"));
    }
}
