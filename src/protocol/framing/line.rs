//! Newline-delimited frames, from bytes that may be split anywhere (F01 to F09).

use bytes::{Bytes, BytesMut};

/// What came off the wire.
#[derive(Debug, PartialEq, Eq)]
pub enum Line {
    /// One line without its end, never empty (blank lines are counted and skipped, F04).
    Frame(Bytes),
    /// A line beyond the limit; its bytes were thrown away up to the next line end, its head kept so
    /// that the call it answers may be found (F08).
    TooLarge {
        /// The first bytes of the line.
        head: Bytes,
        /// Its size in bytes.
        bytes: usize,
    },
}

/// Push decoder: read into [`Self::buffer`], then take lines until there is none.
#[derive(Debug)]
pub struct LineDecoder {
    _limit: usize,
    buffer: BytesMut,
}

impl LineDecoder {
    /// Lines of at most `limit` bytes.
    pub fn new(limit: usize) -> Self {
        Self { _limit: limit, buffer: BytesMut::new() }
    }

    /// Where the next bytes go; append only.
    pub fn buffer(&mut self) -> &mut BytesMut {
        &mut self.buffer
    }

    /// The next whole line, if there is one.
    pub fn next_line(&mut self) -> Option<Line> {
        todo!()
    }
}
