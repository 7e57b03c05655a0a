#![expect(clippy::disallowed_methods, reason = "tests write their programs")]

use std::os::unix::fs::PermissionsExt;

use bytes::Bytes;

use super::*;
use crate::transport::link::LinkEvent;
use crate::transport::stdio::census;
use crate::transport::task::spawn_named;

const QUICK: StopLadder =
    StopLadder { drain: Duration::from_millis(300), term: Duration::from_millis(300) };
const SLOW: StopLadder =
    StopLadder { drain: Duration::from_secs(20), term: Duration::from_secs(20) };

fn spec(program: &str, args: &[&str]) -> SpawnSpec {
    SpawnSpec {
        label: "test".into(),
        program: program.into(),
        args: args.iter().map(OsString::from).collect(),
        env: vec![("PATH".into(), "/usr/local/bin:/usr/bin:/bin".into())],
        cwd: "/".into(),
        link: LinkLimits { max_frame: 64 << 20, write_queue: 128, write_queue_bytes: 64 << 20 },
        stderr: RingLimits { lines: 100, line_bytes: 200, log_rate: 5, bytes: 64 << 20 },
        grace: Duration::from_secs(3),
    }
}

/// As the daemon does it: who is left becomes a child of ours, and is not a zombie of another's.
fn sh(script: &str) -> Child {
    reaper::adopt_orphans().unwrap();
    spawn(&spec("sh", &["-c", script])).unwrap()
}

async fn frame(child: &mut Child) -> Bytes {
    match child.link.reader.next().await {
        LinkEvent::Frame(frame) => frame,
        other => panic!("expected a frame, got {other:?}"),
    }
}

/// Those alive that carry the marker of this child, or are in its group.
fn left(family: &Family) -> Vec<Process> {
    census::ours(0)
        .into_iter()
        .filter(|one| {
            one.group == family.leader.pid || one.marker().as_ref() == Some(&family.marker)
        })
        .collect()
}

#[tokio::test]
async fn an_echo_goes_through_and_the_child_leaves_at_the_end_of_its_stdin() {
    let mut child = spawn(&spec("cat", &[])).unwrap();
    let writer = spawn_named("writer", child.link.writer.run());
    child.link.sender.send(Bytes::from_static(b"{\"id\":1}")).await.unwrap();
    match child.link.reader.next().await {
        LinkEvent::Frame(frame) => assert_eq!(frame, "{\"id\":1}"),
        other => panic!("{other:?}"),
    }
    let family = child.handle.family.clone();
    // The sender is still there: the handle closes stdin in any case.
    let exit = child.handle.stop(SLOW).await;
    let expected =
        ExitReport { text: "exited with status 0".into(), code: Some(0), rung: Some("stdin") };
    assert_eq!(exit, expected);
    assert_eq!(left(&family), []);
    assert!(!census::children().iter().any(|one| one.pid == family.leader.pid), "reaped");
    writer.await.unwrap();
    assert!(matches!(child.link.reader.next().await, LinkEvent::Closed { .. }));
}

#[tokio::test]
async fn the_environment_is_what_is_given_and_the_marker() {
    let mut child = spawn(&spec("env", &[])).unwrap();
    let mut lines = [frame(&mut child).await, frame(&mut child).await];
    lines.sort();
    assert!(lines[0].starts_with(b"MCPX_SPAWN="));
    assert!(lines[1].starts_with(b"PATH="));
    assert!(matches!(child.link.reader.next().await, LinkEvent::Closed { .. }));
    assert_eq!(child.handle.exited().await.text, "exited with status 0");
    assert_eq!(child.handle.exited().await.rung, None, "asked again");
}

#[tokio::test]
async fn f30_a_background_job_of_the_launcher_is_ended() {
    let mut child = sh("sleep 1000 & echo up; exec cat");
    assert_eq!(frame(&mut child).await, "up");
    let family = child.handle.family.clone();
    assert_eq!(left(&family).len(), 2);
    drop((child.link.sender, child.link.writer));
    let exit = child.handle.stop(QUICK).await;
    assert_eq!((exit.code, exit.rung), (Some(0), Some("term")));
    assert_eq!(left(&family), []);
}

#[tokio::test]
async fn f30_the_exit_of_a_wrapper_is_not_the_end_of_the_server() {
    let mut child = sh("exec 3<&0; cat <&3 & exit 7");
    assert_eq!(child.handle.exited().await.text, "exited with status 7");
    let family = child.handle.family.clone();
    assert!(!family.anchored, "the wrapper is reaped");
    child.link.sender.send(Bytes::from_static(b"still there")).await.unwrap();
    let Child { mut link, handle, .. } = child;
    let writer = spawn_named("writer", link.writer.run());
    match link.reader.next().await {
        LinkEvent::Frame(frame) => assert_eq!(frame, "still there"),
        other => panic!("{other:?}"),
    }
    let exit = handle.stop(SLOW).await;
    assert_eq!((exit.code, exit.rung), (Some(7), Some("stdin")));
    assert_eq!(left(&family), []);
    writer.await.unwrap();
}

#[tokio::test]
async fn f30_what_left_the_group_is_ended_and_buried() {
    let mut child = sh("setsid sh -c 'trap \"\" TERM; echo up; sleep 1000; sleep 1000' & exec cat");
    assert_eq!(frame(&mut child).await, "up");
    let family = child.handle.family.clone();
    let escaped = || left(&family).iter().filter(|one| one.group != family.leader.pid).count();
    while escaped() < 2 {
        tokio::task::yield_now().await;
    }
    let exit = child.handle.stop(QUICK).await;
    assert_eq!(exit.rung, Some("kill"));
    assert_eq!(left(&family), []);
    assert_eq!(census::children().into_iter().filter(|one| one.zombie).count(), 0);
}

#[tokio::test]
async fn f31_the_deaf_and_the_stopped_are_killed() {
    for script in ["trap '' TERM; echo up; while :; do sleep 1; done", "echo up; kill -STOP $$"] {
        let mut child = sh(script);
        assert_eq!(frame(&mut child).await, "up");
        let family = child.handle.family.clone();
        let exit = child.handle.stop(QUICK).await;
        assert_eq!(exit.text, "killed by signal 9 (SIGKILL)");
        assert_eq!(exit.rung, Some("kill"));
        assert_eq!(left(&family), []);
    }
}

#[tokio::test]
async fn f31_sigterm_is_enough_for_one_that_ignores_its_stdin() {
    let mut child = sh("trap 'exit 3' TERM; echo up; while :; do sleep 0.05; done");
    assert_eq!(frame(&mut child).await, "up");
    let exit = child
        .handle
        .stop(StopLadder { drain: Duration::from_millis(50), term: Duration::from_secs(20) })
        .await;
    assert_eq!((exit.code, exit.rung), (Some(3), Some("term")));
}

#[tokio::test]
async fn a_dropped_handle_leaves_nothing() {
    let mut child = sh("setsid sleep 1000 & sleep 1000 & echo up; exec sleep 1000");
    assert_eq!(frame(&mut child).await, "up");
    let family = child.handle.family.clone();
    let mut before = 0;
    while before < 3 {
        before = left(&family).len();
        tokio::task::yield_now().await;
    }
    drop(child);
    let gone = async {
        while !left(&family).is_empty()
            || census::children().iter().any(|one| one.pid == family.leader.pid)
        {
            sleep(Duration::from_millis(5)).await;
        }
    };
    timeout(Duration::from_secs(10), gone).await.expect("all gone, the leader reaped");
}

#[tokio::test]
async fn f28_what_cannot_start_is_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let refused = |program: &str| {
        let error = spawn(&spec(program, &[])).unwrap_err();
        assert!(error.is_permanent(), "{error}");
        error.to_string()
    };
    assert_eq!(
        refused("no-such-program"),
        "no program `no-such-program` on PATH=/usr/local/bin:/usr/bin:/bin"
    );
    assert_eq!(refused("/no/such"), "there is no file `/no/such`");
    assert!(refused(&file("plain", "#!/bin/sh\n", 0o644)).contains("chmod +x"));
    assert!(refused(&file("crlf", "#!/usr/bin/env node\r\nx\r\n", 0o755)).ends_with(
        "is to be run by `/usr/bin/env node`: the line ends in CR LF, save the file with LF line \
         ends"
    ));
    assert!(
        refused(&file("gone", "#!/no/interpreter -x\n", 0o755))
            .ends_with("is to be run by `/no/interpreter -x`: there is no such file")
    );
    assert!(refused(&file("rubbish", "no program\n", 0o755)).contains("Exec format error"));
    assert!(refused(folder.path().to_str().unwrap()).contains("it is a folder"));
    let error = spawn(&SpawnSpec { cwd: "/no/folder".into(), ..spec("cat", &[]) }).unwrap_err();
    assert_eq!(error.to_string(), "the working directory /no/folder is not there");
    assert!(error.is_permanent());
}

#[tokio::test]
async fn f34_the_program_is_looked_for_on_its_own_path_and_in_its_own_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("hello");
    std::fs::write(&path, "#!/bin/sh\necho \"$(pwd) $0\"\n").unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let at = folder.path().to_str().unwrap();
    for (program, search) in [("hello", at), ("./hello", "/bin"), ("hello", "/bin:.")] {
        let mut spec = spec(program, &[]);
        spec.env = vec![("PATH".into(), search.into())];
        spec.cwd = folder.path().to_owned();
        let mut child = spawn(&spec).unwrap();
        let line = frame(&mut child).await;
        assert!(line.starts_with(at.as_bytes()), "{program} on {search}: {line:?}");
        child.handle.stop(SLOW).await;
    }
}

#[tokio::test]
async fn f28_an_early_end_leaves_its_last_words() {
    let child = sh("echo 'Traceback' >&2; echo 'ImportError: x' >&2; exit 1");
    let Child { mut link, drain, mut handle } = child;
    drain.run().await;
    assert!(matches!(link.reader.next().await, LinkEvent::Closed { .. }));
    assert_eq!(handle.exited().await.code, Some(1));
    assert_eq!(handle.stderr().tail(2), ["Traceback", "ImportError: x"]);
}

#[tokio::test]
async fn f32_a_flood_on_stderr_does_not_hold_up_an_answer() {
    let mut child = sh("head -c 52428800 /dev/zero | tr '\\0' 'x' >&2; echo >&2; exec cat");
    let drain = spawn_named("drain", child.drain.run());
    let writer = spawn_named("writer", child.link.writer.run());
    child.link.sender.send(Bytes::from_static(b"ping")).await.unwrap();
    match child.link.reader.next().await {
        LinkEvent::Frame(frame) => assert_eq!(frame, "ping"),
        other => panic!("{other:?}"),
    }
    let ring = child.handle.stderr().clone();
    child.handle.stop(SLOW).await;
    drain.await.unwrap();
    writer.await.unwrap();
    let tail = ring.tail(10);
    assert_eq!(tail.len(), 1);
    assert!(tail[0].ends_with("x … (52428600 more bytes)"), "{tail:?}");
}

#[tokio::test]
async fn a_blocking_single_threaded_peer_with_full_pipes_does_not_hang() {
    let Child { mut link, drain: _drain, handle } = spawn(&spec("cat", &[])).unwrap();
    let writer = spawn_named("writer", link.writer.run());
    let large = Bytes::from(vec![b'x'; 1 << 20]);
    for _ in 0..64 {
        link.sender.try_send(large.clone()).unwrap();
    }
    for _ in 0..64 {
        match link.reader.next().await {
            LinkEvent::Frame(frame) => assert_eq!(frame.len(), 1 << 20),
            other => panic!("{other:?}"),
        }
    }
    drop(link.sender);
    handle.stop(SLOW).await;
    writer.await.unwrap();
}

#[tokio::test]
async fn what_a_killed_daemon_left_is_found_and_ended() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path()).unwrap();
    let spec =
        spec("sh", &["-c", "setsid sleep 1000 & trap '' TERM; echo up; sleep 1000; sleep 9"]);
    let mut child = spawn_recorded(&spec, Some(&ledger)).unwrap();
    assert_eq!(frame(&mut child).await, "up");
    let family = child.handle.family.clone();
    while left(&family).len() < 3 {
        tokio::task::yield_now().await;
    }
    let quick = |folder: PathBuf| async move { super::super::ledger::sweep(&folder, QUICK).await };
    assert_eq!(quick(folder.path().to_owned()).await, [], "a living daemon's are left alone");
    // As if this daemon had been another one, killed: no drop, and its file of another name.
    std::mem::forget(child.handle);
    let file = std::fs::read_dir(folder.path()).unwrap().next().unwrap().unwrap().path();
    std::fs::rename(&file, folder.path().join("1-1")).unwrap();
    let swept = quick(folder.path().to_owned()).await;
    assert_eq!(swept.len(), 3);
    assert!(swept.iter().any(|one| one.pid == family.leader.pid && one.label == "test"));
    assert!(left(&family).iter().all(|one| one.zombie), "{:?}", left(&family));
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[tokio::test]
async fn a_clean_stop_takes_the_record_out() {
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path()).unwrap();
    let Child { handle, link, .. } = spawn_recorded(&spec("cat", &[]), Some(&ledger)).unwrap();
    drop(link);
    handle.stop(SLOW).await;
    ledger.close();
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

/// Every child of the process counts here, so it has to be a process without the other tests.
fn run_alone(test: &str) -> bool {
    const ALONE: &str = "MCPX_TEST_ALONE";
    if std::env::var_os(ALONE).is_some() {
        return false;
    }
    let me = std::env::current_exe().unwrap();
    let ended =
        Command::new(me).args(["--exact", "--nocapture", test]).env(ALONE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&ended.stdout);
    assert!(ended.status.success() && said.contains("1 passed"), "{said}");
    true
}

#[tokio::test]
async fn nothing_is_left_of_many_lives_however_they_end() {
    const NAME: &str =
        "transport::stdio::child::tests::nothing_is_left_of_many_lives_however_they_end";
    if run_alone(NAME) {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let ledger = Ledger::open(folder.path()).unwrap();
    reaper::adopt_orphans().unwrap();
    // As in the daemon: one that is killed in the last step of a ladder may die after it.
    let reaping = spawn_named("reaper", reaper::run());
    let ladder = StopLadder { drain: Duration::from_millis(30), term: Duration::from_millis(500) };
    let descriptors = || std::fs::read_dir("/proc/self/fd").unwrap().count();
    let mut before = 0;
    for life in 0..41 {
        let script = match life % 4 {
            0 => "exec cat",
            1 => "sleep 1000 >/dev/null & read x; kill -9 $$",
            2 => "read x; exit 1",
            _ => "setsid cat & cat",
        };
        let Child { mut link, drain, handle } =
            spawn_recorded(&spec("sh", &["-c", script]), Some(&ledger)).unwrap();
        let drain = spawn_named("drain", drain.run());
        let writer = spawn_named("writer", link.writer.run());
        link.sender.try_send(Bytes::from_static(b"x")).unwrap();
        let _ = link.reader.next().await;
        if life % 7 == 6 {
            drop(handle);
        } else {
            handle.stop(ladder).await;
        }
        drop(link.sender);
        writer.await.unwrap();
        drain.await.unwrap();
        while !census::children().is_empty() {
            tokio::task::yield_now().await;
        }
        if life == 0 {
            // The signal driver and the threads of the runtime have come by now.
            before = descriptors();
        }
    }
    assert!(descriptors() <= before, "{} {before}", descriptors());
    // The last ones that were dropped are taken out of the ledger by threads of their own.
    while std::fs::read_dir(folder.path()).unwrap().count() > 0 {
        ledger.close();
        tokio::task::yield_now().await;
    }
    reaping.abort();
}
