//! Which tools fit some words: BM25 over the fields of tools, each field with a weight of its own.
//! Pure.
//!
//! An [`Index`] is made once of what is to be found; [`search`] ranks the documents of several of them
//! together. A word of a query counts in every form that means the same (`words`): its stem, a word
//! that interfaces use in its place, and, where it may be unfinished, the words that begin with it.

mod words;

use std::cmp::Ordering;
use std::collections::{BTreeMap, HashMap};

pub use self::words::first_sentence;
use self::words::{Forms, asked, forms, split, stem};
use crate::protocol::jsonrpc::{Object, RawJson};

/// What can be found: a tool, or what is described like one.
#[derive(Debug, Clone, Copy)]
pub struct Document<'a> {
    /// Where it belongs: the server's namespace.
    pub namespace: &'a str,
    /// How its server calls itself; may be empty.
    pub server: &'a str,
    /// Its name.
    pub name: &'a str,
    /// Its definition: `title`, `description` and `inputSchema` are read.
    pub definition: &'a RawJson,
}

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Words, as a person or a model writes them.
    pub text: &'a str,
    /// Only what is in this namespace.
    pub namespace: Option<&'a str>,
    /// Most words that count; the rest is left out.
    pub words: usize,
    /// Most documents that are given.
    pub results: usize,
}

/// One that was found.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Hit {
    /// Which of the indexes.
    pub index: usize,
    /// Which of its documents, in the order in which it was made of them.
    pub document: usize,
    /// How well it fits: greater than nothing, comparable within one search.
    pub score: f32,
}

/// Where a word stands in a document, with what it counts there. What a tool is for stands in its name
/// and in its first sentence; examples and warnings come behind.
const FIELDS: [Field; 7] = [
    Field { weight: 4.0, shorter: 0.5 },  // NAME
    Field { weight: 2.0, shorter: 0.5 },  // TITLE
    Field { weight: 2.0, shorter: 0.5 },  // SUMMARY
    Field { weight: 0.5, shorter: 0.75 }, // REST
    Field { weight: 1.0, shorter: 0.75 }, // PARAMETERS
    Field { weight: 0.3, shorter: 0.75 }, // PARAMETER_DOCS
    Field { weight: 2.0, shorter: 0.0 },  // SERVER
];
const NAME: usize = 0;
const TITLE: usize = 1;
const SUMMARY: usize = 2;
const REST: usize = 3;
const PARAMETERS: usize = 4;
const PARAMETER_DOCS: usize = 5;
const SERVER: usize = 6;

struct Field {
    /// What one occurrence counts.
    weight: f32,
    /// How much more it counts in a shorter field (the `b` of BM25): 0 not at all, 1 in proportion.
    shorter: f32,
}

/// How soon more occurrences of a word count no more (the `k1` of BM25).
const SATURATION: f32 = 1.2;
/// Above what any number of words can bring: whoever writes a name means it.
const EXACT: f32 = 1e6;
/// Bytes of one text of a document that are read; no tool says what it is for behind them.
const TEXT: usize = 16 * 1024;

/// Words, and the documents in which they stand.
#[derive(Debug, Default)]
pub struct Index {
    documents: Vec<Known>,
    /// Sorted by text.
    terms: Vec<Term>,
}

#[derive(Debug)]
struct Known {
    namespace: Box<str>,
    name: Box<str>,
    /// Its name without case and punctuation.
    plain: Box<str>,
}

#[derive(Debug)]
struct Term {
    text: Box<str>,
    /// Documents in their order, with the weighted number of occurrences.
    found: Box<[(u32, f32)]>,
}

/// How often a word stands in each field.
type Counts = [f32; FIELDS.len()];

impl Index {
    /// Of these documents.
    pub fn new<'a>(documents: impl IntoIterator<Item = Document<'a>>) -> Self {
        let mut known = Vec::new();
        let mut counted: Vec<HashMap<String, Counts>> = Vec::new();
        let mut lengths: Vec<Counts> = Vec::new();
        for document in documents {
            let namespace = document.namespace.into();
            let name = document.name.into();
            known.push(Known { namespace, name, plain: plain(document.name).into() });
            let (counts, length) = count(&document);
            counted.push(counts);
            lengths.push(length);
        }
        let average = average(&lengths);
        let mut terms: BTreeMap<String, Vec<(u32, f32)>> = BTreeMap::new();
        for (at, (counts, length)) in (0_u32..).zip(counted.into_iter().zip(&lengths)) {
            for (word, counts) in counts {
                let weight = weight(&counts, length, &average);
                terms.entry(word).or_default().push((at, weight));
            }
        }
        let terms = terms.into_iter();
        let term =
            |(text, found): (String, Vec<_>)| Term { text: text.into(), found: found.into() };
        Self { documents: known, terms: terms.map(term).collect() }
    }

    /// How many documents it is made of.
    pub const fn len(&self) -> usize {
        self.documents.len()
    }

    /// Whether there is nothing to find.
    pub const fn is_empty(&self) -> bool {
        self.documents.is_empty()
    }

    fn term(&self, text: &str) -> Option<&Term> {
        let at = self.terms.binary_search_by(|term| (*term.text).cmp(text)).ok()?;
        self.terms.get(at)
    }

    /// Terms that begin with `text`.
    fn beginning<'a>(&'a self, text: &'a str) -> impl Iterator<Item = &'a Term> {
        let from = self.terms.partition_point(|term| *term.text < *text);
        let terms = self.terms.get(from..).unwrap_or_default().iter();
        terms.take_while(move |term| term.text.starts_with(text))
    }
}

/// The documents of all `indexes` that fit, the best first. Equals stand in the order of their indexes
/// and documents.
pub fn search(indexes: &[&Index], query: &Query<'_>) -> Vec<Hit> {
    let meant = asked(query.text);
    let meant = meant.get(..query.words).unwrap_or(&meant);
    let mut scores: Vec<Vec<f32>> = indexes.iter().map(|index| vec![0.0; index.len()]).collect();
    for (at, word) in meant.iter().enumerate() {
        let forms = forms(word, at + 1 == meant.len());
        add_word(indexes, &forms, &mut scores);
    }
    let whole = plain(query.text);
    let mut hits = Vec::new();
    for (at, (index, scores)) in indexes.iter().zip(scores).enumerate() {
        for (document, (known, score)) in index.documents.iter().zip(scores).enumerate() {
            let score = score + EXACT * naming(known, query.text.trim(), &whole);
            let wanted = query.namespace.is_none_or(|namespace| *known.namespace == *namespace);
            if score > 0.0 && wanted {
                hits.push(Hit { index: at, document, score });
            }
        }
    }
    hits.sort_by(|a, b| b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal));
    hits.truncate(query.results);
    hits
}

/// Adds what one word of a query brings to each document. All its forms count as one word: occurrences
/// are added up before they are weighed, and it is as rare as all of them together.
fn add_word(indexes: &[&Index], forms: &Forms, scores: &mut [Vec<f32>]) {
    let mut occurrences: Vec<Vec<f32>> =
        indexes.iter().map(|index| vec![0.0; index.len()]).collect();
    for (index, occurrences) in indexes.iter().zip(&mut occurrences) {
        let mut add = |term: &Term, weight: f32| {
            for (document, count) in &term.found {
                if let Some(sum) = occurrences.get_mut(*document as usize) {
                    *sum += count * weight;
                }
            }
        };
        for (form, weight) in &forms.whole {
            if let Some(term) = index.term(form) {
                add(term, *weight);
            }
        }
        if let Some((beginning, weight)) = &forms.beginning
            && (forms.unfinished || index.term(&forms.stem).is_none())
        {
            let others = index.beginning(beginning).filter(|term| *term.text != *forms.stem);
            for term in others {
                add(term, weight * share(beginning.len(), term.text.len()));
            }
        }
    }
    let number = |count: usize| f32::from(u16::try_from(count).unwrap_or(u16::MAX));
    let all = number(occurrences.iter().map(Vec::len).sum());
    let having = occurrences.iter().flatten().filter(|count| **count > 0.0).count();
    let having = number(having);
    let rarity = (1.0 + (all - having + 0.5) / (having + 0.5)).ln();
    for (score, count) in scores.iter_mut().flatten().zip(occurrences.into_iter().flatten()) {
        *score += rarity * count / (SATURATION + count);
    }
}

fn share(part: usize, whole: usize) -> f32 {
    let number = |count: usize| f32::from(u16::try_from(count).unwrap_or(u16::MAX));
    number(part) / number(whole).max(1.0)
}

/// How far a query is nothing but its name, alone or behind its namespace: 0 where it is more or less, 2 where
/// it is that letter by letter (`get_issue` and `get-issue` may be two tools), 1 else.
fn naming(known: &Known, query: &str, plain_query: &str) -> f32 {
    let behind = |rest: &str| rest.is_empty() || plain(rest) == plain(&known.namespace);
    let is_named = |query: &str, name: &str| query.strip_suffix(name).is_some_and(behind);
    if plain_query.is_empty() || !is_named(plain_query, &known.plain) {
        return 0.0;
    }
    if is_named(query, &known.name) { 2.0 } else { 1.0 }
}

/// Letters and digits alone, in lower case.
fn plain(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// The words of a document, with how often each stands where, and how many there are in each field.
fn count(document: &Document<'_>) -> (HashMap<String, Counts>, Counts) {
    let mut counts: HashMap<String, Counts> = HashMap::new();
    let mut length = Counts::default();
    let mut add = |field: usize, text: &str| {
        for word in split(head(text)) {
            for (of, amount) in [(counts.entry(stem(&word)).or_default(), 1.0), (&mut length, 1.0)]
            {
                if let Some(count) = of.get_mut(field) {
                    *count += amount;
                }
            }
        }
    };
    let tool = Object::read_or_empty(Some(document.definition));
    add(NAME, document.name);
    add(SERVER, document.namespace);
    add(SERVER, document.server);
    let title = || tool.get("annotations")?.member_str("title");
    add(TITLE, &tool.get_str("title").or_else(title).unwrap_or_default());
    let description = tool.get_str("description").unwrap_or_default();
    let summary = first_sentence(&description);
    add(SUMMARY, summary);
    let rest = description.trim_start().get(summary.len()..).unwrap_or_default();
    add(REST, rest);
    let schema = Object::read_or_empty(tool.get("inputSchema"));
    for (name, parameter) in Object::read_or_empty(schema.get("properties")).iter() {
        add(PARAMETERS, name);
        add(PARAMETER_DOCS, &parameter.member_str("description").unwrap_or_default());
        // What can be chosen is what can be done: `approve`, `closed`.
        let choices = parameter.member("enum").and_then(|choices| choices.elements());
        for choice in choices.unwrap_or_default().iter().filter_map(RawJson::text) {
            add(PARAMETERS, &choice);
        }
    }
    (counts, length)
}

fn head(text: &str) -> &str {
    text.get(..text.floor_char_boundary(TEXT)).unwrap_or(text)
}

fn average(lengths: &[Counts]) -> Counts {
    let mut sums = Counts::default();
    for (sum, length) in lengths.iter().flat_map(|lengths| (0..).zip(lengths)) {
        if let Some(sum) = sums.get_mut(sum) {
            *sum += length;
        }
    }
    let all = f32::from(u16::try_from(lengths.len()).unwrap_or(u16::MAX)).max(1.0);
    sums.map(|sum| (sum / all).max(1.0))
}

fn weight(counts: &Counts, length: &Counts, average: &Counts) -> f32 {
    let fields = FIELDS.iter().zip(counts).zip(length.iter().zip(average));
    let counted = fields.map(|((field, count), (length, average))| {
        field.weight * count / (1.0 - field.shorter + field.shorter * length / average)
    });
    counted.sum()
}

#[cfg(test)]
mod tests;
