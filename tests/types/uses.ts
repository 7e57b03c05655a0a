// What scripts write, beside the declarations of tests/types/schemas.mjs: what fits passes, what does not fails.
export {};

await tools.generated.zod3({ path: 'x', edits: [{ oldText: 'a', newText: 'b' }], range: [1, 2], mode: 'a' });
// @ts-expect-error a required argument is missing
await tools.generated.zod3({ path: 'x' });
// @ts-expect-error an argument that the tool does not know
await tools.generated.zod3({ path: 'x', edits: [], bogus: 1 });
// @ts-expect-error a value that is none of the constants
await tools.generated.zod3({ path: 'x', edits: [], mode: 'c' });

await tools.generated.zod4({ limit: 1, pair: ['a', 1], kind: { type: 'x', x: 1 } });
// @ts-expect-error of one alternative and the other
await tools.generated.zod4({ limit: 1, pair: ['a', 1], kind: { type: 'y', x: 1 } });

const given = await tools.generated.pydantic({ node: { value: 1, children: [{ value: 2 }] }, color: null, point: [0, 1] });
const id: string = given.result[0]!.id;
// @ts-expect-error text where a number is wanted, in a recursive type
await tools.generated.pydantic({ node: { value: 1, children: [{ value: 'x' }] } });

await tools.generated.go({ owner: id, labels: null });
await tools.generated.openapi({ id: null, body: { kind: 'x', extra: true, tag: null } });
// @ts-expect-error one part of an intersection is missing
await tools.generated.openapi({ body: { kind: 'x' } });

await tools.hostile.f41_empty();
await tools.hostile.json({ v: [{ a: [1, 'x', null] }] });
await tools.hostile.new({ new: 'x' });
await tools.hostile.delete({ delete: 'x' });
await tools.a_b_2.new({ new: 'x' });
await Promise.all(['a', 'b'].map((of) => tools.generated.go({ owner: of })));

try {
  const anything = await tools.hostile.f41_string();
  console.log(anything.whatever, input?.x);
} catch (error) {
  if (error instanceof ToolError) console.error(error.message, error.reason, error.content?.[0]);
}
const file = await artifacts.write('a.txt', 'text', 'text/plain');
console.log(file.uri, await mcpx.types({ namespace: 'generated' }), await mcpx.search({ query: 'x' }));
const [found] = await mcpx.search('issues');
if (found) console.log(found.namespace, found.member, await mcpx.types(found.namespace));
await new Promise((done) => setTimeout(done, 10));
await artifacts.write('b.json', { text: new TextDecoder().decode(new TextEncoder().encode('x')) });
