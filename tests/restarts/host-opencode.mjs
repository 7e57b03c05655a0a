// opencode, headless, in one session: its model (ours, on loopback) asks for one call after the other until
// standard input ends, one line of JSON for each.
//   node host-opencode.mjs NODE_MODULES DIR SHIM…
import { Opencode } from '../peers/opencode/checks.mjs';
import { startStub } from '../peers/opencode/stub.mjs';

const [modules, dir, ...command] = process.argv.slice(2);
let ended = false;
process.stdin.on('end', () => { ended = true; }).resume();
const say = line => process.stdout.write(`${JSON.stringify(line)}\n`);
const stub = await startStub();
const host = new Opencode({ cell: { dir, command, env: process.env }, mode: 'core', modules, stub });
await host.serve();
say({ session: host.session });
for (let number = 0; !ended; number += 1) {
  const text = `opencode-${number}`;
  const began = Date.now() / 1000;
  const said = await host.order('m_mcpx_call', { namespace: 'up', tool: 'ledger', arguments: { text } });
  let outcome = 'refused';
  if (/^MISSING/.test(said)) outcome = 'lost session';
  else if (/outcome unknown/.test(said)) outcome = 'unknown';
  else if (said === 'ANSWER<noted>ANSWER') outcome = 'ok';
  say({ text, began, ended: Date.now() / 1000, outcome, why: said.slice(0, 300) });
}
say({ session: host.session });
await host.stop();
await stub.close();
process.exit(0);
