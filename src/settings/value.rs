//! The values a setting can have: how each is read, bounded and written.
//!
//! A value has one canonical spelling, whatever it was written as: `90m` is shown as `1h30m`,
//! `1024KiB` as `1MiB`, an old name of a preference as the present one (U-05).

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::references;
use super::tree::Raw;
use crate::protocol::http_rules::origin;

/// What a setting is, and its bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// On or off.
    Switch,
    /// A whole number.
    Count {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// A length of time.
    Time {
        /// The least.
        min: Duration,
        /// The most.
        max: Duration,
    },
    /// A number of bytes.
    Size {
        /// The least.
        min: u64,
        /// The most.
        max: u64,
    },
    /// One of a list of words.
    Choice(&'static [Choice]),
    /// Text of some form.
    Text(Form),
    /// Text that nobody is shown; it may hold references (`${file:…}`), which are.
    Secret,
    /// Any number of texts of one form. In a variable or a flag commas stand between them.
    List(Form),
}

/// What a text has to look like.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// Anything.
    Any,
    /// An address and port to listen on, or nothing.
    Listen,
    /// A host name or address as a `Host` header has it, with a port or for all ports.
    Host,
    /// A web origin as an `Origin` header has it.
    Origin,
    /// The absolute path of a file.
    File,
    /// The address of a proxy, without a password; `off`, or nothing.
    Proxy,
    /// An address of HTTP; `off`, or nothing.
    Url,
}

impl Form {
    /// The canonical spelling of `text`, or what is wrong with it.
    fn read(self, text: &str) -> Result<Arc<str>, String> {
        let wrong = || format!("{text:?} is not {}", self.expected());
        match self {
            Self::Any => Ok(text.into()),
            Self::Listen if text.is_empty() || text == "off" => Ok("".into()),
            Self::Listen => {
                let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
                let host = if host == "localhost" { "127.0.0.1" } else { host };
                let address: std::net::SocketAddr =
                    format!("{host}:{port}").parse().map_err(|_| wrong())?;
                Ok(address.to_string().into())
            }
            Self::Host => {
                origin::Authority::parse(text).map(|read| read.to_string().into()).ok_or_else(wrong)
            }
            Self::Origin => {
                origin::Origin::parse(text).map(|read| read.to_string().into()).ok_or_else(wrong)
            }
            Self::File if text.starts_with('/') => Ok(text.into()),
            Self::File => Err(wrong()),
            Self::Proxy | Self::Url if text.is_empty() || text == "off" => Ok(text.into()),
            Self::Url => {
                let uri = text.parse::<http::Uri>().map_err(|_| wrong())?;
                let known = matches!(uri.scheme_str(), Some("http" | "https"));
                let named = uri.host().is_some_and(|host| !host.is_empty());
                let plain = !text.contains('@') && uri.query().is_none();
                if known && named && plain { Ok(text.into()) } else { Err(wrong()) }
            }
            Self::Proxy => {
                let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
                if rest.contains('@') {
                    return Err("a password has no place here; leave the proxy to the variables \
                                HTTP_PROXY and HTTPS_PROXY"
                        .to_owned());
                }
                let known = ["http", "https", "socks5", "socks5h"].contains(&scheme);
                let uri = text.parse::<http::Uri>().ok().filter(|_| known).ok_or_else(wrong)?;
                uri.host().filter(|host| !host.is_empty()).ok_or_else(wrong)?;
                Ok(text.into())
            }
        }
    }

    /// One of them, as a phrase.
    const fn expected(self) -> &'static str {
        match self {
            Self::Any => "text",
            Self::Listen => "an address and port like 127.0.0.1:7332 or [::1]:7332, or \"off\"",
            Self::Host => "a host like mcp.example.org or mcp.example.org:8080",
            Self::Origin => "an origin like https://app.example.org",
            Self::File => "the path of a file that begins with /",
            Self::Proxy => {
                "the address of a proxy like http://proxy.example.org:3128 (https, socks5 and \
                 socks5h as well), or \"off\""
            }
            Self::Url => "an address like http://127.0.0.1:4318, or \"off\"",
        }
    }

    /// Several of them, as a phrase.
    const fn several(self) -> &'static str {
        match self {
            Self::Any => "a list of texts",
            Self::Listen => "a list of addresses like 127.0.0.1:7332",
            Self::Host => "a list of hosts like mcp.example.org or mcp.example.org:8080",
            Self::Origin => "a list of origins like https://app.example.org",
            Self::File => "a list of files by their paths from /",
            Self::Proxy => "a list of proxies like http://proxy.example.org:3128",
            Self::Url => "a list of addresses like http://127.0.0.1:4318",
        }
    }
}

/// One word of a list, with the spellings it is also read from.
#[derive(Debug, PartialEq, Eq)]
pub struct Choice {
    /// The canonical spelling.
    pub word: &'static str,
    /// Older spellings.
    pub also: &'static [&'static str],
}

/// A checked value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    /// See [`Kind::Switch`].
    Switch(bool),
    /// See [`Kind::Count`].
    Count(u64),
    /// See [`Kind::Time`].
    Time(Duration),
    /// See [`Kind::Size`].
    Size(u64),
    /// See [`Kind::Choice`]; the canonical spelling.
    Word(&'static str),
    /// See [`Kind::Text`].
    Text(Arc<str>),
    /// See [`Kind::Secret`].
    Secret(Secret),
    /// See [`Kind::List`].
    List(Arc<[Arc<str>]>),
}

/// A text that is never shown, unless it is nothing but references.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct Secret(Arc<str>);

impl Secret {
    /// The text as it was written, references unexpanded.
    pub fn written(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.into())
    }
}

impl fmt::Display for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = self.0.is_empty() || references::are_all_of(&self.0);
        f.write_str(if shown { &self.0 } else { MASK })
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.to_string())
    }
}

/// What stands in place of a secret.
pub const MASK: &str = "***";

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Switch(on) => write!(f, "{on}"),
            Self::Count(count) => write!(f, "{count}"),
            Self::Time(time) => f.write_str(&duration_text(*time)),
            Self::Size(bytes) => f.write_str(&size_text(*bytes)),
            Self::Word(word) => f.write_str(word),
            Self::Text(text) => f.write_str(text),
            Self::Secret(secret) => write!(f, "{secret}"),
            Self::List(texts) => f.write_str(&texts.join(",")),
        }
    }
}

impl Value {
    /// As a JSON value, to be shown: switches, counts and lists as such, everything else as text.
    pub fn to_json(&self) -> serde_json::Value {
        match self {
            Self::Switch(on) => (*on).into(),
            Self::Count(count) => (*count).into(),
            Self::List(texts) => texts.iter().map(|text| &**text).collect(),
            Self::Time(_) | Self::Size(_) | Self::Word(_) | Self::Text(_) | Self::Secret(_) => {
                self.to_string().into()
            }
        }
    }

    /// As [`Kind::read_text`] reads it back, to be kept: with secrets.
    pub fn kept(&self) -> String {
        match self {
            Self::Secret(secret) => secret.written().to_owned(),
            other => other.to_string(),
        }
    }
}

impl Kind {
    /// Reads a value as it stands in a file.
    pub fn read(self, raw: &Raw) -> Result<Value, String> {
        let value = match (self, raw) {
            (Self::Switch, Raw::Switch(on)) => Value::Switch(*on),
            (Self::Count { .. }, Raw::Whole(number)) => Value::Count(unsigned(*number)?),
            (Self::Size { .. }, Raw::Whole(number)) => Value::Size(unsigned(*number)?),
            (Self::Time { .. }, Raw::Whole(0)) => Value::Time(Duration::ZERO),
            (Self::Time { .. }, Raw::Whole(number)) => {
                return Err(format!("a time needs its unit, for example \"{number}s\""));
            }
            (Self::List(form), Raw::List(nodes)) => Value::List(
                nodes
                    .iter()
                    .map(|node| match &node.raw {
                        Raw::Text(text) => form.read(text),
                        other => Err(format!("{} is not {}", other.name(), form.expected())),
                    })
                    .collect::<Result<_, _>>()?,
            ),
            (
                Self::Time { .. }
                | Self::Size { .. }
                | Self::Choice(_)
                | Self::Text(_)
                | Self::Secret,
                Raw::Text(text),
            ) => return self.read_text(text),
            _ => return Err(format!("expected {}, found {}", self.expected(), raw.name())),
        };
        self.bounded(value)
    }

    /// Reads a value as it stands in an environment variable, a flag or an argument.
    pub fn read_text(self, text: &str) -> Result<Value, String> {
        let text = text.trim();
        let value = match self {
            Self::Switch => match text.to_ascii_lowercase().as_str() {
                "true" | "on" => Value::Switch(true),
                "false" | "off" => Value::Switch(false),
                _ => return Err(format!("expected true or false, found {text:?}")),
            },
            Self::Count { .. } => Value::Count(
                text.parse().map_err(|_| format!("expected a whole number, found {text:?}"))?,
            ),
            Self::Time { .. } => Value::Time(parse_duration(text)?),
            Self::Size { .. } => Value::Size(parse_size(text)?),
            Self::Choice(choices) => Value::Word(choose(choices, text)?),
            Self::Text(form) => Value::Text(form.read(text)?),
            Self::Secret => {
                references::check(text)?;
                Value::Secret(text.into())
            }
            Self::List(form) => {
                let texts = text.split(',').map(str::trim).filter(|text| !text.is_empty());
                Value::List(texts.map(|text| form.read(text)).collect::<Result<_, _>>()?)
            }
        };
        self.bounded(value)
    }

    /// The value, if it is within the bounds.
    fn bounded(self, value: Value) -> Result<Value, String> {
        let within = match (self, &value) {
            (Self::Count { min, max }, Value::Count(is))
            | (Self::Size { min, max }, Value::Size(is)) => (min..=max).contains(is),
            (Self::Time { min, max }, Value::Time(is)) => (min..=max).contains(is),
            _ => true,
        };
        if within { Ok(value) } else { Err(format!("{value} is not {}", self.expected())) }
    }

    /// What may stand there, as a phrase: `a time from 1ms to 7d`.
    pub fn expected(self) -> String {
        match self {
            Self::Switch => "true or false".to_owned(),
            Self::Count { min, max } => format!("a whole number from {min} to {max}"),
            Self::Time { min, max } => {
                format!("a time from {} to {}", duration_text(min), duration_text(max))
            }
            Self::Size { min, max } => {
                format!("a size from {} to {}", size_text(min), size_text(max))
            }
            Self::Choice(choices) => format!("one of {}", word_list(choices)),
            Self::Text(form) => form.expected().to_owned(),
            Self::Secret => "text, or a reference like ${file:PATH}".to_owned(),
            Self::List(form) => form.several().to_owned(),
        }
    }
}

fn unsigned(number: i64) -> Result<u64, String> {
    u64::try_from(number).map_err(|_| format!("{number} is negative"))
}

/// The canonical word for `text`, in any case; otherwise the whole list (U-06).
pub fn choose(choices: &'static [Choice], text: &str) -> Result<&'static str, String> {
    let is = |word: &&str| word.eq_ignore_ascii_case(text);
    choices
        .iter()
        .find(|choice| is(&choice.word) || choice.also.iter().any(is))
        .map(|choice| choice.word)
        .ok_or_else(|| format!("{text:?} is not one of {}", word_list(choices)))
}

fn word_list(choices: &[Choice]) -> String {
    choices.iter().map(|choice| choice.word).collect::<Vec<_>>().join(", ")
}

/// The units of time, largest first, in milliseconds.
const TIME_UNITS: [(&str, u64); 5] =
    [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)];

/// The units of size, largest first. Binary ones are written, decimal ones read too.
const SIZE_UNITS: [(&str, u64); 7] = [
    ("GiB", 1 << 30),
    ("MiB", 1 << 20),
    ("KiB", 1 << 10),
    ("GB", 1_000_000_000),
    ("MB", 1_000_000),
    ("KB", 1_000),
    ("B", 1),
];

/// Reads `10m`, `1h30m`, `500ms`, `0`: parts from the largest unit to the smallest, each once.
pub fn parse_duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a time; write it like 500ms, 10m or 1h30m");
    if text == "0" {
        return Ok(Duration::ZERO);
    }
    let mut rest = text;
    let mut units = TIME_UNITS.iter();
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
        let (number, tail) = rest.split_at(digits);
        let unit_end = tail.find(|c: char| c.is_ascii_digit()).unwrap_or(tail.len());
        let (unit, tail) = tail.split_at(unit_end);
        let (_, factor) = units.by_ref().find(|(name, _)| *name == unit).ok_or_else(wrong)?;
        let number: u64 = number.parse().map_err(|_| wrong())?;
        total = number
            .checked_mul(*factor)
            .and_then(|part| total.checked_add(part))
            .ok_or_else(|| format!("{text:?} is too long a time"))?;
        rest = tail;
    }
    if text.is_empty() { Err(wrong()) } else { Ok(Duration::from_millis(total)) }
}

/// Writes a time the way [`parse_duration`] reads it.
pub fn duration_text(time: Duration) -> String {
    let mut rest = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
    if rest == 0 {
        return "0".to_owned();
    }
    let mut text = String::new();
    for (unit, factor) in TIME_UNITS {
        if rest >= factor {
            text.push_str(&(rest / factor).to_string());
            text.push_str(unit);
            rest %= factor;
        }
    }
    text
}

/// Reads `64MiB`, `10 KB`, `4096`.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is not a size; write it like 64MiB, 256KiB or 4096");
    let digits = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let unit = unit.trim();
    let factor = if unit.is_empty() {
        1
    } else {
        let known = SIZE_UNITS.iter().find(|(name, _)| name.eq_ignore_ascii_case(unit));
        known.ok_or_else(wrong)?.1
    };
    number.checked_mul(factor).ok_or_else(|| format!("{text:?} is too large a size"))
}

/// Writes a size the way [`parse_size`] reads it, in the largest binary unit that divides it.
pub fn size_text(bytes: u64) -> String {
    let unit = SIZE_UNITS.iter().find(|(name, factor)| {
        name.ends_with("iB") && bytes >= *factor && bytes.is_multiple_of(*factor)
    });
    match unit {
        Some((name, factor)) => format!("{}{name}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_and_written() {
        for (text, millis, canonical) in [
            ("0", 0, "0"),
            ("0s", 0, "0"),
            ("500ms", 500, "500ms"),
            ("10m", 600_000, "10m"),
            ("90m", 5_400_000, "1h30m"),
            ("1h30m", 5_400_000, "1h30m"),
            ("1s500ms", 1_500, "1s500ms"),
            ("36h", 129_600_000, "1d12h"),
        ] {
            let time = parse_duration(text).unwrap();
            assert_eq!(time, Duration::from_millis(millis), "{text}");
            assert_eq!(duration_text(time), canonical);
            assert_eq!(parse_duration(canonical).unwrap(), time);
        }
        for wrong in ["", "5", "m", "1m1h", "5 m", "1.5s", "-1s", "10min", "1s1s", "5S"] {
            assert!(parse_duration(wrong).is_err(), "{wrong}");
        }
        assert!(parse_duration("99999999999999999999d").is_err());
        assert!(parse_duration("9999999999999999d").unwrap_err().contains("too long"));
    }

    #[test]
    fn sizes_are_read_and_written() {
        for (text, bytes, canonical) in [
            ("64MiB", 64 << 20, "64MiB"),
            ("1024 kib", 1 << 20, "1MiB"),
            ("1500", 1500, "1500B"),
            ("10KB", 10_000, "10000B"),
            ("0", 0, "0B"),
            ("3GiB", 3 << 30, "3GiB"),
        ] {
            assert_eq!(parse_size(text).unwrap(), bytes, "{text}");
            assert_eq!(size_text(bytes), canonical);
            assert_eq!(parse_size(canonical).unwrap(), bytes);
        }
        for wrong in ["", "MiB", "1.5MiB", "-1", "10 parsecs"] {
            assert!(parse_size(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn bounds_are_kept_and_named() {
        let kind = Kind::Count { min: 1, max: 10 };
        assert_eq!(kind.read(&Raw::Whole(10)), Ok(Value::Count(10)));
        let error = kind.read(&Raw::Whole(11)).unwrap_err();
        assert_eq!(error, "11 is not a whole number from 1 to 10");
        assert!(kind.read(&Raw::Whole(-1)).unwrap_err().contains("negative"));
        assert!(kind.read_text("0").is_err());
        let kind = Kind::Time { min: Duration::from_secs(1), max: Duration::from_mins(1) };
        assert!(kind.read_text("61s").unwrap_err().contains("a time from 1s to 1m"));
    }

    #[test]
    fn a_bare_number_is_no_time_and_text_is_no_switch_in_a_file() {
        let time = Kind::Time { min: Duration::ZERO, max: Duration::from_mins(10) };
        assert!(time.read(&Raw::Whole(300)).unwrap_err().contains("\"300s\""));
        assert_eq!(time.read(&Raw::Whole(0)), Ok(Value::Time(Duration::ZERO)));
        assert!(Kind::Switch.read(&Raw::Text("true".to_owned())).is_err());
        assert_eq!(Kind::Switch.read_text("On"), Ok(Value::Switch(true)));
    }

    #[test]
    fn files_and_proxies_have_a_form() {
        let read = |form, text| Kind::Text(form).read_text(text).map(|value| value.to_string());
        for text in ["", "off", "http://p:3128", "https://p", "socks5h://127.0.0.1:1080"] {
            assert_eq!(read(Form::Proxy, text).as_deref(), Ok(text));
        }
        for text in ["p:3128", "ftp://p", "http://", "socks4://p"] {
            assert!(read(Form::Proxy, text).unwrap_err().contains("the address of a proxy"));
        }
        let said = read(Form::Proxy, "http://me:hush@p").unwrap_err();
        assert!(said.starts_with("a password has no place here") && !said.contains("hush"));
        let files = Kind::List(Form::File).read_text("/a, /b").unwrap();
        assert_eq!(files.to_string(), "/a,/b");
        assert!(Kind::List(Form::File).read_text("ca.pem").is_err());
    }
}
