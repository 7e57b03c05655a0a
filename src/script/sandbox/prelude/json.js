// JSON as scripts and mcpx need it: numbers of any length, and a form for what JSON.stringify calls `{}`.
(function ({ define, uncurry }) {
  const global = globalThis;
  const { ArrayBuffer, BigInt, DataView, Error, JSON, Map, Number, Object, Promise, Reflect, RegExp, Set } = global;
  const { String, TypeError, Uint8Array } = global;
  const { getOwnPropertyDescriptor, getPrototypeOf, keys } = Object;
  const { parse, stringify, rawJSON } = JSON;
  const { apply } = Reflect;
  const bigOf = BigInt;
  const numberOf = Number;
  const cut = uncurry(String.prototype.slice);
  const repeat = uncurry(String.prototype.repeat);
  const getter = (object, name) => uncurry(getOwnPropertyDescriptor(object, name).get);

  // --- Numbers that a double does not hold ---

  const BEYOND = 2 ** 53;
  const isDigit = (c) => c >= "0" && c <= "9";
  const isWhole = (text) => {
    for (let i = text[0] === "-" ? 1 : 0; i < text.length; i++) if (!isDigit(text[i])) return false;
    return true;
  };
  const isZero = (text) => {
    for (let i = 0; i < text.length && text[i] !== "e" && text[i] !== "E"; i++) {
      if (text[i] >= "1" && text[i] <= "9") return false;
    }
    return true;
  };
  // Of a number that doubles reach: its value as a whole number, undefined where it is none.
  const wholeOf = (text) => {
    let digits = "";
    let behind = 0;
    let i = text[0] === "-" ? 1 : 0;
    for (let dot = false; i < text.length && text[i] !== "e" && text[i] !== "E"; i++) {
      if (text[i] === ".") dot = true;
      else {
        digits += text[i];
        if (dot) behind++;
      }
    }
    let zeros = (i < text.length ? numberOf(cut(text, i + 1)) : 0) - behind;
    let end = digits.length;
    for (; zeros < 0; zeros++) if (digits[--end] !== "0") return undefined;
    const size = bigOf(cut(digits, 0, end) + repeat("0", zeros));
    return text[0] === "-" ? -size : size;
  };
  // A whole number as `bigint`, what is none as text; a double where that is the very number.
  const exactly = (value, text) => {
    if (isWhole(text)) return bigOf(text);
    if (value === 0 || value - value !== 0) return text;
    const whole = wholeOf(text);
    if (whole === undefined) return text;
    return whole === bigOf(value) ? value : whole;
  };
  const revive = (key, value, { source }) => {
    if (typeof value !== "number") return value;
    const near = value === 0 ? isZero(source) : (value < 0 ? -value : value) < BEYOND;
    return near ? value : exactly(value, source);
  };
  const fromLongJson = (text) => parse(text, revive);

  // --- What has no form of its own ---

  const forms = (prototype, toJSON) => define(prototype, "toJSON", toJSON);
  const bigValue = uncurry(BigInt.prototype.valueOf);
  forms(BigInt.prototype, function toJSON() {
    return rawJSON(`${bigValue(this)}`);
  });
  // JSON has `{}` for it, which is never what was meant.
  const Async = getPrototypeOf(getPrototypeOf(async function* () {}).prototype);
  forms(Promise.prototype, function toJSON() {
    throw new TypeError("a promise stands where its value should: await it");
  });
  forms(Async, function toJSON() {
    throw new TypeError("an async iterator stands where its values should: await Array.fromAsync(it)");
  });
  forms(Error.prototype, function toJSON() {
    const told = {};
    define(told, "name", `${this.name}`, true);
    define(told, "message", `${this.message}`, true);
    const names = keys(this);
    for (let i = 0; i < names.length; i++) define(told, names[i], this[names[i]], true);
    const more = ["errors", "cause"];
    for (let i = 0; i < more.length; i++) {
      const found = getOwnPropertyDescriptor(this, more[i]);
      if (found !== undefined) define(told, more[i], found.value, true);
    }
    return told;
  });
  const pair = (key, value) => define(define([], 0, key, true), 1, value, true);
  const mapEach = uncurry(Map.prototype.forEach);
  forms(Map.prototype, function toJSON() {
    let named = true;
    mapEach(this, (_, key) => {
      if (typeof key !== "string") named = false;
    });
    const told = named ? {} : [];
    let at = 0;
    mapEach(this, (value, key) => {
      if (named) define(told, key, value, true);
      else define(told, at++, pair(key, value), true);
    });
    return told;
  });
  const setEach = uncurry(Set.prototype.forEach);
  forms(Set.prototype, function toJSON() {
    const told = [];
    let at = 0;
    setEach(this, (value) => define(told, at++, value, true));
    return told;
  });
  forms(getPrototypeOf(getPrototypeOf([].values())), function toJSON() {
    const told = [];
    const { next } = this;
    for (let at = 0; ; at++) {
      const step = apply(next, this, []);
      if (step.done) return told;
      define(told, at, step.value, true);
    }
  });
  const textOfRegExp = uncurry(RegExp.prototype.toString);
  forms(RegExp.prototype, function toJSON() {
    return textOfRegExp(this);
  });
  const Typed = getPrototypeOf(Uint8Array.prototype);
  const lengthOf = getter(Typed, "length");
  const numbers = (typed) => {
    const told = [];
    for (let i = 0; i < lengthOf(typed); i++) define(told, i, typed[i], true);
    return told;
  };
  forms(Typed, function toJSON() {
    return numbers(this);
  });
  forms(ArrayBuffer.prototype, function toJSON() {
    return numbers(new Uint8Array(this));
  });
  const View = DataView.prototype;
  const bufferOf = getter(View, "buffer");
  const startOf = getter(View, "byteOffset");
  const sizeOf = getter(View, "byteLength");
  forms(View, function toJSON() {
    return numbers(new Uint8Array(bufferOf(this), startOf(this), sizeOf(this)));
  });

  const jsonOf = (value, what) => {
    try {
      return stringify(value);
    } catch (error) {
      if (error instanceof TypeError) throw new TypeError(`${what} no JSON form: ${error.message}`);
      throw error;
    }
  };
  return { __proto__: null, fromLongJson, jsonOf };
});
