// What a script finds, made before it runs. Everything used later is captured here: whatever a script
// does to prototypes and globals changes nothing of what mcpx is told.
//
// Rules for these files: no `for of`, no spread or destructuring of arrays (they ask prototypes); no
// writing to arrays (prototypes may have setters); no methods of values, only captured functions; objects
// that are tables or descriptors have no prototype.
(function (host, makeJson, makeInspect, makeWeb) {
  const global = globalThis;
  const { DOMException, Error, EvalError, Function, JSON, Map, Object, Promise, Proxy } = global;
  const { RangeError, ReferenceError, String, SyntaxError, TypeError, URIError, WeakMap } = global;
  const uncurry = Function.prototype.bind.bind(Function.prototype.call);
  const { create, defineProperty, freeze, getOwnPropertyDescriptor, getPrototypeOf, setPrototypeOf } = Object;
  const { parse, stringify } = JSON;
  const { isArray } = global.Array;
  const { slice, toWellFormed } = String.prototype;
  const cut = uncurry(slice);
  const copied = uncurry(global.Array.prototype.slice);
  const wellFormed = uncurry(toWellFormed);
  const placeOf = uncurry(WeakMap.prototype.get);
  const setPlace = uncurry(WeakMap.prototype.set);
  const mapSet = uncurry(Map.prototype.set);
  const mapDelete = uncurry(Map.prototype.delete);
  const mapEach = uncurry(Map.prototype.forEach);
  const stack = getOwnPropertyDescriptor(Error.prototype, "stack");
  const stackOf = uncurry(stack.get);

  const define = (object, name, value, enumerable = false) =>
    defineProperty(object, name, { __proto__: null, value, enumerable, writable: true, configurable: true });
  const expose = (name, value) => define(global, name, value);

  const { fromLongJson, jsonOf } = makeJson({ define, uncurry });

  // --- Errors ---

  // Its `content` is for who asks for it: the message has its text already.
  class ToolError extends Error {
    constructor(message, options) {
      super(message, options);
      define(this, "name", "ToolError");
      if (options?.content !== undefined) define(this, "content", options.content);
      if (options?.reason !== undefined) define(this, "reason", options.reason, true);
    }
  }
  const kinds = {
    __proto__: null, Error, EvalError, RangeError, ReferenceError, SyntaxError, ToolError, TypeError, URIError,
  };
  const errorFrom = (thrown) => {
    const error = new Error(thrown.message);
    setPrototypeOf(error, (kinds[thrown.name] ?? Error).prototype);
    define(error, "name", thrown.name);
    if (thrown.content !== undefined) define(error, "content", thrown.content);
    if (thrown.reason !== undefined) define(error, "reason", thrown.reason, true);
    return error;
  };
  // Where a call stands whose error was made when its answer came.
  const places = new WeakMap();
  // No error to the engine, but one to everybody else.
  const domName = uncurry(getOwnPropertyDescriptor(DOMException.prototype, "name").get);
  const domStack = (error) => {
    try {
      domName(error);
    } catch {
      return undefined;
    }
    const found = getOwnPropertyDescriptor(error, "stack")?.value;
    return typeof found === "string" ? found : "";
  };
  const rawStack = (error) => placeOf(places, error) ?? stackOf(error) ?? domStack(error);
  defineProperty(Error.prototype, "stack", {
    __proto__: null,
    get() {
      const raw = rawStack(this);
      return typeof raw === "string" ? host.trace(wellFormed(raw)) : raw;
    },
    set: stack.set,
    enumerable: false,
    configurable: true,
  });

  // --- Calls ---

  // By number: what was sent and is not answered.
  const pending = create(null);
  let made = 0;
  let active = 0;
  let most = 0;
  let atOnce = 0;
  // Those that wait for others to end, a linked list.
  let first = null;
  let last = null;

  const send = (entry) => {
    active++;
    pending[entry.number] = entry;
    host.call(entry.number, entry.kind, entry.a, entry.b, entry.text);
    entry.text = "";
  };
  // What goes wrong before the call is made rejects its promise as well.
  const call = (kind, a, b, what, text) =>
    new Promise((resolve, reject) => {
      const written = text();
      if (made >= most) {
        const error = new Error(
          `${what}: this would be call ${most + 1} of the script, and exec.max_calls is ${most}: ` +
            "do the rest in another script, or ask for more in one call where the tool can",
        );
        define(error, "limit", "exec.max_calls");
        throw error;
      }
      const entry = {
        __proto__: null, number: ++made, kind, a, b, text: written, resolve, reject,
        place: stackOf(new Error("")), next: null,
      };
      if (active < atOnce) send(entry);
      else if (last === null) first = last = entry;
      else last = last.next = entry;
    });
  // How: "value", "thrown" (a record), or "unread" (an error of our own).
  const settle = (number, how, value) => {
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
    if (how === "value") return entry.resolve(value);
    const error = how === "thrown" ? errorFrom(value) : value;
    if (typeof error === "object" && error !== null) setPlace(places, error, entry.place);
    entry.reject(error);
  };
  const argumentsOf = (what, args, count) => {
    if (count === 0 || args === undefined) return "{}";
    const fits = count === 1 && typeof args === "object" && args !== null && !isArray(args);
    const text = fits ? jsonOf(args, `${what}: the arguments have`) : undefined;
    if (typeof text !== "string" || text[0] !== "{") {
      throw new TypeError(`${what} takes one object, with the arguments by name`);
    }
    return text;
  };

  // --- tools, mcpx, artifacts ---

  // Names and what stands for each. An owner's own name comes before what others are called after a dot.
  const index = (list, inner) => {
    const by = create(null);
    const names = [];
    for (let i = 0; i < list.length; i++) {
      define(names, i, list[i].name, true);
      by[list[i].name] = inner(list[i]);
    }
    for (let i = 0; i < list.length; i++) by[list[i].member] ??= by[list[i].name];
    return { __proto__: null, by, names };
  };
  // What there is, asked for once, where a script looks around.
  let offered;
  const look = () => (offered ??= index(parse(host.offered()), (server) => index(server.tools, () => 1)));
  // What is asked of every object, whether it has it or not: it is a tool only where one is called so.
  const special = {
    __proto__: null, then: 1, toString: 1, valueOf: 1, constructor: 1, toJSON: 1, ["__proto__"]: 1,
  };
  const no = () => false;
  const table = (make, look, toJSON) => {
    const known = create(null);
    const made = (name) => (known[name] ??= make(wellFormed(name)));
    const has = (target, name) => typeof name === "string" && look()?.by[name] !== undefined;
    const listed = () => look()?.names ?? [];
    const get = (target, name) => {
      if (typeof name !== "string") return undefined;
      if (!special[name] || has(target, name)) return made(name);
      return name === "toJSON" ? toJSON : undefined;
    };
    const property = (name) => ({ __proto__: null, value: made(name), enumerable: true, configurable: true });
    return new Proxy(create(null), freeze({
      __proto__: null, get, has,
      ownKeys: listed,
      getOwnPropertyDescriptor: (target, name) => (has(target, name) ? property(name) : undefined),
      set: no, defineProperty: no, deleteProperty: no, setPrototypeOf: no, preventExtensions: no,
    }));
  };
  const toolsOf = (namespace) => {
    const own = () => look().by[namespace];
    const make = (tool) => {
      const what = `tools.${namespace}.${tool}`;
      return function (args) {
        // Whoever awaits the namespace itself is told so, instead of waiting for ever.
        if (tool === "then" && typeof args === "function") throw new TypeError(`${what} is a tool: await a call of it`);
        return call("tool", namespace, tool, what, () => argumentsOf(what, args, arguments.length));
      };
    };
    // Functions have no JSON form: a namespace is the list of its tools.
    return table(make, own, () => copied(own()?.names ?? []));
  };
  const tools = table(toolsOf, look);
  const own = (name, key) => {
    const what = `mcpx.${name}`;
    return function (args) {
      const given = typeof args === "string" ? { __proto__: null, [key]: args } : args;
      return call("own", name, "", what, () => argumentsOf(what, given, arguments.length));
    };
  };
  const mcpx = { search: own("search", "query"), types: own("types", "namespace"), read: own("read", "uri") };
  const web = makeWeb({ host, define, expose, uncurry, wellFormed });
  const artifactOf = (what, name, data, type) => {
    if (typeof name !== "string") throw new TypeError(`${what}(name, data, type): the name must be a string`);
    if (type !== undefined && typeof type !== "string") throw new TypeError(`${what}: the type must be a string`);
    const bytes = web.bytesOf(data);
    const args = { __proto__: null, name, type };
    if (typeof data === "string") args.text = data;
    else if (bytes !== undefined) args.base64 = web.base64Of(bytes);
    else {
      args.text = jsonOf(data, `${what}: the data have`);
      args.type ??= "application/json";
      if (args.text === undefined) throw new TypeError(`${what}: there are no data`);
    }
    return stringify(args);
  };
  const write = (name, data, type) => {
    const what = "artifacts.write";
    return call("artifact", "", "", what, () => artifactOf(what, name, data, type));
  };
  expose("tools", tools);
  expose("mcpx", freeze(mcpx));
  expose("artifacts", freeze({ write }));
  expose("ToolError", ToolError);
  const inspect = makeInspect({ host, expose, uncurry, wellFormed, cut, rawStack });

  // --- What scripts do not get ---

  const refuse = () => {
    throw new EvalError("code from text is not available in scripts");
  };
  const NoFunction = function Function() {
    refuse();
  };
  defineProperty(NoFunction, "prototype", { __proto__: null, value: Function.prototype, writable: false });
  const makers = [function () {}, async function () {}, function* () {}, async function* () {}];
  for (let i = 0; i < makers.length; i++) define(getPrototypeOf(makers[i]), "constructor", NoFunction);
  expose("Function", NoFunction);
  expose("eval", function () {
    refuse();
  });
  delete global.SharedArrayBuffer;
  delete global.Atomics;
  delete global.performance;
  delete Error.prepareStackTrace;
  delete Error.stackTraceLimit;

  // --- The run ---

  const begin = (limits, input) => {
    most = limits.calls;
    atOnce = limits.concurrent;
    expose("input", input);
  };
  // The box has no prototype, and so no `then`. A function is the script's main function.
  const main = async (script, input) => {
    try {
      let value = await script();
      if (typeof value === "function") value = await value(input);
      return { __proto__: null, well: true, value };
    } catch (error) {
      return { __proto__: null, well: false, value: error };
    }
  };
  const result = (value) => jsonOf(value, "the result has");

  // Promises that were rejected and nobody has handled so far, with the reasons.
  const unhandled = new Map();
  const rejected = (promise, reason, handled) => {
    if (handled) mapDelete(unhandled, promise);
    else mapSet(unhandled, promise, reason);
  };
  // How many there are, and the first of them.
  const leftovers = (most) => {
    let count = 0;
    let texts = "";
    mapEach(unhandled, (reason) => {
      if (count < most) texts += (texts && ",") + describe(reason);
      count++;
    });
    return `{"count":${count},"first":[${texts}]}`;
  };

  const LONGEST = 4000;
  const clipped = (text, longest) =>
    text.length > longest ? `${cut(text, 0, longest)}… (${text.length} characters)` : text;
  // What was thrown, as JSON. Put together from strings: for objects the engine uses arrays, which ask
  // their prototype.
  const describe = (error) => {
    if (error === null) return "null";
    let name = "Error";
    let message = "";
    let stack, limit, content;
    try {
      stack = typeof error === "object" ? rawStack(error) : undefined;
      if (stack === undefined) message = `${inspect.text(error)} was thrown`;
      else {
        name = `${error.name}`;
        message = inspect.messageOf(error);
        limit = error.limit;
        content = isArray(error.content) ? stringify(error.content) : undefined;
      }
    } catch {
      message ||= "something that cannot be read was thrown";
    }
    const member = (key, value) =>
      typeof value === "string" ? `,"${key}":${stringify(wellFormed(value))}` : "";
    return (
      `{"name":${stringify(wellFormed(clipped(name, 100)))}` +
      member("message", clipped(message, LONGEST)) + member("stack", stack) + member("limit", limit) +
      (content === undefined ? "}" : `,"content":${content}}`)
    );
  };

  return {
    __proto__: null, begin, describe, fire: web.fire, fromLongJson, leftovers, main, rejected, result, settle,
  };
});
