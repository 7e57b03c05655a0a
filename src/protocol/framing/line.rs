//! Newline-delimited frames, from bytes that may be split anywhere (F01 to F09).
//!
//! Nothing is copied: a line is split off the buffer that was read into. Nothing is checked beyond
//! line ends, either; text that is no UTF-8 is mended where it is parsed
//! ([`crate::protocol::jsonrpc::parse_noting`], F09).

use bytes::{Buf, Bytes, BytesMut};

/// How much of the start, and as much of the end, of a line beyond the limit is kept: enough for the
/// members that stand around a payload. Some SDKs write `id` first, others last.
const KEPT: usize = 512;

/// A read buffer that has grown beyond this for one line is given up with that line, so that an idle
/// connection does not hold the memory of its largest message.
const GIVE_BACK: usize = 64 * 1024;

/// Puts a blank in the place of each line end, so that JSON text becomes a line (F02). Between tokens
/// one is as good as the other; within a string JSON has no line end that is not escaped.
pub fn blank_line_ends(json: &mut [u8]) {
    let mut rest = json;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest) {
        let (_, from) = rest.split_at_mut(at);
        let Some((end, after)) = from.split_first_mut() else { return };
        *end = b' ';
        rest = after;
    }
}

/// What came off the wire.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// One line without its end, never empty (blank lines are counted and skipped, F04).
    Frame(Bytes),
    /// A line beyond the limit; its bytes were thrown away up to the next line end, its head kept so
    /// that the call it answers may be found (F08).
    TooLarge {
        /// The first bytes of the line and, directly after them, its last ones.
        head: Bytes,
        /// Its size in bytes.
        bytes: usize,
    },
}

/// Push decoder: read into [`Self::buffer`], then take lines until there is none.
#[derive(Debug)]
pub struct LineDecoder {
    limit: usize,
    buffer: BytesMut,
    /// How much of the buffer is known to hold no line end.
    scanned: usize,
    /// Set while a line beyond the limit is thrown away.
    oversized: Option<Oversized>,
    blank: u64,
}

#[derive(Debug)]
struct Oversized {
    head: BytesMut,
    tail: BytesMut,
    bytes: usize,
}

impl Oversized {
    fn take(&mut self, part: &[u8]) {
        self.bytes += part.len();
        self.tail.extend_from_slice(part.get(part.len().saturating_sub(KEPT)..).unwrap_or(part));
        self.tail.advance(self.tail.len().saturating_sub(KEPT));
    }

    fn finish(mut self) -> Line {
        self.head.extend_from_slice(&self.tail);
        Line::TooLarge { head: self.head.freeze(), bytes: self.bytes }
    }
}

impl LineDecoder {
    /// Lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { limit, buffer: BytesMut::new(), scanned: 0, oversized: None, blank: 0 }
    }

    /// Where the next bytes go; append only.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// How many blank lines were skipped so far.
    pub fn blank_lines(&self) -> u64 {
        self.blank
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line> {
        loop {
            let fresh = self.buffer.get(self.scanned..).unwrap_or_default();
            let Some(found) = memchr::memchr(b'\n', fresh) else {
                self.scanned = self.buffer.len();
                self.shed_oversized();
                return None;
            };
            let whole = self.split(self.scanned + found + 1);
            let line = whole.get(..whole.len() - 1).unwrap_or_default();
            if let Some(line) = self.classify(&whole, line) {
                return Some(line);
            }
        }
    }

    /// What the peer wrote after its last line end, when there will be no more: a last message that
    /// was not ended is one all the same.
    pub fn finish(&mut self) -> Option<Line> {
        let whole = self.split(self.buffer.len());
        self.classify(&whole, &whole)
    }

    /// `line` is a part of `whole`.
    fn classify(&mut self, whole: &Bytes, line: &[u8]) -> Option<Line> {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if let Some(mut oversized) = self.oversized.take() {
            oversized.take(line);
            return Some(oversized.finish());
        }
        // F03: a mark stands at the start of a stream; some programs write one before each line.
        let line = line.strip_prefix(b"\xEF\xBB\xBF").unwrap_or(line);
        if line.trim_ascii().is_empty() {
            self.blank += u64::from(!whole.is_empty());
            return None;
        }
        if line.len() > self.limit {
            let mut oversized = Oversized::start(line);
            oversized.take(line.get(KEPT..).unwrap_or_default());
            return Some(oversized.finish());
        }
        Some(Line::Frame(whole.slice_ref(line)))
    }

    /// Takes the first `length` bytes off the buffer.
    fn split(&mut self, length: usize) -> Bytes {
        let line = self.buffer.split_to(length).freeze();
        self.scanned = 0;
        if line.len() > GIVE_BACK {
            // What follows moves to a buffer of its own: the line's memory ends with the line.
            self.buffer = BytesMut::from(self.buffer.as_ref());
        }
        line
    }

    /// Throws away what has been read of a line that is too long already.
    fn shed_oversized(&mut self) {
        if let Some(oversized) = &mut self.oversized {
            // A CR may be the first half of the line end; it stays until the next byte is known.
            let keep = usize::from(self.buffer.last() == Some(&b'\r'));
            let part = self.buffer.split_to(self.buffer.len() - keep);
            oversized.take(&part);
            self.scanned = 0;
        } else if self.buffer.len() > self.limit.saturating_add(2) {
            let mut oversized = Oversized::start(&self.buffer);
            self.buffer.advance(oversized.bytes);
            oversized.take(&self.buffer);
            self.buffer = BytesMut::new();
            self.scanned = 0;
            self.oversized = Some(oversized);
        }
    }
}

impl Oversized {
    fn start(line: &[u8]) -> Self {
        let head = BytesMut::from(line.get(..KEPT).unwrap_or(line));
        Self { bytes: head.len(), head, tail: BytesMut::new() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn feed(decoder: &mut LineDecoder, bytes: &[u8]) -> Vec<Line> {
        decoder.buffer().extend_from_slice(bytes);
        std::iter::from_fn(|| decoder.next_line()).collect()
    }

    fn frame(text: &str) -> Line {
        Line::Frame(Bytes::copy_from_slice(text.as_bytes()))
    }

    #[test]
    fn f01_crlf_ends() {
        let mut decoder = LineDecoder::new(100);
        assert_eq!(
            feed(&mut decoder, b"{\"a\":1}\r\n{\"b\":2}\n"),
            [frame("{\"a\":1}"), frame("{\"b\":2}")]
        );
        assert_eq!(feed(&mut decoder, b"{\"c\":3}\r"), []);
        assert_eq!(feed(&mut decoder, b"\n"), [frame("{\"c\":3}")]);
    }

    #[test]
    fn f02_only_the_cr_before_lf_goes() {
        let mut decoder = LineDecoder::new(100);
        assert_eq!(
            feed(&mut decoder, b"{\r\"a\":\"\\r\\n\"}\r\r\n"),
            [frame("{\r\"a\":\"\\r\\n\"}\r")]
        );
    }

    #[test]
    fn f03_marks() {
        let mut decoder = LineDecoder::new(100);
        assert_eq!(feed(&mut decoder, b"\xEF\xBB\xBF{}\n"), [frame("{}")]);
        assert_eq!(feed(&mut decoder, b"\xEF\xBB\xBF[]\n\xEF\xBB\xBF\n"), [frame("[]")]);
    }

    #[test]
    fn f04_blank_lines_are_counted() {
        let mut decoder = LineDecoder::new(100);
        assert_eq!(feed(&mut decoder, b"\n\r\n  \t\nx\n"), [frame("x")]);
        assert_eq!(decoder.blank_lines(), 3);
    }

    #[test]
    fn f07_byte_at_a_time_and_split_characters() {
        let text = "{\"text\":\"世界😀\"}";
        let mut decoder = LineDecoder::new(100);
        for byte in text.as_bytes() {
            assert_eq!(feed(&mut decoder, &[*byte]), []);
        }
        assert_eq!(feed(&mut decoder, b"\n"), [frame(text)]);
        assert_eq!(feed(&mut decoder, b"1\n2\n3"), [frame("1"), frame("2")]);
        assert_eq!(feed(&mut decoder, b"3\n"), [frame("33")]);
    }

    /// F08: the long line is thrown away while it arrives, the next one is whole, and both ends of
    /// the long one are kept, since some servers write the id last.
    #[test]
    fn f08_a_line_beyond_the_limit() {
        const LIMIT: usize = 100_000;
        let mut decoder = LineDecoder::new(LIMIT);
        assert_eq!(feed(&mut decoder, b"{\"result\":\""), []);
        let mut most = 0;
        for _ in 0..1000 {
            assert_eq!(feed(&mut decoder, &[b'x'; 1000]), []);
            most = most.max(decoder.buffer().len());
        }
        assert!(most <= LIMIT + 1002, "{most} bytes were held");
        let lines = feed(&mut decoder, b"\",\"id\":7}\r\n{\"id\":8}\n");
        let [Line::TooLarge { head, bytes }, small] = lines.as_slice() else { panic!("{lines:?}") };
        assert_eq!(*bytes, 11 + 1_000_000 + 9);
        assert!(head.starts_with(b"{\"result\":\"xxx") && head.ends_with(b"x\",\"id\":7}"));
        assert_eq!(head.len(), 2 * KEPT);
        assert_eq!(*small, frame("{\"id\":8}"));
    }

    #[test]
    fn f08_the_limit_is_exact() {
        for (size, fits) in [(99, true), (100, true), (101, false)] {
            for end in ["\n", "\r\n"] {
                let text = format!("{}{end}", "x".repeat(size));
                // In one piece and byte by byte, which go different ways.
                let mut whole = LineDecoder::new(100);
                let lines = feed(&mut whole, text.as_bytes());
                assert_eq!(matches!(lines.as_slice(), [Line::Frame(_)]), fits, "{size} {end:?}");
                let mut piecewise = LineDecoder::new(100);
                let lines: Vec<Line> =
                    text.bytes().flat_map(|byte| feed(&mut piecewise, &[byte])).collect();
                match lines.as_slice() {
                    [Line::Frame(frame)] => assert!(fits && frame.len() == size),
                    [Line::TooLarge { bytes, .. }] => assert!(!fits && *bytes == size),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    #[test]
    fn large_lines_do_not_hold_the_buffer() {
        let mut decoder = LineDecoder::new(10_000_000);
        let mut text = vec![b'x'; 5_000_000];
        text.extend_from_slice(b"\nrest");
        assert_eq!(feed(&mut decoder, &text).len(), 1);
        assert!(decoder.buffer().capacity() < 1000, "{}", decoder.buffer().capacity());
        assert_eq!(feed(&mut decoder, b"\n"), [frame("rest")]);
    }

    #[test]
    fn the_last_line_needs_no_end() {
        let mut decoder = LineDecoder::new(100);
        assert_eq!(feed(&mut decoder, b"a\nb"), [frame("a")]);
        assert_eq!(decoder.finish(), Some(frame("b")));
        assert_eq!(decoder.finish(), None);
    }
}
