//! Places in the code that the engine runs, and in the script as it was given.

use super::compile::FILE;

/// Line and column, both from 1.
pub(super) type Place = (u32, u32);

/// From where what stands in the code: places in it and in the script, in the order of the first.
#[derive(Debug, Default)]
pub(super) struct Positions(Vec<(Place, Place)>);

impl FromIterator<(Place, Place)> for Positions {
    fn from_iter<T: IntoIterator<Item = (Place, Place)>>(places: T) -> Self {
        Self(places.into_iter().collect())
    }
}

impl Positions {
    /// Where in the script stands what stands here in the code. A place is not noted again for the next line
    /// where both have the same one, as a statement and the mark before it.
    fn origin(&self, place: Place) -> Option<Place> {
        let after = self.0.partition_point(|(code, _)| *code <= place);
        let (code, source) = self.0.get(after.checked_sub(1)?)?;
        (place.0 - code.0 <= 1).then_some(*source)
    }

    /// The topmost place in the script of one of the engine's traces.
    pub(super) fn place(&self, trace: &str) -> Option<Place> {
        trace.lines().find_map(|line| self.frame(line)).map(|(_, place)| place)
    }

    /// A trace of the script as it was given; the frames of others are left out.
    pub(super) fn trace(&self, trace: &str) -> String {
        let frames = trace.lines().filter_map(|line| self.frame(line));
        frames.fold(String::new(), |text, (before, (line, column))| {
            let end = if before.contains('(') { ")" } else { "" };
            text + &format!("{before}{FILE}:{line}:{column}{end}\n")
        })
    }

    /// A frame of the script: what stands before its place, and its place.
    fn frame<'a>(&self, line: &'a str) -> Option<(&'a str, Place)> {
        let (before, rest) = line.rsplit_once(FILE)?;
        let mut numbers = rest.strip_prefix(':')?.trim_end_matches(')').split(':');
        let line = numbers.next()?.parse().ok()?;
        let column = numbers.next()?.parse().ok()?;
        Some((before, self.origin((line, column))?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn traces_name_the_script_as_given() {
        let positions: Positions =
            [((2, 1), (1, 1)), ((2, 9), (1, 20)), ((5, 3), (9, 4))].into_iter().collect();
        let trace = "    at f (script:2:12)\n    at native (native)\n    at <anonymous> (script:5:3)\n    at main (mcpx:9:9)\n";
        assert_eq!(positions.place(trace), Some((1, 20)));
        assert_eq!(
            positions.trace(trace),
            "    at f (script:1:20)\n    at <anonymous> (script:9:4)\n"
        );
        assert_eq!(positions.place("    at f (script:4:1)\n"), None);
        assert_eq!(positions.place("    at f (script:3:1)\n"), Some((1, 20)));
        assert_eq!(positions.trace("script:x:1\nscript\n    at script:2:3"), "    at script:1:1\n");
    }
}
