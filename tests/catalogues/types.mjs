// Every declaration is accepted by the official compiler, strict, as a script would see it.
import fs from 'node:fs';
import path from 'node:path';
import { createRequire } from 'node:module';

export async function types(mcpx, check, catalogue, installed) {
  const ts = createRequire(path.join(installed, 'node_modules/'))('typescript');
  const options = {
    strict: true,
    noEmit: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2023.d.ts'],
    types: [],
    exactOptionalPropertyTypes: true,
    noUncheckedIndexedAccess: true,
  };
  for (const { namespace, tools } of catalogue) {
    const file = path.join(mcpx.dir, `${namespace}.d.ts`);
    fs.writeFileSync(file, await mcpx.cli('types', namespace));
    const program = ts.createProgram([file], options);
    const found = ts.getPreEmitDiagnostics(program);
    const why = found.slice(0, 5).map(one => {
      const at = one.file?.getLineAndCharacterOfPosition(one.start);
      const line = at ? `${path.basename(one.file.fileName)}:${at.line + 1}: ` : '';
      return line + ts.flattenDiagnosticMessageText(one.messageText, ' ');
    });
    check(`${namespace}: types of ${tools.length} tools pass tsc`, found.length === 0, why.join('; '));
  }
}
