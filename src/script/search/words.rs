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
        "a", "an", "and", "any", "are", "as", "at", "be", "by", "can", "could", "did", "do",
        "does", "for", "from", "has", "have", "how", "i", "if", "in", "into", "is", "it", "its",
        "let", "me", "my", "need", "of", "on", "onto", "or", "our", "please", "should", "some",
        "that", "the", "their", "there", "this", "to", "tool", "us", "want", "was", "we", "were",
        "what", "when", "where", "which", "who", "will", "with", "would", "you", "your",
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

/// The forms of a word; the last one of a query may be unfinished.
pub(super) fn forms(word: &str, last: bool) -> Forms {
    // Two letters begin too many words.
    const LEAST: usize = 3;
    const UNFINISHED: f32 = 0.5;
    let own = stem(word);
    let beginning = (own.chars().count() >= LEAST).then(|| (own.clone(), UNFINISHED));
    Forms { whole: vec![(own.clone(), 1.0)], beginning, stem: own, unfinished: last }
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
