// Is what a server streams still a stream here? By fetch alone, no SDK, in both eras.
//   node stream.mjs URL      in front of an upstream that serves catalog.json
// One line a check, as in driver.mjs.
import { setTimeout as nap } from 'node:timers/promises';

const url = process.argv[2];
const META = 'io.modelcontextprotocol/';
const STEPS = 30; // of 20 ms each
let failed = 0;

async function check(name, body) {
  try {
    console.log(`ok ${name} (${(await body()) ?? ''})`);
  } catch (error) {
    failed += 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

const must = (holds, why) => {
  if (!holds) throw new Error(why);
};

/** A POST of one message in an era: `session` makes it a handshake one. */
function post(message, { session, signal } = {}) {
  const modern = session === undefined;
  const headers = {
    accept: 'application/json, text/event-stream',
    'content-type': 'application/json',
    'mcp-protocol-version': modern ? '2026-07-28' : '2025-11-25',
  };
  const { params = {} } = message;
  if (modern) {
    headers['mcp-method'] = message.method;
    if (params.name) headers['mcp-name'] = params.name;
    params._meta = {
      ...params._meta,
      [`${META}protocolVersion`]: '2026-07-28',
      [`${META}clientInfo`]: { name: 'stream', version: '1' },
      [`${META}clientCapabilities`]: {},
    };
  } else if (session) headers['mcp-session-id'] = session;
  if (message.method === 'initialize') delete headers['mcp-protocol-version'];
  const body = JSON.stringify({ jsonrpc: '2.0', ...message, params });
  return fetch(url, { method: 'POST', headers, body, signal });
}

/** A session of 2025-11-25. */
async function handshake() {
  const params = {
    protocolVersion: '2025-11-25',
    capabilities: {},
    clientInfo: { name: 'stream', version: '1' },
  };
  const answer = await post({ id: 0, method: 'initialize', params }, { session: '' });
  await answer.text();
  const session = answer.headers.get('mcp-session-id');
  must(session, `no session: ${answer.status}`);
  await (await post({ method: 'notifications/initialized' }, { session })).text();
  return session;
}

const call = (id, name, args) => ({
  id,
  method: 'tools/call',
  params: { name, arguments: args, _meta: { progressToken: `t${id}` } },
});

/** Notes come while the call goes on, not all together at its end. */
async function flows(session) {
  const answer = await post(call(1, 'counts', { steps: STEPS }), { session });
  must(answer.headers.get('content-type')?.startsWith('text/event-stream'), 'no event stream');
  const times = [];
  let text = '';
  for await (const chunk of answer.body.pipeThrough(new TextDecoderStream())) {
    text += chunk;
    times.push(Date.now());
  }
  must(text.includes(`counted to ${STEPS}`), `no result in ${text.slice(-300)}`);
  const spread = times.at(-1) - times[0];
  must(spread >= 300, `all within ${spread} ms`);
  return `${times.length} chunks over ${spread} ms`;
}

/** The session's own stream opens at once and stays open. */
async function ownStream(session) {
  const stop = new AbortController();
  const headers = { accept: 'text/event-stream', 'mcp-session-id': session };
  headers['mcp-protocol-version'] = '2025-11-25';
  const late = setTimeout(() => stop.abort(new Error('no headers within 2 s')), 2000);
  const answer = await fetch(url, { headers, signal: stop.signal });
  clearTimeout(late);
  must(answer.status === 200, `status ${answer.status}`);
  const ended = answer.text().then(
    () => 'ended',
    () => 'ended',
  );
  must((await Promise.race([ended, nap(800)])) === undefined, 'it ended by itself');
  stop.abort();
}

/** Closing the stream of a call cancels it, as 2026-07-28 has it. */
async function cancels() {
  const stop = new AbortController();
  const running = post(call(2, 'waits', { tag: 'stream' }), { signal: stop.signal }).then(
    answer => answer.text(),
  );
  running.catch(() => undefined);
  await nap(400);
  stop.abort();
  for (let tries = 0; tries < 30; tries += 1) {
    const answer = await post(call(`seen${tries}`, 'was_cancelled', { tag: 'stream' }));
    if ((await answer.text()).includes('"yes"')) return;
    await nap(100);
  }
  throw new Error('the upstream never heard of it');
}

await check('streams at 2026-07-28', () => flows());
await check('a closed stream cancels', cancels);
const session = await handshake().catch(error => error);
await check('streams at 2025-11-25', () => flows(session));
await check('the own stream of a session', () => ownStream(session));
process.exit(failed ? 1 : 0);
