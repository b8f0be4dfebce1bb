// Has each model asked by its service's own library, and prints how that library reads the answers. The input is a
// list of {api, way, url, model, text, tools, key}, the output one of {text, shown, calls, stop, input, output} or,
// for an error, {error, status, code, request}.
const { OpenAI } = require("openai");
const { Anthropic } = require("@anthropic-ai/sdk");
const asked = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const parameters = { type: "object", properties: { text: { type: "string" } } };

// chat uses Chat Completions: whole, by the library's helper, or, where the service has a way of its own, event by event.
async function chat({ url, way, model, text, tools, key }) {
  const api = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
  const body = {
    model,
    messages: [{ role: "user", content: text }],
    ...(tools && { tools: ["a", "b"].map((name) => ({ type: "function", function: { name, parameters } })) }),
    ...(way !== "whole" && { stream_options: { include_usage: true } }),
  };
  let shown = "", done, calls = [];
  if (way === "whole") {
    done = await api.chat.completions.create(body);
  } else if (way === "helper") {
    const stream = api.chat.completions.stream(body).on("content", (piece) => (shown += piece));
    done = await stream.finalChatCompletion();
  } else {
    let stop;
    for await (const { choices, usage } of await api.chat.completions.create({ ...body, stream: true })) {
      for (const { delta, finish_reason } of choices ?? []) {
        if (typeof delta.content === "string") shown += delta.content;
        for (const { index, id, function: f } of delta.tool_calls ?? []) {
          const at = index ?? (id ? calls.length : calls.length - 1);
          calls[at] ??= { id, function: { name: f.name, arguments: "" } };
          calls[at].function.arguments += f?.arguments ?? "";
        }
        stop = finish_reason ?? stop;
      }
      done = { choices: [{ message: { content: shown, tool_calls: calls }, finish_reason: stop }], usage };
    }
  }
  const { message, finish_reason } = done.choices[0];
  calls = (message.tool_calls ?? []).map((c) => ({ id: c.id, name: c.function.name, arguments: c.function.arguments }));
  return { text: message.content || message.refusal || "", shown, calls, stop: finish_reason, input: done.usage?.prompt_tokens, output: done.usage?.completion_tokens };
}

// responses uses the Responses API, whole or by the library's helper.
async function responses({ url, way, model, text, tools, key }) {
  const api = new OpenAI({ baseURL: url, apiKey: key, maxRetries: 0 });
  const body = {
    model,
    input: text,
    store: false,
    include: ["reasoning.encrypted_content"],
    ...(tools && { tools: ["a", "b"].map((name) => ({ type: "function", name, parameters, strict: false })) }),
  };
  let shown = "", done;
  if (way === "whole") {
    done = await api.responses.create(body);
  } else {
    const stream = api.responses.stream(body).on("response.output_text.delta", (event) => (shown += event.delta));
    done = await stream.finalResponse();
  }
  if (done.error) throw Object.assign(new Error(done.error.message), done.error);
  const calls = done.output.filter((item) => item.type === "function_call");
  const refusals = done.output.flatMap((item) => (item.type === "message" ? item.content : [])).map((part) => part.refusal ?? "");
  return {
    text: done.output_text || refusals.join(""),
    shown,
    calls: calls.map((c) => ({ id: c.call_id, name: c.name, arguments: c.arguments })),
    stop: done.incomplete_details?.reason ?? done.status,
    input: done.usage?.input_tokens,
    output: done.usage?.output_tokens,
  };
}

// messages uses Anthropic's Messages API, whole or by the library's helper.
async function messages({ url, way, model, text, tools, key }) {
  const api = new Anthropic({ baseURL: url, apiKey: key, maxRetries: 0 });
  const body = {
    model,
    max_tokens: 100,
    messages: [{ role: "user", content: text }],
    ...(tools && { tools: ["a", "b"].map((name) => ({ name, input_schema: parameters })) }),
  };
  let shown = "", done;
  if (way === "whole") {
    done = await api.messages.create(body);
  } else {
    const stream = api.messages.stream(body).on("text", (piece) => (shown += piece));
    done = await stream.finalMessage();
  }
  const of = (type) => done.content.filter((block) => block.type === type);
  const usage = done.usage;
  return {
    text: of("text").map((block) => block.text).join(""),
    shown,
    calls: of("tool_use").map((c) => ({ id: c.id, name: c.name, arguments: JSON.stringify(c.input) })),
    thinking: of("thinking").map((block) => block.thinking + " " + block.signature).join(""),
    stop: done.stop_reason,
    input: usage.input_tokens + (usage.cache_read_input_tokens ?? 0) + (usage.cache_creation_input_tokens ?? 0),
    output: usage.output_tokens,
  };
}

// failed takes from an error what a program would look at.
function failed(e) {
  return { error: e.message || String(e), status: e.status, code: String(e.code ?? e.type ?? ""), request: e.requestID };
}

Promise.all(asked.map((a) => ({ chat, responses, messages })[a.api](a).catch(failed))).then((all) => process.stdout.write(JSON.stringify(all)));
