//! Events of a streaming answer, as the daemon writes them: `event:` and `data:` lines.

use mcpx::transport::http::control_call::{CallFailed, Stream};

/// One event.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Event {
    /// Its name.
    pub(crate) name: String,
    /// Its data.
    pub(crate) data: String,
}

/// Cuts chunks into events.
#[derive(Debug, Default)]
pub(crate) struct Events {
    unread: Vec<u8>,
}

impl Events {
    /// The next event; `None` at the end of the stream.
    pub(crate) async fn next(&mut self, stream: &mut Stream) -> Result<Option<Event>, CallFailed> {
        loop {
            if let Some(event) = self.cut() {
                return Ok(Some(event));
            }
            match stream.next().await? {
                Some(chunk) => self.unread.extend_from_slice(&chunk),
                None => return Ok(None),
            }
        }
    }

    /// An event that is complete; comments (keep-alive) alone are none.
    fn cut(&mut self) -> Option<Event> {
        loop {
            let end = self.unread.windows(2).position(|pair| pair == b"\n\n")?;
            let block: Vec<u8> = self.unread.drain(..end + 2).collect();
            let text = String::from_utf8_lossy(&block);
            let (mut name, mut data) = (String::new(), Vec::new());
            for line in text.lines() {
                let (field, value) = line.split_once(':').unwrap_or((line, ""));
                let value = value.strip_prefix(' ').unwrap_or(value);
                match field {
                    "event" => value.clone_into(&mut name),
                    "data" => data.push(value),
                    _ => {}
                }
            }
            if !data.is_empty() {
                return Some(Event { name, data: data.join("\n") });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_cut_at_empty_lines_wherever_chunks_end() {
        let whole = b": alive\n\nevent: line\ndata: {\"a\":1}\n\ndata: x\ndata: y\n\n";
        for split in 0..whole.len() {
            let mut events = Events::default();
            let mut found = Vec::new();
            let (head, tail) = whole.split_at(split);
            for chunk in [head, tail] {
                events.unread.extend_from_slice(chunk);
                found.extend(std::iter::from_fn(|| events.cut()));
            }
            let found: Vec<_> =
                found.iter().map(|event| (event.name.as_str(), event.data.as_str())).collect();
            assert_eq!(found, [("line", "{\"a\":1}"), ("", "x\ny")]);
        }
    }
}
