// The mode `questions`: SDK servers that ask, SDK hosts that answer, mcpx between them, over stdio and
// HTTP on either side. A host and a server of one SDK and one era would understand each other without
// mcpx; the others need it.
import path from 'node:path';
import { Cell, freePort } from './cell.mjs';

const here = import.meta.dirname;

/** Hosts: { run, era }. */
export function hosts({ python }) {
  const node = (name, era) => ({ run: [process.execPath, path.join(here, 'node', name)], era });
  const script = era => ({ run: [python, path.join(here, 'python/answers.py')], era });
  return {
    ts1: node('answers-ts1.mjs', 'legacy'),
    'ts2-legacy': node('answers-ts2.mjs', 'legacy'),
    'ts2-auto': node('answers-ts2.mjs', 'auto'),
    'python-legacy': script('legacy'),
    'python-auto': script('auto'),
  };
}

/** Servers as commands; over HTTP a port comes last. */
export function servers({ python }) {
  return {
    ts1: [process.execPath, path.join(here, 'node/asks-ts1.mjs')],
    ts2: [process.execPath, path.join(here, 'node/asks-ts2.mjs')],
    python: [python, path.join(here, 'python/asks.py')],
  };
}

/** One host at one server; `way` is `stdio` or `http`, for both sides. */
export async function questions(common, host, server, way) {
  let cell;
  if (way === 'stdio') {
    cell = new Cell({ ...common, mode: 'passthrough', upstream: server });
  } else {
    const [port, listen] = [await freePort(), await freePort()];
    const upstream = `http://127.0.0.1:${port}/mcp`;
    cell = new Cell({ ...common, mode: 'passthrough', upstream, listen });
    await cell.serve([...server, String(port)], port);
  }
  const daemon = await cell.daemon();
  const outcome = await cell.run([...host.run, host.era, ...cell.command]);
  outcome.lines.push(...(await cell.end()));
  daemon.kill('SIGKILL');
  return outcome;
}
