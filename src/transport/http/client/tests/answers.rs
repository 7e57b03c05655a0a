//! What comes back, in every spelling.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;

const JSON: &str = "200 OK\r\nContent-Type: application/json";
const EVENTS: &str = "200 OK\r\nContent-Type: text/event-stream";

/// What a client makes of an answer.
async fn made_of(todo: Vec<Do>) -> Vec<String> {
    let server = server(vec![todo]).await;
    all(&server.client(), post()).await
}

#[tokio::test]
async fn a_request_says_what_it_is_and_what_it_takes() {
    let mut server = server(vec![answer(JSON, "{}"), answer(JSON, "{}")]).await;
    let client = server.client();
    let own = [("mcp-method".parse().unwrap(), HeaderValue::from_static("ping"))];
    let posted = Exchange { headers: own.into_iter().collect(), ..post() };
    assert_eq!(all(&client, posted).await, ["frame {}", "whole"]);
    let seen = server.next().await;
    assert!(seen.starts_with("POST /mcp HTTP/1.1\r\n"), "{seen}");
    for line in [
        "accept: application/json, text/event-stream",
        "accept-encoding: identity",
        "authorization: Bearer hush",
        "content-length: 8",
        "content-type: application/json",
        "mcp-method: ping",
    ] {
        assert!(seen.contains(&format!("\r\n{line}\r\n")), "{seen}");
    }
    assert_eq!(server.next().await, "closed");
    all(&client, get()).await;
    let seen = server.next().await;
    assert!(seen.starts_with("GET /mcp ") && seen.contains("\r\naccept: text/event-stream\r\n"));
    assert!(!seen.contains("content-type"), "{seen}");
}

#[tokio::test]
async fn f21_media_types_are_taken_in_every_spelling() {
    for kind in ["application/json; charset=utf-8", "Application/JSON", "application/x+json"] {
        let head = format!("200 OK\r\nContent-Type: {kind}");
        assert_eq!(made_of(answer(&head, "{\"a\":1}")).await, ["frame {\"a\":1}", "whole"]);
    }
    let head = "200 OK\r\nContent-Type: text/event-stream;charset=UTF-8";
    assert_eq!(made_of(answer(head, "data: {}\n\n")).await, ["frame {}", "whole"]);
    // Missing, or declared as something else than it is.
    for head in ["200 OK", JSON, "200 OK\r\nContent-Type: text/plain"] {
        assert_eq!(made_of(answer(head, "\u{feff}{}")).await, ["frame {}", "whole"], "{head}");
        let stream = chunked(head, &["da", "ta: {}\n", "\n"]);
        assert_eq!(made_of(stream).await, ["frame {}", "whole"], "{head}");
    }
}

#[tokio::test]
async fn f21_what_is_no_answer_is_named() {
    let page = "<html><title>Sign in to Acme</title>";
    let html = answer("200 OK\r\nContent-Type: text/html", page);
    let said = made_of(html).await;
    assert!(said[0].starts_with("unreadable http://127.0.0.1:"), "{said:?}");
    assert!(said[0].contains("a web page titled \"Sign in to Acme\""), "{said:?}");
    let plain = answer("200 OK\r\nContent-Type: text/plain", "use POST\n");
    let said = made_of(plain).await;
    assert!(said[0].ends_with("an event stream: text/plain, \"use POST\""), "{said:?}");
    let said = made_of(answer("200 OK", "hello")).await;
    assert!(said[0].ends_with("neither JSON nor an event stream: \"hello\""), "{said:?}");
    let gzip = answer(&format!("{JSON}\r\nContent-Encoding: gzip"), "\u{1f}?");
    assert!(made_of(gzip).await[0].contains("compressed its answer (gzip)"));
}

#[tokio::test]
async fn a_credential_that_is_quoted_is_masked() {
    let said = made_of(answer("403 Forbidden", "no such token: hush")).await;
    assert_eq!(said, ["refused 403 no such token: ***"]);
    let json = "403 Forbidden\r\nContent-Type: application/json";
    let said = made_of(answer(json, "{\"a\":\"Bearer hush\"}")).await;
    assert_eq!(said, ["refused 403 {\"a\":\"***\"}"]);
    for kind in ["text/plain", "text/html"] {
        let head = format!("200 OK\r\nContent-Type: {kind}");
        let said = made_of(answer(&head, "<title>what is hush?</title>")).await;
        assert!(said[0].contains("what is ***?"), "{said:?}");
    }
}

#[tokio::test]
async fn f20_whatever_success_a_notification_gets() {
    for (head, body, expected) in [
        ("204 No Content", "", &["head 204 No Content false", "whole"][..]),
        (
            "202 Accepted\r\nContent-Type: text/plain",
            "Accepted",
            &["head 202 Accepted false", "whole"],
        ),
        ("202 Accepted", "", &["head 202 Accepted false", "whole"]),
        ("200 OK", "", &["whole"]),
        (JSON, "null", &["frame null", "whole"]),
        (JSON, " \r\n", &["whole"]),
    ] {
        assert_eq!(made_of(answer(head, body)).await, expected, "{head}");
    }
}

#[tokio::test]
async fn f20_a_stream_that_stays_open_is_closed_with_its_guard() {
    let mut todo = unfinished(EVENTS, &[": hello\n\n"]);
    todo.push(Do::UntilClosed);
    let mut server = server(vec![todo]).await;
    let mut running = start(&server.client(), post());
    assert_eq!(running.next().await, "head 200 OK true");
    assert!(server.next().await.starts_with("POST "));
    drop(running.guard);
    assert_eq!(server.next().await, "closed");
}

#[tokio::test]
async fn f16_a_priming_event_is_a_mark_and_no_frame() {
    let priming = &["data:\nid: 0\nretry: 3000\n\n", "data: {\"id\":1}\n\n", "id: 7\n\n"];
    assert_eq!(
        made_of(chunked(EVENTS, priming)).await,
        ["mark Some(\"0\") Some(3s)", "frame {\"id\":1}", "mark Some(\"7\") None", "whole"]
    );
    let both = made_of(answer(EVENTS, "id: 8\ndata: {}\n\n")).await;
    assert_eq!(both, ["mark Some(\"8\") None", "frame {}", "whole"], "the mark comes first");
}

#[tokio::test]
async fn f17_lines_become_one_and_foreign_events_are_left_out() {
    let stream = &[
        "\u{feff}event: message\r\ndata: {\"a\":\r",
        "\ndata: 1}\r\n\r\nevent: other\ndata: {}\n\n",
        "data: \n\ndata:[]\r\r",
    ];
    assert_eq!(made_of(chunked(EVENTS, stream)).await, ["frame {\"a\": 1}", "frame []", "whole"]);
    // A text over several lines would break a link, where a frame is a line.
    assert_eq!(made_of(answer(JSON, "{\n\t\"a\":\r\n1}\n")).await[0], "frame { \t\"a\":  1} ");
}

#[tokio::test]
async fn frames_that_somebody_takes_are_not_told() {
    let server = server(vec![answer(EVENTS, "data: {\"id\":1}\n\ndata: {}\n\n")]).await;
    let (taken, mut took) = mpsc::channel(1);
    let (sender, events) = mpsc::channel(1);
    let take = move |frame: Bytes| {
        if !frame.starts_with(b"{\"id\"") {
            return Some(frame);
        }
        taken.try_send(frame).unwrap();
        None
    };
    let to = ExchangeTo { take: Arc::new(take), events: sender };
    let guard = server.client().start(post(), to);
    let mut running = Running { guard, events };
    assert_eq!(running.next().await, "head 200 OK true");
    assert_eq!(running.next().await, "frame {}");
    assert_eq!(took.recv().await.unwrap(), "{\"id\":1}");
}

#[tokio::test]
async fn a_refusal_brings_its_words() {
    let head = "401 Unauthorized\r\nWWW-Authenticate: Bearer\r\nContent-Type: text/plain";
    assert_eq!(made_of(answer(head, "who are you")).await, ["refused 401 who are you"]);
    let long = "x".repeat(500);
    let cut = format!("refused 500 {}", "x".repeat(LIMITS.error_body));
    assert_eq!(made_of(answer("500 Oops", &long)).await, [cut]);
    // An answer in the protocol's own words is worth nothing in part.
    let error = format!("{{\"error\":\"{long}\"}}");
    let head = "400 Bad Request\r\nContent-Type: application/json";
    assert_eq!(made_of(answer(head, &error)).await, [format!("refused 400 {error}")]);
}

#[tokio::test(start_paused = true)]
async fn the_words_of_a_refusal_are_not_waited_for_without_end() {
    let mut todo = unfinished("503 Busy", &["wait"]);
    todo.push(Do::UntilClosed);
    assert_eq!(made_of(todo).await, ["refused 503 "]);
}

#[tokio::test]
async fn what_is_too_large_is_not_read() {
    let head = format!("HTTP/1.1 {JSON}\r\nContent-Length: 1001\r\n\r\n");
    let todo = vec![Do::Read, Do::Write(head), Do::UntilClosed];
    assert_eq!(made_of(todo).await, ["too large 1001"]);
    let part = format!("[{}", "1,".repeat(300));
    let mut todo = unfinished(JSON, &[&part, &part]);
    todo.push(Do::UntilClosed);
    assert_eq!(made_of(todo).await, ["too large 1202"]);
    let event = format!("data: {part}\n");
    let mut todo = unfinished(EVENTS, &["data: {}\n\n", &event, &event]);
    todo.push(Do::UntilClosed);
    let said = made_of(todo).await;
    assert_eq!(said[0], "frame {}");
    assert!(said[1].starts_with("too large 12"), "{said:?}");
}

#[tokio::test]
async fn an_answer_that_breaks_off_is_no_answer() {
    let head = format!("HTTP/1.1 {JSON}\r\nContent-Length: 10\r\n\r\n{{\"a\"");
    let said = made_of(vec![Do::Read, Do::Write(head)]).await;
    assert!(said[0].starts_with("failed sent=true the answer of http://127"), "{said:?}");
    assert!(said[0].contains("broke off"), "{said:?}");
    let said = made_of(unfinished(EVENTS, &["data: {}\n\ndata: {\"b"])).await;
    assert_eq!(said[0], "frame {}");
    assert!(said[1].starts_with("failed sent=true "), "{said:?}");
    // A stream that ends in order may leave out its last line ends.
    assert_eq!(made_of(chunked(EVENTS, &["data: {}"])).await, ["frame {}", "whole"]);
}

#[tokio::test]
async fn no_answer_at_all_says_whether_the_request_left() {
    let said = made_of(vec![Do::Read]).await;
    assert!(said[0].starts_with("failed sent=true "), "{said:?}");
    assert!(said[0].ends_with("closed the connection without an answer"), "{said:?}");
    let said = made_of(vec![Do::Read, Do::Write("SSH-2.0-x\r\n".to_owned())]).await;
    assert!(said[0].starts_with("failed sent=true "), "{said:?}");
    assert!(said[0].contains("did not answer in HTTP"), "{said:?}");
    let nobody = server(Vec::new()).await.client();
    tokio::task::yield_now().await;
    let said = all(&nobody, post()).await;
    assert!(said[0].starts_with("failed sent=false http://127.0.0.1:"), "{said:?}");
    assert!(said[0].contains(" cannot be reached: Connection refused"), "{said:?}");
}

/// The server closes a connection that lies idle; the next request is sent on a fresh one.
#[tokio::test(start_paused = true)]
async fn a_stale_connection_loses_no_request() {
    let mut twice = answer(JSON, "{}");
    twice.append(&mut answer(JSON, "[]"));
    let mut server = server(vec![twice, answer(JSON, "{}")]).await;
    let client = server.client();
    assert_eq!(all(&client, post()).await, ["frame {}", "whole"]);
    assert_eq!(all(&client, post()).await, ["frame []", "whole"], "the same connection");
    while server.next().await != "closed" {}
    // Nothing is left to do but to hear of the close.
    tokio::time::sleep(Duration::from_millis(1)).await;
    assert_eq!(all(&client, post()).await, ["frame {}", "whole"]);
}

#[tokio::test]
async fn a_user_that_does_not_listen_is_not_read_ahead_of() {
    let flood = "data: {\"x\":1}\n\n".repeat(1000);
    let server = server(vec![chunked(EVENTS, &[&flood, &flood])]).await;
    let offered = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&offered);
    let take = move |frame| {
        counted.fetch_add(1, Ordering::SeqCst);
        Some(frame)
    };
    let (sender, events) = mpsc::channel(1);
    let to = ExchangeTo { take: Arc::new(take), events: sender };
    let guard = server.client().start(post(), to);
    let mut running = Running { guard, events };
    assert_eq!(running.next().await, "head 200 OK true");
    assert_eq!(running.next().await, "frame {\"x\":1}");
    for _ in 0..1000 {
        tokio::task::yield_now().await;
    }
    // One that was read, one in the queue, one that waits for it.
    assert!(offered.load(Ordering::SeqCst) <= 3, "{offered:?}");
    for _ in 1..2000 {
        assert_eq!(running.next().await, "frame {\"x\":1}");
    }
    assert_eq!(running.next().await, "whole");
}

#[test]
fn no_secret_stands_in_debug_output() {
    let client = client("https://a.example/mcp?key=hush", NetSpec::default());
    assert!(!format!("{client:?} {:?}", client.spec().headers).contains("hush"));
}
