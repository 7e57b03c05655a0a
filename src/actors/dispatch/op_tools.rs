//! The ops as MCP tools, behind `expose.ops` (D-10, H-50 to H-52, H-59).
//!
//! Name, texts, schema and hints come from the table of ops; execution is that of the control API.

use std::sync::LazyLock;

use super::Context;
use crate::actors::control;
use crate::control::request::input_schema;
use crate::control::{OPS, Op, OpCall, OpName};
use crate::protocol::jsonrpc::{Object, RawJson};
use crate::protocol::model::tool_result;

/// Before an op's id in its tool's name.
const PREFIX: &str = "mcpx_";

/// Ops that are tools: not those that a core tool does better, not the daemon's own end, not the one that
/// shows a secret, not what agents may do only where a setting says so, and not the one that answers in a person's name: a model would confirm itself.
fn is_tool(op: &Op) -> bool {
    use OpName::{
        Ask, Call, ElicitAnswer, Exec, Http, Read, Resources, Search, Shutdown, Status, Types,
    };
    use OpName::{Script, ScriptRemove, ScriptRun, ScriptSave, Scripts};
    let saved = matches!(op.name, Scripts | Script | ScriptRun | ScriptSave | ScriptRemove);
    let other = matches!(
        op.name,
        Call | Ask
            | Exec
            | Status
            | Search
            | Types
            | Resources
            | Read
            | Shutdown
            | Http
            | ElicitAnswer
    );
    !saved && !other
}

/// The tools, in the order of the table.
pub(super) fn definitions() -> Vec<RawJson> {
    static ALL: LazyLock<Vec<RawJson>> =
        LazyLock::new(|| OPS.iter().filter(|op| is_tool(op)).map(definition).collect());
    ALL.clone()
}

fn definition(op: &Op) -> RawJson {
    let mut hints = Object::new();
    hints.set("title", RawJson::write(op.title));
    hints.set("readOnlyHint", RawJson::write(&op.effect.read_only));
    hints.set("destructiveHint", RawJson::write(&op.effect.destructive));
    hints.set("idempotentHint", RawJson::write(&op.effect.idempotent));
    hints.set("openWorldHint", RawJson::write(&op.effect.open_world));
    let mut tool = Object::new();
    tool.set("name", RawJson::write(&format!("{PREFIX}{}", op.id)));
    tool.set("title", RawJson::write(op.title));
    tool.set("description", RawJson::write(op.summary));
    tool.set("inputSchema", RawJson::write(&input_schema(op)));
    tool.set("annotations", hints.write());
    tool.write()
}

/// The op of a tool's name.
pub(super) fn find(name: &str) -> Option<&'static Op> {
    let id = name.strip_prefix(PREFIX)?;
    OPS.iter().find(|op| op.id == id && is_tool(op))
}

/// Executes an op; its answer is the text.
pub(super) async fn answer(
    context: &Context,
    op: &'static Op,
    arguments: Option<&RawJson>,
) -> RawJson {
    let empty = RawJson::empty_object();
    let call = OpCall::of_arguments(op, arguments.unwrap_or(&empty));
    let answered = match call {
        // Boxed: `call_tool` may come back here through an op's own execution.
        Ok(call) => Box::pin(control::execute(context, call)).await,
        Err(error) => Err(error),
    };
    match answered {
        Ok(answer) => tool_result::text_result(answer.as_str(), false),
        Err(error) => {
            let failure = error.error;
            let hint = failure.hint.map(|hint| format!(" {hint}")).unwrap_or_default();
            tool_result::text_result(&format!("{}{hint}", failure.message), true)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// H-50, H-51, H-52: hints from the table; ops on the daemon alone are a closed world.
    #[test]
    fn h50_hints_come_from_the_table() {
        let tools = definitions();
        let find = |name: &str| {
            tools.iter().find(|tool| tool.member_str("name").as_deref() == Some(name)).cloned()
        };
        let restart = find("mcpx_restart").unwrap();
        let hints = restart.member("annotations").unwrap();
        assert_eq!(hints.member("destructiveHint").unwrap().as_str(), "true");
        assert_eq!(hints.member("openWorldHint").unwrap().as_str(), "false");
        assert!(find("mcpx_shutdown").is_none());
        assert!(find("mcpx_http").is_none());
        assert!(find("mcpx_elicit_list").is_some());
        assert!(find("mcpx_elicit_answer").is_none());
    }
    /// A name is one tool's: of two, a host could call the first alone.
    #[test]
    fn no_op_takes_a_core_tool_s_name() {
        let mut names = super::super::tools::own_names();
        let all = names.len();
        names.sort();
        names.dedup();
        assert_eq!(names.len(), all, "{names:?}");
    }
}
