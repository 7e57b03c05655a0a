//! The table: one row per target, with its verdict.

use std::io;

/// What a figure is held against.
#[derive(Debug, Clone, Copy)]
pub enum Limit {
    /// Not above.
    AtMost(f64),
    /// Not below.
    AtLeast(f64),
    /// Told only.
    None,
}

/// Rows that miss their target today, with what they reach at worst on a quiet machine. The table
/// goes on to say that they miss; a line that is not needed any more is to go.
const KNOWN_MISSES: &[(&str, f64)] = &[
    // One thread, about 13 µs of it a call; `direct` makes 600,000 to 900,000 calls a second.
    ("100 B, 16 in flight: calls/s", 0.05),
    ("100 B, 64 in flight: calls/s", 0.05),
    // Copies of the payload on its way through the daemon.
    ("1 MB, 1 in flight: p50", 6.0),
    // Copies of the payload again; wavers between 2.9 and 10 with the memory of the machine.
    ("HTTP, 1 MB, 1 in flight: p50 ÷ http-echo", 20.0),
    ("1,000 host sessions in turn ÷ one session: p50", 3.0),
    // Met when the machine is quiet (1.3); a p99 of microseconds says little when it is not.
    ("another upstream floods: p99 of the others", 8.0),
];

/// How a figure is written.
#[derive(Debug, Clone, Copy)]
pub enum Unit {
    /// A ratio: `3.2 ×`.
    Times,
    /// A number with a unit behind it.
    Plain(&'static str),
}

/// One row.
#[derive(Debug)]
pub struct Row {
    what: String,
    direct: String,
    mcpx: String,
    figure: Result<f64, String>,
    unit: Unit,
    limit: Limit,
}

impl Row {
    /// A row whose two sides are shown as text and whose figure is judged.
    pub fn new(what: impl Into<String>, figure: f64, unit: Unit, limit: Limit) -> Row {
        let what = what.into();
        Row { what, direct: String::new(), mcpx: String::new(), figure: Ok(figure), unit, limit }
    }

    /// A measurement that came to nothing.
    pub fn failed(what: impl Into<String>, error: &io::Error) -> Row {
        let row = Row::new(what, f64::NAN, Unit::Plain(""), Limit::None);
        Row { figure: Err(error.to_string()), ..row }
    }

    /// Shows what was measured on either side.
    pub fn sides(self, direct: impl Into<String>, mcpx: impl Into<String>) -> Row {
        Row { direct: direct.into(), mcpx: mcpx.into(), ..self }
    }

    /// Beyond the target by more than this factor. A failed measurement always is.
    fn beyond(&self, factor: f64) -> bool {
        match (&self.figure, self.limit) {
            (Err(_), _) => true,
            (Ok(_), Limit::None) => false,
            (Ok(figure), Limit::AtMost(limit)) => figure.is_nan() || *figure > limit * factor,
            (Ok(figure), Limit::AtLeast(limit)) => figure.is_nan() || *figure < limit / factor,
        }
    }

    /// More than twice its target: what `--short` fails on. A row that is known to miss its target
    /// fails on what it is known to reach instead, so that it cannot get worse unseen.
    pub fn is_gross(&self) -> bool {
        let known = KNOWN_MISSES.iter().find(|(what, _)| *what == self.what);
        match (known, &self.figure, self.limit) {
            (Some((_, floor)), Ok(figure), Limit::AtLeast(_)) => figure.is_nan() || figure < floor,
            (Some((_, ceiling)), Ok(figure), Limit::AtMost(_)) => {
                figure.is_nan() || figure > ceiling
            }
            _ => self.beyond(2.0),
        }
    }

    fn verdict(&self) -> String {
        match (&self.figure, self.limit) {
            (Err(error), _) => format!("**failed**: {error}"),
            (Ok(_), Limit::None) => "—".into(),
            _ if self.beyond(2.0) => "**far off**".into(),
            _ if self.beyond(1.0) => "**missed**".into(),
            _ => "met".into(),
        }
    }

    fn print(&self) {
        let figure = self.figure.as_ref().map_or("—".into(), |figure| self.unit.write(*figure));
        let target = match self.limit {
            Limit::AtMost(limit) => format!("≤ {}", self.unit.write(limit)),
            Limit::AtLeast(limit) => format!("≥ {}", self.unit.write(limit)),
            Limit::None => String::new(),
        };
        let Row { what, direct, mcpx, .. } = self;
        println!("| {what} | {direct} | {mcpx} | {figure} | {target} | {} |", self.verdict());
    }
}

impl Unit {
    fn write(self, figure: f64) -> String {
        let number = short(figure);
        match self {
            Unit::Times => format!("{number} ×"),
            Unit::Plain("") => number,
            Unit::Plain(unit) => format!("{number} {unit}"),
        }
    }
}

/// Three digits that matter, no more.
pub fn short(figure: f64) -> String {
    let digits = if figure.abs() < 10.0 { 2 } else { usize::from(figure.abs() < 100.0) };
    let text = format!("{figure:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

/// A latency given in microseconds.
pub fn micros(figure: f64) -> String {
    if figure < 1000.0 {
        format!("{} µs", short(figure))
    } else {
        format!("{} ms", short(figure / 1000.0))
    }
}

/// Prints the whole table.
pub fn print(rows: &[Row]) {
    println!("\n| what | direct | mcpx | figure | target | verdict |");
    println!("| --- | --- | --- | --- | --- | --- |");
    for row in rows {
        row.print();
    }
}
