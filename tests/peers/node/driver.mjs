// What every host checks, for the two TypeScript hosts. The Python and the Rust host do the same in
// their own language, from the same expectation file (see ../expect.mjs for its format).
//
// A host is { connect(), list(cursor), call(name, arguments, { onprogress, signal }), close(),
// notes }, where `notes` are the parameters of all progress notes that arrived (tapProgress).
// One line a check: "ok CHECK", "FAIL CHECK: why". The exit code is 1 if any failed.
import fs from 'node:fs';
import { setTimeout as nap } from 'node:timers/promises';

/** Why `actual` does not fit `pattern`. Objects may hold more than the pattern; lists not. */
export function misfit(pattern, actual, at = '') {
  if (pattern !== null && typeof pattern === 'object' && typeof pattern.$has === 'string') {
    return typeof actual === 'string' && actual.includes(pattern.$has)
      ? undefined
      : `${at}: ${show(actual)} does not contain ${show(pattern.$has)}`;
  }
  if (Array.isArray(pattern)) {
    if (!Array.isArray(actual)) return `${at}: ${show(actual)} is no list`;
    if (actual.length !== pattern.length)
      return `${at}: ${actual.length} items in place of ${pattern.length}`;
    for (const [i, item] of pattern.entries()) {
      const why = misfit(item, actual[i], `${at}[${i}]`);
      if (why) return why;
    }
    return undefined;
  }
  if (pattern !== null && typeof pattern === 'object') {
    if (actual === null || typeof actual !== 'object') return `${at}: ${show(actual)} is no object`;
    for (const [key, item] of Object.entries(pattern)) {
      const why = misfit(item, actual[key], `${at}.${key}`);
      if (why) return why;
    }
    return undefined;
  }
  return Object.is(pattern, actual)
    ? undefined
    : `${at}: ${show(actual)} in place of ${show(pattern)}`;
}

const show = value => (JSON.stringify(value) ?? 'nothing').slice(0, 300);
const textOf = result => (result.content ?? []).map(block => block.text ?? '').join('\n');

/** Runs one check and says how it went. */
class Report {
  failed = 0;
  async check(name, body) {
    try {
      const note = await body();
      console.log(`ok ${name}${note ? ` (${note})` : ''}`);
    } catch (error) {
      this.failed += 1;
      console.log(
        `FAIL ${name}: ${error.code === undefined ? '' : `code ${error.code}, `}${error.message}`,
      );
    }
  }
}

function must(pattern, actual) {
  const why = misfit(pattern, actual, 'result');
  if (why) throw new Error(why);
}

/** A tool's own result must not be an error unless the pattern says so. */
const fits = (pattern, result) => {
  if (pattern.isError === undefined && result.isError)
    throw new Error(`isError: ${textOf(result)}`);
  must(pattern, result);
};

/** The result or the error of a call, whichever it is. */
const outcome = promise =>
  promise.then(
    result => ({ result }),
    error => ({ error }),
  );

export async function drive(host, expect) {
  const report = new Report();
  await report.check('connect', async () => host.connect());
  if (report.failed) return finish(host, report);
  const target = expect.core ? await coreTarget(host, expect, report) : host;
  if (!expect.core) await report.check('list', () => checkList(host, expect));
  for (const { check, tool, arguments: args, result } of expect.calls) {
    await report.check(check, async () => fits(result, await target.call(tool, args)));
  }
  if (expect.progress) {
    await report.check('progress', () => checkProgress(target, host.notes, expect.progress));
  }
  if (expect.error) await report.check('protocol error', () => checkError(target, expect));
  await report.check('unknown tool', () => checkUnknown(target, expect.unknown));
  await report.check('cancel', () => checkCancel(target, expect.cancel));
  const { check, tool, arguments: args, result } = expect.calls[0];
  await report.check(`${check} afterwards`, async () =>
    fits(result, await target.call(tool, args)),
  );
  return finish(host, report);
}

async function finish(host, report) {
  await report.check('close', () => host.close());
  process.exit(report.failed ? 1 : 0);
}

/** Every page of the list. */
async function listAll(host) {
  const tools = [];
  let cursor,
    pages = 0;
  do {
    const page = await host.list(cursor);
    tools.push(...page.tools);
    cursor = page.nextCursor;
    pages += 1;
    if (pages > 100) throw new Error('the list does not end');
  } while (cursor !== undefined);
  return { tools, pages };
}

async function checkList(host, { tools: expected, pages: atLeast }) {
  const { tools, pages } = await listAll(host);
  const names = tools.map(tool => tool.name);
  if (new Set(names).size !== names.length) throw new Error(`a name twice in ${names.join(' ')}`);
  const missing = expected.names.filter(name => !names.includes(name));
  if (missing.length)
    throw new Error(`not listed: ${missing.join(' ')}; listed: ${names.join(' ')}`);
  const extra = names.filter(name => !expected.names.includes(name));
  if (expected.exact && extra.length) throw new Error(`listed as well: ${extra.join(' ')}`);
  for (const [name, definition] of Object.entries(expected.definitions)) {
    must(
      definition,
      tools.find(tool => tool.name === name),
    );
  }
  if (!host.gathers && pages < atLeast) throw new Error(`${pages} pages, ${atLeast} expected`);
  return `${names.length} tools, ${pages} pages`;
}

/**
 * Gathers the progress notes that arrive on a connected transport. The SDK itself tells of a note
 * only after everything that was read with it, and forgets a call at its answer: notes that were
 * read in one piece with the answer never reach `onprogress`, with or without mcpx.
 */
export function tapProgress(transport) {
  const notes = [];
  const { onmessage } = transport;
  transport.onmessage = (message, ...more) => {
    if (message.method === 'notifications/progress') notes.push(message.params);
    return onmessage(message, ...more);
  };
  return notes;
}

async function checkProgress(target, arrived, { tool, arguments: args, steps, result }) {
  const before = arrived.length;
  fits(result, await target.call(tool, args, { onprogress: () => undefined }));
  const notes = arrived.slice(before);
  const at = notes.map(note => note.progress);
  if (notes.length !== steps) {
    throw new Error(`${notes.length} notes in place of ${steps}: ${show(at)}`);
  }
  if (at.some((progress, i) => i > 0 && progress <= at[i - 1]))
    throw new Error(`out of order: ${show(at)}`);
  const { progress, total } = notes.at(-1);
  if (progress !== total) throw new Error(`ended at ${progress} of ${total}`);
}

async function checkError(target, expect) {
  const { tool, arguments: args, error: pattern } = expect.error;
  const { result, error } = await outcome(target.call(tool, args));
  if (expect.core) {
    // Behind mcpx_call the upstream's error is told to the model, in the upstream's words.
    if (!result?.isError) throw new Error(`no isError but ${show(result ?? error?.message)}`);
    return must({ $has: pattern.message.$has }, textOf(result));
  }
  if (!error) throw new Error(`no error but ${show(result)}`);
  return must(pattern, { code: error.code, message: error.message, data: error.data });
}

async function checkUnknown(target, name) {
  const { result, error } = await outcome(target.call(name, {}));
  if (result) return fits({ isError: true }, result) ?? must({ $has: name }, textOf(result));
  return must(
    { code: -32602, message: { $has: name } },
    { code: error.code, message: error.message },
  );
}

/** The call ends at once for the host, and the upstream hears of it where it can tell. */
async function checkCancel(target, { tool, arguments: args, seen }) {
  const stop = new AbortController();
  const started = Date.now();
  const call = outcome(target.call(tool, args, { signal: stop.signal }));
  await nap(300);
  stop.abort('the person changed their mind');
  const { result } = await call;
  if (result) throw new Error(`answered all the same: ${show(result)}`);
  if (Date.now() - started > 2800) throw new Error(`only ended after ${Date.now() - started} ms`);
  if (!seen) return 'the upstream cannot tell whether it heard';
  for (let tries = 0; tries < 50; tries += 1) {
    if (textOf(await target.call(seen.tool, seen.arguments)) === seen.text) return undefined;
    await nap(100);
  }
  throw new Error('the upstream never heard of it');
}

/** In core mode: the own tools work, and calls go through mcpx_call. */
async function coreTarget(host, expect, report) {
  const namespace = expect.core;
  const raw = host.call.bind(host);
  await report.check('core list', async () => {
    const names = (await listAll(host)).tools.map(tool => tool.name);
    const missing = ['mcpx_namespaces', 'mcpx_call', 'mcpx_status'].filter(
      name => !names.includes(name),
    );
    if (missing.length) throw new Error(`not listed: ${missing.join(' ')}`);
    const foreign = names.filter(name => !name.startsWith('mcpx_'));
    if (foreign.length) throw new Error(`not mcpx's own: ${foreign.join(' ')}`);
    return names.join(' ');
  });
  for (const [check, tool, args, word] of [
    ['mcpx_namespaces', 'mcpx_namespaces', {}, namespace],
    ['mcpx_namespaces of one', 'mcpx_namespaces', { namespace }, expect.calls[0].tool],
    ['mcpx_status', 'mcpx_status', {}, namespace],
  ]) {
    await report.check(check, async () => {
      const result = await raw(tool, args);
      fits({}, result);
      must({ $has: word }, textOf(result));
    });
  }
  return {
    call: (tool, args, options) => raw('mcpx_call', { namespace, tool, arguments: args }, options),
  };
}

/** argv: EXPECTATION.json MODE, then COMMAND ARGUMENT… or the URL of an endpoint. */
export function order() {
  const [file, mode, command, ...args] = process.argv.slice(2);
  const url = /^https?:/.test(command) ? command : undefined;
  return { expect: JSON.parse(fs.readFileSync(file, 'utf8')), mode, url, command, args };
}
