//! Our own stdin and stdout as a link. The only writer to stdout outside `bin/mcpx/output.rs`.
//!
//! A host gives pipes or sockets, and those are registered with the reactor: no thread, no copy. A
//! pipe is opened anew through `/proc/self/fd`, so that making it non-blocking is our own affair and
//! not that of every process that shares the description (the shell that started us, say). Whatever
//! cannot be polled (a terminal, a file) gets a thread that reads it into a pipe.

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::path::PathBuf;

use nix::errno::Errno;
use tokio::io::{AsyncRead, AsyncWrite, BufWriter, Interest};
use tokio::net::UnixStream;
use tokio::net::unix::pipe;

use crate::transport::link::{Link, LinkLimits};

type Reader = Box<dyn AsyncRead + Send + Unpin>;
type Writer = Box<dyn AsyncWrite + Send + Unpin>;

/// A link over our stdin and stdout. Taken once, by `mcpx serve`. Needs the runtime.
pub fn link(limits: LinkLimits) -> io::Result<Link> {
    let stdin = io::stdin().as_fd().try_clone_to_owned()?;
    let stdout = io::stdout().as_fd().try_clone_to_owned()?;
    over(stdin, stdout, limits)
}

/// Resolves when nobody reads our stdout any more; never where that cannot be seen without writing:
/// only a pipe tells.
pub async fn hung_up() {
    match io::stdout().as_fd().try_clone_to_owned() {
        Ok(stdout) => deserted(stdout).await,
        Err(_) => std::future::pending().await,
    }
}

/// Resolves when the other end of this pipe is closed.
async fn deserted(pipe: OwnedFd) {
    let file = File::from(pipe);
    if file.metadata().is_ok_and(|meta| meta.file_type().is_fifo()) {
        match pipe::OpenOptions::new().open_sender(reopened(&file)) {
            Ok(watched) if watched.ready(Interest::ERROR).await.is_ok() => return,
            Err(error) if error.raw_os_error() == Some(Errno::ENXIO as i32) => return,
            _ => {}
        }
    }
    std::future::pending::<()>().await;
}

/// A link over any two descriptors.
fn over(stdin: OwnedFd, stdout: OwnedFd, limits: LinkLimits) -> io::Result<Link> {
    Ok(Link::new(reader(stdin)?, writer(stdout)?, limits))
}

fn reader(stdin: OwnedFd) -> io::Result<Reader> {
    let file = File::from(stdin);
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        let private = pipe::OpenOptions::new().open_receiver(reopened(&file));
        // Where the pipe is another user's, or there is no /proc, the description is shared.
        return Ok(Box::new(private.or_else(|_| pipe::Receiver::from_owned_fd(file.into()))?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    let (into, from) = io::pipe().map(|(from, into)| (into, from))?;
    std::thread::Builder::new().name("stdin".to_owned()).spawn(move || {
        // Ends with the input, or when nobody reads the pipe any more.
        let _ = io::copy(&mut &file, &mut &into);
    })?;
    Ok(Box::new(pipe::Receiver::from_owned_fd(from.into())?))
}

fn writer(stdout: OwnedFd) -> io::Result<Writer> {
    let file = File::from(stdout);
    let kind = file.metadata()?.file_type();
    if kind.is_fifo() {
        let private = pipe::OpenOptions::new().open_sender(reopened(&file));
        return Ok(Box::new(private.or_else(|_| pipe::Sender::from_owned_fd(file.into()))?));
    }
    if kind.is_socket() {
        return Ok(Box::new(socket(file)?));
    }
    // A file takes all at once; the buffer makes one write of a frame and its line end.
    Ok(Box::new(BufWriter::new(tokio::fs::File::from_std(file))))
}

/// Node and Bun give their children sockets. The other end's description is its own, so that
/// non-blocking here is seen by none but those that hold this very end.
fn socket(file: File) -> io::Result<UnixStream> {
    let socket = std::os::unix::net::UnixStream::from(OwnedFd::from(file));
    socket.set_nonblocking(true)?;
    UnixStream::from_std(socket)
}

fn reopened(file: &File) -> PathBuf {
    PathBuf::from(format!("/proc/self/fd/{}", file.as_raw_fd()))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Seek, Write};

    use bytes::Bytes;
    use nix::fcntl::{FcntlArg, OFlag, fcntl};

    use super::*;
    use crate::transport::link::LinkEvent;
    use crate::transport::task::spawn_named;

    const LIMITS: LinkLimits =
        LinkLimits { max_frame: 1000, write_queue: 4, write_queue_bytes: 1000 };

    fn blocks(fd: impl AsFd) -> bool {
        let flags = OFlag::from_bits_retain(fcntl(fd, FcntlArg::F_GETFL).unwrap());
        !flags.contains(OFlag::O_NONBLOCK)
    }

    async fn expect_frame(link: &mut Link, text: &str) {
        match link.reader.next().await {
            LinkEvent::Frame(frame) => assert_eq!(frame, text),
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test]
    async fn pipes_are_polled_and_left_as_they_were() {
        let (in_read, mut in_write) = io::pipe().unwrap();
        let (mut out_read, out_write) = io::pipe().unwrap();
        let (kept_in, kept_out) = (in_read.try_clone().unwrap(), out_write.try_clone().unwrap());
        let mut link = over(in_read.into(), out_write.into(), LIMITS).unwrap();
        assert!(blocks(&kept_in) && blocks(&kept_out), "others share these descriptions");

        in_write.write_all(b"{\"id\":1}\r\n").unwrap();
        expect_frame(&mut link, "{\"id\":1}").await;
        link.sender.send(Bytes::from_static(b"{\"id\":2}")).await.unwrap();
        let Link { mut reader, sender, writer } = link;
        drop(sender);
        writer.run().await;
        drop(kept_out);
        let mut text = String::new();
        out_read.read_to_string(&mut text).unwrap();
        assert_eq!(text, "{\"id\":2}\n");
        // H-33: the end of the input is seen at once.
        drop(in_write);
        assert!(matches!(reader.next().await, LinkEvent::Closed { .. }));
    }

    /// H-33: a host that is gone is noticed without writing to it.
    #[tokio::test]
    async fn h33_a_pipe_that_nobody_reads_is_seen() {
        let (read, mut write) = io::pipe().unwrap();
        let mut watch = std::pin::pin!(deserted(write.try_clone().unwrap().into()));
        let wait = std::time::Duration::from_millis(20);
        write.write_all(b"unread").unwrap();
        assert!(tokio::time::timeout(wait, watch.as_mut()).await.is_err());
        drop(read);
        watch.await;
    }

    #[tokio::test]
    async fn sockets_are_polled() {
        let (near_in, mut far_in) = std::os::unix::net::UnixStream::pair().unwrap();
        let (near_out, mut far_out) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut link = over(near_in.into(), near_out.into(), LIMITS).unwrap();
        far_in.write_all(b"in\n").unwrap();
        expect_frame(&mut link, "in").await;
        link.sender.send(Bytes::from_static(b"out")).await.unwrap();
        let writer = spawn_named("writer", link.writer.run());
        drop(link.sender);
        writer.await.unwrap();
        let mut text = String::new();
        far_out.read_to_string(&mut text).unwrap();
        assert_eq!(text, "out\n");
        drop(far_in);
        assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }), "H-33");
    }

    #[tokio::test]
    async fn files_and_devices_work_too() {
        let mut input = tempfile::tempfile().unwrap();
        input.write_all(b"one\ntwo").unwrap();
        input.rewind().unwrap();
        let output = tempfile::tempfile().unwrap();
        let mut copy = output.try_clone().unwrap();
        let mut link = over(input.into(), output.into(), LIMITS).unwrap();
        expect_frame(&mut link, "one").await;
        expect_frame(&mut link, "two").await;
        assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }));
        link.sender.send(Bytes::from_static(b"out")).await.unwrap();
        drop(link.sender);
        link.writer.run().await;
        let mut text = String::new();
        copy.rewind().unwrap();
        copy.read_to_string(&mut text).unwrap();
        assert_eq!(text, "out\n");

        let null = File::open("/dev/null").unwrap();
        let mut link = over(null.into(), tempfile::tempfile().unwrap().into(), LIMITS).unwrap();
        assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }));
    }
}
