"""A host that answers, on the official Python SDK; checks what node/answers.mjs checks.

    python answers.py legacy|auto COMMAND ARGUMENT… | URL
"""

import json
import os
import sys
from typing import Any

import anyio
import mcp_types as types
from mcp import Client
from mcp.client.stdio import StdioServerParameters

ANSWERS: dict[str, Any] = {
    "form": {"action": "accept", "content": {"name": "Ada"}},
    "sample": {
        "role": "assistant",
        "model": "peer",
        "content": {"type": "text", "text": "four"},
    },
    "roots": {"roots": [{"uri": "file:///work", "name": "work"}]},
}
ASKED: list[str] = []


async def elicited(_ctx: Any, _params: Any) -> types.ElicitResult:
    ASKED.append("form")
    return types.ElicitResult.model_validate(ANSWERS["form"])


async def sampled(_ctx: Any, _params: Any) -> types.CreateMessageResult:
    ASKED.append("sample")
    return types.CreateMessageResult.model_validate(ANSWERS["sample"])


async def roots(_ctx: Any) -> types.ListRootsResult:
    ASKED.append("roots")
    return types.ListRootsResult.model_validate(ANSWERS["roots"])


def holds(wanted: Any, actual: Any) -> bool:
    """Whether `actual` has all that `wanted` has."""
    if isinstance(wanted, dict):
        pairs = wanted.items()
        return isinstance(actual, dict) and all(holds(v, actual.get(k)) for k, v in pairs)
    if isinstance(wanted, list):
        return isinstance(actual, list) and all(map(holds, wanted, actual))
    return bool(wanted == actual)


async def one(client: Client, name: str, wanted: Any) -> None:
    before = len(ASKED)
    result = await client.call_tool(name, {})
    text = result.content[0].text if result.content else ""
    if result.is_error or not holds(wanted, json.loads(text)):
        raise AssertionError(text)
    if ASKED[before:] != [name]:
        raise AssertionError(f"asked {ASKED[before:]}")


async def main() -> int:
    mode, command, *args = sys.argv[1:]
    server: Any = command
    if not command.startswith("http"):
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    failed = 0
    async with Client(
        server,
        mode=mode,
        elicitation_callback=elicited,
        sampling_callback=sampled,
        list_roots_callback=roots,
    ) as client:
        print(f"ok connect ({client.protocol_version})", flush=True)
        for name, wanted in ANSWERS.items():
            try:
                await one(client, name, wanted)
                print(f"ok {name}", flush=True)
            except Exception as error:  # any way to fail is a failed check, said on its line
                failed += 1
                print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)
    return 1 if failed else 0


sys.exit(anyio.run(main))
