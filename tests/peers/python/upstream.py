"""An upstream on the official Python SDK: serves the catalog file it is given.

    python upstream.py CATALOG.json              over stdio
    python upstream.py CATALOG.json http PORT    over Streamable HTTP, at /mcp
    python upstream.py CATALOG.json sse PORT     over HTTP+SSE as 2024-11-05 has it, at /sse

The tools and their canned results are in the catalog; here are only the four that do something.
"""

import json
import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.sse import SseServerTransport
from mcp.server.stdio import stdio_server
from mcp.shared.exceptions import MCPError
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route

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


SERVER: Server[Any] = Server(
    "python-peer", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool
)


async def stdio() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


def sse_app() -> Starlette:
    transport = SseServerTransport("/messages/")

    async def stream(request: Request) -> Response:
        streams = transport.connect_sse(request.scope, request.receive, request._send)
        async with streams as (read, write):
            await SERVER.run(read, write, SERVER.create_initialization_options())
        return Response()

    posts = Mount("/messages/", app=transport.handle_post_message)
    return Starlette(routes=[Route("/sse", endpoint=stream, methods=["GET"]), posts])


if len(sys.argv) == 2:
    anyio.run(stdio)
else:
    kind, port = sys.argv[2:]
    app = sse_app() if kind == "sse" else SERVER.streamable_http_app()
    uvicorn.run(app, host="127.0.0.1", port=int(port), log_level="warning")
