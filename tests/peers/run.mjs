// The matrix: every host in front of every upstream, through mcpx or directly. Started by run.sh.
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { Cell } from './cell.mjs';
import { expectation, throughCore } from './expect.mjs';
import { CHAINS, HTTP_HOSTS, Http, missing, upstreams as httpUpstreams } from './http.mjs';
import { opencode, opencodeQuestions } from './opencode/checks.mjs';
import * as asking from './questions.mjs';

const here = import.meta.dirname;
const built = process.env.PEERS_DIR;
const mcpx = process.env.MCPX;
const { values: options } = parseArgs({
  options: {
    direct: { type: 'boolean' },
    hosts: { type: 'string' },
    upstreams: { type: 'string' },
    modes: { type: 'string' },
    chains: { type: 'string' },
    jobs: { type: 'string', default: '2' },
    keep: { type: 'boolean' },
    verbose: { type: 'boolean' },
    help: { type: 'boolean' },
  },
});

const python = path.join(built, 'venv/bin/python');
const rust = name => path.join(built, 'rmcp/debug', name);
const catalog = path.join(here, 'catalog.json');
const modules = path.join(here, 'node/node_modules');

/** Host programs: each takes EXPECTATION MODE COMMAND ARGUMENT…  The era is what it can speak. */
const HOSTS = {
  ts1: { run: [process.execPath, path.join(here, 'node/host-ts1.mjs')], era: 'legacy' },
  'ts2-legacy': { run: [process.execPath, path.join(here, 'node/host-ts2.mjs')], era: 'legacy' },
  'ts2-auto': { run: [process.execPath, path.join(here, 'node/host-ts2.mjs')], era: 'auto' },
  'python-legacy': { run: [python, path.join(here, 'python/host.py')], era: 'legacy' },
  'python-auto': { run: [python, path.join(here, 'python/host.py')], era: 'auto' },
  'rmcp-legacy': { run: [rust('rmcp-host')], era: 'legacy' },
  'rmcp-auto': { run: [rust('rmcp-host')], era: 'auto' },
};

/** Upstream commands. */
const everything = path.join(modules, '@modelcontextprotocol/server-everything/dist/index.js');
const UPSTREAMS = {
  everything: () => [process.execPath, everything, 'stdio'],
  python: () => [python, path.join(here, 'python/upstream.py'), catalog],
  rmcp: () => [rust('rmcp-upstream'), catalog],
  'fixture-legacy': () => fixture('legacy'),
  'fixture-modern': () => fixture('modern'),
  'fixture-dual': () => fixture('dual'),
};

/** Upstreams behind a URL. */
const HTTP_UPSTREAMS = Object.keys(httpUpstreams({ python, rust, catalog }));

/** In core mode each host runs in front of these two. */
const CORE_UPSTREAMS = ['python', 'fixture-modern'];

const scratch = fs.mkdtempSync(path.join(os.tmpdir(), 'mcpx-peers-'));
const kit = [path.join(here, '../../../shared/conformance'), process.env.CONFORMANCE_KIT].find(
  folder => folder && fs.existsSync(path.join(folder, 'fixture.mjs')),
);

/** The kit's fixture, copied beside our own node_modules, which hold the same versions. */
function fixture(era) {
  const copy = path.join(scratch, 'fixture.mjs');
  if (!fs.existsSync(copy)) {
    fs.copyFileSync(path.join(kit, 'fixture.mjs'), copy);
    fs.symlinkSync(modules, path.join(scratch, 'node_modules'));
  }
  return [process.execPath, copy, '--stdio', '--era', era];
}

const http = new Http({ scratch, mcpx }, { python, rust, catalog, modules, hosts: HOSTS });

/** The mode `questions` has hosts and servers of its own. */
const ASKED = asking.hosts({ python });
const ASKING = asking.servers({ python });

/** Modes whose runs are not the matrix of hosts and upstreams over stdio. */
const OWN = ['chains', 'questions'];

const picked = (list, all) => (list === undefined ? Object.keys(all) : list.split(','));

/** Every run to make: { mode, host, upstream, why } where `why` says that it cannot be made. */
function plan() {
  const all = options.direct
    ? ['direct', 'http-direct']
    : ['passthrough', 'core', 'http', 'chains', 'questions'];
  const modes = options.modes?.split(',') ?? all;
  const runs = [];
  for (const mode of modes.filter(one => one.startsWith('http'))) {
    for (const host of picked(options.hosts, HOSTS).filter(one => HTTP_HOSTS.includes(one))) {
      for (const upstream of picked(options.upstreams, Object.fromEntries(HTTP_UPSTREAMS.map(one => [one])))) {
        if (HTTP_UPSTREAMS.includes(upstream)) {
          runs.push({ mode, host, upstream, why: cannot(mode, host, upstream) });
        }
      }
    }
  }
  if (modes.includes('questions')) {
    const picks = (list, all) => picked(list, all).filter(name => name in all);
    for (const host of picks(options.hosts, ASKED)) {
      for (const upstream of picks(options.upstreams, ASKING)) {
        for (const way of ['stdio', 'http']) runs.push({ mode: `questions ${way}`, host, upstream, way });
      }
    }
  }
  if (modes.includes('chains')) {
    for (const chain of options.chains?.split(',') ?? CHAINS) {
      runs.push({ mode: 'chains', chain, why: missing(chain) });
    }
  }
  for (const mode of modes.filter(one => !one.startsWith('http') && !OWN.includes(one))) {
    for (const host of picked(options.hosts, HOSTS)) {
      for (const upstream of picked(options.upstreams, UPSTREAMS)) {
        if (mode === 'core' && !options.upstreams && !CORE_UPSTREAMS.includes(upstream)) continue;
        if (host === 'opencode') continue;
        runs.push({ mode, host, upstream, why: cannot(mode, host, upstream) });
      }
    }
  }
  return { modes, runs };
}

function cannot(mode, host, upstream) {
  if (mode === 'http-direct' && upstream === 'python-sse') return 'no host here speaks HTTP+SSE';
  if (upstream.startsWith('fixture') && !kit) return 'no ../shared/conformance here';
  if (mode === 'direct' && upstream === 'fixture-modern' && HOSTS[host].era === 'legacy') {
    return 'a legacy host and a modern upstream have no revision in common';
  }
  return undefined;
}

const totals = { passed: 0, failed: 0, skipped: 0 };
const table = new Map();

/** Counts the lines of one run and prints those that failed, with what led to it. */
function tell(title, { lines, log }) {
  const failed = lines.filter(line => line.startsWith('FAIL '));
  const passed = lines.filter(line => line.startsWith('ok '));
  totals.passed += passed.length;
  totals.failed += failed.length;
  if (options.verbose) for (const line of lines) console.log(`${title}: ${line}`);
  if (failed.length === 0) return `${passed.length} ok`;
  if (!options.verbose) for (const line of failed) console.log(`${title}: ${line}`);
  for (const line of log.trim().split('\n').slice(-15)) console.log(`    | ${line}`);
  return `${failed.length} FAIL`;
}

async function matrixRun({ mode, host, upstream, chain, way, why }) {
  const title = chain ?? `${mode} ${host} × ${upstream}`;
  if (why) {
    totals.skipped += 1;
    console.log(`skipped ${title}: ${why}`);
    return table.set(title, 'skip');
  }
  if (way) {
    try {
      const outcome = await asking.questions({ scratch, mcpx }, ASKED[host], ASKING[upstream], way);
      return table.set(title, tell(title, outcome));
    } catch (error) {
      return table.set(title, tell(title, { lines: [`FAIL start: ${error.message}`], log: '' }));
    }
  }
  if (chain || mode.startsWith('http')) {
    const expect = expectation('sdk', catalog);
    if (mode !== 'http-direct') expect.pages = 1;
    // Without sessions a handshake server cannot know which call a cancellation means.
    else if (upstream === 'ts2' && HOSTS[host].era === 'legacy') delete expect.cancel.seen;
    try {
      const outcome = chain
        ? await http.chain(chain, expect)
        : await http.matrix(mode === 'http' ? 'passthrough' : 'direct', host, upstream, expect);
      return table.set(title, tell(title, outcome));
    } catch (error) {
      return table.set(title, tell(title, { lines: [`FAIL start: ${error.message}`], log: '' }));
    }
  }
  let expect = expectation(upstream, catalog);
  // mcpx makes its own pages, so how many there are says nothing.
  if (mode !== 'direct') expect.pages = 1;
  if (mode === 'core') expect = throughCore(expect, upstream, 'up');
  const cell = new Cell({ scratch, mcpx, mode, upstream: UPSTREAMS[upstream]() });
  const file = path.join(cell.dir, 'expect.json');
  fs.writeFileSync(file, JSON.stringify(expect));
  const { run, era } = HOSTS[host];
  const outcome = await cell.host([...run, file, era]);
  outcome.lines.push(...(await cell.end()));
  return table.set(title, tell(title, outcome));
}

async function opencodeRun(mode) {
  const cell = new Cell({ scratch, mcpx, mode, upstream: UPSTREAMS.everything() });
  const outcome = await opencode({ cell, mode, modules });
  outcome.lines.push(...(await cell.end()));
  table.set(`${mode} opencode × everything`, tell(`${mode} opencode`, outcome));
}

/** opencode at a server that asks, of either era. */
async function opencodeAsked(server) {
  const cell = new Cell({ scratch, mcpx, mode: 'passthrough', upstream: ASKING[server] });
  const daemon = await cell.daemon();
  const outcome = await opencodeQuestions({
    cell,
    mode: 'passthrough',
    modules,
    modern: server === 'ts2',
  });
  outcome.lines.push(...(await cell.end()));
  daemon.kill('SIGKILL');
  const title = `questions stdio opencode × ${server}`;
  table.set(title, tell(title, outcome));
}

function printTable(modes) {
  if (modes.includes('chains')) {
    console.log();
    for (const chain of CHAINS.filter(one => table.has(one))) {
      console.log(`${chain.padEnd(31)}${table.get(chain)}`);
    }
  }
  const columns = [...new Set([...Object.keys(UPSTREAMS), ...HTTP_UPSTREAMS])];
  const rows = [...Object.keys(HOSTS), 'opencode'];
  const ways = modes.flatMap(mode =>
    mode === 'questions' ? ['questions stdio', 'questions http'] : [mode],
  );
  for (const mode of ways) {
    const shown = rows.filter(row =>
      columns.some(column => table.has(`${mode} ${row} × ${column}`)),
    );
    if (shown.length === 0) continue;
    const used = columns.filter(column => shown.some(row => table.has(`${mode} ${row} × ${column}`)));
    console.log(`\n${mode.padEnd(16)}${used.map(column => column.padEnd(16)).join('')}`);
    for (const row of shown) {
      const cells = used.map(column =>
        (table.get(`${mode} ${row} × ${column}`) ?? '-').padEnd(16),
      );
      console.log(`${row.padEnd(16)}${cells.join('')}`);
    }
  }
}

async function main() {
  if (options.help) {
    console.log(`run.sh [--direct] [--modes passthrough,core] [--jobs 2] [--verbose] [--keep]
       [--hosts ${Object.keys(HOSTS).join()},opencode]
       [--upstreams ${Object.keys(UPSTREAMS).join()}; over HTTP ${HTTP_UPSTREAMS.join()}]
       [--chains '${CHAINS.join()}']
modes: direct passthrough core http http-direct chains questions`);
    return 0;
  }
  if (!options.direct && !fs.existsSync(mcpx)) {
    console.error(
      `no mcpx at ${mcpx}: build it with cargo build --release, or say where it is with MCPX=`,
    );
    return 2;
  }
  const { modes, runs } = plan();
  const queue = [...runs];
  const worker = async () => {
    while (queue.length) await matrixRun(queue.shift());
  };
  await Promise.all(Array.from({ length: Number(options.jobs) }, worker));
  if (!options.hosts || options.hosts.split(',').includes('opencode')) {
    const own = modes.filter(mode => !OWN.includes(mode) && !mode.startsWith('http'));
    for (const mode of own) await opencodeRun(mode);
    if (modes.includes('questions')) for (const one of ['ts1', 'ts2']) await opencodeAsked(one);
  }
  printTable(modes);
  console.log(`\n${totals.passed} passed, ${totals.failed} failed, ${totals.skipped} skipped`);
  return totals.failed === 0 && totals.passed > 0 ? 0 : 1;
}

const code = await main();
if (options.keep) console.log(`kept: ${scratch}`);
else fs.rmSync(scratch, { recursive: true, force: true });
process.exit(code);
