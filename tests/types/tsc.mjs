// All declarations of hostile and of common schemas through the official compiler, in strict mode.
//
//   node tests/types/tsc.mjs target/debug/mcpx
//
// TYPESCRIPT is the folder of the compiler's package; without it the one that tests/catalogues/run.sh installs.
//
// Starts a daemon of its own in a temporary folder, with servers that list the tools of schemas.mjs.
import { execFileSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import catalog from './schemas.mjs';

const here = dirname(fileURLToPath(import.meta.url));
const mcpx = resolve(process.argv[2] ?? 'target/debug/mcpx');
const typescript = process.env.TYPESCRIPT ?? join(process.env.CATALOGUES_DIR ?? join(here, '../../target/catalogues'), 'node_modules/typescript');
const folder = mkdtempSync(join(tmpdir(), 'mcpx-types-'));
const config = join(folder, 'config.toml');
const places = { HOME: folder, XDG_RUNTIME_DIR: folder, XDG_STATE_HOME: folder, XDG_CONFIG_HOME: folder };
const run = (...args) =>
  execFileSync(mcpx, ['--config', config, ...args], { env: { ...process.env, ...places }, encoding: 'utf8', maxBuffer: 1 << 28 });

const servers = Object.entries(catalog).map(([name, tools], at) => {
  const file = join(folder, `${at}.json`);
  writeFileSync(file, JSON.stringify(tools));
  const args = [join(here, 'server.mjs'), file];
  return `[servers.${JSON.stringify(name)}]\ncommand = ${JSON.stringify(process.execPath)}\nargs = ${JSON.stringify(args)}\n`;
});
// A busy machine takes its time to start them all.
writeFileSync(config, `[http]\nlisten = ""\n[expose]\nlist_wait = "1m"\n${servers.join('')}`);

let failed = false;
try {
  const started = Date.now();
  const declarations = run('types', '--all');
  const missing = Object.values(catalog).flat().length - (declarations.match(/\): Promise</g)?.length ?? 0);
  console.log(`${declarations.length} bytes in ${Date.now() - started} ms`);
  if (/Never listed yet/.test(declarations) || missing > 0) {
    throw new Error(`tools are missing: ${missing}\n${declarations.slice(-400)}`);
  }
  writeFileSync(join(folder, 'tools.ts'), declarations);
  cpSync(join(here, 'uses.ts'), join(folder, 'uses.ts'));
  const options = { strict: true, exactOptionalPropertyTypes: true, noEmit: true, lib: ['es2023'], target: 'es2023', module: 'esnext', types: [], noUncheckedIndexedAccess: true };
  writeFileSync(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options, files: ['tools.ts', 'uses.ts'] }));
  execFileSync(process.execPath, [join(typescript, 'bin', 'tsc'), '-p', folder], { encoding: 'utf8', stdio: ['ignore', 'pipe', 'pipe'] });
  console.log('accepted');
} catch (error) {
  failed = true;
  console.error(String(error.stdout ?? '').slice(0, 4000) || error);
} finally {
  try {
    run('stop', '--daemon');
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
process.exit(failed ? 1 : 0);
