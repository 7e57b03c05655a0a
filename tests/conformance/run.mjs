// The cells of both legs, one after the other. Started by run.sh.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { Expected } from './expected.mjs';
import { Cell } from './processes.mjs';
import { conformance, scenarios } from './suite.mjs';

const here = import.meta.dirname;
const work = process.env.CONFORMANCE_DIR;
const mcpx = process.env.MCPX;
const RUN_LIMIT_MS = 120_000;
const SCENARIO_LIMIT_MS = 45_000;

/** The kit, copied beside our own node_modules: the original may be read-only. */
const kit = fs.mkdtempSync(path.join(os.tmpdir(), 'mcpx-conformance-'));
for (const file of fs.readdirSync(process.env.CONFORMANCE_KIT)) {
  fs.copyFileSync(path.join(process.env.CONFORMANCE_KIT, file), path.join(kit, file));
}
fs.symlinkSync(path.join(here, 'node_modules'), path.join(kit, 'node_modules'));

const REVISIONS = ['2025-03-26', '2025-06-18', '2025-11-25', '2026-07-28'];
/** Revisions that are really negotiated: the suite's own client always offers 2025-11-25. */
const NEGOTIATED = ['2025-06-18', '2025-03-26', '2024-11-05'];
/**
 * The extensions of 2026-07-28; no --spec-version selects them. Without tasks-status-notifications,
 * which the suite skips itself ("pending subscriptions/listen rewrite") and so has no check.
 */
const EXTENSIONS = [
  ...['lifecycle', 'capability-negotiation', 'wire-fields', 'request-state-removal', 'mrtr-input'],
  ...['request-headers', 'dispatch-and-envelope', 'required-task-error', 'mrtr-composition'],
].map(name => `tasks-${name}`);
EXTENSIONS.push(...['directory', 'enumeration', 'manifest'].map(name => `sep-2640-skills-${name}`));

/** Name → { leg, … }. Upstream transport and era; then how mcpx meets a dual one. */
const CELLS = {
  'stdio-legacy': { leg: server, transport: 'stdio', era: 'legacy' },
  'stdio-modern': { leg: server, transport: 'stdio', era: 'modern', extensions: true },
  'stdio-dual': { leg: server, transport: 'stdio', era: 'dual', extensions: true },
  'stdio-dual-follow': { leg: server, transport: 'stdio', era: 'dual', follow: true },
  'http-legacy': { leg: server, transport: 'http', era: 'legacy' },
  'http-modern': { leg: server, transport: 'http', era: 'modern', extensions: true },
  'http-dual': { leg: server, transport: 'http', era: 'dual', extensions: true },
  'http-dual-follow': { leg: server, transport: 'http', era: 'dual', follow: true },
  bridge: { leg: bridge },
  'client-same': { leg: client, hosts: {} },
  'client-other': { leg: client, hosts: { other: true } },
};
const CONTROL = {
  'control-server': { leg: server, direct: true, era: 'dual', extensions: true },
  'control-client': { leg: client, direct: true, hosts: {} },
};

const expected = new Expected();
const totals = { passed: 0, known: 0, failed: 0 };
const table = [];
/** What was counted, for --write. */
const counted = {};

/** Judges every scenario that a run has or must have. */
function tell(cell, run, { found, must, strict, broken, log }) {
  const line = { cell, run, good: 0, known: 0, all: 0, checks: 0 };
  for (const scenario of new Set([...must, ...found.keys()])) {
    const counts = found.get(scenario);
    const { verdict, why } = expected.judge({ cell, run, scenario, counts, strict, broken });
    line.all += 1;
    line.checks += counts?.passed ?? 0;
    if (counts) (counted[run] ??= {})[scenario] = counts.passed;
    if (verdict === 'pass') line.good += 1;
    if (verdict === 'known') line.known += 1;
    if (verdict === 'bad') console.log(`FAIL ${cell} ${run} ${scenario}: ${why}\n     ${log}`);
  }
  totals.passed += line.good;
  totals.known += line.known;
  totals.failed += line.all - line.good - line.known;
  table.push(line);
}

const out = cell => {
  const folder = path.join(work, cell);
  fs.mkdirSync(folder, { recursive: true });
  return folder;
};

async function suiteRun(cell, run, args, limit = RUN_LIMIT_MS) {
  const outcome = await conformance('server', args, { out: out(cell), name: run, limit });
  const must = args.includes('--scenario') ? [] : expected.scenarios(run);
  tell(cell, run, { ...outcome, must });
}

/** The suite as a host of mcpx, with the fixture behind it. */
async function server(name, { transport, era, follow, extensions, direct }) {
  const cell = new Cell({ name, work, kit, mcpx });
  try {
    let url;
    if (direct) url = await cell.fixture(era);
    else if (transport === 'http') url = await cell.mcpxHttp({ url: await cell.fixture(era), follow });
    else url = await cell.mcpxHttp({ command: cell.stdioFixture(era), follow });
    await warmUp(url);
    for (const revision of REVISIONS) {
      await suiteRun(name, revision, ['--url', url, '--suite', 'all', '--spec-version', revision]);
    }
    for (const revision of NEGOTIATED) {
      const shim = await cell.downgrade(url, revision);
      const args = ['--url', shim.url, '--suite', 'all', '--spec-version', '2025-06-18'];
      await suiteRun(name, `as-${revision}`, args);
      shim.stop();
    }
    if (!extensions) return;
    const found = new Map();
    let log;
    for (const scenario of EXTENSIONS) {
      const args = ['--url', url, '--scenario', scenario];
      const order = { out: out(name), name: `ext-${scenario}`, limit: SCENARIO_LIMIT_MS };
      const outcome = await conformance('server', args, order);
      found.set(scenario, outcome.found.get(scenario));
      log = outcome.log;
    }
    tell(name, 'extensions', { found, must: expected.scenarios('extensions'), log });
  } finally {
    cell.end();
  }
}

/** The suite has short windows and does not warm up: lets mcpx list its upstream first. */
async function warmUp(url) {
  // What the first host can be asked is what a legacy upstream hears at its only handshake.
  const capabilities = { elicitation: {}, sampling: {}, roots: {} };
  const clientInfo = { name: 'w', version: '1' };
  const params = { protocolVersion: '2025-11-25', capabilities, clientInfo };
  const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
  const post = async (body, more = {}) => {
    const answer = await fetch(url, {
      method: 'POST',
      headers: { ...headers, ...more },
      body: JSON.stringify({ jsonrpc: '2.0', ...body }),
    });
    await answer.text();
    return answer.headers.get('mcp-session-id');
  };
  try {
    const session = await post({ id: 1, method: 'initialize', params });
    const more = session ? { 'mcp-session-id': session } : {};
    await post({ method: 'notifications/initialized' }, more);
    await post({ id: 2, method: 'tools/list' }, more);
    if (session) await fetch(url, { method: 'DELETE', headers: more });
  } catch (error) {
    console.log(`warming up ${url}: ${error.cause ?? error}`);
  }
}

/** What bridge.txt names, through `mcpx serve`: the suite cannot speak stdio. */
async function bridge(name) {
  const cell = new Cell({ name, work, kit, mcpx });
  try {
    const url = await cell.mcpxStdio({ command: cell.stdioFixture('dual') });
    const lines = fs.readFileSync(path.join(here, 'bridge.txt'), 'utf8').split('\n');
    const runs = lines.map(line => line.trim().split(/\s+/)).filter(line => line.length === 2);
    const wanted = {};
    for (const [revision, scenario] of runs.filter(([first]) => first !== '#')) {
      (wanted[revision] ??= []).push(scenario);
    }
    for (const [revision, names] of Object.entries(wanted)) {
      const found = new Map();
      for (const scenario of names) {
        const args = ['--url', url, '--scenario', scenario, '--spec-version', revision];
        const order = { out: out(name), name: `${revision}-${scenario}`, limit: SCENARIO_LIMIT_MS };
        found.set(scenario, (await conformance('server', args, order)).found.get(scenario));
      }
      tell(name, revision, { found, must: names, log: out(name) });
    }
  } finally {
    cell.end();
  }
}

/** The suite's mock servers behind mcpx, driven by the kit's host. */
async function client(name, { hosts, direct }) {
  const command = `node ${path.join(kit, 'adapter.mjs')}`;
  for (const revision of REVISIONS) {
    const all = await scenarios('client', revision, { out: out(name) });
    const modern = revision === '2026-07-28';
    for (const scenario of all.filter(one => !one.startsWith('auth/'))) {
      const env = {
        ...process.env,
        PROXY_MODE: direct ? 'none' : 'http',
        PROXY_CMD: `sh ${path.join(here, 'start-proxy.sh')} {PORT} {CONFIG}`,
        HOST_ERA: modern !== Boolean(hosts.other) ? 'auto' : 'legacy',
        ADAPTER_LOG: path.join(out(name), 'proxy'),
        TMPDIR: kit,
      };
      const args = ['--command', command, '--scenario', scenario, '--spec-version', revision];
      const order = { out: out(name), name: `${revision}-${scenario}`, limit: SCENARIO_LIMIT_MS, env };
      const { found, code, log } = await conformance('client', args, order);
      const broken = code === 0 ? undefined : `the host failed (exit ${code})`;
      tell(name, `client-${revision}`, { found, must: [scenario], strict: true, broken, log });
    }
  }
}

function printTable() {
  console.log('\ncell                run                  passed  known  of  checks');
  const lines = new Map();
  for (const { cell, run, ...counts } of table) {
    const key = `${cell.padEnd(20)}${run.padEnd(20)}`;
    const sum = lines.get(key) ?? { good: 0, known: 0, all: 0, checks: 0 };
    for (const one of Object.keys(sum)) sum[one] += counts[one];
    lines.set(key, sum);
  }
  for (const [key, { good, known, all, checks }] of lines) {
    const numbers = [good, known, all, checks].map((n, i) => String(n).padStart([7, 7, 4, 8][i]));
    console.log(key + numbers.join(''));
  }
}

async function main(args) {
  const control = args.includes('--control');
  const cells = control ? CONTROL : CELLS;
  const names = args.filter(arg => !arg.startsWith('--'));
  if (args.includes('--help') || names.some(name => !cells[name])) {
    console.log(`run.sh [--control [--write]] [CELL…]\ncells: ${Object.keys(CELLS).join(' ')}`);
    return args.includes('--help') ? 0 : 2;
  }
  if (!control && !fs.existsSync(mcpx)) {
    console.error(`no mcpx at ${mcpx}: build it with cargo build --release, or say where by MCPX=`);
    return 2;
  }
  for (const name of names.length ? names : Object.keys(cells)) {
    const began = Date.now();
    try {
      await cells[name].leg(name, cells[name]);
    } catch (error) {
      totals.failed += 1;
      console.log(`FAIL ${name}: ${error.stack}`);
    }
    console.log(`${name}: ${((Date.now() - began) / 1000).toFixed(0)} s`);
  }
  printTable();
  if (control && args.includes('--write')) {
    fs.writeFileSync(path.join(here, 'baseline.json'), `${JSON.stringify(counted, null, 2)}\n`);
  }
  if (!control && names.length === 0) {
    for (const { cells, runs, scenarios, why } of expected.unused()) {
      totals.failed += 1;
      console.log(`FAIL stale entry in expected.json: ${cells} ${runs} ${scenarios}: ${why}`);
    }
  }
  const { passed, known, failed } = totals;
  console.log(`\n${passed} passed, ${failed} failed, ${known} expected to fail`);
  return failed === 0 && passed > 0 ? 0 : 1;
}

const code = await main(process.argv.slice(2));
fs.rmSync(kit, { recursive: true, force: true });
process.exit(code);
