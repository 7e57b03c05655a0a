//! Text in pieces: what is long stays where it came in, and only what stands around it is written.
//!
//! A payload of a megabyte is passed on by reference, from the buffer that it was read into to the
//! system call that writes it; a copy would cost more than everything else that is done with it.

use bytes::{Bytes, BytesMut};

/// A value at least this long is kept apart, in bytes: less is cheaper to copy than to keep track of.
pub(super) const APART: usize = 32 * 1024;

/// The bytes of one message, in one piece or several.
#[derive(Debug, Clone)]
pub struct Frame(Pieces);

#[derive(Debug, Clone)]
enum Pieces {
    One(Bytes),
    Several(Vec<Bytes>),
}

impl Frame {
    /// Its pieces in order.
    pub fn pieces(&self) -> &[Bytes] {
        match &self.0 {
            Pieces::One(piece) => std::slice::from_ref(piece),
            Pieces::Several(pieces) => pieces,
        }
    }

    /// Its size in bytes.
    pub fn len(&self) -> usize {
        self.pieces().iter().map(Bytes::len).sum()
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.pieces().iter().all(Bytes::is_empty)
    }

    /// In one piece; copied where it is in several.
    pub fn to_bytes(&self) -> Bytes {
        match &self.0 {
            Pieces::One(piece) => piece.clone(),
            Pieces::Several(pieces) => joined(pieces),
        }
    }
}

impl From<Bytes> for Frame {
    fn from(bytes: Bytes) -> Self {
        Self(Pieces::One(bytes))
    }
}

/// One after the other.
pub(super) fn joined(pieces: &[Bytes]) -> Bytes {
    let mut all = BytesMut::with_capacity(pieces.iter().map(Bytes::len).sum());
    for piece in pieces {
        all.extend_from_slice(piece);
    }
    all.freeze()
}

/// Writes text piece by piece.
#[derive(Debug)]
pub(super) struct Writer {
    before: Vec<Bytes>,
    /// What is being written behind them.
    pub(super) open: BytesMut,
}

impl Writer {
    /// With room for this much beside what is kept apart.
    pub(super) fn with_capacity(room: usize) -> Self {
        Self { before: Vec::new(), open: BytesMut::with_capacity(room) }
    }

    /// Text that is there already.
    pub(super) fn put(&mut self, piece: &Bytes) {
        if piece.len() < APART {
            self.open.extend_from_slice(piece);
            return;
        }
        if !self.open.is_empty() {
            self.before.push(self.open.split().freeze());
        }
        self.before.push(piece.clone());
    }

    /// All of it.
    pub(super) fn finish(mut self) -> Frame {
        if self.before.is_empty() {
            return self.open.freeze().into();
        }
        if !self.open.is_empty() {
            self.before.push(self.open.freeze());
        }
        Frame(Pieces::Several(self.before))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_long_is_kept_apart_and_in_order() {
        let long = Bytes::from(vec![b'x'; APART]);
        let mut writer = Writer::with_capacity(8);
        writer.open.extend_from_slice(b"ab");
        writer.put(&Bytes::from_static(b"cd"));
        writer.put(&long);
        writer.put(&long);
        writer.open.extend_from_slice(b"ef");
        let frame = writer.finish();
        let [head, one, two, tail] = frame.pieces() else { panic!("{}", frame.pieces().len()) };
        assert_eq!((&head[..], &tail[..]), (&b"abcd"[..], &b"ef"[..]));
        assert!([one, two].iter().all(|piece| piece.as_ptr() == long.as_ptr()), "not copied");
        assert_eq!(frame.len(), 2 * APART + 6);
        let whole = frame.to_bytes();
        assert!(whole.starts_with(b"abcdxx") && whole.ends_with(b"xxef"));
    }

    #[test]
    fn what_is_short_is_one_piece() {
        let mut writer = Writer::with_capacity(8);
        writer.put(&Bytes::from_static(b"{}"));
        let frame = writer.finish();
        assert_eq!(frame.pieces().len(), 1);
        assert!(!frame.is_empty());
        assert_eq!(frame.to_bytes(), "{}");
    }
}
