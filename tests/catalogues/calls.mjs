// Every tool is called from a script, one script for each server. An answer of the server counts, whatever
// it is: arguments are as few as its schema allows, and there is nothing to reach. What mcpx refuses, or
// does not find, does not.
import fs from 'node:fs';
import path from 'node:path';

/** Arguments beside those that the schema asks for, so that a call neither takes long nor does much. */
const OWN = {
  'everything.trigger-long-running-operation': { duration: 0.1, steps: 1 },
};

/** The least that a schema accepts, as far as it can be seen without a validator. */
function least(schema, depth = 0) {
  if (schema === null || typeof schema !== 'object' || depth > 6) return {};
  if (schema.const !== undefined) return schema.const;
  if (schema.default !== undefined) return schema.default;
  if (schema.enum?.length) return schema.enum[0];
  const either = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (either?.length) return least(either[0], depth + 1);
  const type = [schema.type].flat()[0];
  if (type === 'object' || schema.properties) {
    const needed = (schema.required ?? []).map(name => [name, least(schema.properties?.[name], depth + 1)]);
    return Object.fromEntries(needed);
  }
  if (type === 'array') {
    return Array.from({ length: schema.minItems ?? 0 }, () => least(schema.items, depth + 1));
  }
  if (type === 'integer' || type === 'number') return schema.minimum ?? 1;
  if (type === 'boolean') return false;
  if (type === 'null') return null;
  if (schema.format === 'uri') return 'http://127.0.0.1:9/';
  return 'x'.repeat(Math.max(1, schema.minLength ?? 1));
}

/** A script that calls each tool by its name after a dot and gives what came of each. */
function script(namespace, members) {
  const lines = members.map(({ member, args }) => `  [${JSON.stringify(member)}, a => tools.${namespace}.${member}(a), ${JSON.stringify(args)}],`);
  return `
const all: [string, (args: any) => Promise<unknown>, unknown][] = [
${lines.join('\n')}
];
const came: Record<string, string> = {};
for (const [member, call, args] of all) {
  try {
    await call(args);
    came[member] = 'answered';
  } catch (error: any) {
    const own = error.name === 'ToolError' && !error.reason;
    came[member] = own ? 'answered with an error' : \`\${error.name} \${error.reason ?? ''}: \${error.message}\`.slice(0, 300);
  }
}
return came;
`;
}

export async function calls(mcpx, check, catalogue, home) {
  let answered = 0;
  let errors = 0;
  for (const { namespace, tools } of catalogue) {
    // The names after a dot are mcpx's own to give: asked for, not made here.
    const members = [];
    for (const tool of tools) {
      const query = `query=${encodeURIComponent(tool.name)}&namespace=${namespace}&limit=50`;
      const found = await mcpx.ask('GET', `/v1/search?${query}`);
      const hit = found.tools.find(hit => hit.tool === tool.name);
      const args = OWN[`${namespace}.${tool.name}`] ?? least(tool.inputSchema);
      members.push({ member: hit?.member ?? `(not found: ${tool.name})`, args });
    }
    const code = path.join(home, `${namespace}.ts`);
    fs.writeFileSync(code, script(namespace, members));
    const result = await mcpx.ask('POST', '/v1/exec', { code: fs.readFileSync(code, 'utf8') });
    const text = result.content?.find(block => block.type === 'text')?.text ?? '';
    const came = result.structuredContent?.value ?? read(text);
    const bad = members.filter(({ member }) => !came?.[member]?.startsWith('answered'));
    answered += Object.values(came ?? {}).filter(how => how === 'answered').length;
    errors += Object.values(came ?? {}).filter(how => how === 'answered with an error').length;
    const why = bad.slice(0, 5).map(({ member }) => `${member}: ${came?.[member] ?? text.slice(0, 300)}`).join('; ');
    check(`${namespace}: every one of ${tools.length} tools answers a script`, bad.length === 0, why);
  }
  console.log(`   ${answered} tools gave a result, ${errors} an error of their own`);
}

/** The value that a run's text begins with. */
function read(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
