//! `mcpx exec`: a script from a file or from stdin; its value on stdout, its console on stderr as it comes.

use std::path::Path;

use bytes::Bytes;
use clap::ArgMatches;
use mcpx::control::OpCall;
use mcpx::control::types::{ExecRequest, RunRequest, WhoAnswers};
use mcpx::protocol::jsonrpc::RawJson;

use crate::call::{block, shown, streamed};
use crate::ended::{Ended, Outcome};
use crate::output::{self, Printer};
use crate::person::Person;
use crate::reach::Reach;
use crate::setup;

/// Runs it.
pub(crate) async fn run(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let file = matches.get_one::<String>("code").map_or("-", String::as_str);
    let input = match matches.get_one::<String>("input") {
        Some(text) => Some(RawJson::parse(text.clone().into()).map_err(|_| {
            Ended::Usage(format!("--input is JSON, which {text:?} is not; text is in quotes"))
        })?),
        None => None,
    };
    let code = read(file)?;
    let call = |run| OpCall::Exec(ExecRequest { code, input, run });
    // Where the script came by stdin, nobody can be asked there.
    let (title, may_ask) = if file == "-" { ("script", false) } else { (file, true) };
    run_as(reach, matches, title.to_owned(), may_ask, call).await
}

/// Runs a script, however it is named, and shows what comes of it. A person at this end answers what is asked,
/// where that may be; for others it is shown, with how to answer it.
pub(crate) async fn run_as(
    reach: &Reach<'_>,
    matches: &ArgMatches,
    title: String,
    may_ask: bool,
    call: impl FnOnce(RunRequest) -> OpCall,
) -> Outcome {
    let person = if may_ask { Person::at_terminal(reach) } else { None };
    let who = if person.is_some() { WhoAnswers::Here } else { WhoAnswers::Elsewhere };
    let call = call(RunRequest {
        timeout: matches.get_one::<u64>("timeout").copied(),
        project: setup::project(matches.get_one("project")),
        progress: reach.printer.lively,
        questions: Some(who),
    });
    let result = streamed(reach, &call, title, person).await?;
    show(reach.printer, &result)
}

pub(crate) fn read(file: &str) -> Result<String, Ended> {
    if file == "-" {
        return std::io::read_to_string(std::io::stdin()).map_err(|error| {
            Ended::Usage(format!("the script cannot be read from stdin: {error}"))
        });
    }
    std::fs::read_to_string(Path::new(file))
        .map_err(|error| Ended::Usage(format!("{file} cannot be read: {error}")))
}

/// The value on stdout; what else there is, and why there is none, on stderr (product.md 2).
fn show(printer: Printer, result: &Bytes) -> Outcome {
    shown(printer, result, |result, is_error| {
        let blocks = result.get("content").and_then(RawJson::elements).unwrap_or_default();
        for (at, text) in blocks.iter().map(block).enumerate() {
            if at == 0 && !is_error {
                output::line(&text)?;
            } else {
                output::remark(&text);
            }
        }
        Ok(())
    })
}
