// A host that answers, on the official TypeScript SDK 2.x.
//   node answers-ts2.mjs legacy|auto COMMAND ARGUMENT… | URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { ANSWERS, CAPABILITIES, drive, order } from './answers.mjs';

const { mode, url, command, args } = order();
const options = { capabilities: CAPABILITIES, versionNegotiation: { mode } };
const client = new Client({ name: 'ts2-answers', version: '1.0.0' }, options);
let asked = 0;
for (const [name, method] of Object.entries({
  form: 'elicitation/create',
  sample: 'sampling/createMessage',
  roots: 'roots/list',
})) {
  client.setRequestHandler(method, () => {
    asked += 1;
    return ANSWERS[name];
  });
}
const transport = url
  ? new StreamableHTTPClientTransport(url)
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
await drive({
  connect: () => client.connect(transport),
  call: name => client.callTool({ name, arguments: {} }),
  asked: () => asked,
  close: () => client.close(),
});
