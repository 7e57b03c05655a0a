// A host on the official TypeScript SDK 1.x.
//   node host-ts1.mjs EXPECTATION.json legacy COMMAND ARGUMENT… | URL
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { drive, order, tapProgress } from './driver.mjs';

const { expect, url, command, args } = order();
const client = new Client({ name: 'ts1-peer', version: '1.0.0' });
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });
let version;

await drive(
  {
    async connect() {
      transport.setProtocolVersion = negotiated => {
        version = negotiated;
      };
      await client.connect(transport);
      this.notes = tapProgress(transport);
      return `${version}, ${client.getServerVersion()?.name}`;
    },
    list: cursor => client.listTools({ cursor }),
    call: (name, args, options) => client.callTool({ name, arguments: args }, undefined, options),
    close: () => client.close(),
  },
  expect,
);
