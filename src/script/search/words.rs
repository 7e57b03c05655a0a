//! The words of names and texts, and which of them mean the same.

/// The words of a text in lower case: runs of letters or of digits, cut where the case says so
/// (`getHTTPStatus2xx` is `get http status 2 xx`). Of writings without spaces each letter is a word.
pub(super) fn split(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut before: Option<char> = None;
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        let next_is_small = chars.peek().is_some_and(|next| next.is_lowercase());
        if before.is_some_and(|before| is_cut(before, c, next_is_small)) && !word.is_empty() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
        before = Some(c);
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

/// Whether a word ends between two characters.
fn is_cut(before: char, c: char, next_is_small: bool) -> bool {
    let digit = |c: char| c.is_numeric();
    // Han, kana and what stands beside them: no spaces, no case.
    let alone = |c: char| ('\u{2e80}'..'\u{ac00}').contains(&c);
    !c.is_alphanumeric()
        || digit(before) != digit(c)
        || (before.is_lowercase() && c.is_uppercase())
        || (before.is_uppercase() && c.is_uppercase() && next_is_small)
        || alone(before)
        || alone(c)
}

/// Words that say nothing of what is wanted.
pub(super) fn is_filler(word: &str) -> bool {
    const FILLERS: &[&str] = &[
        "a",
        "about",
        "all",
        "an",
        "and",
        "any",
        "are",
        "as",
        "at",
        "be",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "has",
        "have",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "let",
        "me",
        "my",
        "need",
        "of",
        "on",
        "onto",
        "or",
        "our",
        "please",
        "should",
        "some",
        "something",
        "that",
        "the",
        "their",
        "there",
        "this",
        "through",
        "to",
        "tool",
        "until",
        "us",
        "want",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
    ];
    FILLERS.binary_search(&word).is_ok()
}

/// The forms in which a word of a query may stand in a text.
#[derive(Debug)]
pub(super) struct Forms {
    /// Its own stem.
    pub(super) stem: String,
    /// Stems that count, with how much; its own first.
    pub(super) whole: Vec<(String, f32)>,
    /// What words may begin with, with how much such a word counts.
    pub(super) beginning: Option<(String, f32)>,
    /// Whether words that begin so count although it is a word itself.
    pub(super) unfinished: bool,
}

/// Words of people and words of interfaces for the same thing: each one counts for the others. Only what holds
/// for any interface, and no more than a query set of its own has shown to help.
const SAME: &[&[&str]] = &[
    // What is done to things.
    &["create", "make", "new", "add"],
    &["delete", "remove", "forget", "drop", "erase"],
    &["get", "read", "show", "retrieve", "fetch", "see", "view", "load", "open", "download"],
    &["list", "show", "get"],
    &["find", "search", "look", "query"],
    &["update", "edit", "change", "modify", "patch", "replace"],
    &["send", "post"],
    &["save", "write"],
    &["run", "execute", "evaluate"],
    &["open", "navigate", "visit"],
    &["watch", "monitor"],
    &["remember", "memory"],
    // Things that every second interface has.
    &["folder", "directory"],
    &["picture", "image", "photo", "media"],
    &["website", "site", "page", "url", "web"],
    &["url", "link"],
    &["repository", "repo", "project"],
    &["issue", "bug", "ticket"],
    // People ask how big something is, interfaces name what is measured.
    &["size", "big", "large"],
    &["distance", "far"],
    &["elevation", "height", "high"],
    &["multiple", "several"],
];

/// Short for several words.
const SHORT: &[(&str, &str)] =
    &[("pr", "pull request"), ("mr", "merge request"), ("js", "javascript")];

/// The words of a query: those that say something, in full.
pub(super) fn asked(text: &str) -> Vec<String> {
    let all: Vec<String> = split(text).into_iter().flat_map(in_full).collect();
    let meant: Vec<String> = all.iter().filter(|word| !is_filler(word)).cloned().collect();
    // "what is this" has no other words.
    if meant.is_empty() { all } else { meant }
}

fn in_full(word: String) -> Vec<String> {
    match SHORT.iter().find(|(short, _)| *short == word) {
        Some((_, full)) => full.split(' ').map(str::to_owned).collect(),
        None => vec![word],
    }
}

/// The forms of a word; the last one of a query may be unfinished.
pub(super) fn forms(word: &str, last: bool) -> Forms {
    // Two letters begin too many words.
    const LEAST: usize = 3;
    const UNFINISHED: f32 = 0.5;
    const OTHER: f32 = 0.5;
    let own = stem(word);
    let beginning = (own.chars().count() >= LEAST).then(|| (own.clone(), UNFINISHED));
    let mut whole = vec![(own.clone(), 1.0)];
    let groups = SAME.iter().map(|words| words.iter().map(|word| stem(word)));
    for group in groups.filter(|words| words.clone().any(|other| other == own)) {
        for other in group {
            if whole.iter().all(|(known, _)| *known != other) {
                whole.push((other, OTHER));
            }
        }
    }
    Forms { whole, beginning, stem: own, unfinished: last }
}

/// What is the same of a word in its forms: plurals, `-ing`, `-ed`, `-ion`, and a silent `e`. Not a word:
/// `create`, `created`, `creating` and `creation` are all `creat`.
pub(super) fn stem(word: &str) -> String {
    let word = singular(word);
    let base = ["ing", "ed"].iter().find_map(|ending| {
        let base = word.strip_suffix(ending)?;
        (base.len() >= 3 && has_vowel(base)).then_some(base)
    });
    let base = base.map(undoubled).or_else(|| {
        let base = word.strip_suffix("ion")?;
        (base.len() >= 5 && base.ends_with(['t', 's'])).then_some(base)
    });
    let base = base.unwrap_or(&word);
    match base.strip_suffix('e') {
        Some(rest) if rest.len() >= 3 => rest.to_owned(),
        _ => base.to_owned(),
    }
}

fn singular(word: &str) -> String {
    if word == "news" {
        return word.to_owned();
    }
    let stripped = |ending: &str| word.strip_suffix(ending).filter(|base| base.len() >= 2);
    if let Some(base) = stripped("ies") {
        return format!("{base}y");
    }
    if let Some(base) = stripped("es")
        && ["ch", "sh", "ss", "x", "z"].iter().any(|ending| base.ends_with(ending))
    {
        return base.to_owned();
    }
    match stripped("s") {
        Some(base) if !base.ends_with(['s', 'u', 'i']) => base.to_owned(),
        _ => word.to_owned(),
    }
}

/// `runn` is `run`; `call` and `pass` stay.
fn undoubled(base: &str) -> &str {
    let mut ends = base.chars().rev();
    match (ends.next(), ends.next()) {
        (Some(a), Some(b))
            if a == b && a.is_ascii_alphabetic() && !matches!(a, 'l' | 's' | 'z') =>
        {
            base.get(..base.len() - 1).unwrap_or(base)
        }
        _ => base,
    }
}

fn has_vowel(text: &str) -> bool {
    text.contains(['a', 'e', 'i', 'o', 'u', 'y'])
}

/// The first sentence of a description, without what stands around it.
pub fn first_sentence(text: &str) -> &str {
    let text = text.trim_start();
    let line = text.lines().next().unwrap_or_default();
    let end = line.match_indices(['.', '!', '?', '。']).find_map(|(at, mark)| {
        let end = at + mark.len();
        let rest = line.get(end..)?;
        // "e.g. this" goes on; so does "v1.2".
        let abbreviated =
            line.get(..at)?.rsplit(' ').next()?.contains('.') || line.get(..at)?.ends_with("etc");
        let ends = mark == "。" || rest.is_empty() || (rest.starts_with(' ') && !abbreviated);
        ends.then_some(end)
    });
    line.get(..end.unwrap_or(line.len())).unwrap_or(line).trim_end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_end_at_case_digits_and_punctuation() {
        let all = |text: &str| split(text).join(" ");
        assert_eq!(all("getHTTPStatus2xx"), "get http status 2 xx");
        assert_eq!(all("API-post_page/v1.2"), "api post page v 1 2");
        assert_eq!(all("  Ärger, überall  "), "ärger überall");
        assert_eq!(all("天気 API"), "天 気 api");
        assert_eq!(all("!?"), "");
    }

    #[test]
    fn forms_of_a_word_have_one_stem() {
        for forms in [
            &["create", "creates", "created", "creating", "creation"][..],
            &["directory", "directories"],
            &["search", "searches", "searching"],
            &["run", "runs", "running"],
            &["navigate", "navigation"],
            &["class", "classes"],
            &["status"],
            &["call", "calling", "called"],
        ] {
            let stems: Vec<_> = forms.iter().map(|word| stem(word)).collect();
            assert!(stems.iter().all(|stem| Some(stem) == stems.first()), "{stems:?}");
        }
        for (word, same) in [("string", "string"), ("this", "this"), ("need", "need"), ("is", "is")]
        {
            assert_eq!(stem(word), same);
        }
    }

    #[test]
    fn the_first_sentence_is_what_a_tool_is_for() {
        for (text, first) in [
            ("\n Reads a file. Then more.", "Reads a file."),
            ("Notion | Create a page\nError Responses", "Notion | Create a page"),
            (
                "Takes a path, e.g. a/b.txt, and reads it. More",
                "Takes a path, e.g. a/b.txt, and reads it.",
            ),
            ("No end", "No end"),
            ("", ""),
            ("Really? Yes", "Really?"),
            ("天気を調べる。次", "天気を調べる。"),
        ] {
            assert_eq!(first_sentence(text), first);
        }
    }

    #[test]
    fn fillers_are_sorted() {
        for word in ["a", "your", "my", "please", "which"] {
            assert!(is_filler(word), "{word}");
        }
        assert!(!is_filler("time"));
    }
}
