//! The accept loop: classes of accept errors, a limit on connections, close first on shutdown.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use nix::errno::Errno;
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use super::HttpHandler;
use super::body::BodyBudget;
use super::serve::{ServeLimits, Serving, linger, serve};
pub use super::stream::Listener;
use super::stream::Stream;

/// Limits of one listener.
#[derive(Debug, Clone, Copy)]
pub struct ListenLimits {
    /// Connections at once (`….max_connections`).
    pub connections: usize,
    /// Limits of each.
    pub serve: ServeLimits,
    /// How long to wait after the system had no descriptor or memory for one more connection
    /// (`control.accept_pause`).
    pub accept_pause: Duration,
    /// How long open answers may go on after the stop (`control.close_grace`, `host.drain`).
    pub close_grace: Duration,
}

/// What an accept error means.
#[derive(Debug, PartialEq, Eq)]
enum AcceptError {
    /// This connection's own failure: go on with the next.
    Connection,
    /// No room for one more at the moment: pause.
    NoRoom,
    /// The listener is of no more use.
    Listener,
}

fn classify(error: &io::Error) -> AcceptError {
    match error.raw_os_error().map(Errno::from_raw) {
        Some(Errno::EMFILE | Errno::ENFILE | Errno::ENOBUFS | Errno::ENOMEM) => AcceptError::NoRoom,
        Some(Errno::EBADF | Errno::EINVAL | Errno::ENOTSOCK | Errno::EOPNOTSUPP) => {
            AcceptError::Listener
        }
        // Aborted, reset, interrupted, a protocol error of a peer that has gone already.
        _ => AcceptError::Connection,
    }
}

/// Accepts and serves until `stop` turns true, then closes the listener first, lets open answers
/// finish within the grace, and returns. An error means that the listener itself failed.
pub async fn listen(
    listener: impl Into<Listener>,
    handler: Arc<dyn HttpHandler>,
    limits: ListenLimits,
    mut stop: watch::Receiver<bool>,
) -> io::Result<()> {
    let listener = listener.into();
    let places = Arc::new(Semaphore::new(limits.connections));
    // As many again may be on their way out with a refusal.
    let leaving = Arc::new(Semaphore::new(limits.connections));
    let serving = Arc::new(Serving {
        handler,
        limits: limits.serve,
        bodies: BodyBudget::new(limits.serve.bodies),
    });
    let mut full = false;
    let mut connections = JoinSet::new();
    let outcome = loop {
        let accepted = tokio::select! {
            biased;
            _ = stop.wait_for(|stopped| *stopped) => break Ok(()),
            Some(_) = connections.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok(None) => {}
            Ok(Some(accepted)) => {
                accepted.stream.prepare(limits.serve.write);
                let Ok(place) = Arc::clone(&places).try_acquire_owned() else {
                    if !std::mem::replace(&mut full, true) {
                        let section = limits.serve.section;
                        tracing::warn!(
                            section,
                            limit = limits.connections,
                            "connections are refused"
                        );
                    }
                    turn_away(&accepted.stream, limits.serve.section);
                    // Whoever is one too many even there may lose it with the connection.
                    let Ok(place) = Arc::clone(&leaving).try_acquire_owned() else { continue };
                    connections.spawn(async move {
                        linger(accepted.stream, limits.serve.linger).await;
                        drop(place);
                    });
                    continue;
                };
                full = false;
                let (serving, stop) = (Arc::clone(&serving), stop.clone());
                connections.spawn(async move {
                    serve(accepted, serving, stop).await;
                    drop(place);
                });
            }
            Err(error) => match classify(&error) {
                AcceptError::Connection => {}
                AcceptError::NoRoom => {
                    tracing::warn!(%error, "no room for one more connection");
                    tokio::time::sleep(limits.accept_pause).await;
                }
                AcceptError::Listener => break Err(error),
            },
        }
    };
    drop(listener);
    let closing = async { while connections.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.close_grace, closing).await.is_err() {
        tracing::warn!(
            open = connections.len(),
            limit = ?limits.close_grace,
            "connections were cut: their answers took longer than they may at the end"
        );
    }
    outcome
}

/// Says that there is no room: an answer that can be read, not silence. A fresh socket's buffer
/// takes it without waiting.
fn turn_away(stream: &Stream, section: &str) {
    let text = format!("too many connections at once (setting {section}.max_connections)\n");
    let answer = format!(
        "HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\nContent-Length: {}\r\n\
         Connection: close\r\nRetry-After: 1\r\n\r\n{text}",
        text.len()
    );
    stream.try_write(answer.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accept_errors_have_classes() {
        let of = |errno: Errno| classify(&io::Error::from_raw_os_error(errno as i32));
        assert_eq!(of(Errno::EMFILE), AcceptError::NoRoom);
        assert_eq!(of(Errno::ECONNABORTED), AcceptError::Connection);
        assert_eq!(of(Errno::EBADF), AcceptError::Listener);
    }
}
