#!/usr/bin/env bash
# openai 7.59.0 (npm) reads streams that end early, over both of its APIs; @anthropic-ai/sdk 1.14.0 (npm) reads one, too.
#
# Seen: finalChatCompletion and finalMessage reject what has no end. finalResponse resolves: the text is a part, the
#       status is in_progress, and nothing is thrown. A program that takes output_text shows half an answer as a whole one.
# Valid: the streams begin as the services' own do, and end cleanly without a last event, as proxies end them at a limit
#        of time.
# Best guess: all three reject.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts openai@7.59.0 @anthropic-ai/sdk@1.14.0 >/dev/null 2>&1
cat >main.cjs <<'JS'
const http = require("http");
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");

const response = { id: "resp_1", object: "response", status: "in_progress", model: "m", output: [] };
const about = { output_index: 0, item_id: "msg_1", content_index: 0 };
const streams = {
  "/chat/completions": [{ id: "c", object: "chat.completion.chunk", created: 1, model: "m", choices: [{ index: 0, delta: { role: "assistant", content: "Half an" }, finish_reason: null }] }],
  "/responses": [
    { type: "response.created", response },
    { type: "response.output_item.added", output_index: 0, item: { type: "message", id: "msg_1", role: "assistant", status: "in_progress", content: [] } },
    { type: "response.content_part.added", ...about, part: { type: "output_text", text: "", annotations: [] } },
    { type: "response.output_text.delta", ...about, delta: "Half an", logprobs: [] },
  ],
  "/v1/messages": [
    { type: "message_start", message: { id: "msg_1", type: "message", role: "assistant", model: "m", content: [], stop_reason: null, stop_sequence: null, usage: { input_tokens: 1, output_tokens: 1 } } },
    { type: "content_block_start", index: 0, content_block: { type: "text", text: "" } },
    { type: "content_block_delta", index: 0, delta: { type: "text_delta", text: "Half an" } },
  ],
};
const server = http.createServer((request, answer) => {
  answer.setHeader("content-type", "text/event-stream");
  for (const event of streams[request.url]) answer.write(`${event.type ? `event: ${event.type}\n` : ""}data: ${JSON.stringify(event)}\n\n`);
  answer.end();
});
server.listen(0, "127.0.0.1", async () => {
  const options = { baseURL: "http://127.0.0.1:" + server.address().port, apiKey: "any", maxRetries: 0 };
  const messages = [{ role: "user", content: "Hi" }];
  const tell = (name, answer) => answer.then((text) => `resolves: ${text}`, () => "rejects").then((text) => console.log(`${name} ${text}`));
  await tell("finalChatCompletion", new OpenAI(options).chat.completions.stream({ model: "m", messages }).finalChatCompletion().then((c) => c.choices[0].message.content));
  await tell("finalResponse", new OpenAI(options).responses.stream({ model: "m", input: "Hi" }).finalResponse().then((r) => `${r.output_text} (${r.status})`));
  await tell("finalMessage", new Anthropic(options).messages.stream({ model: "m", max_tokens: 9, messages }).finalMessage().then((m) => m.content[0].text));
  process.exit(0);
});
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
finalChatCompletion rejects
finalResponse resolves: Half an (in_progress)
finalMessage rejects
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
