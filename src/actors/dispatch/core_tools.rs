//! The core tools as hosts see them, in the order in which they are served (H-43, H-48, H-49).
//!
//! Only tools that work are listed. `mcpx_call`, `mcpx_exec` and `mcpx_scripts` bear no annotations on purpose: whatever
//! hint they gave would be wrong for half of the tools behind them.

use crate::protocol::jsonrpc::RawJson;
use bytes::Bytes;

/// One core tool.
pub(crate) struct CoreTool {
    /// Its name.
    pub(crate) name: &'static str,
    definition: &'static str,
}

/// All of them, in order.
pub(crate) const CORE_TOOLS: [CoreTool; 10] = [
    CoreTool {
        name: "mcpx_namespaces",
        definition: r#"{"name":"mcpx_namespaces","title":"List servers and their tools","description":"Without arguments: the MCP servers behind mcpx, one line each. With a namespace: that server's instructions and its tools with descriptions and input schemas, paged.","inputSchema":{"type":"object","properties":{"namespace":{"type":"string","description":"A server's namespace, as listed"},"page":{"type":"integer","minimum":1,"description":"Page of its tools, from 1"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    },
    CoreTool {
        name: "mcpx_search",
        definition: r#"{"name":"mcpx_search","title":"Find tools","description":"Finds the tools of all servers that fit some words, the best first, each with its signature.","inputSchema":{"type":"object","properties":{"query":{"type":"string","description":"What the tool is to do"},"namespace":{"type":"string"},"limit":{"type":"integer","minimum":1}},"required":["query"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    },
    CoreTool {
        name: "mcpx_types",
        definition: r#"{"name":"mcpx_types","title":"Types of tools","description":"A server's tools as TypeScript, as scripts call them: arguments, results, descriptions. Without arguments: what else scripts find.","inputSchema":{"type":"object","properties":{"namespace":{"type":"string"},"tools":{"type":"array","items":{"type":"string"},"description":"Only these"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    },
    CoreTool {
        name: "mcpx_call",
        definition: r#"{"name":"mcpx_call","title":"Call a tool","description":"Calls one tool of one server and returns what it returned. Find tools with mcpx_search.","inputSchema":{"type":"object","properties":{"namespace":{"type":"string","description":"The server's namespace"},"tool":{"type":"string","description":"The tool's name"},"arguments":{"type":"object","description":"The tool's arguments, by its input schema"}},"required":["namespace","tool"],"additionalProperties":false},"execution":{"taskSupport":"optional"}}"#,
    },
    CoreTool {
        name: "mcpx_exec",
        definition: r#"{"name":"mcpx_exec","title":"Run a script","description":"Runs TypeScript that calls tools, for many calls in one go. `await tools.<namespace>.<tool>(args)` gives the tool's structured value, or else its text (parsed where that is a JSON object or array); a tool's failure throws ToolError. Promise.all runs calls at once. Only the `return`ed value, console.log and artifacts come back. Also: `input`, `await mcpx.search({query})`, `mcpx.types({namespace})`, `mcpx.read({uri})`, `artifacts.write(name, data, type)`. No network, files or imports.","inputSchema":{"type":"object","properties":{"code":{"type":"string","description":"Body of an async function"},"input":{"description":"Value of `input`"},"timeout":{"type":"number","description":"Seconds"}},"required":["code"],"additionalProperties":false},"execution":{"taskSupport":"optional"}}"#,
    },
    CoreTool {
        name: "mcpx_read",
        definition: r#"{"name":"mcpx_read","title":"Read a resource","description":"Reads a resource by the address that mcpx_resources or a link in a result gives. Of a long one ask for a part: lines, bytes, or the lines that match a pattern.","inputSchema":{"type":"object","properties":{"uri":{"type":"string","description":"Its address, mcpx://<namespace>/…"},"lines":{"type":"string","description":"Lines from 1, like \"1-200\""},"bytes":{"type":"string","description":"Bytes from 0, like \"0-999\""},"pattern":{"type":"string","description":"Regular expression; lines that match are given with their numbers"}},"required":["uri"],"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    },
    CoreTool {
        name: "mcpx_resources",
        definition: r#"{"name":"mcpx_resources","title":"List resources","description":"The resources and resource templates of all servers or of one, a line each, with the addresses that mcpx_read takes. Fill a template's {variables} in before reading.","inputSchema":{"type":"object","properties":{"namespace":{"type":"string","description":"Only this server's"},"query":{"type":"string","description":"Only those with all these words in address, name or description"},"page":{"type":"integer","minimum":1,"description":"Page, from 1"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":true}}"#,
    },
    CoreTool {
        name: "mcpx_scripts",
        definition: r#"{"name":"mcpx_scripts","title":"Saved scripts","description":"Scripts kept for reuse. list: names, parameters, what they do. show: the code. run: with arguments. save: `code` as for mcpx_exec, after a comment like /** What it does. @param {string} repo - which */, read as input.repo. remove.","inputSchema":{"type":"object","properties":{"action":{"type":"string","enum":["list","show","run","save","remove"]},"name":{"type":"string"},"arguments":{"type":"object"},"code":{"type":"string"}},"required":["action"],"additionalProperties":false},"execution":{"taskSupport":"optional"}}"#,
    },
    CoreTool {
        name: "mcpx_task",
        definition: r#"{"name":"mcpx_task","title":"Follow a long call","description":"For a call that was handed back as a handle because it takes long: waits for its result, shows how it stands, or cancels it.","inputSchema":{"type":"object","properties":{"task":{"type":"string","description":"The handle"},"action":{"type":"string","enum":["wait","show","cancel"],"description":"wait, where it is left out"},"seconds":{"type":"integer","minimum":0,"description":"Longest wait"}},"required":["task"],"additionalProperties":false},"annotations":{"readOnlyHint":false,"idempotentHint":true,"destructiveHint":true,"openWorldHint":false}}"#,
    },
    CoreTool {
        name: "mcpx_status",
        definition: r#"{"name":"mcpx_status","title":"Server status","description":"State of the servers behind mcpx: running, idle, starting, waiting after a crash, parked and why. With a namespace: more on that one, with its last error output.","inputSchema":{"type":"object","properties":{"namespace":{"type":"string","description":"A server's namespace"}},"additionalProperties":false},"annotations":{"readOnlyHint":true,"openWorldHint":false}}"#,
    },
];

impl CoreTool {
    /// The definition in newest shape.
    pub(crate) fn definition(&self) -> RawJson {
        RawJson::trusted(Bytes::from_static(self.definition.as_bytes()))
    }
}

/// The core tool of this name.
pub(crate) fn find(name: &str) -> Option<&'static CoreTool> {
    CORE_TOOLS.iter().find(|tool| tool.name == name)
}

/// What both openings tell the model (H-22); under 1 KB.
pub(crate) fn instructions(core: bool) -> &'static str {
    if core {
        "mcpx stands in front of several MCP servers. mcpx_search finds their tools by words, \
         mcpx_namespaces lists them server by server with input schemas, and mcpx_call with namespace, \
         tool and arguments uses one. For several calls, or a little of a long result, write one script \
         for mcpx_exec: TypeScript, without network or files, limited in time, memory and calls. \
         mcpx_types declares what it can call. mcpx_resources lists resources, mcpx_read reads one. \
         mcpx_status tells why a server does not answer. A result that says \"outcome unknown\" may have \
         taken effect: check before calling again."
    } else {
        "mcpx stands in front of several MCP servers; their tools are listed under their servers' \
         names. A result that says \"outcome unknown\" may have taken effect: check before calling \
         again."
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Product promise 4; H-44: names fit, definitions are JSON, all of it is small.
    #[test]
    fn h44_definitions_are_small_and_well_named() {
        const ALL_TOGETHER: usize = 6 * 1024;
        let mut total = 0;
        for tool in &CORE_TOOLS {
            let raw = RawJson::parse(Bytes::from_static(tool.definition.as_bytes())).unwrap();
            assert_eq!(raw.member_str("name").unwrap(), tool.name);
            assert!(raw.member_str("title").is_some());
            assert!(tool.name.len() <= 64);
            total += raw.len();
        }
        assert!(total < ALL_TOGETHER, "{total}");
        assert!(instructions(true).len() < 1024);
        assert!(instructions(false).len() < 1024);
    }
}
