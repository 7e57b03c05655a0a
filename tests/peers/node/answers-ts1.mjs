// A host that answers, on the official TypeScript SDK 1.x.
//   node answers-ts1.mjs legacy COMMAND ARGUMENT… | URL
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import {
  CreateMessageRequestSchema,
  ElicitRequestSchema,
  ListRootsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { ANSWERS, CAPABILITIES, drive, order } from './answers.mjs';

const { url, command, args } = order();
const client = new Client({ name: 'ts1-answers', version: '1.0.0' }, { capabilities: CAPABILITIES });
let asked = 0;
for (const [name, shape] of Object.entries({
  form: ElicitRequestSchema,
  sample: CreateMessageRequestSchema,
  roots: ListRootsRequestSchema,
})) {
  client.setRequestHandler(shape, () => {
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
