// One run of one host: its folders, its mcpx configuration and daemon, and what is left afterwards.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as nap } from 'node:timers/promises';

const HOST_LIMIT_MS = 90_000;
const MARK = 'MCPX_PEERS_CELL';
let count = 0;

export class Cell {
  /** mode: direct (no mcpx), passthrough (one server, bare tool names), core. */
  constructor({ scratch, mcpx, mode, upstream }) {
    count += 1;
    this.dir = path.join(scratch, String(count));
    this.mcpx = mcpx;
    this.config = path.join(this.dir, 'mcpx.toml');
    fs.mkdirSync(this.dir);
    this.env = { ...process.env, [MARK]: this.dir };
    this.command = upstream;
    if (mode === 'direct') return;
    Object.assign(this.env, {
      MCPX_STATE_DIR: path.join(this.dir, 'state'),
      MCPX_RUNTIME_DIR: path.join(this.dir, 'run'),
    });
    this.daemonPids = [];
    this.command = [mcpx, '--config', this.config, 'serve'];
    fs.writeFileSync(this.config, toml({ mode, upstream, mark: this.dir }));
  }

  /** Runs a host program in front of this cell's command. */
  host(program) {
    return run([...program, ...this.command], { env: this.env, limit: HOST_LIMIT_MS });
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

  /** Stops the daemon and looks for processes that should be gone. */
  async end() {
    const lines = [];
    if (this.mcpx && fs.existsSync(this.config)) {
      const { code, log } = await this.cli('stop', '--daemon');
      // 3 says that no daemon runs, which is as good.
      lines.push(code === 0 || code === 3 ? 'ok stop' : `FAIL stop: exit ${code}: ${log.trim()}`);
    }
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

/**
 * A configuration with one server, "up". Its environment bears the mark, so a leak is seen. The
 * first list waits for it longer than by default: a peer may start slowly on a busy machine.
 */
function toml({ mode, upstream, mark }) {
  const q = JSON.stringify;
  const server =
    `[servers.up]\ncommand = [${upstream.map(q).join(', ')}]\nscope = "global"\n` +
    `env = { ${MARK} = ${q(mark)} }\n`;
  const own = mode === 'core' ? '' : 'expose = "passthrough"\nprefix = ""\n';
  return `${server}${own}\n[expose]\nmode = ${q(mode)}\nlist_wait = "15s"\n`;
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
