// What the servers of the mode `questions` ask, and how they repeat what was answered.

/** The tools: each asks one thing and answers with the reply as JSON. */
export const QUESTIONS = {
  form: {
    method: 'elicitation/create',
    params: {
      mode: 'form',
      message: 'Who are you?',
      requestedSchema: { type: 'object', properties: { name: { type: 'string' } }, required: ['name'] },
    },
  },
  sample: {
    method: 'sampling/createMessage',
    params: { messages: [{ role: 'user', content: { type: 'text', text: 'Two and two?' } }], maxTokens: 10 },
  },
  roots: { method: 'roots/list' },
};

export const TOOLS = Object.keys(QUESTIONS).map(name => ({
  name,
  description: `Asks: ${name}.`,
  inputSchema: { type: 'object' },
}));

export const told = reply => ({ content: [{ type: 'text', text: JSON.stringify(reply) }] });
