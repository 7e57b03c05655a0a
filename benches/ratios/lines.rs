//! Cuts a byte stream into lines without copying them.

use std::io::{self, Read};

use memchr::memchr;

/// How much is read at once. A pipe holds 64 KiB, so more is never there.
const CHUNK: usize = 64 * 1024;

/// A growing buffer that hands out whole lines.
#[derive(Debug)]
pub struct Lines {
    buffer: Vec<u8>,
    /// Where the first line not yet handed out begins.
    start: usize,
    /// Up to where the buffer was searched for a line end.
    searched: usize,
    /// Up to where the buffer holds data.
    end: usize,
}

impl Lines {
    /// An empty buffer.
    pub fn new() -> Self {
        Lines { buffer: vec![0; 2 * CHUNK], start: 0, searched: 0, end: 0 }
    }

    /// Reads once. Zero is the end of the stream.
    pub fn fill(&mut self, source: &mut impl Read) -> io::Result<usize> {
        if self.start == self.end {
            (self.start, self.searched, self.end) = (0, 0, 0);
        } else if self.start > self.buffer.len() / 2 {
            self.buffer.copy_within(self.start..self.end, 0);
            self.searched -= self.start;
            self.end -= self.start;
            self.start = 0;
        }
        if self.buffer.len() - self.end < CHUNK {
            self.buffer.resize(self.buffer.len() * 2, 0);
        }
        let got = source.read(&mut self.buffer[self.end..])?;
        self.end += got;
        Ok(got)
    }

    /// The next whole line, without its end.
    pub fn next(&mut self) -> Option<&[u8]> {
        let Some(step) = memchr(b'\n', &self.buffer[self.searched..self.end]) else {
            self.searched = self.end;
            return None;
        };
        let line = self.start..self.searched + step;
        self.start = line.end + 1;
        self.searched = self.start;
        Some(&self.buffer[line])
    }
}
