"""A server that asks, on the official Python SDK: at 2026-07-28 by `input_required` results.

    python asks.py          over stdio
    python asks.py PORT     over Streamable HTTP, at /mcp
"""

import json
import sys
from typing import Any

import anyio
import mcp_types as types
import uvicorn
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TWO = types.SamplingMessage(role="user", content=types.TextContent(type="text", text="Two and two?"))
QUESTIONS: dict[str, Any] = {
    "form": types.ElicitRequest(
        params=types.ElicitRequestFormParams(message="Who are you?", requested_schema=SCHEMA)
    ),
    "sample": types.CreateMessageRequest(
        params=types.CreateMessageRequestParams(messages=[TWO], max_tokens=10)
    ),
    "roots": types.ListRootsRequest(),
}


async def list_tools(_ctx: Any, _params: Any) -> types.ListToolsResult:
    tools = [
        types.Tool(name=name, description=f"Asks: {name}.", input_schema={"type": "object"})
        for name in QUESTIONS
    ]
    return types.ListToolsResult(tools=tools)


def told(reply: Any) -> types.CallToolResult:
    if not isinstance(reply, dict):
        reply = reply.model_dump(mode="json", by_alias=True, exclude_none=True)
    return types.CallToolResult(content=[types.TextContent(type="text", text=json.dumps(reply))])


async def call_tool(ctx: Any, params: Any) -> types.CallToolResult | types.InputRequiredResult:
    name = params.name
    if ctx.protocol_version >= "2026-07-28":
        if params.input_responses and name in params.input_responses:
            return told(params.input_responses[name])
        return types.InputRequiredResult(input_requests={name: QUESTIONS[name]})
    session = ctx.session
    if name == "form":
        asked = QUESTIONS[name].params
        # With the call's id, so that over HTTP the question goes out on its stream.
        return told(await session.elicit_form(asked.message, asked.requested_schema, ctx.request_id))
    if name == "sample":
        reply = await session.create_message(
            [TWO], max_tokens=10, related_request_id=ctx.request_id
        )
        return told(reply)
    return told(await session.list_roots())


SERVER: Server[Any] = Server(
    "python-asks", version="1.0.0", on_list_tools=list_tools, on_call_tool=call_tool
)


async def stdio() -> None:
    async with stdio_server() as (read, write):
        await SERVER.run(read, write, SERVER.create_initialization_options())


if len(sys.argv) == 1:
    anyio.run(stdio)
else:
    port = int(sys.argv[1])
    uvicorn.run(SERVER.streamable_http_app(), host="127.0.0.1", port=port, log_level="warning")
