"""A host on the official Python SDK.

    python host.py EXPECTATION.json legacy|auto COMMAND ARGUMENT… | URL

It checks what node/driver.mjs checks, from the same expectation file (../expect.mjs tells its
format).
"""

import json
import os
import sys
import time
from typing import Any

import anyio
from mcp import Client
from mcp.client.stdio import StdioServerParameters
from mcp.shared.exceptions import MCPError

Json = Any


def misfit(pattern: Json, actual: Json, at: str = "result") -> str | None:
    """Why `actual` does not fit `pattern`. Objects may hold more than the pattern; lists not."""
    if isinstance(pattern, dict) and "$has" in pattern:
        if isinstance(actual, str) and pattern["$has"] in actual:
            return None
        return f"{at}: {show(actual)} does not contain {show(pattern['$has'])}"
    if isinstance(pattern, dict):
        if not isinstance(actual, dict):
            return f"{at}: {show(actual)} is no object"
        found = (misfit(item, actual.get(key), f"{at}.{key}") for key, item in pattern.items())
        return next((why for why in found if why), None)
    if isinstance(pattern, list):
        if not isinstance(actual, list):
            return f"{at}: {show(actual)} is no list"
        if len(actual) != len(pattern):
            return f"{at}: {len(actual)} items in place of {len(pattern)}"
        found = (misfit(a, b, f"{at}[{i}]") for i, (a, b) in enumerate(zip(pattern, actual)))
        return next((why for why in found if why), None)
    same = pattern == actual and isinstance(pattern, bool) == isinstance(actual, bool)
    return None if same else f"{at}: {show(actual)} in place of {show(pattern)}"


def show(value: Json) -> str:
    return json.dumps(value, ensure_ascii=False)[:300]


class Wrong(Exception):
    """A check that did not hold."""


def must(pattern: Json, actual: Json) -> None:
    if why := misfit(pattern, actual):
        raise Wrong(why)


def dump(model: Any) -> Json:
    """A model as on the wire: what was not sent is left out, a null that was sent stays."""
    return model.model_dump(mode="json", by_alias=True, exclude_unset=True)


def text_of(result: Json) -> str:
    return "\n".join(block.get("text", "") for block in result["content"])


def fits(pattern: Json, result: Json) -> None:
    """A tool's own result must not be an error unless the pattern says so."""
    if "isError" not in pattern and result.get("isError"):
        raise Wrong(f"isError: {text_of(result)}")
    must(pattern, result)


class Checks:
    def __init__(self, client: Client, expect: Json) -> None:
        self.client, self.expect, self.failed = client, expect, 0
        self.namespace: str | None = expect.get("core")

    async def check(self, name: str, body: Any) -> None:
        try:
            note = await body
            print(f"ok {name}" + (f" ({note})" if note else ""), flush=True)
        except Exception as error:  # any way to fail is a failed check, said on its line
            self.failed += 1
            print(f"FAIL {name}: {type(error).__name__}: {error}", flush=True)

    async def raw(self, tool: str, arguments: Json, progress: Any = None) -> Json:
        return dump(await self.client.call_tool(tool, arguments, progress_callback=progress))

    async def call(self, tool: str, arguments: Json, progress: Any = None) -> Json:
        """The call itself, or in core mode the same call through mcpx_call."""
        if self.namespace is None:
            return await self.raw(tool, arguments, progress)
        inner = {"namespace": self.namespace, "tool": tool, "arguments": arguments}
        return await self.raw("mcpx_call", inner, progress)

    async def run(self) -> None:
        expect = self.expect
        if self.namespace is None:
            await self.check("list", self.list())
        else:
            await self.core()
        for one in expect["calls"]:
            await self.check(one["check"], self.one(one))
        await self.check("progress", self.progress(**expect["progress"]))
        if "error" in expect:
            await self.check("protocol error", self.error(**expect["error"]))
        await self.check("unknown tool", self.unknown(expect["unknown"]))
        await self.check("cancel", self.cancel(**expect["cancel"]))
        first = expect["calls"][0]
        await self.check(f"{first['check']} afterwards", self.one(first))

    async def one(self, one: Json) -> None:
        fits(one["result"], await self.call(one["tool"], one["arguments"]))

    async def list_all(self) -> tuple[list[Json], int]:
        tools: list[Json] = []
        cursor, pages = None, 0
        while pages < 100:
            page = await self.client.list_tools(cursor=cursor)
            tools += [dump(tool) for tool in page.tools]
            pages += 1
            cursor = page.next_cursor
            if cursor is None:
                return tools, pages
        raise Wrong("the list does not end")

    async def list(self) -> str:
        expected = self.expect["tools"]
        tools, pages = await self.list_all()
        by_name = {tool["name"]: tool for tool in tools}
        if len(by_name) != len(tools):
            raise Wrong(f"a name twice in {[tool['name'] for tool in tools]}")
        if missing := set(expected["names"]) - set(by_name):
            raise Wrong(f"not listed: {sorted(missing)}; listed: {sorted(by_name)}")
        extra = set(by_name) - set(expected["names"])
        if expected["exact"] and extra:
            raise Wrong(f"listed as well: {sorted(extra)}")
        for name, definition in expected["definitions"].items():
            must(definition, by_name[name])
        if pages < self.expect["pages"]:
            raise Wrong(f"{pages} pages, {self.expect['pages']} expected")
        return f"{len(tools)} tools, {pages} pages"

    async def progress(self, tool: str, arguments: Json, steps: int, result: Json) -> None:
        notes: list[tuple[float, float | None]] = []

        async def note(progress: float, total: float | None, _message: str | None) -> None:
            notes.append((progress, total))

        fits(result, await self.call(tool, arguments, note))
        if len(notes) != steps:
            raise Wrong(f"{len(notes)} notes in place of {steps}: {notes}")
        if any(later[0] <= earlier[0] for earlier, later in zip(notes, notes[1:])):
            raise Wrong(f"out of order: {notes}")
        if notes[-1][0] != notes[-1][1]:
            raise Wrong(f"ended at {notes[-1]}")

    async def error(self, tool: str, arguments: Json, error: Json) -> None:
        try:
            result = await self.call(tool, arguments)
        except MCPError as raised:
            if self.namespace is not None:
                raise Wrong(f"an error past mcpx_call: {raised}") from raised
            return must(error, dump(raised.error))
        if self.namespace is None or not result.get("isError"):
            raise Wrong(f"no error but {show(result)}")
        # Behind mcpx_call the upstream's error is told to the model, in the upstream's words.
        must(error["message"], text_of(result))

    async def unknown(self, name: str) -> None:
        try:
            result = await self.call(name, {})
        except MCPError as raised:
            return must({"code": -32602, "message": {"$has": name}}, dump(raised.error))
        fits({"isError": True}, result)
        must({"$has": name}, text_of(result))

    async def cancel(self, tool: str, arguments: Json, seen: Json = None) -> str | None:
        """The call ends at once for the host, and the upstream hears of it where it can tell."""
        started = time.monotonic()
        with anyio.move_on_after(0.3) as scope:
            result = await self.call(tool, arguments)
        if not scope.cancelled_caught:
            raise Wrong(f"answered all the same: {show(result)}")
        if time.monotonic() - started > 2.8:
            raise Wrong(f"only ended after {time.monotonic() - started:.1f} s")
        if seen is None:
            return "the upstream cannot tell whether it heard"
        for _ in range(50):
            if text_of(await self.call(seen["tool"], seen["arguments"])) == seen["text"]:
                return None
            await anyio.sleep(0.1)
        raise Wrong("the upstream never heard of it")

    async def core(self) -> None:
        """In core mode: the own tools work, and calls go through mcpx_call."""
        await self.check("core list", self.core_list())
        one = {"namespace": self.namespace}
        first_tool = self.expect["calls"][0]["tool"]
        await self.check("mcpx_namespaces", self.tells("mcpx_namespaces", {}, self.namespace))
        await self.check("mcpx_namespaces of one", self.tells("mcpx_namespaces", one, first_tool))
        await self.check("mcpx_status", self.tells("mcpx_status", {}, self.namespace))

    async def core_list(self) -> str:
        names = [tool["name"] for tool in (await self.list_all())[0]]
        if missing := {"mcpx_namespaces", "mcpx_call", "mcpx_status"} - set(names):
            raise Wrong(f"not listed: {sorted(missing)}")
        if foreign := [name for name in names if not name.startswith("mcpx_")]:
            raise Wrong(f"not mcpx's own: {foreign}")
        return " ".join(names)

    async def tells(self, tool: str, arguments: Json, word: Any) -> None:
        result = await self.raw(tool, arguments)
        fits({}, result)
        must({"$has": word}, text_of(result))


async def main() -> int:
    file, mode, command, *args = sys.argv[1:]
    with open(file, encoding="utf-8") as source:
        expect = json.load(source)
    # The SDK takes a URL for Streamable HTTP.
    server: Any = command
    if not command.startswith("http"):
        server = StdioServerParameters(command=command, args=args, env=dict(os.environ))
    checks = None
    try:
        async with Client(server, mode=mode) as client:
            name = client.server_info.name if client.server_info else "no name"
            print(f"ok connect ({client.protocol_version}, {name})", flush=True)
            checks = Checks(client, expect)
            await checks.run()
    except Exception as error:  # the SDK wraps what went wrong in groups: say the first of it
        while isinstance(error, BaseExceptionGroup):
            error = error.exceptions[0]
        where = "close" if checks else "connect"
        print(f"FAIL {where}: {type(error).__name__}: {error}", flush=True)
        return 1
    print("ok close", flush=True)
    return 1 if checks.failed else 0


sys.exit(anyio.run(main))
