"""What goes on inside mcpx, read by those who wrote the formats.

    python inside.py MCPX

Starts a daemon with the built-in server, has some calls made, and reads its metrics with the parser of
prometheus_client and its traces with the messages of opentelemetry-proto. Prints a line for each check.
"""

import http.client
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.trace.v1.trace_pb2 import Span, Status
from prometheus_client.parser import text_string_to_metric_families

PATIENCE = 20
failed = 0


def check(what: str, holds: bool, seen: object = "") -> None:
    global failed
    print(f"{'ok' if holds else 'FAIL'} inside: {what}" + ("" if holds else f"\n    {seen}"))
    failed += not holds


class Collector(BaseHTTPRequestHandler):
    """Takes what comes to /v1/traces."""

    taken: list[Span] = []
    resources: list[dict[str, str]] = []

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        whole = ExportTraceServiceRequest.FromString(body)
        for resource in whole.resource_spans:
            self.resources.append(named(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.taken.extend(scope.spans)
        self.send_response(200 if self.path == "/v1/traces" else 404)
        self.send_header("content-type", "application/x-protobuf")
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


def named(attributes: object) -> dict[str, str]:
    return {one.key: one.value.string_value for one in attributes}


class OverSocket(http.client.HTTPConnection):
    """HTTP over the control socket."""

    def __init__(self, path: str) -> None:
        super().__init__("localhost")
        self.path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.sock.connect(self.path)


def metrics(connection: http.client.HTTPConnection) -> dict[tuple[str, ...], float]:
    connection.request("GET", "/metrics")
    answer = connection.getresponse()
    check("metrics are typed as Prometheus wants", "version=0.0.4" in answer.headers["content-type"])
    families = list(text_string_to_metric_families(answer.read().decode()))
    check("every family has a type and says what it is",
          all(family.type != "unknown" and family.documentation for family in families))
    counts = [family.name for family in families]
    check("no family comes twice", len(counts) == len(set(counts)), counts)
    return {(sample.name, *sorted(sample.labels.values())): sample.value
            for family in families for sample in family.samples}


def until(what: str, holds: object) -> None:
    end = time.monotonic() + PATIENCE
    while not holds() and time.monotonic() < end:
        time.sleep(0.05)
    check(what, holds())


def main(mcpx: str, folder: pathlib.Path) -> None:
    collector = ThreadingHTTPServer(("127.0.0.1", 0), Collector)
    threading.Thread(target=collector.serve_forever, daemon=True).start()
    config = folder / "config.toml"
    config.write_text(
        'http.listen = "off"\nmetrics.listen = "127.0.0.1:0"\n'
        f'otel.endpoint = "http://127.0.0.1:{collector.server_port}"\notel.interval = "100ms"\n'
    )
    run = folder / "run"
    env = os.environ | {"MCPX_STATE_DIR": str(folder / "state"), "MCPX_RUNTIME_DIR": str(run),
                        "HOME": str(folder)}

    def command(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([mcpx, "--config", str(config), *words], env=env, text=True,
                              capture_output=True, timeout=PATIENCE * 3, check=False)

    try:
        check("a call is made", command("call", "demo", "echo", "text=hello").returncode == 0)
        check("a call fails", command("call", "demo", "fail").returncode == 1)
        values = metrics(OverSocket(str(run / "control.sock")))
        check("calls are counted by outcome",
              (values["mcpx_calls_total", "demo", "ok"],
               values["mcpx_calls_total", "demo", "tool_error"]) == (1, 1), values)
        check("the histogram is whole",
              values["mcpx_call_duration_seconds_bucket", "+Inf", "demo"]
              == values["mcpx_call_duration_seconds_count", "demo"] == 2, values)
        check("the daemon is measured", values["process_resident_memory_bytes",] > 1e6)
        events = json.loads(command("events", "--json").stdout)["events"]
        text = next(one["text"] for one in events if "metrics are served" in one["text"])
        address = text.split("http://")[1].split("/")[0]
        over_tcp = metrics(http.client.HTTPConnection(address))
        check("over TCP there is the same", set(over_tcp) == set(values))

        spans = Collector.taken
        until("spans come to the collector", lambda: len(spans) >= 2)
        by_name = {span.name: span for span in spans}
        echo, fail = by_name["tools/call echo"], by_name["tools/call fail"]
        check("spans are of the right kind and size",
              (echo.kind, len(echo.trace_id), len(echo.span_id)) == (Span.SPAN_KIND_CLIENT, 16, 8))
        check("spans have a length", 0 < echo.start_time_unix_nano <= echo.end_time_unix_nano)
        known = named(echo.attributes)
        check("spans say what was called",
              (known["mcp.method.name"], known["gen_ai.tool.name"], known["mcpx.server"])
              == ("tools/call", "echo", "demo"), known)
        check("a failure is one",
              (echo.status.code, fail.status.code)
              == (Status.STATUS_CODE_UNSET, Status.STATUS_CODE_ERROR), fail)
        check("the resource is named", Collector.resources[0]["service.name"] == "mcpx")
    finally:
        command("stop", "--daemon")


with tempfile.TemporaryDirectory(prefix="mcpx-inside-") as scratch:
    main(sys.argv[1], pathlib.Path(scratch))
sys.exit(1 if failed else 0)
