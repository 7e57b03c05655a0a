// mcpx in front of published servers. Started by run.sh.
import { execFileSync } from 'node:child_process';
import fs from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { calls } from './calls.mjs';
import { Mcpx } from './mcpx.mjs';
import { searches } from './searches.mjs';
import { servers as all } from './servers.mjs';
import { tokens } from './tokens.mjs';
import { types } from './types.mjs';

const installed = process.env.CATALOGUES_DIR;
const parts = new Set(process.argv.slice(2));
const wanted = part => parts.size === 0 || parts.has(part);
const started = Date.now();

let failed = 0;
/** Says how a check went. */
function check(name, good, why) {
  if (!good) failed += 1;
  console.log(good ? `ok ${name}` : `FAIL ${name}: ${why}`);
}
const stage = name => console.log(`-- ${name} (after ${Math.round((Date.now() - started) / 1000)} s)`);

const dir = fs.realpathSync(fs.mkdtempSync(path.join(os.tmpdir(), 'mcpx-catalogues-')));
const home = path.join(dir, 'home');
fs.mkdirSync(home);
execFileSync('git', ['init', '--quiet', home]);
const kube = { apiVersion: 'v1', kind: 'Config', 'current-context': 'none' };
kube.clusters = [{ name: 'none', cluster: { server: 'http://127.0.0.1:9' } }];
kube.contexts = [{ name: 'none', context: { cluster: 'none', user: 'none' } }];
kube.users = [{ name: 'none', user: {} }];
fs.writeFileSync(path.join(home, 'kube'), JSON.stringify(kube));

/** All servers with their tools; again where a busy machine did not start all of them in time. */
async function listed() {
  for (let tries = 1; ; tries += 1) {
    const { namespaces } = await mcpx.ask('GET', '/v1/tools');
    if (tries === 5 || namespaces.every(of => of.listing !== 'never')) return namespaces;
  }
}

const servers = all(installed, home);
const settings = {
  'http.listen': '',
  'expose.list_wait': '1m',
  'upstream.list_parallel': 4,
  'pool.idle_timeout': '1m',
  'cli.answer_timeout': '2m',
};
const mcpx = new Mcpx(process.env.MCPX, dir, settings, servers);
for (const signal of ['SIGINT', 'SIGTERM']) {
  process.on(signal, () => {
    // It ends every server before it ends itself.
    mcpx.daemon?.kill();
    process.exit(1);
  });
}
try {
  await mcpx.start();
  stage(`listing ${Object.keys(servers).length} servers`);
  const namespaces = await listed();
  for (const { namespace, listing, tools, reason } of namespaces) {
    check(`${namespace}: ${tools.length} tools`, listing === 'whole' && tools.length > 0, `${listing}: ${reason}`);
  }
  for (const [part, run] of Object.entries({
    types: () => types(mcpx, check, namespaces, installed),
    search: () => searches(mcpx, check, namespaces),
    calls: () => calls(mcpx, check, namespaces, home),
    tokens: () => tokens(mcpx, check, settings, servers, installed),
  })) {
    if (!wanted(part)) continue;
    stage(part);
    await run();
  }
} catch (error) {
  check('run', false, error.stack);
} finally {
  await mcpx.end();
  fs.rmSync(dir, { recursive: true, force: true });
}
stage(failed ? `${failed} FAILED` : 'all well');
process.exit(failed ? 1 : 0);
