// A host on the official TypeScript SDK 2.x over HTTP, in one session: calls without a pause until its
// standard input ends, one line of JSON for each.
//   node host-http.mjs NODE_MODULES URL
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';

const [modules, url] = process.argv.slice(2);
const found = createRequire(path.join(modules, 'x.js')).resolve('@modelcontextprotocol/client');
const { Client, StreamableHTTPClientTransport } = await import(pathToFileURL(found));

const client = new Client({ name: 'restarts-http', version: '1' }, { versionNegotiation: { mode: 'legacy' } });
const transport = new StreamableHTTPClientTransport(new URL(url));
await client.connect(transport);
let ended = false;
process.stdin.on('end', () => { ended = true; }).resume();
const say = line => process.stdout.write(`${JSON.stringify(line)}\n`);
say({ session: transport.sessionId });
for (let number = 0; !ended; number += 1) {
  const text = `http-${number}`;
  const began = Date.now() / 1000;
  let outcome = 'ok', why;
  try {
    const args = { namespace: 'up', tool: 'ledger', arguments: { text } };
    const result = await client.callTool({ name: 'mcpx_call', arguments: args });
    if (result.isError) {
      why = result.content[0]?.text;
      outcome = /^outcome unknown/.test(why) ? 'unknown' : 'refused';
    }
  } catch (error) {
    // A POST that was cut, or the answer that says so.
    why = `${error.message} ${error.cause?.message ?? ''}`;
    outcome = /Session|session/.test(why) ? 'lost session' : 'unknown';
  }
  say({ text, began, ended: Date.now() / 1000, outcome, why });
}
say({ session: transport.sessionId });
process.exit(0);
