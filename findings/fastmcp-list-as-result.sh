#!/usr/bin/env bash
# fastmcp 4.20.16 (npm) with zod 4.6.7 (npm), a tool whose outputSchema is a list.
#
# Seen: the tool is registered and listed with that schema. Each call runs it, so what it does is done, and is answered
#       with an error all the same: what it gives is the list that the schema describes, and a record is wanted.
#       The same tool with its list in an object works.
# Valid: the type of outputSchema takes any schema, and execute may return what it describes; tools/list shows the schema.
# Best guess: the list comes as structuredContent, or in an object around it, and as JSON in a text.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts fastmcp@4.20.16 zod@4.6.7 >/dev/null 2>&1
cat >server.mjs <<'JS'
import { FastMCP } from "fastmcp";
import { z } from "zod";

const server = new FastMCP({ name: "s", version: "1.0.0" });
const doors = z.array(z.object({ side: z.string() }));
let runs = 0;
server.addTool({ name: "object", outputSchema: z.object({ doors }), execute: async () => ({ doors: [{ side: "north" }] }) });
server.addTool({ name: "list", outputSchema: doors, execute: async () => { runs++; return [{ side: "north" }]; } });
server.addTool({ name: "runs", execute: async () => `the list was made ${runs} times` });
server.start({ transportType: "stdio" });
JS
cat >main.mjs <<'JS'
import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const server = spawn(process.execPath, ["server.mjs"], { stdio: ["pipe", "pipe", "ignore"] });
const answers = createInterface({ input: server.stdout })[Symbol.asyncIterator]();
async function ask(method, params) {
  server.stdin.write(JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) + "\n");
  return JSON.parse((await answers.next()).value).result;
}
await ask("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "c", version: "1" } });
server.stdin.write('{"jsonrpc":"2.0","method":"notifications/initialized"}\n');
const { tools } = await ask("tools/list");
for (const { name, outputSchema } of tools) {
  const { content, structuredContent, isError } = await ask("tools/call", { name, arguments: {} });
  console.log(`${name}: listed as ${outputSchema?.type}, ${isError ? "error " : ""}${structuredContent ? JSON.stringify(structuredContent) : content[0].text.replace(/\s+/g, " ")}`);
}
server.kill();
JS
seen=$(timeout 120 node main.mjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
object: listed as object, {"doors":[{"side":"north"}]}
list: listed as array, error Tool 'list' execution failed: [ { "expected": "record", "code": "invalid_type", "path": [ "structuredContent" ], "message": "Invalid input: expected record, received array" } ]
runs: listed as undefined, the list was made 1 times
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
