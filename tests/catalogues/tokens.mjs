// What definitions and instructions cost a model, counted by its own tokenizer: in core mode beside the
// same servers passed through.
import fs from 'node:fs';
import path from 'node:path';

const MOST = 1500;
const PAGE = path.join(import.meta.dirname, '../../docs/context.md');
const README = path.join(import.meta.dirname, '../../README.md');

/** So many servers: all there are, again under other names. */
function repeated(servers, count) {
  const entries = Object.entries(servers);
  const many = Array.from({ length: count }, (_, at) => {
    const [name, server] = entries[at % entries.length];
    const round = Math.floor(at / entries.length);
    return [round === 0 ? name : `${name}${round + 1}`, server];
  });
  return Object.fromEntries(many);
}

export async function tokens(mcpx, check, settings, servers, installed) {
  const tokenizer = path.join(installed, 'node_modules/gpt-tokenizer/esm/encoding/o200k_base.js');
  const { countTokens } = await import(tokenizer);
  const rows = [];
  for (const count of [1, 10, 50]) {
    const row = { count };
    for (const mode of ['core', 'passthrough']) {
      // The first is the one with the most common catalogue.
      const { github, ...rest } = servers;
      mcpx.configure({ ...settings, 'expose.mode': mode }, repeated({ github, ...rest }, count));
      await mcpx.ask('POST', '/v1/reload');
      row[mode] = await mcpx.host(async (request, opened) => {
        const { tools } = await request('tools/list', {});
        row[`${mode}Tools`] = tools.length;
        return countTokens(JSON.stringify(tools)) + countTokens(opened.instructions ?? '');
      });
    }
    rows.push(row);
  }
  for (const row of rows) {
    const passed = `${row.passthrough} tokens of ${row.passthroughTools} tools`;
    console.log(`   ${row.count} servers: core ${row.core} tokens of ${row.coreTools} tools; passed through ${passed}`);
  }
  const core = rows.map(row => row.core);
  const grows = core.some((tokens, row) => row > 0 && tokens > core[row - 1]);
  check('core mode does not grow with the servers', !grows, core.join(', '));
  check(`core mode is under ${MOST} tokens`, core[0] < MOST, String(core[0]));
  const documented = fs.readFileSync(PAGE, 'utf8').match(/^\| core mode \| ([\d,]+) \|/m)?.[1];
  const figure = Number(documented?.replaceAll(',', ''));
  check('docs/context.md promises no less than the truth', figure >= core[0], `${documented} for ${core[0]}`);
  check('docs/context.md is not far off', figure - core[0] < MOST / 10, `${documented} for ${core[0]}`);
  const short = fs.readFileSync(README, 'utf8').match(/^\| ten tools \| ([\d,]+) \|/m)?.[1];
  check('README.md says the same', short === documented, `${short}, not ${documented}`);
  mcpx.configure(settings, servers);
  await mcpx.ask('POST', '/v1/reload');
}
