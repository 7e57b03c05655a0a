// An upstream over Streamable HTTP with sessions, on the official TypeScript SDK 1.x.
//   node upstream-ts1.mjs CATALOG.json PORT
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  ListToolsRequestSchema,
  McpError,
} from '@modelcontextprotocol/sdk/types.js';
import { call, list } from './catalog.mjs';

const sessions = new Map();

function build() {
  const server = new Server({ name: 'ts1-peer', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, ({ params }) => list(params?.cursor));
  server.setRequestHandler(CallToolRequestSchema, ({ params }, extra) => {
    const token = params._meta?.progressToken;
    return call(params.name, params.arguments ?? {}, {
      signal: extra.signal,
      fail(code, message, data) {
        throw new McpError(code, message, data);
      },
      async progress(progress, total) {
        if (token === undefined) return;
        const note = { progressToken: token, progress, total, message: `step ${progress}` };
        await extra.sendNotification({ method: 'notifications/progress', params: note });
      },
    });
  });
  return server;
}

async function session() {
  const transport = new StreamableHTTPServerTransport({
    sessionIdGenerator: randomUUID,
    onsessioninitialized: id => sessions.set(id, transport),
  });
  transport.onclose = () => sessions.delete(transport.sessionId);
  await build().connect(transport);
  return transport;
}

http
  .createServer(async (request, response) => {
    const id = request.headers['mcp-session-id'];
    if (id && !sessions.has(id)) return response.writeHead(404).end();
    return (sessions.get(id) ?? (await session())).handleRequest(request, response);
  })
  .listen(Number(process.argv[3]), '127.0.0.1');
