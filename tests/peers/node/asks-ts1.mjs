// A server that asks, on the official TypeScript SDK 1.x.
//   node asks-ts1.mjs          over stdio
//   node asks-ts1.mjs PORT     over Streamable HTTP with sessions
import http from 'node:http';
import { randomUUID } from 'node:crypto';
import { Server } from '@modelcontextprotocol/sdk/server/index.js';
import { StdioServerTransport } from '@modelcontextprotocol/sdk/server/stdio.js';
import { StreamableHTTPServerTransport } from '@modelcontextprotocol/sdk/server/streamableHttp.js';
import {
  CallToolRequestSchema,
  CreateMessageResultSchema,
  ElicitResultSchema,
  ListRootsResultSchema,
  ListToolsRequestSchema,
} from '@modelcontextprotocol/sdk/types.js';
import { QUESTIONS, TOOLS, told } from './asks.mjs';

const SHAPES = { form: ElicitResultSchema, sample: CreateMessageResultSchema, roots: ListRootsResultSchema };

function build() {
  const server = new Server({ name: 'ts1-asks', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler(ListToolsRequestSchema, () => ({ tools: TOOLS }));
  // By the request's own way, so that over HTTP the question goes out on its stream.
  server.setRequestHandler(CallToolRequestSchema, async ({ params }, extra) =>
    told(await extra.sendRequest(QUESTIONS[params.name], SHAPES[params.name])),
  );
  return server;
}

const port = process.argv[2];
if (port === undefined) {
  await build().connect(new StdioServerTransport());
} else {
  const sessions = new Map();
  const session = async () => {
    const transport = new StreamableHTTPServerTransport({
      sessionIdGenerator: randomUUID,
      onsessioninitialized: id => sessions.set(id, transport),
    });
    transport.onclose = () => sessions.delete(transport.sessionId);
    await build().connect(transport);
    return transport;
  };
  http
    .createServer(async (request, response) => {
      const id = request.headers['mcp-session-id'];
      if (id && !sessions.has(id)) return response.writeHead(404).end();
      return (sessions.get(id) ?? (await session())).handleRequest(request, response);
    })
    .listen(Number(port), '127.0.0.1');
}
