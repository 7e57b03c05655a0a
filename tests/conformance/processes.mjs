// The processes around one cell of the server leg: the fixture, mcpx, the bridge, the downgrade shim.
import { spawn, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import net from 'node:net';
import path from 'node:path';
import { setTimeout as nap } from 'node:timers/promises';
import { end } from './suite.mjs';

const here = import.meta.dirname;
const READY_LIMIT_MS = 15_000;

export function freePort() {
  return new Promise(done => {
    const server = net.createServer().listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => done(port));
    });
  });
}

/** Until something accepts on the port; fails when the child is gone before that. */
async function listening(port, child, log) {
  for (const deadline = Date.now() + READY_LIMIT_MS; Date.now() < deadline; await nap(50)) {
    const open = await new Promise(done => {
      const socket = net.connect(port, '127.0.0.1');
      socket.on('connect', () => done(true) ?? socket.destroy());
      socket.on('error', () => done(false));
    });
    if (open) return;
    if (child.exitCode !== null) break;
  }
  throw new Error(`nothing listens on ${port}: ${fs.readFileSync(log, 'utf8').slice(-600)}`);
}

/** What one cell started; `end` ends all of it. */
export class Cell {
  children = [];

  constructor({ name, work, kit, mcpx }) {
    this.name = name;
    this.kit = kit;
    this.mcpx = mcpx;
    this.dir = path.join(work, 'cells', name);
    fs.rmSync(this.dir, { recursive: true, force: true });
    fs.mkdirSync(this.dir, { recursive: true });
    fs.mkdirSync(path.join(kit, name));
    this.env = {
      ...process.env,
      // A socket's path must be short, and the folder of the results may lie deep.
      MCPX_STATE_DIR: path.join(kit, name, 'state'),
      MCPX_RUNTIME_DIR: path.join(kit, name, 'run'),
      MCPX_LOG: 'debug',
    };
  }

  /** Starts a program in a group of its own and waits for its port. */
  async start(what, command, port) {
    const log = path.join(this.dir, `${what}.log`);
    const out = fs.openSync(log, 'w');
    const [program, ...args] = command;
    const child = spawn(program, args, { stdio: ['ignore', out, out], detached: true, env: this.env });
    fs.closeSync(out);
    this.children.push(child);
    await listening(port, child, log);
    return child;
  }

  /** The kit's fixture over HTTP; gives its URL. */
  async fixture(era) {
    const port = await freePort();
    const file = path.join(this.kit, 'fixture.mjs');
    await this.start('fixture', [process.execPath, file, '--http', port, '--era', era], port);
    return `http://127.0.0.1:${port}/mcp`;
  }

  /** The fixture as a command. */
  stdioFixture(era) {
    return [process.execPath, path.join(this.kit, 'fixture.mjs'), '--stdio', '--era', era];
  }

  /** mcpx in front of one server, its names and URIs unchanged. Gives the configuration file. */
  configure({ command, url, follow, listen }) {
    const q = JSON.stringify;
    const lines = [
      '[http]',
      `listen = ${q(listen)}`,
      'open = true',
      '',
      '[servers.up]',
      url ? `url = ${q(url)}` : `command = [${command.map(q).join(', ')}]`,
      'scope = "global"',
      'expose = "passthrough"',
      'prefix = ""',
      ...(follow ? ['protocol = "follow"'] : []),
      '',
      // A process that has asked something has one call at a time, and scenarios leave questions open.
      '[elicit]',
      'turn = "1s"',
      '',
      '[expose]',
      'mode = "passthrough"',
      'list_wait = "15s"',
      '',
    ];
    const file = path.join(this.dir, 'mcpx.toml');
    fs.writeFileSync(file, lines.join('\n'));
    return file;
  }

  /** mcpx's own endpoint in front of a server; gives its URL. */
  async mcpxHttp(server) {
    const port = await freePort();
    const config = this.configure({ ...server, listen: `127.0.0.1:${port}` });
    await this.start('mcpx', [this.mcpx, '--config', config, 'daemon'], port);
    return `http://127.0.0.1:${port}/mcp`;
  }

  /** `mcpx serve` behind a bridge from HTTP to stdio; gives the bridge's URL. */
  async mcpxStdio(server) {
    const config = this.configure({ ...server, listen: '' });
    const port = await freePort();
    const gateway = path.join(here, 'node_modules/supergateway/dist/index.js');
    // It listens on every interface by itself; the kit's preload keeps it on loopback.
    const preload = path.join(this.kit, 'bind-lo.cjs');
    const serve = `${this.mcpx} --config ${config} serve`;
    const command = [process.execPath, '-r', preload, gateway, '--stdio', serve];
    await this.start(
      'bridge',
      [...command, '--outputTransport', 'streamableHttp', '--stateful', '--port', port],
      port,
    );
    this.daemonConfig = config;
    return `http://127.0.0.1:${port}/mcp`;
  }

  /** Between suite and endpoint: makes the suite's handshake ask for this revision. */
  async downgrade(url, revision) {
    const port = await freePort();
    const { origin, pathname } = new URL(url);
    const file = path.join(this.kit, 'downgrade-shim.mjs');
    const command = [process.execPath, file, port, origin, revision];
    const shim = await this.start(`downgrade-${revision}`, command, port);
    return { url: `http://127.0.0.1:${port}${pathname}`, stop: () => end(shim) };
  }

  /** Ends everything; a daemon that a shim started is asked to stop. */
  end() {
    if (this.daemonConfig) {
      const stop = ['--config', this.daemonConfig, 'stop', '--daemon'];
      try {
        execFileSync(this.mcpx, stop, { env: this.env, stdio: 'ignore', timeout: 20_000 });
      } catch {
        /* none runs */
      }
    }
    for (const child of this.children) end(child);
  }
}
