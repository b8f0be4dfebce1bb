// The everyday calls of a bot, made with the library that the input names. Its users act over the control
// interface. The input is {library, url, token, user, group}.
const assert = require("node:assert/strict");
const { library, url, token, user, group } = JSON.parse(require("node:fs").readFileSync(0, "utf8"));

const keyboard = { inline_keyboard: [[{ text: "Yes", callback_data: "yes" }, { text: "Site", url: "https://example.org/" }]] };
const html = { parse_mode: "HTML", reply_markup: keyboard };
const greeting = `Hello <b>you</b>, see <a href="https://example.org/">this</a>`;

let edited;
const done = new Promise((resolve) => (edited = resolve));

// Each library starts a bot that answers /start, a press and everything else, and returns how to call a method,
// how to make a file, and how to end the bot.
const libraries = {
  grammy() {
    const { Bot, InputFile } = require("grammy");
    const bot = new Bot(token, { client: { apiRoot: url } });
    bot.catch(failed);
    bot.command("start", (ctx) => ctx.reply(greeting, html));
    bot.callbackQuery("yes", async (ctx) => {
      await ctx.answerCallbackQuery({ text: "Thanks" });
      edited(await ctx.editMessageText("Done"));
    });
    bot.on("message_reaction", (ctx) => ctx.reply("Seen"));
    bot.on("message:text", (ctx) => ctx.reply(ctx.message.text, { reply_parameters: { message_id: ctx.message.message_id } }));
    const running = bot.start({ allowed_updates: ["message", "callback_query", "message_reaction"] });
    return {
      call: (method, ...params) => bot.api.raw[method](...params),
      file: (name) => new InputFile(Buffer.from("report of " + name), name),
      end: () => Promise.all([bot.stop(), running]),
    };
  },
  telegraf() {
    const { Telegraf } = require("telegraf");
    const bot = new Telegraf(token, { telegram: { apiRoot: url } });
    bot.catch(failed);
    bot.start((ctx) => ctx.reply(greeting, html));
    bot.action("yes", async (ctx) => {
      await ctx.answerCbQuery("Thanks");
      edited(await ctx.editMessageText("Done"));
    });
    bot.on("message_reaction", (ctx) => ctx.reply("Seen"));
    bot.on("text", (ctx) => ctx.reply(ctx.message.text, { reply_parameters: { message_id: ctx.message.message_id } }));
    const running = bot.launch({ allowedUpdates: ["message", "callback_query", "message_reaction"] });
    return {
      call: (method, params) => bot.telegram.callApi(method, params ?? {}),
      file: (name) => ({ source: Buffer.from("report of " + name), filename: name }),
      end: () => (bot.stop(), running),
    };
  },
  "node-telegram-bot-api"() {
    const { Bot, InputFile, longPoll } = require("node-telegram-bot-api");
    const bot = new Bot(token, { apiRoot: url, maxRetries: 0 });
    bot.catch(failed);
    bot.command("start", (ctx) => ctx.reply(greeting, html));
    bot.on("callback_query", async (ctx) => {
      await ctx.answerCallbackQuery({ text: "Thanks" });
      edited(await bot.api.editMessageText({ chat_id: ctx.chatId, message_id: ctx.callbackQuery.message.message_id, text: "Done" }));
    });
    bot.on("message_reaction", (ctx) => ctx.reply("Seen"));
    bot.on("message", (ctx) => ctx.reply(ctx.message.text, { reply_parameters: { message_id: ctx.message.message_id } }));
    const running = bot.startPolling(undefined, { allowedUpdates: ["message", "callback_query", "message_reaction"] });
    return {
      call: (method, ...params) => bot.api[method](...params),
      file: (name) => new InputFile(new Blob(["report of " + name]), { filename: name }),
      end: () => (bot.stop(), running),
    };
  },
};

function failed(error) {
  console.error(error);
  process.exit(1);
}

// act acts as a user; answers waits for the bot's messages.
async function act(action, body) {
  const response = await fetch(`${url}/emulator/${action}`, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(response.status, 200, `${action}: ${await response.clone().text()}`);
  return response.json();
}
const said = new Map();
async function answers(chat, more) {
  said.set(chat, (said.get(chat) ?? 0) + more);
  const response = await fetch(`${url}/emulator/messages?chat=${chat}&answers=${said.get(chat)}&seconds=60`);
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()).filter((m) => m.from_bot);
}

async function talk() {
  const bot = libraries[library]();
  const last = (list) => list[list.length - 1];

  await act("say", { chat: user, user, text: "/start" });
  const greeted = last(await answers(user, 1));
  assert.equal(greeted.text, "Hello you, see this");
  assert.deepEqual(greeted.entities.map((e) => e.type), ["bold", "text_link"]);
  await act("press", { chat: user, message: greeted.id, user, data: "yes" });
  await act("say", { chat: user, user, text: "how are you?" });
  const echoed = last(await answers(user, 1));
  assert.equal(echoed.text, "how are you?");
  await act("react", { chat: user, message: echoed.id, user, text: "👍" });
  assert.equal(last(await answers(user, 1)).text, "Seen");
  assert.equal((await done).text, "Done");

  const { call } = bot;
  const me = await call("getMe");
  assert.ok(me.is_bot);
  await call("setMyCommands", { commands: [{ command: "start", description: "Begin" }] });
  assert.equal((await call("getMyCommands")).length, 1);
  assert.equal((await call("getChat", { chat_id: group })).type, "supergroup");
  assert.equal((await call("getChatMember", { chat_id: group, user_id: user })).status, "creator");
  assert.equal(await call("getChatMemberCount", { chat_id: group }), 2);
  await call("sendChatAction", { chat_id: user, action: "typing" });

  for (const name of ["report.txt", "my report.txt", "Übersicht (neu), 100%.txt", "a=b'c.txt"]) {
    const sent = await call("sendDocument", { chat_id: user, document: bot.file(name), caption: "<i>for</i> you", parse_mode: "HTML" });
    assert.equal(sent.document.file_name, name);
    const { file_path } = await call("getFile", { file_id: sent.document.file_id });
    const got = await fetch(`${url}/file/bot${token}/${file_path}`);
    assert.equal(await got.text(), "report of " + name);
    await call("sendDocument", { chat_id: user, document: sent.document.file_id });
  }
  const [first, second] = await call("sendMediaGroup", {
    chat_id: user,
    media: [{ type: "document", media: bot.file("one.txt") }, { type: "document", media: bot.file("two.txt"), caption: "both" }],
  });
  assert.ok(first.media_group_id && first.media_group_id === second.media_group_id);
  assert.equal(second.caption, "both");

  const text = await call("sendMessage", { chat_id: user, text: "@durov, see example.org", link_preview_options: { is_disabled: true } });
  assert.deepEqual(text.entities.map((e) => e.type), ["mention", "url"]);
  await call("editMessageText", { chat_id: user, message_id: text.message_id, text: "<u>x</u>", parse_mode: "HTML", reply_markup: keyboard });
  await call("editMessageReplyMarkup", { chat_id: user, message_id: text.message_id });
  const forwarded = await call("forwardMessage", { chat_id: group, from_chat_id: user, message_id: text.message_id });
  assert.equal(forwarded.forward_origin.type, "user");
  const { message_id } = await call("copyMessage", { chat_id: group, from_chat_id: user, message_id: text.message_id });
  await call("pinChatMessage", { chat_id: group, message_id, disable_notification: true });
  await call("unpinChatMessage", { chat_id: group, message_id });
  await call("setMessageReaction", { chat_id: user, message_id: text.message_id, reaction: [{ type: "emoji", emoji: "👍" }] });
  await call("deleteMessage", { chat_id: user, message_id: text.message_id });

  for (const [method, params, description] of [
    ["sendMessage", { chat_id: 5, text: "x" }, "Bad Request: chat not found"],
    ["sendMessage", { chat_id: user, text: "<b>x", parse_mode: "HTML" }, `Bad Request: can't parse entities: Can't find end tag corresponding to start tag "b"`],
    ["sendDice", { chat_id: user }, "Not Found: method not found"],
  ]) {
    await assert.rejects(call(method, params), (error) => (error.description ?? error.response.description) === description);
  }
  await bot.end();
}

talk().then(() => process.exit(0), failed);
