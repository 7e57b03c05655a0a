//! `mcpx scripts`: saved scripts by hand.

use clap::ArgMatches;
use comfy_table::Cell;
use mcpx::control::OpCall;
use mcpx::control::types::{
    ScriptAnswer, ScriptRemoved, ScriptRunRequest, ScriptSaved, ScriptView, ScriptsAnswer,
};

use crate::arguments::{self, Typed};
use crate::ended::{Ended, Outcome};
use crate::output::Printer;
use crate::reach::{Reach, understood};
use crate::{exec, tables};

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
    let arguments = match arguments::of(matches)? {
        Typed::Whole(raw) => raw,
        Typed::Pairs(pairs) => {
            // Its parameters say of what type the values are; what does not fit is told with all the rest.
            let body = reach.ask(&OpCall::Script { name: name.clone() }).await?;
            let schema = understood::<ScriptAnswer>(&body)?.schema;
            arguments::guessed(&pairs, &schema).map_err(Ended::Usage)?
        }
    };
    let call = |run| {
        let (name, arguments) = (name.clone(), Some(arguments));
        OpCall::ScriptRun(ScriptRunRequest { name, arguments, run })
    };
    exec::run_as(reach, matches, name.clone(), true, call).await
}

fn name(matches: &ArgMatches) -> String {
    matches.get_one::<String>("name").cloned().unwrap_or_default()
}
