// An upstream over Streamable HTTP, on the official TypeScript SDK 2.x: 2026-07-28, and the older
// revisions without sessions.
//   node upstream-ts2.mjs CATALOG.json PORT
import http from 'node:http';
import { toNodeHandler } from '@modelcontextprotocol/node';
import { createMcpHandler, ProtocolError, Server } from '@modelcontextprotocol/server';
import { call, list } from './catalog.mjs';

function build() {
  const server = new Server({ name: 'ts2-peer', version: '1.0.0' }, { capabilities: { tools: {} } });
  server.setRequestHandler('tools/list', ({ params }) => list(params?.cursor));
  server.setRequestHandler('tools/call', ({ params }, context) => {
    const { mcpReq } = context;
    const token = params._meta?.progressToken ?? mcpReq._meta?.progressToken;
    return call(params.name, params.arguments ?? {}, {
      signal: mcpReq.signal,
      fail(code, message, data) {
        throw new ProtocolError(code, message, data);
      },
      async progress(progress, total) {
        if (token === undefined) return;
        const note = { progressToken: token, progress, total, message: `step ${progress}` };
        await mcpReq.notify({ method: 'notifications/progress', params: note });
      },
    });
  });
  return server;
}

const handle = toNodeHandler(createMcpHandler(build));
http.createServer(handle).listen(Number(process.argv[3]), '127.0.0.1');
