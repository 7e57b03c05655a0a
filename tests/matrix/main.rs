//! Every host revision over every upstream revision, over stdio and HTTP on each side: what works,
//! and what a revision makes impossible.
//!
//! One daemon an upstream cell (revision and transport), in front of a fresh session of one fake
//! upstream for each host cell; the hosts are raw bytes, and every frame in both directions is checked
//! strictly against its revision. A feature is one row (`features`); what is expected of it in a cell
//! is a table of its own (`rules`), and a cell that is impossible is shown to end as its rule says.
//! `docs/matrix.md` says what is expected; where that file differs a test writes it and fails.
//!
//! The whole takes minutes. A plain run takes a thin diagonal of it (`diagonal`); `MCPX_MATRIX=all`,
//! which `.ci/run` sets, takes all, and other words those cells in whose `host>upstream feature` every
//! one of them occurs: `MCPX_MATRIX="2026-07-28/http> url"`.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, reason = "the ban-list is for the product")]
#![allow(clippy::print_stdout, reason = "the table is the point")]
#![allow(unreachable_pub, reason = "a binary has no outside")]

#[path = "../support/setup.rs"]
mod setup;
#[path = "../support/mod.rs"]
mod support;

mod cell;
mod features;
mod page;
mod rules;

use std::sync::Arc;

use tokio::sync::Semaphore;

use cell::{Cell, Peer, Upstream};
use features::FEATURES;
use page::Found;
use rules::Expect;
use support::schema::REVISIONS;

/// How many upstream cells run at a time.
const AT_A_TIME: usize = 3;

/// All peers: every revision over both transports.
fn peers() -> Vec<Peer> {
    let of = |revision| [false, true].map(|http| Peer { revision, http });
    REVISIONS.into_iter().flat_map(of).collect()
}

/// Each revision to itself over the other transport, and the newest of each era to one another.
fn diagonal(host: Peer, up: Peer) -> bool {
    let across = host.modern() != up.modern() && host.revision.min(up.revision) == "2025-11-25";
    host.http != up.http && (host.revision == up.revision || across)
}

/// Whether a cell is to be run.
fn wanted(host: Peer, up: Peer, feature: &str) -> bool {
    match std::env::var("MCPX_MATRIX").as_deref() {
        Err(_) => diagonal(host, up),
        Ok("all") => true,
        Ok(words) => {
            let text = format!("{host}>{up} {feature}");
            words.split_whitespace().all(|word| text.contains(word))
        }
    }
}

/// Every cell, as it is expected to be.
fn expected() -> Vec<Found> {
    let mut all = Vec::new();
    for host in peers() {
        for up in peers() {
            all.extend(FEATURES.iter().map(|feature| {
                let outcome = Ok((feature.expect)(host, up));
                Found { host, up, feature: feature.name, outcome }
            }));
        }
    }
    all
}

/// All hosts in front of one upstream, one after the other.
async fn upstream_cell(up: Peer) -> Vec<Found> {
    let any = |host| FEATURES.iter().any(|feature| wanted(host, up, feature.name));
    let hosts: Vec<Peer> = peers().into_iter().filter(|host| any(*host)).collect();
    if hosts.is_empty() {
        return Vec::new();
    }
    let upstream = Arc::new(Upstream::start(up));
    let mut found = Vec::new();
    for host in hosts {
        let mut cell = None;
        for feature in FEATURES.iter().filter(|feature| wanted(host, up, feature.name)) {
            let expect = (feature.expect)(host, up);
            let now = match cell.take() {
                Some(cell) => cell,
                None => Cell::open(&upstream, host).await,
            };
            // On a task of its own, so that one that fails leaves the others to go on.
            let ended = tokio::spawn(async move {
                let mut now = now;
                (feature.run)(&mut now, expect).await;
                now
            });
            let outcome = match ended.await {
                Ok(now) => {
                    cell = Some(now);
                    Ok(expect)
                }
                Err(why) => Err(said(why)),
            };
            found.push(Found { host, up, feature: feature.name, outcome });
        }
        if let Some(cell) = cell {
            cell.close().await;
        }
    }
    upstream.check();
    found
}

/// What a task that panicked said.
fn said(why: tokio::task::JoinError) -> String {
    let Ok(panic) = why.try_into_panic() else { return "stopped".to_owned() };
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

/// the table, or what of it is wanted.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn x01_any_revision_to_any_revision() {
    let gate = Arc::new(Semaphore::new(AT_A_TIME));
    let cells: Vec<_> = peers()
        .into_iter()
        .map(|up| {
            let gate = Arc::clone(&gate);
            tokio::spawn(async move {
                let _one = gate.acquire().await.unwrap();
                upstream_cell(up).await
            })
        })
        .collect();
    let mut found = Vec::new();
    let mut broken = Vec::new();
    for cell in cells {
        match cell.await {
            Ok(cell) => found.extend(cell),
            Err(why) => broken.push(said(why)),
        }
    }
    let bad: Vec<String> = found.iter().filter_map(Found::complaint).collect();
    println!("{}", page::table(&found));
    println!("{} cells, {} of them bad", found.len(), bad.len());
    if std::env::var_os("MCPX_MATRIX").is_none() {
        println!("a thin diagonal; the other pairs of revisions were left out (MCPX_MATRIX=all)");
    }
    for text in bad.iter().chain(&broken) {
        println!("\n{text}");
    }
    assert!(!found.is_empty(), "no cell is called that");
    assert!(bad.is_empty() && broken.is_empty(), "{} cells are not as they should be", bad.len());
}

/// The page says what the cells are held to.
#[test]
fn the_page_is_up_to_date() {
    page::check(&expected());
}

/// Every reason is given somewhere, and only revisions give reasons: the transport makes nothing
/// impossible.
#[test]
fn reasons_are_all_in_use() {
    let mut seen = std::collections::BTreeSet::new();
    for feature in &FEATURES {
        let pairs =
            peers().into_iter().flat_map(|host| peers().into_iter().map(move |up| (host, up)));
        for (host, up) in pairs {
            let expect = (feature.expect)(host, up);
            let other =
                (feature.expect)(Peer { http: !host.http, ..host }, Peer { http: !up.http, ..up });
            assert_eq!(expect, other, "{} {host}>{up}", feature.name);
            if let Expect::Not(reason) = expect {
                seen.insert(reason);
            }
        }
    }
    let all: std::collections::BTreeSet<_> =
        rules::REASONS.iter().map(|(reason, _)| *reason).collect();
    assert_eq!(seen, all);
}
