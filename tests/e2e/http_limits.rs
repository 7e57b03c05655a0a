//! Strangers over HTTP that are slow, large, many or gone: each meets a limit that says so, and other
//! hosts notice nothing.

use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinHandle;

use crate::support::daemon::Daemon;
use crate::support::raw_http::{HttpHost, Response};
use crate::support::schema::MODERN;
use crate::{SOON, eventually, setup};

/// Limits short enough to be met.
const SHORT: &str = r#"
http.token = "t"
http.header_timeout = "1s"
http.write_timeout = "1s"
http.linger = "20s"
http.max_connections = 8
"#;

/// The pause between two bytes of somebody who takes his time.
const TRICKLE: Duration = Duration::from_millis(100);

/// Slower than this a call of the other host was held up by somebody.
const UNDISTURBED: Duration = Duration::from_secs(3);

/// A daemon, and a host over stdio that calls again and again while others misbehave.
struct Stage {
    daemon: Daemon,
    host: HttpHost,
    done: Arc<AtomicBool>,
    calls: Arc<AtomicUsize>,
    other: JoinHandle<()>,
}

async fn stage(more: &str) -> Stage {
    let more = format!("{SHORT}\n{more}");
    let daemon = setup::start(|daemon| vec![daemon.fake("up")], &more);
    let mut other = setup::host(&daemon, "2025-11-25").await;
    setup::call(&mut other, "up", "echo", json!({ "text": "warm" })).await;
    let done = Arc::<AtomicBool>::default();
    let calls = Arc::<AtomicUsize>::default();
    let (over, called) = (Arc::clone(&done), Arc::clone(&calls));
    let other = tokio::spawn(async move {
        while !over.load(Ordering::Relaxed) {
            let before = Instant::now();
            let answer = setup::call(&mut other, "up", "echo", json!({ "text": "x" })).await;
            assert!(!setup::failed(&answer), "{answer}");
            assert!(before.elapsed() < UNDISTURBED, "held up for {:?}", before.elapsed());
            called.fetch_add(1, Ordering::Relaxed);
        }
    });
    let host = setup::http_stranger(&daemon).await;
    Stage { daemon, host, done, calls, other }
}

impl Stage {
    /// The other host has worked all the while, and hosts over HTTP come in again.
    async fn undisturbed(self) {
        eventually!(SOON, self.calls.load(Ordering::Relaxed) > 5);
        self.done.store(true, Ordering::Relaxed);
        self.other.await.unwrap();
        let newcomer = setup::http_host(&self.daemon, MODERN).await;
        let wanted = json!({ "namespace": "up", "tool": "echo", "arguments": { "text": "x" } });
        let answer = newcomer.call("mcpx_call", wanted).await;
        assert!(!setup::failed(&answer), "{answer}");
    }

    async fn dial(&self) -> TcpStream {
        let (url, _) = self.daemon.over_http().await;
        let address = url.trim_start_matches("http://").trim_end_matches("/mcp");
        TcpStream::connect(address).await.unwrap()
    }
}

async fn text(mut response: Response) -> String {
    response.text().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ten_thousand_bytes_of_headers() {
    let stage = stage("").await;
    let long = "y".repeat(10_000);
    for _ in 0..20 {
        let response = stage.host.get().header("X-Long", &long).send().await;
        assert_eq!(response.status, 431);
    }
    stage.undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_body_of_a_hundred_megabytes() {
    let stage = stage("").await;
    let said = "Authorization: Bearer t\r\nContent-Length: 104857600\r\n";
    let unsaid = "Authorization: Bearer t\r\nTransfer-Encoding: chunked\r\n";
    let stranger = "Content-Length: 104857600\r\n";
    let piece = [b"100000\r\n".to_vec(), vec![b' '; 1 << 20], b"\r\n".to_vec()];
    for (headers, status) in [(said, "413"), (unsaid, "413"), (stranger, "401")] {
        let mut stream = stage.dial().await;
        let head = format!("POST /mcp HTTP/1.1\r\nHost: localhost\r\n{headers}\r\n");
        stream.write_all(head.as_bytes()).await.unwrap();
        for _ in 0..100 {
            let chunk = if headers == unsaid { &piece[..] } else { &piece[1..2] };
            for part in chunk {
                stream.write_all(part).await.unwrap();
            }
        }
        // Read only now, as simple clients do.
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        assert!(answer.starts_with(&format!("HTTP/1.1 {status} ")), "{answer}");
        let limit = "67108864 bytes (setting http.max_body)";
        assert_eq!(answer.contains(limit), status == "413", "{answer}");
    }
    stage.undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn heads_and_bodies_that_trickle_in() {
    let stage = stage("").await;
    let heads = [
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\n",
        "POST /mcp HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\
         Content-Length: 1000\r\n\r\n",
    ];
    for head in heads {
        let mut stream = stage.dial().await;
        stream.write_all(head.as_bytes()).await.unwrap();
        let before = Instant::now();
        let mut answer = String::new();
        let trickled = async {
            loop {
                // A byte now and then, until there is an answer.
                let _ = tokio::time::timeout(TRICKLE, stream.readable()).await;
                if stream.write_all(b"x").await.is_err() {
                    break;
                }
                let mut bytes = [0; 1000];
                let count = stream.try_read(&mut bytes).unwrap_or_default();
                answer.push_str(&String::from_utf8_lossy(&bytes[..count]));
                if answer.ends_with('\n') {
                    break;
                }
            }
        };
        tokio::time::timeout(SOON, trickled).await.unwrap();
        assert!(answer.starts_with("HTTP/1.1 408 "), "{answer}");
        assert!(answer.contains("(setting http.header_timeout)"), "{answer}");
        assert!(before.elapsed() < Duration::from_secs(4), "{:?}", before.elapsed());
    }
    stage.undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_flood_of_connections() {
    let stage = stage("").await;
    let mut held = Vec::new();
    for _ in 0..12 {
        held.push(stage.dial().await);
    }
    let response = stage.host.get().send().await;
    assert_eq!(response.status, 503);
    assert!(text(response).await.contains("(setting http.max_connections)"));
    // Those that say nothing are let go, and there is room again.
    let health = || stage.host.plain("GET", b"").path("/healthz").send();
    eventually!(SOON, health().await.status == 200);
    drop(held);
    stage.undisturbed().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn readers_that_do_not_read() {
    let stage = stage("http.header_timeout = \"20s\"").await;
    let pid = stage.daemon.pid().unwrap().to_string();
    let before = settled(&pid).await;
    // Answers that fit into no buffer, to as many as may come in.
    let large = json!({ "namespace": "up", "tool": "echo",
        "arguments": { "text": "x".repeat(12 << 20) } });
    let mut stuck = Vec::new();
    for _ in 0..4 {
        let mut stream = stage.dial().await;
        let body = large.to_string();
        let head = format!(
            "POST /v1/call HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer t\r\n\
             Content-Length: {}\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(body.as_bytes()).await.unwrap();
        stuck.push(stream);
    }
    for stream in &mut stuck {
        tokio::time::timeout(SOON, stream.readable()).await.unwrap().unwrap();
    }
    // They are given up before anybody reads on.
    eventually!(SOON, sockets(&pid) <= before);
    for mut stream in stuck {
        let mut bytes = Vec::new();
        let ended = tokio::time::timeout(SOON, stream.read_to_end(&mut bytes)).await.unwrap();
        assert!(bytes.len() < 12 << 20, "{ended:?} after {} bytes", bytes.len());
    }
    stage.undisturbed().await;
}

/// A peer whose machine is gone: nothing comes back, not even that nothing comes back. In a network of
/// the daemon's own, which is taken down under an open stream.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn peers_that_are_gone_without_a_word() {
    const NETWORK: [&str; 5] =
        ["unshare", "-rn", "sh", "-c", "ip link set lo up && exec \"$0\" \"$@\""];
    let possible = std::process::Command::new("unshare")
        .args(["-rn", "sh", "-c", "ip link set lo up && command -v nsenter bash"])
        .output();
    if !possible.is_ok_and(|output| output.status.success()) {
        println!("half-open peers are not tried: no unshare, nsenter, ip or bash may be used here");
        return;
    }
    let mut daemon = setup::prepare();
    let more = format!("{SHORT}\ntransport.sse_keep_alive = \"200ms\"");
    daemon.write_config(&[], &setup::quick(&more));
    daemon.launch_by(&NETWORK);
    let (url, _) = daemon.over_http().await;
    let port = url.trim_start_matches("http://127.0.0.1:").trim_end_matches("/mcp").to_owned();
    let pid = daemon.pid().unwrap().to_string();
    let inside = |script: String| {
        let mut command = tokio::process::Command::new("nsenter");
        command.args(["-t", &pid, "-U", "-n", "--preserve-credentials", "bash", "-c", &script]);
        command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true);
        command
    };
    let before = settled(&pid).await;
    let script = format!(
        "exec 3<>/dev/tcp/127.0.0.1/{port}; printf 'GET /v1/events?follow=true HTTP/1.1\\r\\n\
         Host: localhost\\r\\nAuthorization: Bearer t\\r\\n\\r\\n' >&3; exec cat <&3"
    );
    let mut peer = inside(script).spawn().unwrap();
    let mut told = peer.stdout.take().unwrap();
    let mut head = [0; 15];
    tokio::time::timeout(SOON, told.read_exact(&mut head)).await.unwrap().unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    eventually!(SOON, sockets(&pid) == before + 1);
    assert!(inside("ip link set lo down".to_owned()).status().await.unwrap().success());
    eventually!(SOON, sockets(&pid) == before);
    assert!(peer.try_wait().unwrap().is_none(), "the peer itself has noticed nothing");
}

/// How many sockets a process holds.
fn sockets(pid: &str) -> usize {
    let files = std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap().flatten();
    let targets = files.filter_map(|file| std::fs::read_link(file.path()).ok());
    targets.filter(|target| target.to_string_lossy().starts_with("socket:")).count()
}

/// The same, once several looks in a row have found as many.
async fn settled(pid: &str) -> usize {
    let (mut last, mut same) = (sockets(pid), 0);
    eventually!(SOON, {
        let now = sockets(pid);
        same = if now == std::mem::replace(&mut last, now) { same + 1 } else { 0 };
        same == 10
    });
    last
}
