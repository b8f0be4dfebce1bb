// The functions through which scripts reach outside. The value of this file is a
// function of what the host offers.
(host) => {
  "use strict";
  const define = (name, value) =>
    Object.defineProperty(globalThis, name, { value, writable: true, configurable: true, enumerable: false });

  // headersOf takes an object, pairs, or a map.
  const headersOf = (headers) => {
    const pairs = headers == null ? [] : typeof headers[Symbol.iterator] === "function" ? [...headers] : Object.entries(headers);
    return Object.fromEntries(pairs.map(([k, v]) => [String(k), String(v)]));
  };
  const bodyOf = (body, headers) => {
    if (body == null) return "";
    const typed = Object.keys(headers).some((k) => k.toLowerCase() === "content-type");
    if (body instanceof URLSearchParams) {
      if (!typed) headers["Content-Type"] = "application/x-www-form-urlencoded;charset=UTF-8";
      return body.toString();
    }
    if (typeof body !== "object") return String(body);
    if (body instanceof ArrayBuffer || ArrayBuffer.isView(body)) return new TextDecoder().decode(body);
    if (!typed) headers["Content-Type"] = "application/json";
    return JSON.stringify(body);
  };
  const responseOf = (r) => {
    Object.defineProperties(r.headers, {
      get: { value: (name) => r.headers[String(name).toLowerCase()] ?? null },
      has: { value: (name) => Object.hasOwn(r.headers, String(name).toLowerCase()) },
    });
    const { body, note, ...rest } = r;
    return {
      ...rest,
      headers: r.headers,
      text: async () => body + note,
      json: async () => {
        if (note !== "") throw new Error("the body is too long to be read as JSON " + note.trim());
        return host.parse(body);
      },
    };
  };
  define("fetch", async (url, init = {}) => {
    const headers = headersOf(init.headers);
    const body = bodyOf(init.body, headers);
    return responseOf(await host.start("fetch", {
      url: String(url), method: String(init.method ?? "GET").toUpperCase(), headers, body,
    }));
  });
  define("downloadToFile", async (url, path, headers) => {
    try {
      return await host.start("downloadToFile", { url: String(url), path: String(path), headers: headersOf(headers) });
    } catch (e) {
      return { success: false, error: e.message };
    }
  });
  define("uploadMultipart", async (url, parts, headers) => {
    try {
      return await host.start("uploadMultipart", {
        url: String(url),
        headers: headersOf(headers),
        parts: Array.from(parts, (p) => ({
          type: String(p.type ?? ""),
          content_type: String(p.contentType ?? ""),
          name: String(p.name ?? ""),
          path: String(p.path ?? ""),
          body: p.body == null ? "" : typeof p.body === "object" ? JSON.stringify(p.body) : String(p.body),
        })),
      });
    } catch (e) {
      return { ok: false, status: 0, body: "", error: e.message };
    }
  });

  define("fs", Object.freeze({
    readFile: (path) => host.call("readFile", { path: String(path) }),
    writeFile: (path, content) => void host.call("writeFile", { path: String(path), content: String(content) }),
    appendFile: (path, content) =>
      void host.call("writeFile", { path: String(path), content: String(content), append: true }),
    exists: (path) => host.call("exists", { path: String(path) }),
  }));
  define("_time", (timezone, format) =>
    host.call("time", { timezone: String(timezone ?? ""), format: String(format ?? "") }));
  if (host.has("googleToken")) {
    define("google", Object.freeze({
      getAccessToken: () => host.start("googleToken"),
      getAccountEmail: () => host.start("googleEmail"),
    }));
  }
}
