"""A host on the official Python SDK over stdio, in one session: calls without a pause until its standard
input ends, one line of JSON for each.

    python host-stdio.py COMMAND ARGUMENT…
"""

import json
import os
import sys
import threading
import time

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters


def say(**line):
    print(json.dumps(line), flush=True)


async def main() -> None:
    ended = threading.Event()
    threading.Thread(target=lambda: (sys.stdin.read(), ended.set()), daemon=True).start()
    server = StdioServerParameters(command=sys.argv[1], args=sys.argv[2:], env=dict(os.environ))
    async with Client(server, mode="legacy") as client:
        say(session="stdio")
        number = 0
        while not ended.is_set():
            text, began, outcome, why = f"stdio-{number}", time.time(), "ok", None
            try:
                wanted = {"namespace": "up", "tool": "ledger", "arguments": {"text": text}}
                result = await client.call_tool("mcpx_call", wanted)
                if result.is_error:
                    why = result.content[0].text
                    outcome = "unknown" if why.startswith("outcome unknown") else "refused"
            except Exception as error:
                outcome, why = "failed", repr(error)
            say(text=text, began=began, ended=time.time(), outcome=outcome, why=why)
            number += 1
        say(session="stdio")


anyio.run(main)
