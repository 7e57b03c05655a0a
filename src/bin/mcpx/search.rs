//! `mcpx search`: which tools fit some words.

use clap::ArgMatches;
use comfy_table::Cell;
use mcpx::control::OpCall;
use mcpx::control::types as t;

use crate::output::Printer;
use crate::{scripts, setup, tables};

/// The op of a command line.
pub(crate) fn call(matches: &ArgMatches) -> OpCall {
    let words: Vec<&str> =
        matches.get_many::<String>("query").into_iter().flatten().map(String::as_str).collect();
    OpCall::Search(t::SearchRequest {
        query: words.join(" "),
        namespace: matches.get_one::<String>("namespace").cloned(),
        limit: matches.get_one::<usize>("limit").copied(),
        project: setup::project(matches.get_one("project")),
    })
}

/// Each tool with what it is for and how it is called.
pub(crate) fn table(printer: Printer, answer: &t::SearchAnswer) -> String {
    let mut parts = Vec::new();
    if answer.tools.is_empty() {
        let near = answer.near.join(", ");
        let near = if near.is_empty() { near } else { format!("did you mean {near}? ") };
        parts.push(format!("no tool fits; {near}`mcpx tools` lists all"));
    } else {
        let mut table = tables::table(printer, &["TOOL", "WHAT"]);
        for tool in &answer.tools {
            let name = format!("{}.{}", tool.namespace, tool.tool);
            let lines = [tool.description.as_str(), tool.signature.as_str()];
            let lines: Vec<&str> = lines.into_iter().filter(|line| !line.is_empty()).collect();
            table.add_row(vec![Cell::new(name), Cell::new(lines.join("\n"))]);
        }
        parts.push(tables::finish(&table));
    }
    if !answer.scripts.is_empty() {
        parts.push(scripts::table(printer, &answer.scripts));
    }
    if !answer.unlisted.is_empty() {
        let names = answer.unlisted.join(", ");
        parts.push(format!("not searched, not listed yet: {names}; `mcpx status` says why"));
    }
    parts.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_have_their_signature_and_what_is_missing_is_said() {
        let printer = Printer { json: false, colour: false, lively: false };
        let mut answer = t::SearchAnswer {
            tools: vec![t::FoundTool {
                namespace: "hub".to_owned(),
                tool: "get-issue".to_owned(),
                member: "get_issue".to_owned(),
                signature: "get-issue(args: { number: number }): Promise<any>".to_owned(),
                description: "One issue.".to_owned(),
            }],
            scripts: Vec::new(),
            unlisted: vec!["docs".to_owned()],
            near: Vec::new(),
        };
        let text = table(printer, &answer);
        assert!(text.contains("hub.get-issue  One issue.\n"), "{text}");
        assert!(text.contains("get-issue(args: { number: number })"), "{text}");
        assert!(text.ends_with("not listed yet: docs; `mcpx status` says why"), "{text}");
        answer.near = answer.tools.drain(..).map(|tool| tool.tool).collect();
        assert!(table(printer, &answer).starts_with("no tool fits; did you mean get-issue? "));
    }
}
