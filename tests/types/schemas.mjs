// Tools with schemas that no generator is glad of: { namespace: [tool, …] }.

const S = { type: 'string' };
const object = (properties, more = {}) => ({ type: 'object', properties, ...more });
const count = (n, make) => Array.from({ length: n }, (_, at) => make(at));
const named = (n, make) => Object.fromEntries(count(n, make));
const nest = (levels, wrap, inner) => count(levels, () => 0).reduce((of) => wrap(of), inner);

const names = [
  'new', 'delete', 'constructor', '__proto__', 'then', 'toString', 'a b', '', '1', 'löschen', 'get', 'set',
  'async', 'static', 'readonly', 'await', '*/ evil', '\n', '\u2028', 'class', 'interface', '"q"', 'a\\b',
  'prototype', 'hasOwnProperty', 'arguments', 'eval', 'a-b', 'a_b', 'a.b',
].map((name) => ({
  name,
  description: `${name} */ /* // \u202e \u0000 \n * @x`,
  inputSchema: object({ [name]: S, [`${name}2`]: S }, { required: [name] }),
}));

const json = {
  anyOf: [
    { type: ['string', 'number', 'boolean', 'null'] },
    { type: 'array', items: { $ref: '#/$defs/Json' } },
    { type: 'object', additionalProperties: { $ref: '#/$defs/Json' } },
  ],
};
const chain = (n, make, last) => named(n + 1, (at) => [`D${at}`, at < n ? make(at) : last]);

/** Input schemas by name. */
const inputs = {
  self: { $ref: '#' },
  self_any: { anyOf: [{ $ref: '#' }, object({ a: { $ref: '#' } })] },
  circle: { $ref: '#/$defs/A', $defs: { A: { $ref: '#/$defs/B' }, B: { $ref: '#/$defs/A' } } },
  hidden_circle: {
    $ref: '#/$defs/A',
    $defs: {
      A: { properties: { p: { $ref: '#/$defs/B' } }, allOf: [{ $ref: '#/$defs/B' }] },
      B: { allOf: [{ $ref: '#/$defs/A' }] },
    },
  },
  json: object({ v: { $ref: '#/$defs/Json' } }, { $defs: { Json: json } }),
  self_list: object({ v: { $ref: '#/$defs/L' } }, { $defs: { L: { type: 'array', items: { $ref: '#/$defs/L' } } } }),
  self_tuple: object({ v: { $ref: '#/$defs/L' } }, { $defs: { L: { prefixItems: [{ $ref: '#/$defs/L' }], items: false } } }),
  self_record: object({ v: { $ref: '#/$defs/L' } }, { $defs: { L: { type: 'object', additionalProperties: { $ref: '#/$defs/L' } } } }),
  product: {
    type: 'object',
    allOf: count(20, (i) => ({ anyOf: count(20, (j) => object({ [`p${i}_${j}`]: S }, { required: [`p${i}_${j}`] })) })),
  },
  product_of_names: {
    allOf: count(12, (at) => ({ $ref: `#/$defs/D${at}` })),
    $defs: chain(
      12,
      (at) => ({
        anyOf: [
          { $ref: `#/$defs/D${at + 1}` },
          { allOf: [{ $ref: `#/$defs/D${at + 1}` }, object({ [`x${at}`]: S }, { required: [`x${at}`] })] },
        ],
      }),
      { anyOf: count(30, (at) => object({ [`y${at}`]: S })) },
    ),
  },
  product_backwards: object(named(30, (at) => [`p${at}`, { $ref: `#/$defs/D${at}` }]), {
    $defs: named(30, (at) => [
      `D${at}`,
      at === 0
        ? { anyOf: [object({ a: S }), object({ b: S })] }
        : { allOf: [{ $ref: `#/$defs/D${at - 1}` }, { anyOf: count(4, (j) => object({ [`x${at}_${j}`]: S }, { required: [`x${at}_${j}`] })) }] },
    ]),
  }),
  doubling: object({ a: { $ref: '#/$defs/D0' } }, {
    $defs: chain(50, (at) => object({ l: { $ref: `#/$defs/D${at + 1}` }, r: { $ref: `#/$defs/D${at + 1}` } }), S),
  }),
  many: object(named(10_000, (at) => [`p${at}`, S])),
  many_names: object(named(3000, (at) => [`p${at}`, { $ref: `#/$defs/${at}x` }]), {
    $defs: named(3000, (at) => [`${at}x`, object({ a: S })]),
  }),
  many_values: object({ e: { enum: count(10_000, (at) => `v${at}`) } }),
  deep: nest(200, (of) => object({ a: of }, { required: ['a'] }), S),
  index: object({ a: { type: 'number' }, b: { type: 'array', items: S }, c: object({ x: S }) }, { required: ['a'], additionalProperties: S }),
  index_names: object({ a: { $ref: '#/$defs/I' }, '': S }, {
    required: [''], additionalProperties: { $ref: '#/$defs/J' }, $defs: { I: object({ z: S }), J: object({ y: S }) },
  }),
  patterns: { type: 'object', patternProperties: { '^a*/b': S, '': { type: 'number' } }, additionalProperties: false },
  values: object({
    a: { const: { x: [1, null, { y: 'z*/' }] } },
    b: { enum: [[], {}, -1, 12345678901234567000, 1.5, true, '\u202e', '\ud800x', '\u2028'] },
    c: { const: null },
    d: { enum: [] },
    e: { const: 'x'.repeat(1000) },
  }),
  never: object({ never: false, any: true }, { required: ['never'] }),
  missing: object({}, { required: ['ghost', 'a b'] }),
  types: object({
    a: { type: 'String' }, b: { type: ['string', 'string'] }, c: { type: [] }, d: { type: { x: 1 } },
    e: { type: [{ type: 'number' }, 'null'] }, f: { type: 'file' }, g: 5, h: 'x', i: null, j: [],
  }),
  loose: { type: 'object', properties: [1, 2], required: 'x' },
  nullable: object({ a: { type: 'string', nullable: true }, b: { nullable: true }, c: { $ref: '#/$defs/X', nullable: true } }, { $defs: { X: object({ q: S }) } }),
  tuples: object({
    a: { items: [S, { type: 'number' }] },
    b: { prefixItems: [S], items: { type: ['number', 'null'] } },
    c: { prefixItems: [], items: false },
    d: { type: 'array', items: { anyOf: [S, { type: 'null' }] } },
    e: { prefixItems: [{ anyOf: [S, { type: 'number' }] }], minItems: 5 },
    f: { type: 'array', items: { type: 'string', description: '*/ x' } },
  }),
  described_values: object({ a: { oneOf: [{ const: 'a', description: 'First */' }, { const: 'b', title: 'Second' }] } }),
  conditions: {
    type: 'object',
    properties: { k: { enum: ['a', 'b'] } },
    allOf: [...'abcdefghijkl'].map((c) => ({
      if: { properties: { k: { const: c } } },
      then: object({ [c]: S }, { required: [c] }),
      else: { not: { required: [c] } },
    })),
  },
  dependent: {
    type: 'object',
    properties: { a: S },
    dependentSchemas: { a: { properties: { b: S }, required: ['b'] } },
    dependencies: { x: ['y'], z: { required: ['q'] } },
    dependentRequired: { a: ['c'] },
  },
  addresses: object(
    { a: { $ref: '#foo' }, b: { $ref: 'item.json' }, c: { $ref: 'https://x.test/item.json#/properties/q' }, d: { $ref: '#/$defs/a~1b%20c' }, e: { $ref: '#/$defs/n' }, f: { $ref: 'https://evil.test/*/x' }, g: { $ref: '#/no*/where' } },
    {
      $id: 'https://x.test/tool.json',
      $defs: {
        x: { $anchor: 'foo', type: 'number' },
        y: { $id: 'https://x.test/item.json', ...object({ q: { type: 'boolean' }, r: { $ref: '#/properties/q' } }) },
        'a/b c': { const: 7 },
        n: { $dynamicRef: '#foo' },
      },
    },
  ),
  generic: object({ p: { $ref: '#/$defs/Page[Item]' }, q: { $ref: '#/$defs/a.b.Page' } }, {
    $defs: { 'Page[Item]': object({ i: { $ref: '#/$defs/a.b.Page' } }), 'a.b.Page': object({ n: S }) },
  }),
  contradiction: { allOf: [{ type: 'string' }, { type: 'number' }, false] },
  one_n: object({ n: { $ref: '#/$defs/N' } }, { $defs: { N: object({ a: S }) } }),
  other_n: object({ n: { $ref: '#/$defs/N' } }, { $defs: { N: object({ b: S }) } }),
  f41_string: { type: 'string' },
  f41_list: { type: 'array', items: S },
  f41_empty: {},
};

const outputs = {
  out_union: { type: 'object', oneOf: [object({ a: S }), object({ kids: { type: 'array', items: { $ref: '#' } } })] },
  out_prim: { type: 'object', properties: { result: { type: 'integer' } }, required: ['result'] },
};

const hostile = [
  ...names,
  ...Object.entries(inputs).map(([name, inputSchema]) => ({ name, inputSchema })),
  ...Object.entries(outputs).map(([name, outputSchema]) => ({ name, inputSchema: { type: 'object' }, outputSchema })),
];

// As common generators write them.
const generated = [
  // zod 3 by zod-to-json-schema, draft 7.
  {
    name: 'zod3',
    inputSchema: {
      type: 'object',
      properties: {
        path: { type: 'string' },
        edits: { type: 'array', items: { type: 'object', properties: { oldText: { type: 'string', description: 'Text to search for' }, newText: { type: 'string' } }, required: ['oldText', 'newText'], additionalProperties: false } },
        again: { $ref: '#/properties/edits/items' },
        range: { type: 'array', minItems: 2, maxItems: 2, items: [{ type: 'number' }, { type: 'number' }] },
        mode: { anyOf: [{ type: 'string', const: 'a' }, { type: 'string', const: 'b' }] },
        any: {},
        map: { type: 'object', additionalProperties: { type: 'number' } },
      },
      required: ['path', 'edits'],
      additionalProperties: false,
      $schema: 'http://json-schema.org/draft-07/schema#',
    },
  },
  // zod 4 by itself, 2020-12.
  {
    name: 'zod4',
    inputSchema: {
      $schema: 'https://json-schema.org/draft/2020-12/schema',
      type: 'object',
      properties: {
        limit: { default: 10, type: 'integer', minimum: -9007199254740991, maximum: 9007199254740991 },
        pair: { type: 'array', prefixItems: [{ type: 'string' }, { type: 'number' }] },
        kind: { oneOf: [{ type: 'object', properties: { type: { type: 'string', const: 'x' }, x: { type: 'number' } }, required: ['type', 'x'], additionalProperties: false }, { type: 'object', properties: { type: { type: 'string', const: 'y' } }, required: ['type'], additionalProperties: false }] },
        record: { type: 'object', propertyNames: { type: 'string' }, additionalProperties: {} },
      },
      required: ['limit', 'pair', 'kind'],
      additionalProperties: false,
    },
  },
  // pydantic 2.
  {
    name: 'pydantic',
    inputSchema: {
      $defs: {
        Color: { enum: ['red', 'green'], title: 'Color', type: 'string' },
        Node: { properties: { value: { title: 'Value', type: 'integer' }, children: { default: [], items: { $ref: '#/$defs/Node' }, title: 'Children', type: 'array' } }, required: ['value'], title: 'Node', type: 'object' },
      },
      properties: {
        node: { $ref: '#/$defs/Node' },
        color: { anyOf: [{ $ref: '#/$defs/Color' }, { type: 'null' }], default: null },
        when: { anyOf: [{ format: 'date-time', type: 'string' }, { type: 'null' }], default: null, title: 'When' },
        point: { default: [0, 0], maxItems: 2, minItems: 2, prefixItems: [{ type: 'number' }, { type: 'number' }], title: 'Point', type: 'array' },
      },
      required: ['node'],
      title: 'toolArguments',
      type: 'object',
    },
    outputSchema: { properties: { result: { items: { $ref: '#/$defs/Item' }, title: 'Result', type: 'array' } }, required: ['result'], title: 'toolOutput', type: 'object', $defs: { Item: { properties: { id: { type: 'string' } }, required: ['id'], type: 'object' } } },
  },
  // Go: jsonschema-go and invopop.
  {
    name: 'go',
    inputSchema: {
      type: ['object'],
      properties: { owner: { type: 'string', description: 'Owner' }, labels: { type: ['null', 'array'], items: { type: 'string' } }, page: { type: 'number', minimum: 1 } },
      required: ['owner'],
      additionalProperties: { not: {} },
    },
  },
  // OpenAPI 3.0 turned into tools.
  {
    name: 'openapi',
    inputSchema: {
      type: 'object',
      properties: {
        id: { type: 'integer', format: 'int64', nullable: true },
        body: { allOf: [{ $ref: '#/components/schemas/Pet' }, { type: 'object', required: ['extra'], properties: { extra: { type: 'boolean' } } }] },
      },
      required: ['body'],
      components: { schemas: { Pet: { type: 'object', discriminator: { propertyName: 'kind' }, properties: { kind: { type: 'string' }, tag: { type: 'string', nullable: true, enum: ['a', null] } }, required: ['kind'] } } },
    },
  },
];

export default {
  hostile,
  generated,
  'a-b': names.slice(0, 3),
  a_b: names.slice(3, 6),
  then: hostile.slice(30, 40),
  tools: hostile.slice(40, 60),
  'Promise': hostile.slice(30, 32),
  empty: [],
};
