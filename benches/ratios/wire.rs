//! Just enough JSON to read a request or an answer in one pass over its bytes.
//!
//! Both sides of a ratio use it, so it must cost next to nothing: strings are skipped with
//! `memchr`, nothing is unescaped, nothing is allocated.

use memchr::memchr2;

/// The revision the legacy host asks for.
pub const LEGACY: &str = "2025-11-25";
/// The revision of the modern host.
pub const MODERN: &str = "2026-07-28";
/// The key that makes a request a modern one.
pub const VERSION_KEY: &[u8] = b"io.modelcontextprotocol/protocolVersion";

/// What a host asked for, as slices of its frame.
#[derive(Debug, Default)]
pub struct Request<'a> {
    /// The id as written, or nothing for a notification.
    pub id: Option<&'a [u8]>,
    /// The method, without quotes.
    pub method: &'a [u8],
    /// `params.protocolVersion` of an `initialize`, without quotes.
    pub asked: Option<&'a [u8]>,
    /// The request carries its revision in `_meta`.
    pub modern: bool,
    /// `params.arguments.text`, with its quotes.
    pub text: Option<&'a [u8]>,
}

/// What came back, as slices of the frame.
#[derive(Debug, Default)]
pub struct Answer<'a> {
    /// The id as written.
    pub id: Option<&'a [u8]>,
    /// Present where the peer asks or tells something by itself.
    pub method: Option<&'a [u8]>,
    /// The error object.
    pub error: Option<&'a [u8]>,
    /// A tool result that says it failed.
    pub is_error: bool,
    /// `result.content[0].text`, with its quotes.
    pub text: Option<&'a [u8]>,
}

impl<'a> Request<'a> {
    /// Reads one frame; nothing where it is not a JSON object.
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let mut request = Request::default();
        let mut scan = Scanner::new(frame);
        scan.enter(b'{')?;
        while let Some(key) = scan.key()? {
            match key {
                b"id" => request.id = Some(scan.value()?),
                b"method" => request.method = scan.string()?,
                b"params" => request.read_params(&mut scan)?,
                _ => drop(scan.value()?),
            }
        }
        Some(request)
    }

    fn read_params(&mut self, scan: &mut Scanner<'a>) -> Option<()> {
        scan.enter(b'{')?;
        while let Some(key) = scan.key()? {
            match key {
                b"protocolVersion" => self.asked = Some(scan.string()?),
                b"_meta" => {
                    scan.enter(b'{')?;
                    while let Some(key) = scan.key()? {
                        self.modern |= key == VERSION_KEY;
                        scan.value()?;
                    }
                }
                b"arguments" => {
                    scan.enter(b'{')?;
                    while let Some(key) = scan.key()? {
                        let value = scan.value()?;
                        if key == b"text" {
                            self.text = Some(value);
                        }
                    }
                }
                _ => drop(scan.value()?),
            }
        }
        Some(())
    }
}

impl<'a> Answer<'a> {
    /// Reads one frame; nothing where it is not a JSON object.
    pub fn read(frame: &'a [u8]) -> Option<Self> {
        let mut answer = Answer::default();
        let mut scan = Scanner::new(frame);
        scan.enter(b'{')?;
        while let Some(key) = scan.key()? {
            match key {
                b"id" => answer.id = Some(scan.value()?),
                b"method" => answer.method = Some(scan.string()?),
                b"error" => answer.error = Some(scan.value()?),
                b"result" => answer.read_result(&mut scan)?,
                _ => drop(scan.value()?),
            }
        }
        Some(answer)
    }

    fn read_result(&mut self, scan: &mut Scanner<'a>) -> Option<()> {
        scan.enter(b'{')?;
        while let Some(key) = scan.key()? {
            match key {
                b"isError" => self.is_error = scan.value()? == b"true",
                b"content" => {
                    scan.enter(b'[')?;
                    while scan.item()? {
                        scan.enter(b'{')?;
                        while let Some(key) = scan.key()? {
                            let value = scan.value()?;
                            if key == b"text" && self.text.is_none() {
                                self.text = Some(value);
                            }
                        }
                    }
                }
                _ => drop(scan.value()?),
            }
        }
        Some(())
    }
}

/// A cursor over JSON text. Every method gives nothing where the text is not what it should be.
struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Scanner { bytes, at: 0 }
    }

    fn peek(&mut self) -> Option<u8> {
        while matches!(self.bytes.get(self.at)?, b' ' | b'\t' | b'\r' | b'\n') {
            self.at += 1;
        }
        self.bytes.get(self.at).copied()
    }

    /// Steps into an object or array.
    fn enter(&mut self, open: u8) -> Option<()> {
        let found = self.peek()? == open;
        self.at += 1;
        found.then_some(())
    }

    /// The next key of the object, or `Some(None)` at its end.
    fn key(&mut self) -> Option<Option<&'a [u8]>> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        if self.peek()? == b'}' {
            self.at += 1;
            return Some(None);
        }
        let key = self.string()?;
        self.enter(b':')?;
        Some(Some(key))
    }

    /// Whether another item of the array follows; steps over the array's end where none does.
    fn item(&mut self) -> Option<bool> {
        if self.peek()? == b',' {
            self.at += 1;
        }
        let more = self.peek()? != b']';
        self.at += usize::from(!more);
        Some(more)
    }

    /// A string without its quotes, escapes left as they are.
    fn string(&mut self) -> Option<&'a [u8]> {
        self.enter(b'"')?;
        let start = self.at;
        loop {
            let step = memchr2(b'"', b'\\', self.bytes.get(self.at..)?)?;
            self.at += step;
            if self.bytes[self.at] == b'"' {
                self.at += 1;
                return self.bytes.get(start..self.at - 1);
            }
            self.at += 2;
        }
    }

    /// Any value, as written.
    fn value(&mut self) -> Option<&'a [u8]> {
        let first = self.peek()?;
        let start = self.at;
        match first {
            b'"' => drop(self.string()?),
            b'{' | b'[' => self.skip_nested()?,
            _ => {
                while !matches!(
                    self.bytes.get(self.at),
                    None | Some(b',' | b'}' | b']' | b' ' | b'\t' | b'\r' | b'\n')
                ) {
                    self.at += 1;
                }
            }
        }
        self.bytes.get(start..self.at)
    }

    fn skip_nested(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match *self.bytes.get(self.at)? {
                b'"' => {
                    self.string()?;
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return Some(());
            }
        }
    }
}
