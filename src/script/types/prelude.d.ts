/** The MCP servers: tools.<namespace>.<tool>(args). Object.keys(tools), Object.keys(tools.<namespace>) list them. */
declare const tools: Tools;
interface Tools {}

/** The value that the script was given. */
declare const input: any;

/** What is thrown where a tool says that it failed. */
declare class ToolError extends Error {
  constructor(message?: string, options?: { content?: any[]; reason?: string; cause?: unknown });
  /** The content blocks of the tool's error. */
  readonly content?: any[];
  /** Why mcpx itself refused or lost the call; what "outcome_unknown" says may have taken effect. */
  readonly reason?: string;
}

/** Files that the result of the script links to; data that are neither text nor bytes are kept as JSON. Await it. */
declare const artifacts: {
  write(
    name: string,
    data: unknown,
    type?: string,
  ): Promise<{ uri: string; name: string; type: string; size: number }>;
};

/** mcpx itself, as its tools mcpx_search, mcpx_types and mcpx_read. */
declare const mcpx: {
  search(
    args: string | { query: string; namespace?: string; limit?: number },
  ): Promise<
    { namespace: string; tool: string; member: string; signature: string; description: string }[]
  >;
  types(args?: string | { namespace?: string; tools?: string[] }): Promise<string>;
  read(args: string | { uri: string; lines?: string; bytes?: string; pattern?: string }): Promise<any>;
};

declare const console: {
  [level in "debug" | "error" | "group" | "info" | "log" | "trace" | "warn"]: (
    ...values: unknown[]
  ) => void;
} & {
  assert(holds: unknown, ...values: unknown[]): void;
  dir(value: unknown): void;
  groupEnd(): void;
  table(value: unknown): void;
};

declare function setTimeout(run: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function setInterval(run: (...args: any[]) => void, ms?: number, ...args: any[]): number;
declare function clearTimeout(timer?: number): void;
declare function clearInterval(timer?: number): void;
declare function queueMicrotask(run: () => void): void;
declare function structuredClone<T>(value: T): T;

declare class TextEncoder {
  readonly encoding: "utf-8";
  encode(text?: string): Uint8Array;
}
declare class TextDecoder {
  constructor(label?: string, options?: { fatal?: boolean; ignoreBOM?: boolean });
  readonly encoding: "utf-8";
  readonly fatal: boolean;
  readonly ignoreBOM: boolean;
  decode(data?: ArrayBuffer | ArrayBufferView): string;
}
