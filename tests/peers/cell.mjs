// One run of one host: its folders, its mcpx configuration and daemon, and what is left afterwards.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as nap } from 'node:timers/promises';

const HOST_LIMIT_MS = 90_000;
const MARK = 'MCPX_PEERS_CELL';
let count = 0;

export class Cell {
  /**
   * mode: direct (no mcpx), passthrough (one server, bare tool names), core. The upstream is a
   * command or a URL; `listen` is the port of mcpx's own endpoint, where hosts come over HTTP.
   */
  constructor({ scratch, mcpx, mode, upstream, listen }) {
    count += 1;
    this.dir = path.join(scratch, String(count));
    this.mcpx = mcpx;
    this.config = path.join(this.dir, 'mcpx.toml');
    fs.mkdirSync(this.dir);
    this.env = { ...process.env, [MARK]: this.dir };
    this.servers = [];
    this.command = [upstream].flat();
    if (mode === 'direct') return;
    Object.assign(this.env, {
      MCPX_STATE_DIR: path.join(this.dir, 'state'),
      MCPX_RUNTIME_DIR: path.join(this.dir, 'run'),
    });
    this.command = listen
      ? [`http://127.0.0.1:${listen}/mcp`]
      : [mcpx, '--config', this.config, 'serve'];
    fs.writeFileSync(this.config, toml({ mode, upstream, mark: this.dir, listen }));
  }

  /** Runs a host program in front of this cell's command. */
  host(program) {
    return this.run([...program, ...this.command]);
  }

  /** Runs a program with this cell's mark. */
  run(program) {
    return run(program, { env: this.env, limit: HOST_LIMIT_MS });
  }

  /** Runs an mcpx command in this cell. */
  cli(...args) {
    return run([this.mcpx, '--config', this.config, ...args], { env: this.env, limit: 20_000 });
  }

  /** Starts a daemon in the foreground and waits until it answers. */
  async daemon() {
    const [program, ...args] = [this.mcpx, '--config', this.config, 'daemon'];
    const log = fs.openSync(path.join(this.dir, 'daemon.log'), 'a');
    const child = spawn(program, args, { env: this.env, stdio: ['ignore', log, log] });
    for (let tries = 0; tries < 100; tries += 1) {
      if ((await this.cli('status')).code === 0) return child;
      if (child.exitCode !== null) break;
      await nap(100);
    }
    throw new Error(
      `the daemon does not answer: ${fs.readFileSync(path.join(this.dir, 'daemon.log'))}`,
    );
  }

  /** Starts a program that listens on a port, and waits until it does. */
  async serve([program, ...args], port) {
    const name = path.join(this.dir, `server-${port}.log`);
    const log = fs.openSync(name, 'a');
    const child = spawn(program, args, { env: this.env, stdio: ['ignore', log, log] });
    fs.closeSync(log);
    this.servers.push(child);
    for (const deadline = Date.now() + 20_000; Date.now() < deadline; await nap(50)) {
      if (await accepts(port)) return;
      if (child.exitCode !== null) break;
    }
    throw new Error(`nothing listens on ${port}: ${fs.readFileSync(name, 'utf8').slice(-800)}`);
  }

  /** Stops the daemon and looks for processes that should be gone. */
  async end() {
    const lines = [];
    if (this.mcpx && fs.existsSync(this.config)) {
      const { code, log } = await this.cli('stop', '--daemon');
      // 3 says that no daemon runs, which is as good.
      lines.push(code === 0 || code === 3 ? 'ok stop' : `FAIL stop: exit ${code}: ${log.trim()}`);
    }
    for (const child of this.servers) kill(child.pid);
    let left = this.processes();
    for (let tries = 0; left.length && tries < 50; tries += 1) {
      await nap(100);
      left = this.processes();
    }
    lines.push(
      left.length === 0
        ? 'ok nothing left'
        : `FAIL nothing left: ${left.map(({ pid, what }) => `${pid} ${what}`).join('; ')}`,
    );
    for (const { pid } of left) kill(pid);
    return lines;
  }

  /** Live processes that carry this cell's mark in their environment. */
  processes() {
    const found = [];
    for (const pid of fs.readdirSync('/proc').filter(name => /^\d+$/.test(name))) {
      try {
        const environment = fs.readFileSync(`/proc/${pid}/environ`, 'utf8').split('\0');
        if (!environment.includes(`${MARK}=${this.dir}`)) continue;
        const what = fs.readFileSync(`/proc/${pid}/cmdline`, 'utf8').replaceAll('\0', ' ').trim();
        if (what) found.push({ pid: Number(pid), what });
      } catch {
        /* gone meanwhile, or not ours to read */
      }
    }
    return found;
  }
}

function kill(pid) {
  try {
    process.kill(pid, 'SIGKILL');
  } catch {
    /* gone meanwhile */
  }
}

const accepts = port =>
  new Promise(done => {
    const socket = net.connect(port, '127.0.0.1');
    socket.on('connect', () => done(true) ?? socket.destroy());
    socket.on('error', () => done(false));
  });

/** A port that was free a moment ago. */
export const freePort = () =>
  new Promise(done => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });

/**
 * A configuration with one server, "up". Its environment bears the mark, so a leak is seen. The
 * first list waits for it longer than by default: a peer may start slowly on a busy machine.
 */
function toml({ mode, upstream, mark, listen }) {
  const q = JSON.stringify;
  const server = Array.isArray(upstream)
    ? `command = [${upstream.map(q).join(', ')}]\nenv = { ${MARK} = ${q(mark)} }\n`
    : `url = ${q(upstream)}\n`;
  const own = mode === 'core' ? '' : 'expose = "passthrough"\nprefix = ""\n';
  const http = `[http]\nlisten = ${q(listen ? `127.0.0.1:${listen}` : '')}\nopen = true\n`;
  const expose = `[expose]\nmode = ${q(mode)}\nlist_wait = "15s"\n`;
  return `${http}\n[servers.up]\nscope = "global"\n${server}${own}\n${expose}`;
}

/** Runs a program to its end: its output lines, its standard error, its exit code. */
export function run([program, ...args], { env, cwd, limit }) {
  return new Promise(done => {
    const child = spawn(program, args, { env, cwd, stdio: ['ignore', 'pipe', 'pipe'] });
    let out = '',
      log = '',
      late = false,
      held;
    const watchdog = setTimeout(() => {
      late = true;
      kill(child.pid);
    }, limit);
    // A daemon that kept the host's pipes would make every program that waits for their end wait.
    const letGo = () => {
      held = true;
      child.stdout.destroy();
      child.stderr.destroy();
    };
    let pipes;
    child.on('exit', () => {
      pipes = setTimeout(letGo, 3000);
    });
    child.stdout.on('data', part => {
      out += part;
    });
    child.stderr.on('data', part => {
      log += part;
    });
    child.on('error', error => {
      log += String(error);
    });
    child.on('close', (code, signal) => {
      clearTimeout(watchdog);
      clearTimeout(pipes);
      const lines = out.split('\n').filter(Boolean);
      const bad = lines.some(line => line.startsWith('FAIL '));
      if (late) lines.push(`FAIL run: still running after ${limit / 1000} s`);
      else if ((code !== 0 || signal) && !bad) lines.push(`FAIL run: exit ${code ?? signal}`);
      if (held) lines.push('FAIL run: something that outlived it holds its output open');
      done({ lines, out, log, code });
    });
  });
}
