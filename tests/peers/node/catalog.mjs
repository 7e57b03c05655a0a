// The tools of catalog.json for the two TypeScript upstreams, whatever their SDK calls things.
import fs from 'node:fs';
import { setTimeout as nap } from 'node:timers/promises';

const catalog = JSON.parse(fs.readFileSync(process.argv[2], 'utf8'));
const cancelled = new Set();
const says = (text, more) => ({ content: [{ type: 'text', text }], ...more });

/** One page; the cursor is the number of the first tool on it. */
export function list(cursor) {
  const start = Number(cursor ?? 0);
  const end = start + catalog.pageSize;
  const tools = catalog.tools.slice(start, end).map(tool => tool.definition);
  return end < catalog.tools.length ? { tools, nextCursor: String(end) } : { tools };
}

/**
 * A canned result, a canned error thrown by `fail(code, message, data)`, or one of the tools that do
 * something. `progress(step, steps)` sends a note, `signal` tells of the cancellation.
 */
export async function call(name, args, { fail, progress, signal }) {
  const tool = catalog.tools.find(one => one.definition.name === name);
  if (!tool) return fail(-32602, `no tool named ${name}`);
  if (tool.error) return fail(tool.error.code, tool.error.message, tool.error.data);
  if (tool.result) return tool.result;
  switch (tool.does) {
    case 'echo':
      return says('echoed', { structuredContent: { arguments: args } });
    case 'counts':
      for (let step = 1; step <= args.steps; step += 1) {
        await progress(step, args.steps);
        await nap(20);
      }
      return says(`counted to ${args.steps}`);
    case 'waits':
      signal.addEventListener('abort', () => cancelled.add(args.tag));
      await nap(60_000, undefined, { signal });
      return says('nobody cancelled this');
    case 'was_cancelled':
      return says(cancelled.has(args.tag) ? 'yes' : 'no');
    default:
      return fail(-32603, `the catalog asks for ${tool.does}, which is not written`);
  }
}
