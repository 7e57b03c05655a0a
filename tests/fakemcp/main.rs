//! `fakemcp`: a scripted upstream over stdio or HTTP, for tests. Blocking, no runtime; shares nothing with
//! `src/`. Field cases (`F..`) that an option reproduces stand beside it. An option that does not
//! exist ends it with code 2.
//!
//! Environment: `FAKEMCP_LOG` names a file that gets a JSON line for every line read (`"dir":"in"`)
//! or written (`"out"`); `FAKEMCP_LEDGER` names a file that gets a line for each thing that
//! happened: `start PID`, `effect TOOL PID TEXT`, `cancelled ID`, `answer ID JSON` (an answer to
//! a request of ours), `initialized`, `eof`, `spawned PID`.
//!
//! # Era
//! - `--era legacy|modern|dual` (legacy). `--supports R,R` legacy revisions it echoes (all four);
//!   any other is answered with the first of the list: `--supports 2025-06-18` is a one-revision
//!   upstream.
//! - `--offer TEXT`, `--offer-missing`, `--empty-result`: what `initialize` says instead (F26).
//!   `--initialize-delay MS`, `--initialize-error CODE`, `--initialize-silent`.
//! - `--probe CODE|silent|exit|late|late-after|noise` (-32601): what a legacy one does with
//!   `server/discover`; `exit` ends with code 1 on any unknown method, `late` answers just before
//!   the answer to `initialize`, `late-after` just after it. `--probe-stderr BYTES` first (F25).
//! - `--refuse CODE` (-32022): how a modern one refuses `initialize`; 0 means silence.
//!   `--modern-versions V,V` (2026-07-28). `--discover-delay MS`, `--discover-error CODE`.
//! - `--listen-decline NAME`: the member that a listen stream does not agree to.
//! - `--capabilities JSON`, `--instructions TEXT`, `--name TEXT`, `--info JSON`.
//! - `--on-ready LINE` (repeatable): written when the handshake is over. `--ping MS`: pings mcpx
//!   that often from then on (legacy).
//!
//! # Lists
//! - `--tools a,b`: only these of the built-in ones; `--tools none`. `--tool JSON` (repeatable)
//!   adds a definition as it is; `--tool-count N` adds `t0001`…; `--tool-file PATH` reads a JSON
//!   array at each list. A call of a tool that is not built in is answered `called NAME with ARGS`.
//! - `--odd-names` (F40), `--odd-schemas` (F41): sets of such definitions.
//! - `--pages plain|empty|empty-end|null|same|cycle|endless|error|duplicates|silent[:SIZE]` (F39).
//! - `--list-delay MS`, `--list-error CODE`, `--list-silent`.
//!
//! - `--offers`: resources, templates, prompts and completions (see `offers.rs`), with the tools
//!   `links`, `set_offers`, `touch` and `end_listens`. `--resource JSON`, `--template JSON`, `--prompt JSON`
//!   (repeatable) add items; `--blob-size BYTES`, `--missing CODE`, `--no-templates`.
//!
//! # HTTP
//! - `--http ADDRESS`: over Streamable HTTP; `--http-sse`: over HTTP+SSE (see `http.rs`).
//!
//! # Writing
//! - `--crlf` (F01), `--cr-tokens` (F02), `--bom`, `--bom-lines` (F03), `--blank-lines`,
//!   `--noise TEXT` (repeatable; before each frame), `--json-noise` (F04, F05), `--glue TEXT`
//!   (before the frame, same line), `--log-per-line` (F06), `--chunk BYTES` with `--chunk-us N`
//!   (F07), `--batch` (answers as arrays, F11), `--string-ids` (F13).
//!
//! # Process
//! - `--exit CODE` at the start, `--exit-first N` only the first N starts (by the ledger),
//!   `--stderr-text TEXT`, `--stderr-start BYTES[:lines|cr|binary]` (F28, F32), `--start-delay MS`.
//! - `--die-after MS` after it is ready (F29), `--die-after-calls N` instead of the answer,
//!   `--die-on METHOD` on reading it.
//! - `--wrapper` starts itself again on the same pipes and ends; `--wrapper-wait` waits (F30).
//!   `--grandchild`, `--grandchild-setsid`, `--grandchild-pipe` (holds our standard output).
//! - `--ignore-term`, `--ignore-eof`, `--never-read`, `--stop-at-start` (SIGSTOP) (F31).
//! - `--serial`: one call after the other, reading nothing meanwhile.
//!
//! # Tools
//! See `tools.rs` and `calls.rs` for arguments: `echo add fail rpc_error params big content
//! structured slow sleep hang progress ledger ledger_die ledger_die_ro ledger_die_idem die raw
//! split bad_utf8 surrogate env cwd pid args stderr request notify set_tools spawn stop_self`, and
//! those that ask (`questions.rs`): `ask_form ask_url ask_sample ask_roots ask_many ask_rounds
//! ask_url_required`; with `--questions` also a prompt and a resource that ask; with `--tasks`
//! (`tasks.rs`, `--poll-interval MS`) `task_work task_required`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
#![allow(clippy::disallowed_methods, clippy::exit, reason = "bans are for the product")]
#![allow(clippy::needless_pass_by_value, reason = "short calls matter more than a copy")]
#![allow(unreachable_pub, reason = "a binary has no outside")]

mod args;
mod calls;
mod era;
mod http;
#[path = "../support/lenient.rs"]
mod lenient;
mod lists;
mod offers;
mod out;
mod process;
mod questions;
mod state;
mod tasks;
mod tools;

use std::io::{self, BufRead};
use std::sync::Arc;

use state::Fake;

fn main() {
    let args = args::Args::parse(std::env::args().skip(1));
    if args.flag("sleeper") {
        return process::sleeper(&args);
    }
    process::before_start(&args);
    if args.flag("http") {
        return http::serve(&args);
    }
    let fake = Arc::new(Fake::new(args));
    fake.out.hello();
    if fake.args.flag("never-read") {
        process::sleep_long();
    }
    let mut input = io::stdin().lock();
    loop {
        let mut line = Vec::new();
        match input.read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => break,
            Ok(_) => fake.read_line(&line),
        }
    }
    fake.out.ledger("eof");
    if fake.args.flag("ignore-eof") {
        process::sleep_long();
    }
}
