//! Instructions that the pure parts take, counted by `valgrind --tool=callgrind`: the same on a
//! busy machine as on a quiet one, so a change of a few per cent can be seen.
//!
//! Each case runs twice in a process of its own, once and a number of times; the difference is what
//! a repetition costs, without start and set-up. Without valgrind the bench says so and ends well.
//!
//! `cargo bench --bench instructions [-- CASE]`
#![allow(
    clippy::pedantic,
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "a bench is a program of its own; the crate's rules guard the daemon"
)]
#![allow(unreachable_pub, reason = "the modules of a program have no outside")]

mod cases;

use std::process::{Command, ExitCode};

use cases::CASES;

/// Repetitions beyond the first.
const MORE: u64 = 10;

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).filter(|word| word != "--bench").collect();
    if let [role, name, repeat] = &words[..]
        && role == "run"
    {
        let case = CASES.iter().find(|case| case.name == name).expect("a known case");
        let bytes = (case.run)(repeat.parse().expect("a number"));
        println!("{bytes}");
        return ExitCode::SUCCESS;
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("instructions: not counted, valgrind is not installed");
        return ExitCode::SUCCESS;
    }
    println!("| what | bytes | instructions | per byte |\n| --- | --- | --- | --- |");
    let mut failed = false;
    for case in CASES.iter().filter(|case| words.iter().all(|word| case.name.contains(word))) {
        match (count(case.name, 1), count(case.name, 1 + MORE)) {
            (Ok((few, bytes)), Ok((many, _))) => {
                let each = (many - few) / MORE;
                let share = each as f64 / bytes as f64;
                println!("| {} | {bytes} | {each} | {share:.2} |", case.name);
            }
            (Err(why), _) | (_, Err(why)) => {
                println!("| {} | | **failed** | |", case.name);
                eprintln!("{}: {why}", case.name);
                failed = true;
            }
        }
    }
    if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}

/// Instructions of a whole process, and the bytes that one repetition handles.
fn count(name: &str, repeat: u64) -> Result<(u64, u64), String> {
    let own = std::env::current_exe().map_err(|error| error.to_string())?;
    let done = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(own)
        .args(["run", name, &repeat.to_string()])
        .output()
        .map_err(|error| error.to_string())?;
    let errors = String::from_utf8_lossy(&done.stderr);
    let collected = errors.lines().find_map(|line| line.split_once("Collected : "));
    let bytes = String::from_utf8_lossy(&done.stdout).trim().parse();
    match (collected.and_then(|(_, number)| number.trim().parse().ok()), bytes) {
        (Some(number), Ok(bytes)) if done.status.success() => Ok((number, bytes)),
        _ => Err(errors.lines().rev().take(12).collect::<Vec<_>>().join("\n")),
    }
}
