// opencode itself as the host: `mcp list`, `run`, and `serve`, whose daemon dies in mid-session.
//
// opencode gets a home of its own, a language model of ours on loopback (stub.mjs) and no way out:
// a proxy address where nobody listens, and none of the downloads it would make at its start.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { setTimeout as nap } from 'node:timers/promises';
import { run } from '../cell.mjs';
import { orderFor, startStub } from './stub.mjs';

const LIMIT_MS = 60_000;

/** The binary that opencode-ai starts; that package cannot be locked for every platform. */
const binary = modules => path.join(modules, 'opencode-linux-x64-baseline/bin/opencode');

/** The call to make, as opencode names the tools of a server called "m". */
function callFor(mode, message) {
  const args = { message };
  return mode === 'core'
    ? { tool: 'm_mcpx_call', args: { namespace: 'up', tool: 'echo', arguments: args } }
    : { tool: 'm_echo', args };
}

function settings(cell, stub) {
  const model = { name: 'stub', tool_call: true, limit: { context: 200_000, output: 8_000 } };
  return {
    autoupdate: false,
    share: 'disabled',
    model: 'stub/stub',
    small_model: 'stub/stub',
    permission: { '*': 'allow' },
    provider: {
      stub: {
        npm: '@ai-sdk/openai-compatible',
        name: 'stub',
        options: { baseURL: stub.url, apiKey: 'none' },
        models: { stub: model },
      },
    },
    mcp: { m: { type: 'local', command: cell.command, enabled: true, timeout: 20_000 } },
  };
}

function environment(cell, home, config) {
  const nowhere = 'http://127.0.0.1:9';
  const models = path.join(home, 'models.json');
  fs.writeFileSync(models, '{}');
  return {
    ...cell.env,
    HOME: home,
    XDG_CONFIG_HOME: `${home}/config`,
    XDG_DATA_HOME: `${home}/data`,
    XDG_STATE_HOME: `${home}/state`,
    XDG_CACHE_HOME: `${home}/cache`,
    OPENCODE_CONFIG: config,
    OPENCODE_MODELS_PATH: models,
    OPENCODE_DISABLE_MODELS_FETCH: '1',
    OPENCODE_DISABLE_AUTOUPDATE: '1',
    OPENCODE_DISABLE_DEFAULT_PLUGINS: '1',
    OPENCODE_PURE: '1',
    OPENCODE_DISABLE_LSP_DOWNLOAD: '1',
    OPENCODE_DISABLE_PROJECT_CONFIG: '1',
    HTTP_PROXY: nowhere,
    HTTPS_PROXY: nowhere,
    NO_PROXY: '127.0.0.1,localhost',
    npm_config_registry: nowhere,
  };
}

/** One opencode in one home, in front of one cell. */
export class Opencode {
  constructor({ cell, mode, modules, stub }) {
    Object.assign(this, { cell, mode, stub, binary: binary(modules), lines: [], log: '' });
    const home = path.join(cell.dir, 'home');
    this.project = path.join(home, 'project');
    fs.mkdirSync(this.project, { recursive: true });
    const config = path.join(home, 'opencode.json');
    fs.writeFileSync(config, JSON.stringify(settings(cell, stub)));
    this.env = environment(cell, home, config);
  }

  async check(name, body) {
    try {
      await body();
      this.lines.push(`ok ${name}`);
    } catch (error) {
      this.lines.push(`FAIL ${name}: ${error.message}`);
    }
  }

  async cli(...args) {
    const { out, log, code } = await run([this.binary, ...args], {
      env: this.env,
      cwd: this.project,
      limit: LIMIT_MS,
    });
    this.log += log;
    // Without the colours, which opencode prints even to a pipe.
    return { code, text: (out + log).replaceAll(/\u001b\[[0-9;]*m/g, '') };
  }

  async listsConnected() {
    const { code, text } = await this.cli('mcp', 'list');
    if (code !== 0 || !/✓ m\s+connected/.test(text)) throw new Error(`exit ${code}: ${text}`);
  }

  /** What `mcpx connect` writes is taken as it is; `mcpx disconnect` leaves what was there. */
  async takesWhatConnectWrites() {
    const { OPENCODE_CONFIG, ...env } = this.env;
    const file = path.join(env.XDG_CONFIG_HOME, 'opencode/opencode.jsonc');
    const before = '{\n  // mine\n  "$schema": "https://opencode.ai/config.json", // kept\n}\n';
    fs.mkdirSync(path.dirname(file), { recursive: true });
    fs.writeFileSync(file, before);
    const mcpx = async (...args) => {
      const { cell } = this;
      const words = [cell.mcpx, '--config', cell.config, ...args];
      const { code, out, log } = await run(words, { env, cwd: this.project, limit: LIMIT_MS });
      if (code !== 0) throw new Error(`mcpx ${args.join(' ')}: exit ${code}: ${out}${log}`);
    };
    await mcpx('connect', 'opencode', '--yes');
    const words = [this.binary, 'mcp', 'list'];
    const { code, out, log } = await run(words, { env, cwd: this.project, limit: LIMIT_MS });
    const text = (out + log).replaceAll(/\u001b\[[0-9;]*m/g, '');
    if (code !== 0 || !/✓ m\s+connected/.test(text)) throw new Error(`exit ${code}: ${text}`);
    await mcpx('disconnect', 'opencode');
    const after = fs.readFileSync(file, 'utf8');
    if (after !== before) throw new Error(`left behind: ${after}`);
    fs.rmSync(file);
  }

  async runsTool() {
    const { tool, args } = callFor(this.mode, 'from opencode run');
    const { code, text } = await this.cli('run', orderFor(tool, args));
    if (code !== 0 || !text.includes('ANSWER<Echo: from opencode run>ANSWER')) {
      throw new Error(`exit ${code}: ${text}`);
    }
  }

  /** Starts the headless opencode and opens a session in it. */
  async serve() {
    this.server = spawn(this.binary, ['serve', '--port', '0', '--hostname', '127.0.0.1'], {
      env: this.env,
      cwd: this.project,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    this.server.stderr.on('data', part => {
      this.log += part;
    });
    this.url = await new Promise((found, fail) => {
      let seen = '';
      const late = setTimeout(
        () => fail(new Error(`opencode serve does not start: ${seen}`)),
        LIMIT_MS,
      );
      this.server.stdout.on('data', part => {
        seen += part;
        const url = /http:\/\/127\.0\.0\.1:\d+/.exec(seen)?.[0];
        if (url) {
          clearTimeout(late);
          found(url);
        }
      });
    });
    this.session = (await this.post('/session', {})).id;
  }

  async post(where, body) {
    const answer = await fetch(`${this.url}${where}`, {
      method: 'POST',
      signal: AbortSignal.timeout(LIMIT_MS),
      headers: { 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${where}: ${answer.status} ${await answer.text()}`);
    return answer.json();
  }

  /** One turn of the session: the model asks for the tool and prints what it answered. */
  async turn(message) {
    const { tool, args } = callFor(this.mode, message);
    const said = await this.order(tool, args);
    if (said !== `ANSWER<Echo: ${message}>ANSWER`) throw new Error(`the session said ${said}`);
  }

  /** A tool is found, its declaration read, a script makes several calls and keeps a file, which is read. */
  async drivesScript() {
    const found = await this.order('m_mcpx_search', { query: 'echo back a message' });
    if (!found.includes('tools.up.echo') && !found.includes('up.echo')) throw new Error(found);
    const types = await this.order('m_mcpx_types', { namespace: 'up', tools: ['echo', 'get-sum'] });
    if (!/message: string/.test(types)) throw new Error(types);
    const code = `
      interface Line { said: string; sum: unknown }
      const lines: Line[] = await Promise.all([1, 2, 3].map(async (n: number) => ({
        said: await tools.up.echo({ message: \`number ${'$'}{n}\` }) as string,
        sum: await tools.up.get_sum({ a: n, b: n }),
      })));
      console.log(lines.length, 'lines');
      await artifacts.write('lines.txt', lines.map(line => line.said).join('\\n'), 'text/plain');
      return lines.at(-1)!.said;`;
    const ran = await this.order('m_mcpx_exec', { code });
    const uri = /mcpx:\/\/artifacts\/[^\s">)]+/.exec(ran)?.[0];
    if (!ran.includes('Echo: number 3') || !ran.includes('3 lines') || !uri) throw new Error(ran);
    const read = await this.order('m_mcpx_read', { uri });
    if (!read.includes('Echo: number 1\nEcho: number 2')) throw new Error(read);
    const wrong = await this.order('m_mcpx_exec', { code: 'await tools.up.ecko({})' });
    if (!/echo/.test(wrong) || !/line 1/.test(wrong)) throw new Error(wrong);
  }

  /** The session's model makes this call; what it says then. */
  async order(tool, args) {
    const reply = await this.post(`/session/${this.session}/message`, {
      model: { providerID: 'stub', modelID: 'stub' },
      parts: [{ type: 'text', text: orderFor(tool, args) }],
    });
    return reply.parts
      .filter(part => part.type === 'text')
      .map(part => part.text)
      .join('');
  }

  async stop() {
    if (!this.server || this.server.exitCode !== null) return;
    const gone = new Promise(done => this.server.once('exit', done));
    this.server.kill('SIGTERM');
    await Promise.race([gone, nap(5000)]);
    if (this.server.exitCode === null) this.server.kill('SIGKILL');
  }
}

async function killHard(child) {
  if (!child || child.exitCode !== null) throw new Error('no daemon runs');
  const gone = new Promise(done => child.once('exit', done));
  child.kill('SIGKILL');
  await gone;
}

/** The whole story. A session goes on in one opencode process while the daemon dies twice. */
async function story(host, cell, mode) {
  await host.check('mcp list says connected', () => host.listsConnected());
  if (mode !== 'direct') {
    // It ends all that descends from it; the daemon is there for others too.
    await host.check('the daemon that its shim started outlives it', async () => {
      const { code, log } = await cell.cli('status');
      if (code !== 0) throw new Error(`exit ${code}: ${log}`);
    });
  }
  if (mode === 'core') {
    const name = 'mcp list says connected to what mcpx connect wrote';
    await host.check(name, () => host.takesWhatConnectWrites());
  }
  await host.check('run calls the tool and prints its result', () => host.runsTool());
  let daemon;
  if (mode !== 'direct') {
    await host.check('stop the daemon', async () => {
      const { code, log } = await cell.cli('stop', '--daemon');
      if (code !== 0) throw new Error(`exit ${code}: ${log}`);
    });
    await host.check('start a daemon by hand', async () => {
      daemon = await cell.daemon();
    });
  }
  await host.check('serve keeps a session', () => host.serve());
  await host.check('a call in the session', () => host.turn('first'));
  if (mode === 'core') {
    await host.check('search, types, a script and its file in the session', () => host.drivesScript());
  }
  if (mode === 'direct') return host.check('another call in it', () => host.turn('second'));
  await host.check('a call after the daemon was killed and started again', async () => {
    await killHard(daemon);
    daemon = await cell.daemon();
    await host.turn('after a restart by hand');
  });
  return host.check('a call after the daemon was killed and nobody started it', async () => {
    await killHard(daemon);
    await host.turn('after the shim started it');
  });
}

/**
 * What it makes of questions. opencode 1.18 declares roots and no elicitation: it answers the one, and
 * a form goes to whoever answers at mcpx, or to nobody. The page is docs/opencode-questions.md.
 */
async function questions(host, cell, modern) {
  const asks = async (tool, found) => {
    const { code, text } = await host.cli('run', orderFor(`m_${tool}`, {}));
    if (code !== 0 || !found.test(text)) throw new Error(`exit ${code}: ${text}`);
  };
  await host.check('it answers roots', () => asks('roots', /ANSWER<\{"roots":\[\{"uri":"file:\/\//));
  if (modern) {
    // A server of 2026-07-28 is told with each request what can be asked, and does not ask.
    const refused = /do not declare the required capability/;
    return host.check('a form that nobody can answer is not asked', () => asks('form', refused));
  }
  await host.check('a form that nobody answers is cancelled', () => asks('form', /"action":"cancel"/));
  await host.check('a form is answered by mcpx elicit', async () => {
    const held = await cell.cli('settings', 'set', 'elicit.hold=30s');
    if (held.code !== 0) throw new Error(held.log);
    const answering = (async () => {
      for (const deadline = Date.now() + LIMIT_MS; Date.now() < deadline; await nap(100)) {
        const { out } = await cell.cli('elicit', 'list', '--json');
        const [open] = JSON.parse(out || '{}').questions ?? [];
        if (open) return cell.cli('elicit', 'answer', open.id, 'name=Ada');
      }
      throw new Error('no question is listed');
    })();
    await Promise.all([asks('form', /"action":"accept","content":\{"name":"Ada"\}/), answering]);
  });
}

export const opencode = given => play(given, host => story(host, given.cell, given.mode));

export const opencodeQuestions = given => play(given, host => questions(host, given.cell, given.modern));

/** Plays a story with an opencode and a model of ours. */
async function play({ cell, mode, modules }, story) {
  const stub = await startStub();
  const host = new Opencode({ cell, mode, modules, stub });
  try {
    await story(host);
  } finally {
    await host.stop();
    await stub.close();
  }
  const failed = host.lines.some(line => line.startsWith('FAIL'));
  const asked = stub.log.map(({ unexpected, step, tools }) =>
    JSON.stringify({
      unexpected,
      step,
      tools: tools?.filter(name => name.startsWith('m_')).slice(0, 4),
    }),
  );
  return { lines: host.lines, log: failed ? `${host.log}\n${asked.join('\n')}` : '' };
}
