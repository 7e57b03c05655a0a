//! `mcpx scripts`: saved scripts by hand.

use clap::ArgMatches;
use comfy_table::Cell;
use mcpx::control::OpCall;
use mcpx::control::types::{
    ScriptAnswer, ScriptRemoved, ScriptRunRequest, ScriptSaved, ScriptView, ScriptsAnswer,
    WhoAnswers,
};

use crate::arguments::{self, Typed};
use crate::call::streamed;
use crate::ended::{Ended, Outcome};
use crate::output::Printer;
use crate::person::Person;
use crate::reach::{Reach, understood};
use crate::{exec, setup, tables};

/// `mcpx scripts list`.
pub(crate) fn list(printer: Printer, answer: &ScriptsAnswer) -> String {
    table(printer, &answer.scripts)
}

/// Each with its parameters and what it does.
pub(crate) fn table(printer: Printer, scripts: &[ScriptView]) -> String {
    let mut table = tables::table(printer, &["SCRIPT", "WHAT"]);
    for script in scripts {
        let what = match &script.problem {
            Some(problem) => format!("cannot be used: {problem}"),
            None => script.description.clone(),
        };
        let name = format!("{}{}", script.name, script.signature);
        table.add_row(vec![Cell::new(name), Cell::new(what)]);
    }
    tables::finish(&table)
}

/// `mcpx scripts show`: the source as it is, for pipes and editors.
pub(crate) fn shown(answer: &ScriptAnswer) -> String {
    answer.code.clone()
}

/// What `mcpx scripts save` has done.
pub(crate) fn saved(answer: &ScriptSaved) -> String {
    let script = &answer.script;
    let how = if answer.replaced { "saved in the place of the one before" } else { "saved" };
    format!("{}{} is {how}: {}", script.name, script.signature, script.file)
}

/// What `mcpx scripts remove` has done.
pub(crate) fn removed(answer: &ScriptRemoved) -> String {
    format!("{} is removed", answer.name)
}

/// `mcpx scripts save NAME [FILE | -]`.
pub(crate) fn save(matches: &ArgMatches) -> Result<OpCall, Ended> {
    let file = matches.get_one::<String>("code").map_or("-", String::as_str);
    Ok(OpCall::ScriptSave { name: name(matches), code: exec::read(file)? })
}

/// `mcpx scripts run NAME [KEY=VALUE…]`.
pub(crate) async fn run(reach: &Reach<'_>, matches: &ArgMatches) -> Outcome {
    let name = name(matches);
    let words: Vec<String> =
        matches.get_many("arguments").map(|words| words.cloned().collect()).unwrap_or_default();
    let stdin = || {
        std::io::read_to_string(std::io::stdin())
            .map_err(|error| format!("the arguments cannot be read from stdin: {error}"))
    };
    let arguments = match arguments::read(&words, stdin).map_err(Ended::Usage)? {
        Typed::Whole(raw) => raw,
        Typed::Pairs(pairs) => {
            // Its parameters say of what type the values are.
            let body = reach.ask(&OpCall::Script { name: name.clone() }).await?;
            let schema = understood::<ScriptAnswer>(&body)?.schema;
            arguments::typed(&pairs, Some(&schema)).map_err(Ended::Usage)?
        }
    };
    // A person at this end answers what is asked; for others it is shown, with how to answer it.
    let person = Person::at_terminal(reach);
    let who = if person.is_some() { WhoAnswers::Here } else { WhoAnswers::Elsewhere };
    let call = OpCall::ScriptRun(ScriptRunRequest {
        name: name.clone(),
        arguments: Some(arguments),
        timeout: matches.get_one::<u64>("timeout").copied(),
        project: setup::project(matches.get_one("project")),
        progress: reach.printer.lively,
        questions: Some(who),
    });
    let result = streamed(reach, &call, name, person).await?;
    exec::show(reach.printer, &result)
}

fn name(matches: &ArgMatches) -> String {
    matches.get_one::<String>("name").cloned().unwrap_or_default()
}
