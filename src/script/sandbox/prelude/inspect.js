// `console`, and how values look in it: like a short `util.inspect`.
(function ({ host, expose, uncurry, wellFormed, cut, rawStack }) {
  const global = globalThis;
  const { Object, String, Symbol, Map, Set, Date, RegExp, Error } = global;
  const { getOwnPropertyDescriptor, getPrototypeOf, keys, is } = Object;
  const { isArray } = global.Array;
  const { stringify } = global.JSON;
  const getter = (object, name) => uncurry(getOwnPropertyDescriptor(object, name).get);
  const describeSymbol = uncurry(Symbol.prototype.toString);
  const sizeOfMap = getter(Map.prototype, "size");
  const sizeOfSet = getter(Set.prototype, "size");
  const eachOfMap = uncurry(Map.prototype.forEach);
  const eachOfSet = uncurry(Set.prototype.forEach);
  const timeOf = uncurry(Date.prototype.getTime);
  const isoOf = uncurry(Date.prototype.toISOString);
  const sourceOf = getter(RegExp.prototype, "source");
  const textOfRegExp = uncurry(RegExp.prototype.toString);
  const typedName = getter(getPrototypeOf(global.Uint8Array.prototype), Symbol.toStringTag);
  const typedLength = getter(getPrototypeOf(global.Uint8Array.prototype), "length");
  const bufferLength = getter(global.ArrayBuffer.prototype, "byteLength");
  const messageOf = (error) => {
    const errors = error.errors;
    let text = `${error.message}`;
    if (isArray(errors) && errors.length > 0) {
      text += `${text && " "}(the first of ${errors.length}: ${errors[0]?.message})`;
    }
    return text;
  };

  // How much of a value is shown.
  const DEEPEST = 6;
  const MOST = 100;

  // How many more characters there is room for.
  let room = 0;
  const spend = (text) => {
    if (text.length > room) text = `${cut(text, 0, room > 0 ? room : 0)}…`;
    room -= text.length;
    return text;
  };
  const attempt = (brand, value) => {
    try {
      return brand(value);
    } catch {
      return undefined;
    }
  };

  const list = (open, close, count, at) => {
    let text = open;
    for (let i = 0; i < count && i < MOST && room > 0; i++) text += (i ? ", " : "") + at(i);
    if (count > MOST) text += `, … ${count - MOST} more`;
    return text + close;
  };
  const entries = (open, each, value, size, show) => {
    let text = open;
    let i = 0;
    each(value, (item, key) => {
      if (i < MOST && room > 0) text += (i ? ", " : "") + show(item, key);
      i++;
    });
    return `${text}${size > MOST ? `, … ${size - MOST} more` : ""}}`;
  };
  const isPlainKey = (key) => {
    for (let i = 0; i < key.length; i++) {
      const c = key[i];
      const letter = (c >= "a" && c <= "z") || (c >= "A" && c <= "Z") || c === "_" || c === "$";
      if (!letter && (i === 0 || c < "0" || c > "9")) return false;
    }
    return key.length > 0;
  };
  const members = (value, names, above) =>
    list("{", "}", names.length, (i) => {
      const name = names[i];
      const found = getOwnPropertyDescriptor(value, name);
      const shown = found?.get || found?.set ? "[Getter]" : show(found?.value, above, true);
      return spend(`${isPlainKey(name) ? name : stringify(name)}: `) + shown;
    });
  const nameOf = (value) => {
    const found = getOwnPropertyDescriptor(value, "name")?.value;
    return typeof found === "string" ? found : "";
  };
  const ofError = (value, above) => {
    const where = host.place(wellFormed(`${rawStack(value)}`));
    let text = spend(`${value.name}: ${messageOf(value)}${where === "" ? "" : ` (${where})`}`);
    const names = keys(value);
    if (names.length > 0) text += ` ${members(value, names, above)}`;
    const cause = getOwnPropertyDescriptor(value, "cause");
    return cause === undefined ? text : `${text} [cause]: ${show(cause.value, above, true)}`;
  };
  const isIn = (value, above) => {
    for (let one = above; one !== null; one = one.above) if (one.value === value) return true;
    return false;
  };
  const ofObject = (value, above) => {
    if (isIn(value, above)) return spend("[Circular]");
    const depth = above === null ? 1 : above.depth + 1;
    const self = { __proto__: null, value, above, depth };
    const inner = (item) => show(item, self, true);
    if (typeof value === "function") return spend(`[Function: ${nameOf(value) || "anonymous"}]`);
    if (rawStack(value) !== undefined) return ofError(value, self);
    const promise = host.promise(value);
    if (promise !== "") return spend(`Promise {<${promise}>}`);
    const array = isArray(value);
    if (depth > DEEPEST) return spend(array ? "[Array]" : "[Object]");
    if (array) return list("[", "]", value.length, (i) => inner(value[i]));
    const typed = typedName(value);
    if (typed !== undefined) {
      const length = typedLength(value);
      return list(`${typed}(${length}) [`, "]", length, (i) => inner(value[i]));
    }
    const mapped = attempt(sizeOfMap, value);
    if (mapped !== undefined) {
      return entries(`Map(${mapped}) {`, eachOfMap, value, mapped, (item, key) => `${inner(key)} => ${inner(item)}`);
    }
    const set = attempt(sizeOfSet, value);
    if (set !== undefined) return entries(`Set(${set}) {`, eachOfSet, value, set, inner);
    const time = attempt(timeOf, value);
    if (time !== undefined) return spend(is(time, NaN) ? "Invalid Date" : isoOf(value));
    if (attempt(sourceOf, value) !== undefined) return spend(textOfRegExp(value));
    const bytes = attempt(bufferLength, value);
    if (bytes !== undefined) return spend(`ArrayBuffer(${bytes})`);
    const maker = getOwnPropertyDescriptor(getPrototypeOf(value) ?? {}, "constructor")?.value;
    const name = typeof maker === "function" ? nameOf(maker) : "";
    const prefix = name === "" || name === "Object" ? "" : `${name} `;
    return prefix + members(value, keys(value), self);
  };
  const show = (value, above, quoted) => {
    if (room <= 0) return "";
    switch (typeof value) {
      case "string":
        // What does not fit is not worth being quoted.
        return spend(quoted ? stringify(value.length > room ? cut(value, 0, room) : value) : value);
      case "bigint":
        return spend(`${value}n`);
      case "symbol":
        return spend(describeSymbol(value));
      case "object":
      case "function":
        if (value === null) return spend("null");
        try {
          return ofObject(value, above);
        } catch {
          return spend("[unreadable]");
        }
      default:
        return spend(is(value, -0) ? "-0" : `${value}`);
    }
  };

  // `%s` and the like in the first text; a linked pair of the text and how many values it took.
  const formatted = (values) => {
    const pattern = values[0];
    let text = "";
    let used = 1;
    for (let i = 0; i < pattern.length; i++) {
      const kind = pattern[i] === "%" ? pattern[i + 1] : undefined;
      const takes = kind === "s" || kind === "d" || kind === "i" || kind === "f" || kind === "j" || kind === "o" || kind === "O";
      if (kind === "%") {
        text += "%";
        i++;
      } else if (takes && used < values.length) {
        text += show(values[used++], null, false);
        i++;
      } else text += pattern[i];
    }
    return { __proto__: null, text: spend(text), used };
  };
  const hasPattern = (text) => {
    for (let i = 0; i + 1 < text.length && i < 1000; i++) if (text[i] === "%") return true;
    return false;
  };
  const say = (level, values) => {
    room = host.room();
    if (room <= 0) return host.drop();
    let text = "";
    let i = 0;
    if (values.length > 1 && typeof values[0] === "string" && hasPattern(values[0])) {
      const head = formatted(values);
      text = head.text;
      i = head.used;
    }
    for (; i < values.length; i++) text += (i ? " " : "") + show(values[i], null, false);
    host.log(level, wellFormed(text));
  };
  const at = (level) => (...values) => say(level, values);
  const console = {
    log: at("log"), info: at("info"), warn: at("warn"), error: at("error"), debug: at("debug"),
    trace: at("debug"), dir: (value) => say("log", [value]), table: (value) => say("log", [value]),
    group: at("log"), groupEnd() {},
    assert(holds, ...values) {
      if (!holds) say("error", ["Assertion failed:", inspected(values)]);
    },
  };
  const inspected = (values) => {
    let all = "";
    for (let i = 0; i < values.length; i++) all += (i ? " " : "") + show(values[i], null, false);
    return all;
  };
  expose("console", console);

  // A value that was thrown and is no error.
  const text = (value) => {
    room = 1000;
    return show(value, null, true);
  };
  return { __proto__: null, text, messageOf };
});
