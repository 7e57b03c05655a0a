// What a host must see of each kind of upstream.
//
// { tools: { names, exact, definitions }, pages, calls: [{ check, tool, arguments, result }],
//   progress: { tool, arguments, steps, result } or none, error: { tool, arguments, error } or none,
//   unknown: a name, cancel: { tool, arguments, seen: { tool, arguments, text } or none },
//   core: the namespace, where the calls are to go through mcpx_call }
//
// Results are patterns: an object may hold more than its pattern, a list may not, { $has } is a
// part of a text, and `isError` must be absent or false where the pattern does not name it.
import fs from 'node:fs';

const text = words => ({ type: 'text', text: words });
const call = (check, tool, args, result) => ({ check, tool, arguments: args, result });
// prettier-ignore
const PNG = 'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJ'
  + 'AAAADUlEQVR4nGP4z8DwHwAFAAH/iZk9HQAAAABJRU5ErkJggg==';
const WAV = 'UklGRiQAAABXQVZFZm10IBAAAAABAAEARKwAAIhYAQACABAAZGF0YQAAAAA=';

/** The upstreams written with the Python and the Rust SDK: both serve catalog.json. */
function sdk(catalogFile) {
  const catalog = JSON.parse(fs.readFileSync(catalogFile, 'utf8'));
  const tag = 'peers';
  const canned = catalog.tools
    .filter(tool => tool.result)
    .map(tool => call(tool.definition.name, tool.definition.name, {}, tool.result));
  const refuses = catalog.tools.find(tool => tool.error);
  const value = { ünï: [1, -2.5, 'x', null, true, { deep: [] }], n: 9007199254740991 };
  return {
    tools: {
      exact: true,
      names: catalog.tools.map(tool => tool.definition.name),
      definitions: Object.fromEntries(
        catalog.tools.map(tool => [tool.definition.name, tool.definition]),
      ),
    },
    pages: Math.ceil(catalog.tools.length / catalog.pageSize),
    calls: [
      ...canned,
      call('arguments', 'echo', { value }, { structuredContent: { arguments: { value } } }),
    ],
    progress: {
      tool: 'counts',
      arguments: { steps: 7 },
      steps: 7,
      result: { content: [text('counted to 7')] },
    },
    error: {
      tool: refuses.definition.name,
      arguments: {},
      error: { ...refuses.error, message: { $has: refuses.error.message } },
    },
    unknown: 'no_such_tool',
    cancel: {
      tool: 'waits',
      arguments: { tag },
      seen: { tool: 'was_cancelled', arguments: { tag }, text: 'yes' },
    },
  };
}

/** @modelcontextprotocol/server-everything; what it lists depends on what the host can do. */
function everything() {
  const weather = { temperature: 33, conditions: 'Cloudy', humidity: 82 };
  const link = (n, kind, mime) => ({
    type: 'resource_link',
    name: `${kind} Resource ${n}`,
    mimeType: mime,
  });
  return {
    tools: {
      exact: false,
      names: [
        'echo',
        'get-annotated-message',
        'get-resource-links',
        'get-resource-reference',
        'get-structured-content',
        'get-sum',
        'get-tiny-image',
        'trigger-long-running-operation',
      ],
      definitions: {
        echo: {
          title: 'Echo Tool',
          inputSchema: {
            type: 'object',
            required: ['message'],
            properties: { message: { type: 'string', description: 'Message to echo' } },
          },
        },
        'get-structured-content': {
          annotations: { readOnlyHint: true },
          outputSchema: { properties: { humidity: { type: 'number' } } },
        },
      },
    },
    pages: 1,
    calls: [
      call(
        'text',
        'echo',
        { message: 'grüezi "you"\n🦀' },
        { content: [text('Echo: grüezi "you"\n🦀')] },
      ),
      call(
        'numbers',
        'get-sum',
        { a: 1.5, b: -3 },
        { content: [text('The sum of 1.5 and -3 is -1.5.')] },
      ),
      call(
        'image',
        'get-tiny-image',
        {},
        {
          content: [
            text("Here's the image you requested:"),
            { type: 'image', mimeType: 'image/png', data: { $has: 'iVBORw0KGgo' } },
            text('The image above is the MCP logo.'),
          ],
        },
      ),
      call(
        'annotations',
        'get-annotated-message',
        { messageType: 'error', includeImage: true },
        {
          content: [
            {
              ...text('Error: Operation failed'),
              annotations: { priority: 1, audience: ['user', 'assistant'] },
            },
            {
              type: 'image',
              mimeType: 'image/png',
              annotations: { priority: 0.5, audience: ['user'] },
            },
          ],
        },
      ),
      call(
        'resource links',
        'get-resource-links',
        { count: 2 },
        {
          content: [{ type: 'text' }, link(1, 'Blob', 'text/plain'), link(2, 'Text', 'text/plain')],
        },
      ),
      call(
        'embedded text',
        'get-resource-reference',
        { resourceType: 'Text', resourceId: 2 },
        {
          content: [
            { type: 'text' },
            {
              type: 'resource',
              resource: { mimeType: 'text/plain', text: { $has: 'Resource 2' } },
            },
            { type: 'text' },
          ],
        },
      ),
      call(
        'embedded blob',
        'get-resource-reference',
        { resourceType: 'Blob', resourceId: 1 },
        {
          content: [
            { type: 'text' },
            { type: 'resource', resource: { mimeType: 'text/plain', blob: { $has: '=' } } },
            { type: 'text' },
          ],
        },
      ),
      call(
        'structured',
        'get-structured-content',
        { location: 'New York' },
        { content: [text(JSON.stringify(weather))], structuredContent: weather },
      ),
      call(
        'isError',
        'get-sum',
        { a: 'one', b: 2 },
        { isError: true, content: [{ text: { $has: 'nput' } }] },
      ),
    ],
    progress: {
      tool: 'trigger-long-running-operation',
      arguments: { duration: 0.4, steps: 4 },
      steps: 4,
      result: { content: [{ text: { $has: 'completed' } }] },
    },
    unknown: 'no_such_tool',
    cancel: { tool: 'trigger-long-running-operation', arguments: { duration: 20, steps: 2 } },
  };
}

/** The conformance kit's fixture. What it asks the host for belongs to a later issue. */
function fixture() {
  return {
    tools: {
      exact: false,
      names: [
        'test_simple_text',
        'test_image_content',
        'test_audio_content',
        'test_embedded_resource',
        'test_multiple_content_types',
        'test_error_handling',
        'test_tool_with_progress',
        'greet',
        'slow_compute',
      ],
      definitions: {
        greet: {
          description: 'sync only',
          inputSchema: {
            type: 'object',
            required: ['name'],
            properties: { name: { type: 'string' } },
          },
        },
      },
    },
    pages: 1,
    calls: [
      call(
        'text',
        'test_simple_text',
        {},
        { content: [text('This is a simple text response for testing.')] },
      ),
      call(
        'image',
        'test_image_content',
        {},
        { content: [{ type: 'image', data: PNG, mimeType: 'image/png' }] },
      ),
      call(
        'audio',
        'test_audio_content',
        {},
        { content: [{ type: 'audio', data: WAV, mimeType: 'audio/wav' }] },
      ),
      call(
        'embedded text',
        'test_embedded_resource',
        {},
        {
          content: [
            {
              type: 'resource',
              resource: {
                uri: 'test://embedded-resource',
                mimeType: 'text/plain',
                text: 'This is an embedded resource content.',
              },
            },
          ],
        },
      ),
      call(
        'mixed',
        'test_multiple_content_types',
        {},
        {
          content: [
            text('Multiple content types test:'),
            { type: 'image', data: PNG, mimeType: 'image/png' },
            {
              type: 'resource',
              resource: {
                uri: 'test://mixed-content-resource',
                mimeType: 'application/json',
                text: '{"test":"data","value":123}',
              },
            },
          ],
        },
      ),
      call('arguments', 'greet', { name: 'ünï "q"' }, { content: [text('Hello, ünï "q"!')] }),
      call(
        'isError',
        'test_error_handling',
        {},
        { isError: true, content: [text('This tool intentionally returns an error for testing')] },
      ),
    ],
    progress: {
      tool: 'test_tool_with_progress',
      arguments: {},
      steps: 3,
      result: { content: [{ type: 'text' }] },
    },
    unknown: 'no_such_tool',
    cancel: { tool: 'slow_compute', arguments: { seconds: 3, label: 'peers' } },
  };
}

/** The same through the core tools: the addresses of a server with resources name it (R-01, F46). */
export function throughCore(expect, kind, namespace) {
  expect.core = namespace;
  if (!kind.startsWith('fixture')) return expect;
  const seen = (key, value) => (key === 'uri' ? `mcpx://${namespace}/${value}` : value);
  return { ...expect, calls: JSON.parse(JSON.stringify(expect.calls, seen)) };
}

export function expectation(kind, catalogFile) {
  if (kind === 'everything') return everything();
  return kind.startsWith('fixture') ? fixture() : sdk(catalogFile);
}
