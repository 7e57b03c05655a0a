// mcpx over HTTP: SDK hosts at /mcp, SDK upstreams behind a URL, and other people's programs between
// them. Every run is a title, an upstream, a way to it, and host programs.
import fs from 'node:fs';
import path from 'node:path';
import { Cell, freePort } from './cell.mjs';

const here = import.meta.dirname;

/** Programs that serve catalog.json on a port: { run(port), path }. */
export function upstreams({ python, rust, catalog }) {
  const node = name => port => [process.execPath, path.join(here, 'node', name), catalog, port];
  const script = path.join(here, 'python/upstream.py');
  return {
    ts1: { run: node('upstream-ts1.mjs'), path: '/mcp' },
    ts2: { run: node('upstream-ts2.mjs'), path: '/mcp' },
    python: { run: port => [python, script, catalog, 'http', port], path: '/mcp' },
    'python-sse': { run: port => [python, script, catalog, 'sse', port], path: '/sse' },
    rmcp: { run: port => [rust('rmcp-upstream'), catalog, port], path: '/mcp' },
  };
}

/** The hosts that can speak HTTP. */
export const HTTP_HOSTS = ['ts1', 'ts2-legacy', 'ts2-auto', 'python-legacy', 'python-auto'];

/** Other people's bridges, as commands. */
function bridges(modules) {
  const gateway = path.join(modules, 'supergateway/dist/index.js');
  const preload = path.join(here, 'node/loopback.cjs');
  const remote = path.join(modules, 'mcp-remote/dist/proxy.js');
  return {
    /** A stdio command as a server on a port. */
    gateway: (command, transport, port) =>
      [process.execPath, '-r', preload, gateway, '--stdio', command.join(' ')].concat(
        ['--outputTransport', transport, '--port', port],
        transport === 'sse' ? [] : ['--stateful'],
      ),
    /** A URL as a stdio command. */
    fromGateway: url => [process.execPath, gateway, '--streamableHttp', url],
    mcpRemote: url => [process.execPath, remote, url, '--transport', 'http-only'],
  };
}

/** A cell with its upstream running: by a command over stdio, or behind a URL. */
async function cellFor(common, { command, server, mode }) {
  const listen = mode === 'direct' ? undefined : await freePort();
  if (command) return new Cell({ ...common, mode, upstream: command, listen });
  const port = await freePort();
  const upstream = `http://127.0.0.1:${port}${server.path}`;
  const cell = new Cell({ ...common, mode, upstream, listen });
  try {
    await cell.serve(server.run(port), port);
  } catch (error) {
    await cell.end();
    throw error;
  }
  return cell;
}

/** Names of the runs that need more than a host, mcpx and an upstream. */
export const CHAINS = [
  'supergateway → mcpx',
  'mcp-remote → mcpx',
  'mcpx → supergateway',
  'mcpx → supergateway sse',
  'mcpx → mcp-remote',
  'mcpx → mcpx',
  'nginx → mcpx',
];

export class Http {
  /** `common` is what every cell takes; `programs` is { python, rust, catalog, modules, hosts }. */
  constructor(common, programs) {
    this.common = common;
    this.programs = programs;
    this.upstreams = upstreams(programs);
    this.bridges = bridges(programs.modules);
    this.quick = [programs.rust('rmcp-upstream'), programs.catalog];
    this.stdio = [programs.python, path.join(here, 'python/upstream.py'), programs.catalog];
  }

  /** One host of the matrix at one upstream. */
  async matrix(mode, host, upstream, expect) {
    const cell = await cellFor(this.common, { server: this.upstreams[upstream], mode });
    return this.#play(cell, mode, [[host, undefined]], expect);
  }

  /** One of CHAINS. */
  async chain(name, expect) {
    const { bridges, stdio } = this;
    const far = async transport => {
      const path = transport === 'sse' ? '/sse' : '/mcp';
      const server = { run: port => bridges.gateway(this.quick, transport, port), path };
      return cellFor(this.common, { server, mode: 'passthrough' });
    };
    const near = () => cellFor(this.common, { command: stdio, mode: 'passthrough' });
    const play = (cell, ...hosts) => this.#play(cell, 'passthrough', hosts, expect);
    switch (name) {
      case 'supergateway → mcpx':
        // On this way it passes no notifications on, with or without mcpx.
        delete expect.progress;
        return play(await near(), ['ts1', bridges.fromGateway]);
      case 'mcp-remote → mcpx':
        return play(await near(), ['ts1', bridges.mcpRemote], ['python-legacy', bridges.mcpRemote]);
      case 'mcpx → supergateway':
        // It starts the command anew for each 2026-07-28 request: none knows of another.
        delete expect.cancel.seen;
        return play(await far('streamableHttp'), ['ts1'], ['ts2-auto']);
      case 'mcpx → supergateway sse':
        return play(await far('sse'), ['ts1'], ['ts2-auto']);
      case 'mcpx → mcp-remote':
        return this.#behindRemote(expect);
      case 'mcpx → mcpx':
        return this.#twice(expect);
      default:
        return this.#behindNginx(expect);
    }
  }

  /** mcpx's upstream is mcp-remote, whose server is one over HTTP. */
  async #behindRemote(expect) {
    const far = await cellFor(this.common, { server: this.upstreams.ts1, mode: 'direct' });
    const command = this.bridges.mcpRemote(far.command[0]);
    const cell = await cellFor(this.common, { command, mode: 'passthrough' });
    const outcome = await this.#play(cell, 'passthrough', [['ts1'], ['ts2-auto']], expect);
    outcome.lines.push(...(await far.end()));
    return outcome;
  }

  /** One mcpx is the upstream of another, and is spoken to in the newest revision. */
  async #twice(expect) {
    const far = await cellFor(this.common, { command: this.stdio, mode: 'passthrough' });
    const daemon = await far.daemon();
    const listen = await freePort();
    const upstream = far.command[0];
    const cell = new Cell({ ...this.common, mode: 'passthrough', upstream, listen });
    const outcome = await this.#play(
      cell,
      'passthrough',
      [['ts2-auto'], ['ts1'], ['python-auto']],
      expect,
      async () => {
        const { out } = await cell.cli('status', '--json');
        const { servers } = JSON.parse(out);
        const modern = JSON.stringify(servers).includes('2026-07-28');
        return [modern ? 'ok spoken to at 2026-07-28' : `FAIL spoken to at: ${out.slice(0, 600)}`];
      },
    );
    outcome.lines.push(...(await far.end()));
    daemon.kill('SIGKILL');
    return outcome;
  }

  /** nginx in front of /mcp, with nothing in its configuration that is for event streams. */
  async #behindNginx(expect) {
    const cell = await cellFor(this.common, { command: this.stdio, mode: 'passthrough' });
    const port = await freePort();
    const url = `http://127.0.0.1:${port}/mcp`;
    const { host: target } = new URL(cell.command[0]);
    const config = path.join(cell.dir, 'nginx.conf');
    fs.writeFileSync(config, nginxConfig(cell.dir, port, target));
    cell.command = [url];
    const daemon = await cell.daemon();
    await cell.serve([NGINX, '-p', cell.dir, '-c', config, '-g', 'daemon off;'], port);
    const hosts = [['ts1'], ['ts2-auto'], ['python-auto']];
    const stream = [process.execPath, path.join(here, 'node/stream.mjs'), url];
    return this.#play(cell, 'passthrough', hosts, expect, async () => (await cell.run(stream)).lines, daemon);
  }

  /** Runs each host in turn at one daemon; a host may come through a bridge that makes it stdio. */
  async #play(cell, mode, hosts, expect, more, running) {
    const outcome = { lines: [], log: '' };
    const file = path.join(cell.dir, 'expect.json');
    fs.writeFileSync(file, JSON.stringify(expect));
    const daemon = mode === 'direct' ? undefined : (running ?? (await cell.daemon()));
    for (const [host, through] of hosts) {
      const { run, era } = this.programs.hosts[host];
      const target = through ? through(cell.command[0]) : cell.command;
      const { lines, log } = await cell.run([...run, file, era, ...target]);
      const title = line => line.replace(/^(ok|FAIL) /, `$1 ${host}: `);
      outcome.lines.push(...(hosts.length > 1 ? lines.map(title) : lines));
      outcome.log += log;
    }
    if (more) outcome.lines.push(...(await more()));
    outcome.lines.push(...(await cell.end()));
    daemon?.kill('SIGKILL');
    return outcome;
  }
}

const unpacked = path.join(process.env.PEERS_DIR ?? '', 'nginx/usr/sbin/nginx');
const NGINX = ['/usr/sbin/nginx', unpacked].find(file => fs.existsSync(file));

/** Why a chain cannot run here. CI can fetch nginx, so there it must run. */
export function missing(chain) {
  return chain.startsWith('nginx') && !NGINX && !process.env.CI ? 'no nginx here' : undefined;
}

function nginxConfig(dir, port, target) {
  const temp = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
  const folders = temp.map(name => `  ${name}_temp_path ${dir}/${name};`).join('\n');
  return `pid ${dir}/nginx.pid;
error_log ${dir}/nginx.log;
worker_processes 1;
events {}
http {
  access_log off;
${folders}
  server {
    listen 127.0.0.1:${port};
    location /mcp {
      proxy_pass http://${target};
      proxy_http_version 1.1;
      proxy_set_header Connection "";
    }
  }
}
`;
}
