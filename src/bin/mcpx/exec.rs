//! `mcpx exec`: a script from a file or from stdin; its value on stdout, its console on stderr as it comes.

use std::path::Path;

use bytes::Bytes;
use clap::ArgMatches;
use mcpx::control::OpCall;
use mcpx::control::types::{ExecRequest, WhoAnswers};
use mcpx::protocol::jsonrpc::{Object, RawJson};

use crate::call::{block, streamed};
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
    // A person at this end answers what is asked; for others it is shown, with how to answer it. Where the
    // script came by stdin, nobody can be asked there.
    let person = if file == "-" { None } else { Person::at_terminal(reach) };
    let who = if person.is_some() { WhoAnswers::Here } else { WhoAnswers::Elsewhere };
    let call = OpCall::Exec(ExecRequest {
        code: read(file)?,
        input,
        timeout: matches.get_one::<u64>("timeout").copied(),
        project: setup::project(matches.get_one("project")),
        progress: reach.printer.lively,
        questions: Some(who),
    });
    let title = if file == "-" { "script".to_owned() } else { file.to_owned() };
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
pub(crate) fn show(printer: Printer, result: &Bytes) -> Outcome {
    let raw = RawJson::parse(result.clone())
        .map_err(|error| Ended::Failed(format!("the result is {error}")))?;
    let object = Object::read_or_empty(Some(&raw));
    let is_error = object.get("isError").is_some_and(|flag| flag.as_bytes() == b"true");
    if printer.json {
        output::bytes(raw.as_bytes())?;
    } else {
        let blocks = object.get("content").and_then(RawJson::elements).unwrap_or_default();
        for (at, shown) in blocks.iter().map(block).enumerate() {
            if at == 0 && !is_error {
                output::line(&shown)?;
            } else {
                output::remark(&shown);
            }
        }
    }
    if is_error { Err(Ended::Told) } else { Ok(()) }
}
