// What may fail, and how much a scenario must check: expected.json and baseline.json.
//
// expected.json is a list of { cells, runs, scenarios, why } where `*` stands for any text. Each
// scenario that an entry names in a run that was made must fail there: one that passes makes the
// entry stale, and a stale entry fails the whole. With `passes: N` the scenario must pass instead,
// with N checks, fewer than in baseline.json.
//
// baseline.json holds the passed checks of the fixture (server leg) and of the kit's driver (client
// leg) without mcpx, by run and scenario. A scenario that passes with fewer has skipped something.
import fs from 'node:fs';
import path from 'node:path';

const read = name =>
  JSON.parse(fs.readFileSync(path.join(import.meta.dirname, name), 'utf8'));

const fits = (patterns, text) =>
  patterns.some(pattern => {
    const parts = pattern.split('*').map(part => part.replace(/[.+?^${}()|[\]\\]/g, '\\$&'));
    return new RegExp(`^${parts.join('.*')}$`).test(text);
  });

export class Expected {
  entries = read('expected.json').map(entry => ({ ...entry, used: 0 }));
  baseline = read('baseline.json');

  /** The entry for a scenario, if there is one; it counts as used. */
  entry(cell, run, scenario) {
    const found = this.entries.filter(
      entry => fits(entry.cells, cell) && fits(entry.runs, run) && fits(entry.scenarios, scenario),
    );
    if (found.length > 1) throw new Error(`two entries for ${scenario} at ${run} in ${cell}`);
    found.forEach(entry => (entry.used += 1));
    return found[0];
  }

  /** Scenarios that a run must have. */
  scenarios(run) {
    return Object.keys(this.baseline[run] ?? {});
  }

  /**
   * Judges one scenario: { verdict: 'pass' | 'known' | 'bad', why }. `strict` counts warnings as
   * failures, as the suite does on the client leg.
   */
  judge({ cell, run, scenario, counts, strict, broken }) {
    const known = this.entry(cell, run, scenario);
    const failure = whyFailed(counts, strict, broken);
    if (failure) {
      return known && known.passes === undefined
        ? { verdict: 'known', why: known.why }
        : { verdict: 'bad', why: failure };
    }
    const floor = known?.passes ?? this.baseline[run]?.[scenario] ?? 1;
    if (known && known.passes === undefined) {
      return { verdict: 'bad', why: `it passes: its entry in expected.json is stale (${known.why})` };
    }
    if (counts.passed < floor) {
      return { verdict: 'bad', why: `only ${counts.passed} checks of ${floor}` };
    }
    if (known && counts.passed > floor) {
      return { verdict: 'bad', why: `${counts.passed} checks: its entry says ${floor} and is stale` };
    }
    return { verdict: 'pass' };
  }

  /** Entries that nothing in a whole run needed. */
  unused() {
    return this.entries.filter(entry => entry.used === 0);
  }
}

function whyFailed(counts, strict, broken) {
  if (!counts) return 'no result: it never came to its end';
  if (counts.failed > 0 || (strict && counts.warned > 0)) return counts.why.join(' | ').slice(0, 600);
  return broken;
}
