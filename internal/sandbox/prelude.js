// The globals that a script has besides the language, built on a few native
// functions that scripts cannot reach once this has run. The value of this file is
// a function of the number of calls that may be open at once and the names of the
// host's functions.
(maxStarted, names) => {
  "use strict";
  const take = (name) => {
    const f = globalThis[name];
    delete globalThis[name];
    return f;
  };
  const native = {
    call: take("__call"), start: take("__start"), timer: take("__timer"), log: take("__log"),
    finish: take("__finish"), url: take("__url"), random: take("__random"), quote: take("__quote"),
  };
  const { parse, stringify } = JSON;
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });
  const open = (text) => {
    const r = parse(text);
    if (r.error !== undefined) throw new Error(r.error);
    return r.value;
  };

  // parseExact keeps the digits of whole numbers that the language cannot hold: they become texts.
  const parseExact = (text) => parse(/\d{16}/.test(text) ? native.quote(text) : text);

  // Calls of the host.
  const waiting = new Map();
  const queue = [];
  const begin = ({ name, argument, resolve, reject }) => {
    try {
      waiting.set(native.start(name, stringify(argument)), { resolve, reject });
    } catch (e) {
      reject(e);
    }
  };
  const functions = Object.freeze({
    call: (name, argument = null) => open(native.call(name, stringify(argument))),
    start: (name, argument = null) => new Promise((resolve, reject) => {
      const job = { name, argument, resolve, reject };
      if (waiting.size < maxStarted) begin(job); else queue.push(job);
    }),
    has: (name) => names.includes(name),
    parse: parseExact,
  });

  // Timers.
  const timers = new Map();
  let lastTimer = 0;
  const arm = (id, delay) => native.timer(id, Math.min(Math.max(Number(delay) || 0, 0), 2 ** 31 - 1));
  const addTimer = (f, delay, args, every) => {
    if (typeof f !== "function") throw new TypeError("a timer needs a function");
    if (timers.size >= 1000) throw new RangeError("too many timers");
    const id = ++lastTimer;
    timers.set(id, { f, args, delay: every ? Math.max(Number(delay) || 0, 1) : undefined });
    arm(id, delay);
    return id;
  };
  const clearTimer = (id) => {
    if (timers.delete(id)) native.timer(id, -1);
  };
  define("setTimeout", (f, delay, ...args) => addTimer(f, delay, args, false));
  define("setInterval", (f, delay, ...args) => addTimer(f, delay, args, true));
  define("clearTimeout", clearTimer);
  define("clearInterval", clearTimer);
  define("queueMicrotask", (f) => void Promise.resolve().then(f));

  const settle = (kind, id, text) => {
    if (kind === "timer") {
      const t = timers.get(id);
      if (t === undefined) return;
      if (t.delay === undefined) timers.delete(id); else arm(id, t.delay);
      try {
        t.f(...t.args);
      } catch (e) {
        console.error("in a timer:", e);
      }
      return;
    }
    const w = waiting.get(id);
    waiting.delete(id);
    while (queue.length > 0 && waiting.size < maxStarted) begin(queue.shift());
    try {
      w.resolve(open(text));
    } catch (e) {
      w.reject(e);
    }
  };

  // Results and console.
  const show = (v) => {
    if (v instanceof Error) return describe(v);
    if (typeof v === "string") return v;
    if (typeof v === "object" && v !== null) {
      try {
        return stringify(v, (_, x) => (typeof x === "bigint" ? String(x) : x));
      } catch {
        return Object.prototype.toString.call(v);
      }
    }
    return String(v);
  };
  const describe = (e) => {
    // The engine throws null if there is no memory for an error.
    if (e === null) return "thrown: null (the script threw it, or is out of memory)";
    if (!(e instanceof Error)) return "thrown: " + show(e);
    const where = String(e.stack ?? "").split("\n").filter((l) => l.trim() !== "" && !l.includes("(native)"));
    return `${e.name}: ${e.message}` + where.slice(0, 5).map((l) => "\n" + l).join("");
  };
  const result = (v) => {
    if (typeof v === "string") return v;
    if (v === undefined || v === null) return "";
    if (typeof v === "bigint") return String(v);
    if (typeof v === "function" || typeof v === "symbol") return String(v);
    return stringify(v) ?? "";
  };
  const write = (level) => (...args) => native.log(level, args.map(show).join(" "));
  define("console", Object.freeze({
    log: write("info"), info: write("info"), debug: write("info"), warn: write("warn"), error: write("error"),
  }));

  const run = (evaluated, entry, params, check) => {
    evaluated.then(async ({ value }) => {
      if (entry === "") return typeof main === "function" ? main() : value;
      const f = (0, eval)(`typeof ${entry} === "function" ? ${entry} : undefined`);
      if (f === undefined) throw new TypeError(`the script defines no function ${entry}(params)`);
      return check ? "" : f(parseExact(params));
    }).then(result).then(
      (text) => native.finish(false, text),
      (e) => native.finish(true, describe(e)),
    );
  };

  webClasses(define, native, open);
  return { functions, settle, run };

  function webClasses(define, native, open) {
    // Text encoding.
    define("TextEncoder", class TextEncoder {
      get encoding() { return "utf-8"; }
      encode(text = "") {
        const out = [];
        for (const c of String(text)) {
          let p = c.codePointAt(0);
          if (p >= 0xd800 && p <= 0xdfff) p = 0xfffd;
          if (p < 0x80) out.push(p);
          else if (p < 0x800) out.push(0xc0 | (p >> 6), 0x80 | (p & 63));
          else if (p < 0x10000) out.push(0xe0 | (p >> 12), 0x80 | ((p >> 6) & 63), 0x80 | (p & 63));
          else out.push(0xf0 | (p >> 18), 0x80 | ((p >> 12) & 63), 0x80 | ((p >> 6) & 63), 0x80 | (p & 63));
        }
        return new Uint8Array(out);
      }
    });
    // sequence reads one character at i: its code point, or -1, and its length.
    const sequence = (b, i) => {
      const first = b[i];
      if (first < 0x80) return [first, 1];
      const n = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
      if (first < 0xc2 || first > 0xf4) return [-1, 1];
      let p = first & (0x7f >> n);
      for (let k = 1; k < n; k++) {
        if ((b[i + k] & 0xc0) !== 0x80) return [-1, k];
        p = (p << 6) | (b[i + k] & 63);
      }
      const least = [0, 0, 0x80, 0x800, 0x10000][n];
      if (p < least || p > 0x10ffff || (p >= 0xd800 && p <= 0xdfff)) return [-1, 1];
      return [p, n];
    };
    define("TextDecoder", class TextDecoder {
      #fatal;
      constructor(label = "utf-8", { fatal = false } = {}) {
        if (!/^\s*utf-?8\s*$/i.test(label)) throw new RangeError(`TextDecoder knows utf-8 alone, not ${label}`);
        this.#fatal = fatal;
      }
      get encoding() { return "utf-8"; }
      decode(input = new Uint8Array()) {
        const b = ArrayBuffer.isView(input)
          ? new Uint8Array(input.buffer, input.byteOffset, input.byteLength) : new Uint8Array(input);
        let out = "";
        let i = b[0] === 0xef && b[1] === 0xbb && b[2] === 0xbf ? 3 : 0;
        while (i < b.length) {
          const [p, n] = sequence(b, i);
          if (p < 0 && this.#fatal) throw new TypeError("the bytes are not utf-8");
          out += p < 0 ? "\ufffd" : String.fromCodePoint(p);
          i += n;
        }
        return out;
      }
    });

    // Base64.
    const digits = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    define("btoa", (input) => {
      const s = String(input);
      const out = [];
      for (let i = 0; i < s.length; i += 3) {
        const [a, b, c] = [s.charCodeAt(i), s.charCodeAt(i + 1), s.charCodeAt(i + 2)];
        if (a > 255 || b > 255 || c > 255) throw new RangeError("btoa takes characters up to U+00FF; encode the text first");
        out.push(digits[a >> 2], digits[((a & 3) << 4) | (b >> 4)],
          i + 1 < s.length ? digits[((b & 15) << 2) | (c >> 6)] : "=", i + 2 < s.length ? digits[c & 63] : "=");
      }
      return out.join("");
    });
    define("atob", (input) => {
      const s = String(input).replace(/[\t\n\f\r ]/g, "").replace(/={1,2}$/, "");
      if (s.length % 4 === 1 || /[^A-Za-z0-9+/]/.test(s)) throw new RangeError("atob: the text is not base64");
      const out = [];
      let bits = 0, held = 0;
      for (const c of s) {
        held = ((held << 6) | digits.indexOf(c)) & 0xffff;
        bits += 6;
        if (bits >= 8) out.push(String.fromCharCode((held >> (bits -= 8)) & 255));
      }
      return out.join("");
    });

    // Addresses.
    const encode = (s) => encodeURIComponent(s).replace(/%20/g, "+").replace(/[!'()~]/g,
      (c) => "%" + c.charCodeAt(0).toString(16).toUpperCase());
    const decode = (s) => {
      const plain = s.replace(/\+/g, " ");
      try {
        return decodeURIComponent(plain);
      } catch {
        return plain;
      }
    };
    class URLSearchParams {
      #pairs = [];
      #changed = () => {};
      constructor(init = "", changed = () => {}) {
        if (init !== null && typeof init === "object") {
          const pairs = typeof init[Symbol.iterator] === "function" ? init : Object.entries(init);
          for (const [k, v] of pairs) this.#pairs.push([String(k), String(v)]);
        } else {
          for (const part of String(init).replace(/^\?/, "").split("&")) {
            if (part === "") continue;
            const at = part.indexOf("=");
            this.#pairs.push(at < 0 ? [decode(part), ""] : [decode(part.slice(0, at)), decode(part.slice(at + 1))]);
          }
        }
        this.#changed = changed;
      }
      get size() { return this.#pairs.length; }
      get(name) { return this.#pairs.find(([k]) => k === String(name))?.[1] ?? null; }
      getAll(name) { return this.#pairs.filter(([k]) => k === String(name)).map(([, v]) => v); }
      has(name) { return this.#pairs.some(([k]) => k === String(name)); }
      append(name, value) {
        this.#pairs.push([String(name), String(value)]);
        this.#changed();
      }
      delete(name) {
        this.#pairs = this.#pairs.filter(([k]) => k !== String(name));
        this.#changed();
      }
      set(name, value) {
        const at = this.#pairs.findIndex(([k]) => k === String(name));
        if (at < 0) return this.append(name, value);
        this.#pairs = this.#pairs.filter(([k], i) => i === at || k !== String(name));
        this.#pairs[at][1] = String(value);
        this.#changed();
      }
      sort() {
        this.#pairs.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
        this.#changed();
      }
      forEach(f) { for (const [k, v] of this.#pairs) f(v, k, this); }
      entries() { return this.#pairs.map((p) => [...p]).values(); }
      keys() { return this.#pairs.map(([k]) => k).values(); }
      values() { return this.#pairs.map(([, v]) => v).values(); }
      [Symbol.iterator]() { return this.entries(); }
      toString() { return this.#pairs.map(([k, v]) => encode(k) + "=" + encode(v)).join("&"); }
    }
    define("URLSearchParams", URLSearchParams);
    define("URL", class URL {
      #u;
      #params;
      constructor(input, base) {
        try {
          this.#u = open(native.url(String(input), base === undefined ? "" : String(base)));
        } catch (e) {
          throw new TypeError(e.message);
        }
        this.#read();
      }
      static canParse(input, base) {
        try {
          return new URL(input, base) !== null;
        } catch {
          return false;
        }
      }
      #read() {
        this.#params = new URLSearchParams(this.#u.search, () => {
          const s = this.#params.toString();
          this.#u.search = s === "" ? "" : "?" + s;
        });
      }
      get protocol() { return this.#u.protocol; }
      get username() { return this.#u.username; }
      get password() { return this.#u.password; }
      get hostname() { return this.#u.hostname.includes(":") ? `[${this.#u.hostname}]` : this.#u.hostname; }
      get port() { return this.#u.port; }
      get host() { return this.hostname + (this.#u.port === "" ? "" : ":" + this.#u.port); }
      get origin() { return this.#u.slashes ? `${this.#u.protocol}//${this.host}` : "null"; }
      get pathname() { return this.#u.pathname; }
      set pathname(v) { this.#u.pathname = "/" + encodeURI(String(v)).replace(/^\//, "").replace(/[?#]/g, encodeURIComponent); }
      get search() { return this.#u.search; }
      set search(v) {
        const s = String(v).replace(/^\?/, "");
        this.#u.search = s === "" ? "" : "?" + encodeURI(s).replace(/%25/g, "%").replace(/#/g, "%23");
        this.#read();
      }
      get hash() { return this.#u.hash; }
      set hash(v) {
        const s = String(v).replace(/^#/, "");
        this.#u.hash = s === "" ? "" : "#" + encodeURI(s);
      }
      get searchParams() { return this.#params; }
      get href() {
        const u = this.#u;
        const user = u.username === "" ? "" : encodeURIComponent(u.username) +
          (u.password === "" ? "" : ":" + encodeURIComponent(u.password)) + "@";
        return u.protocol + (u.slashes ? "//" + user + this.host : "") + u.pathname + u.search + u.hash;
      }
      toString() { return this.href; }
      toJSON() { return this.href; }
    });

    // Copies.
    const clone = (v, seen) => {
      if (typeof v === "function" || typeof v === "symbol") throw new TypeError(`structuredClone cannot copy a ${typeof v}`);
      if (typeof v !== "object" || v === null) return v;
      if (seen.has(v)) return seen.get(v);
      const keep = (copy) => (seen.set(v, copy), copy);
      if (v instanceof Date) return keep(new Date(v.getTime()));
      if (v instanceof RegExp) return keep(new RegExp(v.source, v.flags));
      if (v instanceof ArrayBuffer) return keep(v.slice(0));
      if (ArrayBuffer.isView(v)) {
        const buffer = clone(v.buffer, seen);
        return keep(v instanceof DataView ? new DataView(buffer, v.byteOffset, v.byteLength)
          : new v.constructor(buffer, v.byteOffset, v.length));
      }
      if (v instanceof Map) {
        const copy = keep(new Map());
        for (const [k, x] of v) copy.set(clone(k, seen), clone(x, seen));
        return copy;
      }
      if (v instanceof Set) {
        const copy = keep(new Set());
        for (const x of v) copy.add(clone(x, seen));
        return copy;
      }
      if (v instanceof Error) {
        const copy = keep(new (globalThis[v.name] ?? Error)(v.message));
        return copy;
      }
      const copy = keep(Array.isArray(v) ? new Array(v.length) : {});
      for (const k of Object.keys(v)) copy[k] = clone(v[k], seen);
      return copy;
    };
    define("structuredClone", (v) => clone(v, new Map()));

    define("crypto", Object.freeze({
      getRandomValues: (array) => {
        const bytes = new Uint8Array(array.buffer, array.byteOffset, array.byteLength);
        if (bytes.length > 65536) throw new RangeError("getRandomValues gives 65536 bytes at most");
        bytes.set(native.random(bytes.length));
        return array;
      },
      randomUUID: () => {
        const b = native.random(16);
        b[6] = (b[6] & 15) | 64;
        b[8] = (b[8] & 63) | 128;
        const hex = b.map((x) => x.toString(16).padStart(2, "0")).join("");
        return [hex.slice(0, 8), hex.slice(8, 12), hex.slice(12, 16), hex.slice(16, 20), hex.slice(20)].join("-");
      },
    }));
  }
}
