// What scripts know from browsers and node, as far as it can be had without either.
(function ({ host, define, expose, uncurry, wellFormed }) {
  const global = globalThis;
  const { ArrayBuffer, Map, Number, Object, RangeError, Reflect, String, Symbol, TypeError, Uint8Array } = global;
  const { Boolean, Date, DOMException, Error, RegExp, Set } = global;
  const { apply } = Reflect;
  const { create, getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
  const { isArray } = global.Array;
  const { isView } = ArrayBuffer;
  const lower = uncurry(String.prototype.toLowerCase);
  const getter = (object, name) => uncurry(getOwnPropertyDescriptor(object, name).get);
  const attempt = (brand, value) => {
    try {
      return brand(value);
    } catch {
      return undefined;
    }
  };

  // --- Bytes, which leave the engine as base64 ---

  const base64Of = uncurry(Uint8Array.prototype.toBase64);
  const Typed = getPrototypeOf(Uint8Array.prototype);
  const typedName = getter(Typed, Symbol.toStringTag);
  const ofTyped = { __proto__: null, buffer: getter(Typed, "buffer"), at: getter(Typed, "byteOffset"), length: getter(Typed, "byteLength") };
  const View = global.DataView.prototype;
  const ofView = { __proto__: null, buffer: getter(View, "buffer"), at: getter(View, "byteOffset"), length: getter(View, "byteLength") };
  const bufferLength = getter(ArrayBuffer.prototype, "byteLength");
  // The bytes of a buffer or a view of one; undefined for anything else.
  const bytesOf = (value) => {
    if (typeof value !== "object" || value === null) return undefined;
    if (isView(value)) {
      const of = typedName(value) === undefined ? ofView : ofTyped;
      return new Uint8Array(of.buffer(value), of.at(value), of.length(value));
    }
    return attempt(bufferLength, value) === undefined ? undefined : new Uint8Array(value);
  };

  class TextEncoder {
    get encoding() {
      return "utf-8";
    }
    encode(text = "") {
      return host.encode(wellFormed(`${text}`));
    }
  }
  class TextDecoder {
    #fatal;
    #keepMark;
    constructor(label = "utf-8", options = undefined) {
      const name = lower(`${label}`);
      if (name !== "utf-8" && name !== "utf8") throw new RangeError(`TextDecoder: ${label}: only utf-8 is known here`);
      this.#fatal = !!options?.fatal;
      this.#keepMark = !!options?.ignoreBOM;
    }
    get encoding() {
      return "utf-8";
    }
    get fatal() {
      return this.#fatal;
    }
    get ignoreBOM() {
      return this.#keepMark;
    }
    decode(data = undefined, options = undefined) {
      if (options?.stream) throw new TypeError("TextDecoder: streams are not known here");
      if (data === undefined) return "";
      const bytes = bytesOf(data);
      if (bytes === undefined) throw new TypeError("TextDecoder: decode takes a buffer or a view of one");
      const text = host.decode(base64Of(bytes), this.#fatal, this.#keepMark);
      if (typeof text !== "string") throw new TypeError("TextDecoder: the bytes are not UTF-8");
      return text;
    }
  }
  expose("TextEncoder", TextEncoder);
  expose("TextDecoder", TextDecoder);
  // --- Timers, which end with the script ---

  const timers = create(null);
  let lastTimer = 0;
  const start = (name, run, delay, args, every) => {
    if (typeof run !== "function") throw new TypeError(`${name} takes a function`);
    const wait = Number(delay);
    const number = ++lastTimer;
    timers[number] = { __proto__: null, run, args, wait, every };
    host.timer(number, wait);
    return number;
  };
  const stop = (number) => {
    if (typeof number !== "number" || timers[number] === undefined) return;
    delete timers[number];
    host.untimer(number);
  };
  // Errors are those of a promise that nobody awaits.
  const run = async (timer) => apply(timer.run, undefined, timer.args);
  const fire = (number) => {
    const timer = timers[number];
    if (timer === undefined) return;
    if (timer.every) host.timer(number, timer.wait < 1 ? 1 : timer.wait);
    else delete timers[number];
    run(timer);
  };
  expose("setTimeout", function setTimeout(run, delay = 0, ...args) {
    return start("setTimeout", run, delay, args, false);
  });
  expose("setInterval", function setInterval(run, delay = 0, ...args) {
    return start("setInterval", run, delay, args, true);
  });
  expose("clearTimeout", function clearTimeout(number) {
    stop(number);
  });
  expose("clearInterval", function clearInterval(number) {
    stop(number);
  });
  expose("queueMicrotask", function queueMicrotask(run) {
    if (typeof run !== "function") throw new TypeError("queueMicrotask takes a function");
    (async () => {
      await undefined;
      run();
    })();
  });

  // --- structuredClone ---

  const mapGet = uncurry(Map.prototype.get);
  const mapSet = uncurry(Map.prototype.set);
  const mapHas = uncurry(Map.prototype.has);
  const mapEach = uncurry(Map.prototype.forEach);
  const mapSize = getter(Map.prototype, "size");
  const setAdd = uncurry(Set.prototype.add);
  const setEach = uncurry(Set.prototype.forEach);
  const setSize = getter(Set.prototype, "size");
  const timeOf = uncurry(Date.prototype.getTime);
  const sliceBuffer = uncurry(ArrayBuffer.prototype.slice);
  const sourceOf = getter(RegExp.prototype, "source");
  const flagsOf = getter(RegExp.prototype, "flags");
  const unboxed = [uncurry(Boolean.prototype.valueOf), uncurry(Number.prototype.valueOf), uncurry(String.prototype.valueOf)];
  const stackOf = getter(Error.prototype, "stack");
  const errorKinds = {
    __proto__: null, Error, EvalError: global.EvalError, RangeError, ReferenceError: global.ReferenceError,
    SyntaxError: global.SyntaxError, TypeError, URIError: global.URIError,
  };
  const refused = (what) => {
    throw new DOMException(`structuredClone: ${what} cannot be cloned`, "DataCloneError");
  };
  const copyMembers = (from, to, done) => {
    const names = keys(from);
    for (let i = 0; i < names.length; i++) define(to, names[i], clone(from[names[i]], done), true);
    return to;
  };
  const copyObject = (value, done) => {
    const keep = (copy) => (mapSet(done, value, copy), copy);
    if (host.promise(value) !== "") refused("a promise");
    if (isArray(value)) {
      const copy = keep([]);
      copy.length = value.length;
      return copyMembers(value, copy, done);
    }
    if (attempt(bufferLength, value) !== undefined) return keep(sliceBuffer(value, 0));
    const typed = isView(value) ? typedName(value) ?? "DataView" : undefined;
    if (typed !== undefined) {
      const of = typed === "DataView" ? ofView : ofTyped;
      const buffer = of.buffer(value);
      const shared = mapHas(done, buffer) ? mapGet(done, buffer) : copyObject(buffer, done);
      const Kind = kinds[typed];
      return keep(new Kind(shared, of.at(value), typed === "DataView" ? of.length(value) : typedLength(value)));
    }
    if (attempt(mapSize, value) !== undefined) {
      const copy = keep(new Map());
      mapEach(value, (item, key) => mapSet(copy, clone(key, done), clone(item, done)));
      return copy;
    }
    if (attempt(setSize, value) !== undefined) {
      const copy = keep(new Set());
      setEach(value, (item) => setAdd(copy, clone(item, done)));
      return copy;
    }
    const time = attempt(timeOf, value);
    if (time !== undefined) return keep(new Date(time));
    if (attempt(sourceOf, value) !== undefined && value !== RegExp.prototype) {
      return keep(new RegExp(sourceOf(value), flagsOf(value)));
    }
    if (typeof stackOf(value) === "string") {
      const copy = keep(new (errorKinds[value.name] ?? Error)(`${value.message}`));
      const cause = getOwnPropertyDescriptor(value, "cause");
      if (cause !== undefined) define(copy, "cause", clone(cause.value, done));
      return copy;
    }
    for (let i = 0; i < unboxed.length; i++) {
      const inner = attempt(unboxed[i], value);
      if (inner !== undefined) return keep(Object(inner));
    }
    return copyMembers(value, keep({}), done);
  };
  const typedLength = getter(Typed, "length");
  const kinds = create(null);
  const names = [
    "Int8Array", "Uint8Array", "Uint8ClampedArray", "Int16Array", "Uint16Array", "Int32Array", "Uint32Array",
    "BigInt64Array", "BigUint64Array", "Float16Array", "Float32Array", "Float64Array", "DataView",
  ];
  for (let i = 0; i < names.length; i++) kinds[names[i]] = global[names[i]];
  const clone = (value, done) => {
    if (typeof value === "function" || typeof value === "symbol") return refused(`a ${typeof value}`);
    if (typeof value !== "object" || value === null) return value;
    return mapHas(done, value) ? mapGet(done, value) : copyObject(value, done);
  };
  expose("structuredClone", function structuredClone(value) {
    return clone(value, new Map());
  });

  return { __proto__: null, base64Of, bytesOf, fire };
});
