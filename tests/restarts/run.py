"""Three hosts, each in one session, call a tool with a side effect while the daemon is ended again and
again at random instants: by SIGKILL, by SIGTERM, and by SIGTERM with the program replaced. The sockets
are held here, as systemd would (`LISTEN_FDS`), and a daemon is started whenever there is none.

    python run.py MCPX FAKEMCP NODE_MODULES [RESTARTS] [SEED]

What must hold: no host loses its session; every call has one outcome, and what it says is what the ledger
of the server says: `ok` is once, `unknown` at most once, nothing is twice; the median time from an end of
the daemon to the next answer that a host has, less what one of its calls usually takes, is under
MCPX_RESTART_GAP_MS (300).
"""

import json
import os
import random
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import threading
import time

MCPX, FAKEMCP, MODULES = (os.path.abspath(path) for path in sys.argv[1:4])
RESTARTS = int(sys.argv[4]) if len(sys.argv) > 4 else 50
SEED = int(sys.argv[5]) if len(sys.argv) > 5 else int(time.time())
GAP_MS = float(os.environ.get("MCPX_RESTART_GAP_MS", "300"))
HERE = os.path.dirname(os.path.abspath(__file__))


class Activator:
    """Holds the sockets and keeps a daemon behind them."""

    def __init__(self, folder, environment):
        self.folder, self.environment = folder, environment
        self.program = os.path.join(folder, "mcpx")
        shutil.copy(MCPX, self.program)
        os.makedirs(os.path.join(folder, "run"), mode=0o700)
        self.control = socket.socket(socket.AF_UNIX)
        self.control.bind(os.path.join(folder, "run/control.sock"))
        self.http = socket.socket()
        self.http.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        self.http.bind(("127.0.0.1", 0))
        for listener in (self.control, self.http):
            listener.listen(1024)
        self.pid = None
        # Held while `pid` changes: a signal goes to a daemon, or to one that is a zombie still, never
        # to a number that nobody has.
        self.changing = threading.Lock()
        self.stopping = False
        self.start()
        self.keeper = threading.Thread(target=self.keep, daemon=True)
        self.keeper.start()

    def start(self):
        log = os.open(os.path.join(self.folder, "daemon.log"), os.O_CREAT | os.O_APPEND | os.O_WRONLY)
        pid = os.fork()
        if pid == 0:
            control, http = os.dup(self.control.fileno()), os.dup(self.http.fileno())
            control, http = (fcntl_above(fd) for fd in (control, http))
            os.dup2(control, 3)
            os.dup2(http, 4)
            os.dup2(log, 2)
            given = {"LISTEN_FDS": "2", "LISTEN_FDNAMES": "control:http", "LISTEN_PID": str(os.getpid())}
            config = os.path.join(self.folder, "c.toml")
            os.execve(self.program, ["mcpx", "--config", config, "daemon"], {**self.environment, **given})
        os.close(log)
        self.pid = pid

    def keep(self):
        while True:
            os.waitid(os.P_PID, self.pid, os.WEXITED | os.WNOWAIT)
            with self.changing:
                os.waitpid(self.pid, 0)
                if self.stopping:
                    self.pid = None
                    return
                self.start()

    def kill(self):
        self.stop(signal.SIGKILL)

    def stop(self, sig):
        """Ends the daemon, and none follows."""
        with self.changing:
            self.stopping = True
            if self.pid is not None:
                os.kill(self.pid, sig)

    def end(self, how):
        if how == "upgrade":
            new = self.program + ".new"
            shutil.copy(MCPX, new)
            os.rename(new, self.program)
        with self.changing:
            os.kill(self.pid, signal.SIGKILL if how == "kill" else signal.SIGTERM)


def fcntl_above(fd):
    import fcntl

    return fcntl.fcntl(fd, fcntl.F_DUPFD, 10)


class Host:
    def __init__(self, command, environment):
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.calls, self.sessions = [], []
        self.begun = threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def read(self):
        for line in self.process.stdout:
            said = json.loads(line)
            if "session" in said:
                self.sessions.append(said["session"])
            else:
                self.calls.append(said)
                self.begun.set()

    def kill(self):
        self.process.kill()

    def end(self):
        self.process.stdin.close()
        self.reader.join(60)
        return self.process.wait(10)


def main():
    running = []
    try:
        return story(running)
    finally:
        for one in running:
            one.kill()


def story(running):
    rng = random.Random(SEED)
    folder = tempfile.mkdtemp(prefix="mcpx-restarts-")
    ledger = os.path.join(folder, "ledger")
    environment = {
        **{key: value for key, value in os.environ.items() if not key.startswith(("MCPX_", "LISTEN_"))},
        # A login shell that reads nothing: how long a person's takes is not what is measured.
        "HOME": folder,
        "SHELL": "/bin/sh",
        # The SDK adds a listener for each of thousands of requests to one signal, and says so for each.
        "NODE_NO_WARNINGS": "1",
        "MCPX_STATE_DIR": os.path.join(folder, "state"),
        "MCPX_RUNTIME_DIR": os.path.join(folder, "run"),
    }
    with open(os.path.join(folder, "c.toml"), "w", encoding="utf-8") as config:
        config.write("[http]\nopen = true\n[shim]\nautostart = false\n[servers.up]\nscope = \"global\"\n")
        config.write(f"command = [{json.dumps(FAKEMCP)}]\nenv = {{ FAKEMCP_LEDGER = {json.dumps(ledger)} }}\n")
    activator = Activator(folder, environment)
    running.append(activator)
    port = activator.http.getsockname()[1]
    shim = [activator.program, "--config", os.path.join(folder, "c.toml"), "serve"]
    hosts = {
        "stdio": Host([sys.executable, os.path.join(HERE, "host-stdio.py"), *shim], environment),
        "http": Host(
            ["node", os.path.join(HERE, "host-http.mjs"), MODULES, f"http://127.0.0.1:{port}/mcp"],
            environment,
        ),
    }
    opencode = os.path.join(MODULES, "opencode-linux-x64-baseline/bin/opencode")
    if os.path.exists(opencode):
        home = os.path.join(folder, "opencode")
        driver = ["node", os.path.join(HERE, "host-opencode.mjs"), MODULES, home]
        hosts["opencode"] = Host([*driver, *shim], environment)
    else:
        print(f"tests/restarts: opencode is left out, there is no {opencode}")
    running.extend(hosts.values())
    for name, host in hosts.items():
        assert host.begun.wait(180), f"{name}: no call within three minutes"
    ends = []
    for number in range(RESTARTS):
        how = ("kill", "term", "upgrade")[number % 3]
        time.sleep(rng.uniform(0.05, 1.5))
        ends.append((time.time(), how))
        activator.end(how)
    time.sleep(3)
    codes = {name: host.end() for name, host in hosts.items()}
    activator.stop(signal.SIGTERM)
    activator.keeper.join(30)

    with open(ledger, encoding="utf-8") as file:
        effects = [line.split()[-1] for line in file if line.startswith("effect ")]
    wrong = []
    for name, host in hosts.items():
        if codes[name] != 0 or len(host.sessions) != 2 or len(set(host.sessions)) != 1:
            wrong.append(f"{name}: exit {codes[name]}, sessions {host.sessions}")
        counts = {}
        for call in host.calls:
            counts[call["outcome"]] = counts.get(call["outcome"], 0) + 1
            times = effects.count(call["text"])
            right = {"ok": times == 1, "unknown": times <= 1, "refused": times == 0}
            if not right.get(call["outcome"], False):
                wrong.append(f"{call['text']}: {call['outcome']}, {times} times: {call['why']}")
        gaps = []
        for at, _ in ends:
            after = [c["ended"] for c in host.calls if c["outcome"] == "ok" and c["ended"] > at]
            if after:
                gaps.append((min(after) - at) * 1000)
        median = statistics.median(gaps)
        print(f"{name}: {len(host.calls)} calls {counts}, gaps: median {median:.0f} ms, worst {max(gaps):.0f} ms")
        # A gap ends with an answer, and so has a whole call in it: for opencode, a turn of its model.
        usual = statistics.median((call["ended"] - call["began"]) * 1000 for call in host.calls)
        if median - usual >= GAP_MS:
            text = f"the median gap is {median:.0f} ms, a call takes {usual:.0f}, and {GAP_MS:.0f} ms more is the limit"
            wrong.append(f"{name}: {text}")
    if wrong:
        print("\n".join(wrong[:20]))
        print(f"tests/restarts: FAILED with seed {SEED}; {folder} has the logs")
        return 1
    shutil.rmtree(folder, ignore_errors=True)
    print(f"tests/restarts: {RESTARTS} restarts, seed {SEED}: no session lost, nothing ran twice")
    return 0


sys.exit(main())
