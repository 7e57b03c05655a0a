// What the hosts of the mode `questions` answer and check, for the two TypeScript hosts; answers.py
// does the same. One line a check: "ok CHECK", "FAIL CHECK: why".

export const ANSWERS = {
  form: { action: 'accept', content: { name: 'Ada' } },
  sample: { role: 'assistant', model: 'peer', content: { type: 'text', text: 'four' } },
  roots: { roots: [{ uri: 'file:///work', name: 'work' }] },
};

export const CAPABILITIES = { elicitation: { form: {} }, sampling: {}, roots: {} };

/** mode, url or command and args, from the command line. */
export function order() {
  const [mode, command, ...args] = process.argv.slice(2);
  const url = /^https?:/.test(command) ? new URL(command) : undefined;
  return { mode, url, command, args };
}

/** Whether `actual` has all that `wanted` has. */
const holds = (wanted, actual) =>
  wanted !== null && typeof wanted === 'object'
    ? Object.entries(wanted).every(([key, value]) => holds(value, actual?.[key]))
    : wanted === actual;

async function check(name, body) {
  try {
    await body();
    console.log(`ok ${name}`);
  } catch (error) {
    process.exitCode = 1;
    console.log(`FAIL ${name}: ${error.message}`);
  }
}

/** `host` is { connect(), call(name), close(), asked } with `asked` counting what reached it. */
export async function drive(host) {
  await check('connect', () => host.connect());
  for (const [name, wanted] of Object.entries(ANSWERS)) {
    await check(name, async () => {
      const before = host.asked();
      const result = await host.call(name);
      const text = result.content?.[0]?.text ?? '';
      if (result.isError || !holds(wanted, JSON.parse(text))) throw new Error(text);
      if (host.asked() !== before + 1) throw new Error(`asked ${host.asked() - before} times`);
    });
  }
  await check('close', () => host.close());
}
