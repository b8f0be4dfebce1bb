#!/usr/bin/env bash
# @anthropic-ai/sdk 1.14.0 (npm) and 0.137.0, the last version before 1.0, send a key to a server.
#
# Seen: since 1.0 a key that is given as apiKey goes into the header Authorization, as a bearer token, and there is no
#       x-api-key any more; the version of the API is another one, too. The list of changes names the version alone. A
#       gateway, a recording proxy or a stand-in for tests that looks at x-api-key finds no key.
# Valid: apiKey is the documented option, and x-api-key the header in the service's reference for requests without an SDK.
# Best guess: the header is x-api-key, as in each version before; Authorization is for authToken.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts new@npm:@anthropic-ai/sdk@1.14.0 old@npm:@anthropic-ai/sdk@0.137.0 >/dev/null 2>&1
cat >main.cjs <<'JS'
const http = require("http");

let headers;
const server = http.createServer((request, answer) => {
  ({ headers } = request);
  answer.setHeader("content-type", "application/json").end(JSON.stringify({ type: "message", role: "assistant", content: [], usage: {} }));
});
server.listen(0, "127.0.0.1", async () => {
  for (const name of ["old", "new"]) {
    const { Anthropic } = require(name);
    const api = new Anthropic({ baseURL: "http://127.0.0.1:" + server.address().port, apiKey: "key", authToken: null, maxRetries: 0 });
    await api.messages.create({ model: "m", max_tokens: 9, messages: [{ role: "user", content: "Hi" }] });
    console.log(`${name}: x-api-key ${headers["x-api-key"] ?? "missing"}, authorization ${headers.authorization ?? "missing"}, version ${headers["anthropic-version"]}`);
  }
  process.exit(0);
});
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
old: x-api-key key, authorization missing, version 2023-06-01
new: x-api-key missing, authorization Bearer key, version 2026-10-21
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
