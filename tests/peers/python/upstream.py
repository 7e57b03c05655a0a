"""An upstream over stdio on the official Python SDK: serves the catalog file it is given.

    python upstream.py CATALOG.json

The tools and their canned results are in the catalog; here are only the four that do something.
"""

import json
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError

with open(sys.argv[1], encoding="utf-8") as file:
    CATALOG = json.load(file)
TOOLS = {tool["definition"]["name"]: tool for tool in CATALOG["tools"]}
CANCELLED: set[str] = set()


async def list_tools(_ctx: Any, params: Any) -> types.ListToolsResult:
    """One page; the cursor is the number of the first tool on it."""
    start = int(params.cursor) if params and params.cursor else 0
    end = start + CATALOG["pageSize"]
    page = [types.Tool.model_validate(tool["definition"]) for tool in CATALOG["tools"][start:end]]
    more = str(end) if end < len(CATALOG["tools"]) else None
    return types.ListToolsResult(tools=page, next_cursor=more)


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult:
    """A canned result, a canned error, or one of the tools that do something."""
    tool = TOOLS.get(params.name)
    if tool is None:
        raise MCPError(-32602, f"no tool named {params.name}")
    if "error" in tool:
        raise MCPError(**tool["error"])
    if "result" in tool:
        return types.CallToolResult.model_validate(tool["result"])
    return await DOES[tool["does"]](ctx, params.arguments or {})


def says(text: str, structured: dict[str, Any] | None = None) -> types.CallToolResult:
    return types.CallToolResult(
        content=[types.TextContent(type="text", text=text)], structured_content=structured
    )


async def echo(_ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return says("echoed", {"arguments": arguments})


async def counts(ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    steps = int(arguments["steps"])
    for step in range(1, steps + 1):
        await ctx.session.report_progress(step, steps, f"step {step}")
        await anyio.sleep(0.02)
    return says(f"counted to {steps}")


async def waits(_ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    try:
        await anyio.sleep(60)
    except anyio.get_cancelled_exc_class():
        CANCELLED.add(arguments["tag"])
        raise
    return says("nobody cancelled this")


async def was_cancelled(_ctx: Any, arguments: dict[str, Any]) -> types.CallToolResult:
    return says("yes" if arguments["tag"] in CANCELLED else "no")


DOES = {"echo": echo, "counts": counts, "waits": waits, "was_cancelled": was_cancelled}


async def main() -> None:
    handlers = {"on_list_tools": list_tools, "on_call_tool": call_tool}
    server = Server("python-peer", version="1.0.0", **handlers)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


anyio.run(main)
