// The calls of OpenAI's library other than answers, and Google's page of a model. The input is {openai, google, model, speech}.
const assert = require("node:assert/strict");
const { OpenAI, toFile } = require("openai");
const { GoogleGenAI } = require("@google/genai");
const input = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

async function main() {
  const api = new OpenAI({ baseURL: input.openai, apiKey: "right", maxRetries: 0 });
  const [model] = (await api.models.list()).data;
  assert.equal(model.object, "model");
  // Without a format the library asks for base64, and decodes it.
  const texts = { model: model.id, input: ["one word", "two words"] };
  const encoded = await api.embeddings.create(texts);
  const plain = await api.embeddings.create({ ...texts, encoding_format: "float" });
  assert.equal(encoded.data.length, 2);
  assert.deepEqual(encoded.data.map((d) => d.embedding.map(Math.fround)), plain.data.map((d) => d.embedding.map(Math.fround)));

  const image = { model: "gpt-image-2.5-flare", prompt: "A boat", size: "1024x1024" };
  const made = await api.images.generate(image);
  const png = Buffer.from(made.data[0].b64_json, "base64");
  assert.equal(png.subarray(1, 4).toString(), "PNG");
  const changed = await api.images.edit({ ...image, image: await toFile(png, "boat.png", { type: "image/png" }) });
  assert.ok(changed.data[0].b64_json && changed.usage.total_tokens);
  await assert.rejects(api.images.generate({ ...image, prompt: "gore" }), { status: 400, code: "moderation_blocked" });

  const speech = await api.audio.speech.create({ model: "gpt-4o-mini-tts", voice: "alloy", input: "Hello.", response_format: "opus" });
  assert.deepEqual(Buffer.from(await speech.arrayBuffer()), Buffer.from(input.speech, "base64"));
  const heard = await api.audio.transcriptions.create({ model: model.id, file: await toFile(Buffer.from(input.speech, "base64"), "note.ogg") });
  assert.equal(heard.text, "Hello.");

  const google = (apiKey) => new GoogleGenAI({ apiKey, apiVersion: "v1beta", httpOptions: { baseUrl: input.google } }).models.get({ model: input.model });
  const page = await google("right");
  assert.ok(page.name === "models/" + input.model && page.inputTokenLimit > 0 && page.outputTokenLimit > 0);
  assert.ok(page.supportedActions.includes("generateContent"));
  await assert.rejects(google("wrong"), { status: 400, message: /API key not valid/ });
}

main().catch((error) => {
  console.error(error);
  process.exit(1);
});
