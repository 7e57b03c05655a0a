// What a script finds, made before it runs. Everything used later is captured here: whatever a script
// does to prototypes and globals changes nothing of what mcpx is told.
//
// Rules for this file: no `for of`, spread or destructuring of arrays (they ask prototypes), no writing
// to arrays (setters on prototypes), objects used as tables have no prototype.
(function (host) {
  "use strict";
  const global = globalThis;
  const { Object, Error, TypeError, RangeError, Promise, Proxy, Reflect, JSON, BigInt, Number, String } = global;
  const { Symbol, Function, WeakMap } = global;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { create, freeze, defineProperty, setPrototypeOf, getOwnPropertyDescriptor, getPrototypeOf } = Object;
  const { parse, stringify, rawJSON } = JSON;
  const { isArray } = global.Array;
  const { isSafeInteger } = Number;
  const stackOf = uncurry(getOwnPropertyDescriptor(Error.prototype, "stack").get);
  const toWellFormed = uncurry(String.prototype.toWellFormed);
  const setPlace = uncurry(WeakMap.prototype.set);
  const placeOf = uncurry(WeakMap.prototype.get);

  const define = (object, name, value, enumerable = true) =>
    defineProperty(object, name, { __proto__: null, value, enumerable, writable: true, configurable: true });

  // --- JSON, with whole numbers of any length ---

  const exact = (key, value) => (typeof value === "bigint" ? rawJSON(`${value}`) : value);
  const toJson = (value) => {
    try {
      return stringify(value);
    } catch (error) {
      // Numbers that are no doubles are the one thing that JSON can say and this refuses.
      return stringify(value, exact);
    }
  };
  const revive = (key, value, context) =>
    typeof value === "number" && !isSafeInteger(value) && whole(context.source) ? BigInt(context.source) : value;
  const whole = (text) => {
    for (let i = text[0] === "-" ? 1 : 0; i < text.length; i++) {
      if (text[i] < "0" || text[i] > "9") return false;
    }
    return true;
  };
  const fromLongJson = (text) => parse(text, revive);

  // --- Errors ---

  class ToolError extends Error {
    constructor(message, options) {
      super(message, options);
      define(this, "name", "ToolError", false);
      if (options && options.content !== undefined) define(this, "content", options.content);
      if (options && options.reason !== undefined) define(this, "reason", options.reason);
    }
  }
  const kinds = { __proto__: null, ToolError, Error, TypeError, RangeError };
  const thrown = (what) => {
    const kind = kinds[what.name] || Error;
    const error = new Error(what.message);
    setPrototypeOf(error, kind.prototype);
    define(error, "name", what.name, false);
    if (what.content !== undefined) define(error, "content", what.content);
    if (what.reason !== undefined) define(error, "reason", what.reason);
    return error;
  };

  // --- Calls ---

  const pending = create(null);
  let made = 0;
  let active = 0;
  let most = 0;
  let atOnce = 0;
  // Those that wait for others to end: a linked list.
  let first = null;
  let last = null;

  const send = (call) => {
    active++;
    pending[call.number] = call;
    host.call(call.number, call.kind, toWellFormed(call.a), toWellFormed(call.b), call.text);
  };
  const call = (kind, a, b, what, text) =>
    new Promise((resolve, reject) => {
      if (made >= most) {
        const error = new Error(
          `${what}: this is call ${most + 1} of the script, and exec.max_calls is ${most}; ` +
            `do the rest in another script, or ask for more at once where the tool can`,
        );
        define(error, "limit", "exec.max_calls", false);
        throw error;
      }
      made++;
      const place = new Error("").stack;
      const entry = { __proto__: null, number: made, kind, a, b, text, resolve, reject, place, next: null };
      if (active < atOnce) send(entry);
      else if (last === null) first = last = entry;
      else last = last.next = entry;
    });
  const settle = (number, well, value) => {
    const entry = pending[number];
    if (entry === undefined) return;
    delete pending[number];
    active--;
    if (first !== null) {
      const next = first;
      first = next.next;
      if (first === null) last = null;
      send(next);
    }
    if (well) entry.resolve(value);
    else {
      const error = thrown(value);
      setPlace(places, error, entry.place);
      entry.reject(error);
    }
  };
  const places = new WeakMap();

  const argumentsOf = (what, args) => {
    if (args === undefined) return "{}";
    let text;
    if (typeof args === "object" && args !== null && !isArray(args)) {
      try {
        text = toJson(args);
      } catch (error) {
        const reason = error === null ? "out of memory" : error.message;
        throw new TypeError(`${what}: the arguments have no JSON form: ${reason}`);
      }
    }
    if (typeof text !== "string" || text[0] !== "{") {
      throw new TypeError(`${what} takes one object with the arguments by name`);
    }
    return text;
  };

  // --- tools, mcpx, artifacts ---

  const reserved = {
    __proto__: null, then: 1, toString: 1, valueOf: 1, constructor: 1, toJSON: 1, ["__proto__"]: 1,
  };
  const table = (make) => {
    const known = create(null);
    const get = (target, name) => {
      if (typeof name !== "string" || reserved[name]) return undefined;
      return (known[name] ??= make(name));
    };
    return new Proxy(freeze(create(null)), freeze({ __proto__: null, get }));
  };
  const tools = table((namespace) =>
    table((tool) => async (args) => {
      const what = `tools.${namespace}.${tool}`;
      return call("tool", namespace, tool, what, argumentsOf(what, args));
    }),
  );
  const own = (name, key) => async (args) => {
    const what = `mcpx.${name}`;
    const given = typeof args === "string" ? { __proto__: null, [key]: args } : args;
    return call("own", name, "", what, argumentsOf(what, given));
  };
  const mcpx = freeze({ search: own("search", "query"), types: own("types", "namespace"), read: own("read", "uri") });
  const artifacts = freeze({
    write: async (name, data, type) => {
      const what = "artifacts.write";
      if (typeof name !== "string") throw new TypeError(`${what}: the name is a text`);
      const args = { __proto__: null, name };
      if (type !== undefined) args.type = type;
      if (typeof data === "string") args.text = data;
      else {
        args.text = toJson(data);
        args.type ??= "application/json";
        if (args.text === undefined) throw new TypeError(`${what}: the data have no JSON form`);
      }
      return call("artifact", "", "", what, stringify(args));
    },
  });

  const expose = (name, value) => define(global, name, value, false);
  expose("tools", tools);
  expose("mcpx", mcpx);
  expose("artifacts", artifacts);
  expose("ToolError", ToolError);

  // --- console ---

  const text = (value) => {
    if (typeof value === "string") return value;
    try {
      return `${toJson(value)}`;
    } catch {
      return "?";
    }
  };
  const write = (level) => (...values) => {
    let line = "";
    for (let i = 0; i < values.length; i++) line += (i ? " " : "") + text(values[i]);
    host.log(level, toWellFormed(line));
  };
  expose("console", {
    log: write("log"), info: write("info"), warn: write("warn"), error: write("error"), debug: write("debug"),
  });

  // --- The run ---

  const begin = (limits, input) => {
    most = limits.calls;
    atOnce = limits.concurrent;
    expose("input", input);
  };
  const main = async (script) => {
    const value = await script();
    return typeof value === "function" ? value(global.input) : value;
  };
  const describe = (error) => {
    const told = { __proto__: null, name: "Error", message: "", stack: "" };
    if (error === null) return "null";
    try {
      if (typeof error === "object") {
        told.name = `${error.name ?? "Error"}`;
        told.message = `${error.message ?? text(error)}`;
        told.stack = placeOf(places, error) ?? stackOf(error);
        if (error.content !== undefined) told.content = error.content;
        if (typeof error.limit === "string") told.limit = error.limit;
      } else told.message = `${error}`;
    } catch {}
    return stringify(told);
  };
  const result = (value) => {
    try {
      return toJson(value);
    } catch (error) {
      if (error instanceof TypeError) throw new TypeError(`the result has no JSON form: ${error.message}`);
      throw error;
    }
  };
  const fire = () => {};
  return { __proto__: null, fire, begin, main, settle, describe, result, fromLongJson };
});
