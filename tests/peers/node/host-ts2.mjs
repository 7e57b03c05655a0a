// A host on the official TypeScript SDK 2.x.
//   node host-ts2.mjs EXPECTATION.json legacy|auto COMMAND ARGUMENT… | URL
import { Client, StreamableHTTPClientTransport } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';
import { drive, order, tapProgress } from './driver.mjs';

const { expect, mode, url, command, args } = order();
const client = new Client({ name: 'ts2-peer', version: '1.0.0' }, { versionNegotiation: { mode } });
const transport = url
  ? new StreamableHTTPClientTransport(new URL(url))
  : new StdioClientTransport({ command, args, env: process.env, stderr: 'inherit' });

await drive(
  {
    async connect() {
      await client.connect(transport);
      this.notes = tapProgress(transport);
      return `${client.getNegotiatedProtocolVersion()}, ${client.getServerVersion()?.name}`;
    },
    gathers: true, // without a cursor this SDK asks for every page by itself
    list: cursor => client.listTools(cursor === undefined ? undefined : { cursor }),
    call: (name, args, options) => client.callTool({ name, arguments: args }, options),
    close: () => client.close(),
  },
  expect,
);
