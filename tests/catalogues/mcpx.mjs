// One mcpx in folders of its own: its daemon, its commands, its control API, a host in front of it.
import { execFile, spawn } from 'node:child_process';
import fs from 'node:fs';
import http from 'node:http';
import path from 'node:path';
import { createInterface } from 'node:readline';
import { setTimeout as nap } from 'node:timers/promises';
import { configuration } from './servers.mjs';

export class Mcpx {
  constructor(binary, dir, settings, servers) {
    this.binary = binary;
    this.dir = dir;
    this.config = path.join(dir, 'mcpx.toml');
    const [state, run] = [path.join(dir, 'state'), path.join(dir, 'run')];
    this.env = { ...process.env, MCPX_STATE_DIR: state, MCPX_RUNTIME_DIR: run };
    this.socket = path.join(run, 'control.sock');
    this.configure(settings, servers);
  }

  configure(settings, servers) {
    fs.writeFileSync(this.config, configuration(settings, servers));
  }

  /** Runs a command and gives what it prints. */
  cli(...args) {
    const options = { env: this.env, timeout: 120_000, maxBuffer: 64 << 20 };
    return new Promise((done, fail) => {
      execFile(this.binary, ['--config', this.config, ...args], options, (error, out, log) => {
        if (error) fail(new Error(`mcpx ${args.join(' ')}: ${error.code}: ${log || out}`));
        else done(out);
      });
    });
  }

  /** Starts the daemon and waits until it answers. */
  async start() {
    const log = fs.openSync(path.join(this.dir, 'daemon.log'), 'a');
    const args = ['--config', this.config, 'daemon'];
    this.daemon = spawn(this.binary, args, { env: this.env, stdio: ['ignore', log, log] });
    for (const until = Date.now() + 20_000; Date.now() < until; await nap(100)) {
      if (this.daemon.exitCode !== null) break;
      if (await this.ask('GET', '/v1/health').catch(() => undefined)) return;
    }
    const said = fs.readFileSync(path.join(this.dir, 'daemon.log'), 'utf8');
    throw new Error(`the daemon does not answer: ${said.slice(-2000)}`);
  }

  /** Ends the daemon, and with it every server. */
  async end() {
    if (!this.daemon || this.daemon.exitCode !== null) return;
    const gone = new Promise(done => this.daemon.once('exit', done));
    await this.ask('POST', '/v1/shutdown').catch(() => this.daemon.kill('SIGTERM'));
    const late = setTimeout(() => this.daemon.kill('SIGKILL'), 20_000);
    await gone;
    clearTimeout(late);
  }

  /** One request of the control API. */
  ask(method, route, body) {
    return new Promise((done, fail) => {
      const headers = body ? { 'content-type': 'application/json' } : {};
      const options = { agent: false, socketPath: this.socket, method, path: route, headers: { host: 'mcpx', ...headers } };
      const request = http.request(options, response => {
        let text = '';
        response.setEncoding('utf8');
        response.on('data', part => (text += part));
        response.on('end', () => {
          if (response.statusCode === 200) done(JSON.parse(text));
          else fail(new Error(`${method} ${route}: ${response.statusCode} ${text}`));
        });
      });
      request.on('error', fail);
      request.end(body && JSON.stringify(body));
    });
  }

  /** What an MCP host is told and what it gets: `body` gets a function that makes requests. */
  async host(body) {
    const args = ['--config', this.config, 'serve'];
    const child = spawn(this.binary, args, { env: this.env, stdio: ['pipe', 'pipe', 'ignore'] });
    const waiting = new Map();
    createInterface({ input: child.stdout }).on('line', line => {
      const message = JSON.parse(line);
      waiting.get(message.id)?.(message);
    });
    const gone = new Promise(done => child.once('exit', done));
    let id = 0;
    const send = message => child.stdin.write(`${JSON.stringify({ jsonrpc: '2.0', ...message })}\n`);
    const request = async (method, params) => {
      id += 1;
      send({ id, method, params });
      const own = id;
      const lost = gone.then(code => ({ error: { message: `mcpx serve ended with ${code}` } }));
      const answer = await Promise.race([new Promise(done => waiting.set(own, done)), lost]);
      if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
      return answer.result;
    };
    try {
      const opened = await request('initialize', {
        protocolVersion: '2025-06-18',
        capabilities: {},
        clientInfo: { name: 'catalogues', version: '1' },
      });
      send({ method: 'notifications/initialized' });
      return await body(request, opened);
    } finally {
      child.stdin.end();
      await gone;
    }
  }
}
