use super::*;
use crate::transport::task::spawn_named;

const LIMITS: LinkLimits =
    LinkLimits { max_frame: 1 << 20, write_queue: 64, write_queue_bytes: 64 << 20 };

fn frame(event: LinkEvent) -> Bytes {
    match event {
        LinkEvent::Frame(frame) => frame,
        other => panic!("expected a frame, got {other:?}"),
    }
}

/// A writer that takes so many bytes at a time, and only as often as it is let.
struct Trickle {
    taken: Arc<std::sync::Mutex<Vec<u8>>>,
    step: usize,
    room: Arc<AtomicU64>,
}

impl AsyncWrite for Trickle {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        if self.room.load(Ordering::SeqCst) == 0 {
            cx.waker().wake_by_ref();
            return Poll::Pending;
        }
        self.room.fetch_sub(1, Ordering::SeqCst);
        let bytes = &bytes[..bytes.len().min(self.step)];
        self.taken.lock().unwrap().extend_from_slice(bytes);
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

#[tokio::test]
async fn frames_go_both_ways_in_order() {
    let (a, mut b) = Link::pair(LIMITS);
    let writer = spawn_named("writer", a.writer.run());
    for n in 0..200 {
        a.sender.send(Bytes::from(format!("{{\"id\":{n}}}"))).await.unwrap();
    }
    for n in 0..200 {
        assert_eq!(frame(b.reader.next().await), format!("{{\"id\":{n}}}"));
    }
    assert_eq!(a.sender.frames_begun(), 200);
    drop(a.sender);
    assert_eq!(writer.await.unwrap(), "closed");
    assert!(matches!(b.reader.next().await, LinkEvent::Closed { .. }));
    assert!(matches!(b.reader.next().await, LinkEvent::Closed { .. }), "closed stays closed");
}

#[tokio::test]
async fn f07_a_frame_split_at_every_byte_arrives_whole() {
    let text = "{\"t\":\"世界😀\"}\n{\"n\":2}\r\n\n{\"n\":3}";
    let (near, far) = tokio::io::duplex(1);
    let mut link = Link::new(near, tokio::io::sink(), LIMITS);
    let feed = spawn_named("feed", async move {
        let mut far = far;
        tokio::io::AsyncWriteExt::write_all(&mut far, text.as_bytes()).await.unwrap();
    });
    assert_eq!(frame(link.reader.next().await), "{\"t\":\"世界😀\"}");
    assert_eq!(frame(link.reader.next().await), "{\"n\":2}");
    assert_eq!(frame(link.reader.next().await), "{\"n\":3}", "the last line needs no end");
    feed.await.unwrap();
    assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }));
}

#[tokio::test]
async fn f08_a_large_frame_passes_and_its_memory_goes_with_it() {
    let (a, mut b) = Link::pair(LinkLimits {
        max_frame: 16 << 20,
        write_queue: 64,
        write_queue_bytes: 64 << 20,
    });
    let _writer = spawn_named("writer", a.writer.run());
    let large = Bytes::from(vec![b'x'; 10 << 20]);
    for _ in 0..3 {
        a.sender.send(large.clone()).await.unwrap();
    }
    a.sender.send(Bytes::from_static(b"small")).await.unwrap();
    for _ in 0..3 {
        assert_eq!(frame(b.reader.next().await), large);
    }
    assert_eq!(frame(b.reader.next().await), "small");
    let pending = tokio::time::timeout(std::time::Duration::from_millis(1), b.reader.next()).await;
    assert!(pending.is_err());
    assert_eq!(b.reader.decoder.buffer().capacity(), 0, "an idle link holds no buffer");
}

#[tokio::test]
async fn f08_a_frame_beyond_the_limit_is_named_and_the_next_one_passes() {
    let (near, far) = tokio::io::duplex(4096);
    let mut link = Link::new(
        near,
        tokio::io::sink(),
        LinkLimits { max_frame: 100, write_queue: 1, write_queue_bytes: 64 << 20 },
    );
    let _feed = spawn_named("feed", async move {
        let mut far = far;
        let bytes = [vec![b'x'; 5000], b"\n{}\n".to_vec()].concat();
        tokio::io::AsyncWriteExt::write_all(&mut far, &bytes).await.unwrap();
    });
    match link.reader.next().await {
        LinkEvent::TooLarge { bytes, .. } => assert_eq!(bytes, 5000),
        other => panic!("{other:?}"),
    }
    assert_eq!(frame(link.reader.next().await), "{}");
}

#[tokio::test]
async fn f23_what_was_begun_is_counted_to_the_frame() {
    let taken = Arc::new(std::sync::Mutex::new(Vec::new()));
    let room = Arc::new(AtomicU64::new(0));
    let io = Trickle { taken: Arc::clone(&taken), step: 3, room: Arc::clone(&room) };
    let link = Link::new(tokio::io::empty(), io, LIMITS);
    for text in ["aaaa", "bbbb", "cccc"] {
        link.sender.try_send(Bytes::from_static(text.as_bytes())).unwrap();
    }
    let _writer = spawn_named("writer", link.writer.run());
    // Three bytes a step: `aaa`, `a`, LF, `bbb`, ...
    for (steps, begun) in [(0, 0), (1, 1), (2, 1), (3, 1), (4, 2), (6, 2), (7, 3)] {
        let now = room.load(Ordering::SeqCst);
        assert_eq!(now, 0);
        let had = taken.lock().unwrap().len();
        let want = [0, 3, 4, 5, 8, 9, 10, 13][steps];
        for _ in had..want {
            if taken.lock().unwrap().len() < want {
                room.fetch_add(1, Ordering::SeqCst);
                while room.load(Ordering::SeqCst) > 0 {
                    tokio::task::yield_now().await;
                }
            }
        }
        tokio::task::yield_now().await;
        assert_eq!(link.sender.frames_begun(), begun, "after {steps} steps");
    }
}

#[tokio::test]
async fn a_full_queue_is_refused_and_a_closed_link_says_so() {
    let (a, _b) =
        Link::pair(LinkLimits { max_frame: 64, write_queue: 2, write_queue_bytes: 64 << 20 });
    a.sender.try_send(Bytes::from_static(b"1")).unwrap();
    a.sender.try_send(Bytes::from_static(b"2")).unwrap();
    assert_eq!(a.sender.try_send(Bytes::from_static(b"3")), Err(SendRefused::Full));
    drop(a.writer);
    assert_eq!(a.sender.try_send(Bytes::from_static(b"4")), Err(SendRefused::Closed));
}

#[tokio::test]
async fn close_writes_what_is_queued_and_ends_the_stream() {
    let (a, mut b) = Link::pair(LIMITS);
    a.sender.try_send(Bytes::from_static(b"last")).unwrap();
    a.sender.closer().close();
    assert_eq!(a.writer.run().await, "closed");
    assert_eq!(frame(b.reader.next().await), "last");
    assert!(matches!(b.reader.next().await, LinkEvent::Closed { .. }));
    assert_eq!(a.sender.try_send(Bytes::new()), Err(SendRefused::Closed));
}

#[tokio::test]
async fn a_dead_peer_ends_the_writer() {
    let (a, b) = Link::pair(LIMITS);
    drop(b);
    a.sender.try_send(Bytes::from_static(b"x")).unwrap();
    assert!(a.writer.run().await.starts_with("writing failed"));
}

#[tokio::test]
async fn a_head_read_before_comes_first() {
    let head = b"one\ntw";
    let mut link = Link::with_head(head, &b"o\n"[..], tokio::io::sink(), LIMITS);
    assert_eq!(frame(link.reader.next().await), "one");
    assert_eq!(frame(link.reader.next().await), "two");
}

/// A host that never reads costs its budget and one frame, however few frames that are.
#[tokio::test]
async fn bytes_that_wait_are_bounded_and_one_large_frame_passes() {
    let limits = LinkLimits { max_frame: 1000, write_queue: 64, write_queue_bytes: 250 };
    let (a, mut b) = Link::pair(limits);
    let large = Bytes::from(vec![b'x'; 900]);
    assert!(a.sender.has_room());
    a.sender.try_send(large.clone()).unwrap();
    assert!(!a.sender.has_room(), "one frame beyond the budget fills the queue");
    a.sender.try_send(Bytes::from_static(b"must")).unwrap();
    let sender = a.sender.clone();
    let mut waiting = spawn_named("waiting", async move { sender.room().await });
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished());
    let writer = spawn_named("writer", a.writer.run());
    assert_eq!(frame(b.reader.next().await), large);
    (&mut waiting).await.unwrap();
    assert!(a.sender.has_room(), "what is written is not counted");
    for _ in 0..20 {
        a.sender.try_send(large.clone()).unwrap();
    }
    assert!(!a.sender.has_room());
    assert_eq!(frame(b.reader.next().await), "must");
    let end = async { a.sender.send(Bytes::from_static(b"end")).await };
    let rest = async {
        for _ in 0..20 {
            assert_eq!(frame(b.reader.next().await), large);
        }
        frame(b.reader.next().await)
    };
    let (sent, last) = tokio::join!(end, rest);
    assert_eq!((sent, last), (Ok(()), Bytes::from_static(b"end")));
    for _ in 0..20 {
        a.sender.try_send(large.clone()).unwrap();
    }
    drop(b);
    writer.await.unwrap();
    a.sender.room().await;
    assert!(a.sender.has_room(), "nobody waits for a peer that is gone");
}
