//! Names that somebody may have meant.

/// At most `most` of `names`, the likeliest first: those that share a word with `wanted` or are
/// spelled much like it.
pub(crate) fn nearest<'a>(
    wanted: &str,
    names: impl Iterator<Item = &'a str>,
    most: usize,
) -> Vec<&'a str> {
    // Half alike is where spelling mistakes end and other words begin.
    const ALIKE: f64 = 0.5;
    let wanted_words = words(wanted);
    let mut scored: Vec<(f64, &str)> = names
        .filter_map(|name| {
            let spelled = strsim::normalized_damerau_levenshtein(
                &wanted.to_lowercase(),
                &name.to_lowercase(),
            );
            let name_words = words(name);
            let shared = wanted_words.iter().filter(|word| name_words.contains(word)).count();
            #[expect(clippy::cast_precision_loss, reason = "a handful of words")]
            let shared = shared as f64 / wanted_words.len().max(name_words.len()).max(1) as f64;
            let score = spelled.max(shared);
            (score >= ALIKE).then_some((score, name))
        })
        .collect();
    scored.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
    scored.into_iter().take(most).map(|(_, name)| name).collect()
}

fn words(name: &str) -> Vec<String> {
    name.split(|c: char| !c.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .collect()
}

/// ` Did you mean …?`, or nothing where nothing is near.
pub(crate) fn did_you_mean<'a>(wanted: &str, names: impl Iterator<Item = &'a str>) -> String {
    const SHOWN: usize = 5;
    let near = nearest(wanted, names, SHOWN);
    if near.is_empty() { String::new() } else { format!(" Did you mean {}?", near.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// F43: `list_sites` where `get_sites` exists.
    #[test]
    fn f43_a_shared_word_or_a_slip_is_near() {
        let names = ["get_sites", "delete_user", "echo"];
        assert_eq!(nearest("list_sites", names.into_iter(), 3), ["get_sites"]);
        assert_eq!(nearest("ehco", names.into_iter(), 3), ["echo"]);
        assert!(nearest("zebra", names.into_iter(), 3).is_empty());
    }
}
