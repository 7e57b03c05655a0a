// The servers, how each is started, and what it must not reach: everything is kept in one folder, the
// credentials are made up, browsers are where none is.
import path from 'node:path';

const offline = path.join(import.meta.dirname, 'offline.cjs');

/** name → { command, env, cwd }, for servers that may write into `dir` and nowhere else. */
export function servers(installed, dir) {
  const node = (name, ...args) => [path.join(installed, 'node_modules/.bin', name), ...args];
  const python = (name, ...args) => [path.join(installed, 'venv/bin', name), ...args];
  const server = (command, env = {}) => ({
    command,
    cwd: dir,
    env: { HOME: dir, NODE_OPTIONS: `--require ${offline}`, ...env },
  });
  return {
    brave: server(node('mcp-server-brave-search'), { BRAVE_API_KEY: 'none' }),
    context7: server(node('context7-mcp')),
    everything: server(node('mcp-server-everything')),
    fetch: server(python('mcp-server-fetch', '--proxy-url', 'http://127.0.0.1:9')),
    filesystem: server(node('mcp-server-filesystem', dir)),
    firecrawl: server(node('firecrawl-mcp'), { FIRECRAWL_API_KEY: 'fc-none' }),
    git: server(python('mcp-server-git')),
    github: server(node('mcp-server-github'), { GITHUB_PERSONAL_ACCESS_TOKEN: 'none' }),
    gitlab: server(node('mcp-server-gitlab'), { GITLAB_PERSONAL_ACCESS_TOKEN: 'none' }),
    kubernetes: server(node('mcp-server-kubernetes'), { KUBECONFIG: path.join(dir, 'kube') }),
    maps: server(node('mcp-server-google-maps'), { GOOGLE_MAPS_API_KEY: 'none' }),
    memory: server(node('mcp-server-memory'), { MEMORY_FILE_PATH: path.join(dir, 'memory.json') }),
    notion: server(node('notion-mcp-server'), { NOTION_TOKEN: 'ntn_none' }),
    playwright: server(
      node('playwright-mcp', '--headless', '--executable-path', path.join(dir, 'no-browser')),
    ),
    puppeteer: server(node('mcp-server-puppeteer'), {
      PUPPETEER_EXECUTABLE_PATH: path.join(dir, 'no-browser'),
    }),
    slack: server(node('mcp-server-slack'), { SLACK_BOT_TOKEN: 'none', SLACK_TEAM_ID: 'none' }),
    tavily: server(node('tavily-mcp'), { TAVILY_API_KEY: 'tvly-none' }),
    thinking: server(node('mcp-server-sequential-thinking')),
    time: server(python('mcp-server-time', '--local-timezone', 'UTC')),
  };
}

/** A configuration of mcpx: settings by name, and these servers. */
export function configuration(settings, servers) {
  const lines = [];
  for (const [key, value] of Object.entries(settings)) lines.push(`${key} = ${JSON.stringify(value)}`);
  for (const [name, { command, env, cwd }] of Object.entries(servers)) {
    lines.push('', `[servers.${JSON.stringify(name)}]`, `command = ${JSON.stringify(command)}`);
    lines.push(`cwd = ${JSON.stringify(cwd)}`);
    const pairs = Object.entries(env).map(([key, value]) => `${key} = ${JSON.stringify(value)}`);
    lines.push(`env = { ${pairs.join(', ')} }`);
  }
  return `${lines.join('\n')}\n`;
}
