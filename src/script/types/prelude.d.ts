/** The MCP servers: tools.<namespace>.<tool>(args). */
declare const tools: Tools;
interface Tools {}

/** The value that the script was given. */
declare const input: any;

/** What is thrown where a call fails. */
declare class ToolError extends Error {
  /** The content blocks of the tool's error. */
  readonly content?: any[];
  /** Why mcpx refused or lost the call, where it did: "outcome unknown" may have taken effect. */
  readonly reason?: string;
}

/** Files that the result of the script links to. */
declare const artifacts: {
  write(
    name: string,
    data: string | Uint8Array | ArrayBuffer,
    type?: string,
  ): Promise<{ uri: string; name: string; type: string; size: number }>;
};

/** mcpx itself, as its tools mcpx_search, mcpx_types and mcpx_read. */
declare const mcpx: {
  search(args: { query: string; [key: string]: unknown }): Promise<any>;
  types(args?: { namespace?: string; tools?: string[] }): Promise<string>;
  read(args: { uri: string; lines?: string; bytes?: string; pattern?: string }): Promise<any>;
};

declare const console: {
  debug(...data: unknown[]): void;
  info(...data: unknown[]): void;
  log(...data: unknown[]): void;
  warn(...data: unknown[]): void;
  error(...data: unknown[]): void;
};
