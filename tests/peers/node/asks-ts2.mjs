// A server that asks, on the official TypeScript SDK 2.x: at 2026-07-28 by `input_required` results.
//   node asks-ts2.mjs          over stdio
//   node asks-ts2.mjs PORT     over Streamable HTTP
import http from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, inputRequired, Server } from '@modelcontextprotocol/server';
import { serveStdio } from '@modelcontextprotocol/server/stdio';
import { QUESTIONS, TOOLS, told } from './asks.mjs';

function build() {
  const server = new Server({ name: 'ts2-asks', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', () => ({ tools: TOOLS }));
  server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
    const reply = mcpReq.inputResponses?.[params.name];
    if (reply) return told(reply);
    return inputRequired({ inputRequests: { [params.name]: QUESTIONS[params.name] } });
  });
  return server;
}

const port = process.argv[2];
if (port === undefined) serveStdio(build);
else http.createServer(toNodeHandler(createMcpHandler(build))).listen(Number(port), '127.0.0.1');
