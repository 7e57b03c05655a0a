// A language model for opencode, on loopback: the OpenAI chat-completions shape, streamed.
//
// It does what the last user message says, and nothing else: an order (orderFor below) makes it ask
// for that one tool call, and then print the tool's answer between "ANSWER<" and ">ANSWER".
// A tool that was not offered is named as missing, together with the names that were offered.
// Everything else (opencode asks for a title, for example) gets the word "ok".
//
// `startStub()` resolves to { url, log, close }; `log` holds what was asked, one entry a request.
import http from 'node:http';

/** A user message that makes the model call a tool. Packed, since opencode quotes spaces. */
export const orderFor = (tool, args) =>
  `CALL:${tool}:${Buffer.from(JSON.stringify(args)).toString('base64url')}`;

/** What the model says next, given the conversation and the tools on offer. */
function decide(messages, tools) {
  const last = messages.at(-1);
  if (last?.role === 'tool') return { text: `ANSWER<${textOf(last.content)}>ANSWER` };
  const order = /CALL:([^:\s]+):([\w-]+)/.exec(textOf(last?.content));
  if (last?.role !== 'user' || !order || tools.length === 0) return { text: 'ok' };
  const [, name, packed] = order;
  const args = Buffer.from(packed, 'base64url').toString();
  if (!tools.includes(name)) return { text: `MISSING ${name}; offered: ${tools.join(' ')}` };
  return { call: { name, args } };
}

const textOf = content =>
  Array.isArray(content)
    ? content.map(part => part.text ?? `[${part.type}]`).join('')
    : String(content ?? '');

/** The chunks of one streamed answer. */
function chunks(model, step) {
  const head = { id: 'chatcmpl-stub', object: 'chat.completion.chunk', created: 0, model };
  const delta = (d, finish = null) => ({
    ...head,
    choices: [{ index: 0, delta: d, finish_reason: finish }],
  });
  const body = step.call
    ? [
        delta({
          role: 'assistant',
          tool_calls: [
            {
              index: 0,
              id: `call_${Date.now()}`,
              type: 'function',
              function: { name: step.call.name, arguments: step.call.args },
            },
          ],
        }),
        delta({}, 'tool_calls'),
      ]
    : [delta({ role: 'assistant', content: step.text }), delta({}, 'stop')];
  const usage = { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 };
  return [...body, { ...head, choices: [], usage }];
}

export async function startStub() {
  const log = [];
  const server = http.createServer(async (req, res) => {
    let raw = '';
    for await (const part of req) raw += part;
    if (req.method !== 'POST' || !req.url.endsWith('/chat/completions')) {
      log.push({ unexpected: `${req.method} ${req.url}` });
      return res.writeHead(404).end();
    }
    const body = JSON.parse(raw);
    const tools = (body.tools ?? []).map(t => t.function.name);
    const step = decide(body.messages, tools);
    log.push({ tools, definitions: body.tools, last: body.messages.at(-1), step });
    res.writeHead(200, { 'content-type': 'text/event-stream' });
    for (const chunk of chunks(body.model, step)) res.write(`data: ${JSON.stringify(chunk)}\n\n`);
    res.end('data: [DONE]\n\n');
  });
  await new Promise(ready => server.listen(0, '127.0.0.1', ready));
  const url = `http://127.0.0.1:${server.address().port}/v1`;
  return {
    url,
    log,
    close: () =>
      new Promise(done => {
        server.close(done);
        server.closeAllConnections();
      }),
  };
}
