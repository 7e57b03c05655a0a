//! The command line of a role: flags, values, and what stands after `--`.

/// Arguments as they came.
#[derive(Debug, Clone)]
pub struct Args(Vec<String>);

impl Args {
    /// Wraps the arguments after the role's name.
    pub fn new(words: Vec<String>) -> Self {
        Args(words)
    }

    fn own(&self) -> impl Iterator<Item = &String> {
        self.0.iter().take_while(|word| *word != "--")
    }

    /// Whether a flag is given.
    pub fn flag(&self, name: &str) -> bool {
        self.own().any(|word| word == name)
    }

    /// The word after a name.
    pub fn value(&self, name: &str) -> Option<&str> {
        self.own().skip_while(|word| *word != name).nth(1).map(String::as_str)
    }

    /// The number after a name. A word that is no number ends the program: this is a bench.
    pub fn number(&self, name: &str) -> Option<u64> {
        self.value(name).map(|word| word.parse().unwrap_or_else(|_| panic!("{name}: {word}?")))
    }

    /// The words after `--`.
    pub fn rest(&self) -> Vec<String> {
        self.0.iter().skip_while(|word| *word != "--").skip(1).cloned().collect()
    }
}
