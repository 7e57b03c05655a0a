// Runs the official suite and reads what it found.
import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';

const here = import.meta.dirname;
const suite = path.join(here, 'node_modules/@modelcontextprotocol/conformance/dist/index.js');

/** Runs a program to its end in a process group of its own; its output goes to a file. */
export function run(program, args, { log, limit, env = process.env }) {
  return new Promise(done => {
    const out = fs.openSync(log, 'w');
    const child = spawn(program, args, { stdio: ['ignore', out, out], detached: true, env });
    let late = false;
    const watchdog = setTimeout(() => {
      late = true;
      end(child);
    }, limit);
    child.on('close', code => {
      clearTimeout(watchdog);
      fs.closeSync(out);
      // What it left in its group would hold ports and connections.
      end(child);
      done({ code, late });
    });
  });
}

/** Kills a detached child with everything that it started. */
export function end(child) {
  try {
    process.kill(-child.pid, 'SIGKILL');
  } catch {
    /* gone already */
  }
}

/**
 * One run of the suite. Gives a map: scenario → { passed, failed, warned, why } counted in checks.
 * A scenario without results is one that never came to its end.
 */
export async function conformance(leg, args, { out, name, limit, env }) {
  const results = path.join(out, name);
  const log = `${results}.log`;
  fs.rmSync(results, { recursive: true, force: true });
  fs.mkdirSync(results, { recursive: true });
  const order = [suite, leg, ...args, '-o', results];
  const { code, late } = await run(process.execPath, order, { log, limit, env });
  const found = new Map();
  for (const file of fs.readdirSync(results, { recursive: true })) {
    if (path.basename(file) !== 'checks.json') continue;
    const scenario = scenarioOf(path.dirname(file), leg);
    found.set(scenario, count(JSON.parse(fs.readFileSync(path.join(results, file), 'utf8'))));
  }
  return { found, code, late, log };
}

/** `server-tools-list-2026-11-30T08-07-58-282Z` → `tools-list`; the client leg has no prefix. */
function scenarioOf(folder, leg) {
  const name = folder.replace(/-\d{4}-\d\d-\d\dT[\d-]+Z$/, '');
  return leg === 'server' ? name.replace(/^server-/, '') : name;
}

function count(checks) {
  const of = status => checks.filter(check => check.status === status);
  const bad = [...of('FAILURE'), ...of('WARNING')];
  return {
    passed: of('SUCCESS').length,
    failed: of('FAILURE').length,
    warned: of('WARNING').length,
    why: bad.map(check => `${check.id}: ${check.errorMessage ?? check.description}`),
  };
}

/** The scenarios that a leg has at a revision, as the suite lists them. */
export async function scenarios(leg, revision, { out }) {
  const log = path.join(out, `list-${leg}-${revision}.log`);
  await run(process.execPath, [suite, 'list', `--${leg}`, '--spec-version', revision], {
    log,
    limit: 20_000,
  });
  const lines = fs.readFileSync(log, 'utf8').split('\n');
  return lines.map(line => /^\s+- (\S+)/.exec(line)?.[1]).filter(Boolean);
}
