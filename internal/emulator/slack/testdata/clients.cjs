// The everyday calls of an app made with Bolt, over a socket or, where the input has a port, over HTTP. Its users act
// over the control interface. The input is {url, port, bot, app, secret, user, channel, dm}.
const assert = require("node:assert/strict");
const { App, LogLevel } = require("@slack/bolt");
const { WebClient } = require("@slack/web-api");
const input = JSON.parse(require("node:fs").readFileSync(0, "utf8"));
const { user, channel, dm } = input;
const control = new URL("../emulator/", input.url).href;

function failed(error) {
  console.error(error, JSON.stringify(error.data));
  process.exit(1);
}

const app = new App({
  token: input.bot,
  logLevel: LogLevel.ERROR,
  clientOptions: { slackApiUrl: input.url, retryConfig: { retries: 0 } },
  ...(input.port ? { signingSecret: input.secret } : { socketMode: true, appToken: input.app }),
});
app.error(async (error) => failed(error));
app.message("hello", ({ message, say }) =>
  say({
    text: `Hi <@${message.user}>`,
    thread_ts: message.ts,
    blocks: [
      { type: "section", text: { type: "mrkdwn", text: `Hi <@${message.user}>` } },
      { type: "actions", elements: [{ type: "button", action_id: "yes", value: "1", text: { type: "plain_text", text: "Yes" } }] },
    ],
  }),
);
app.event("app_mention", async ({ sayStream }) => {
  const stream = sayStream();
  await stream.append({ markdown_text: "At your " });
  await stream.stop({ markdown_text: "service" });
});
app.event("reaction_added", ({ event, client }) => client.chat.postMessage({ channel: event.item.channel, text: `:${event.reaction}:` }));
app.action("yes", async ({ ack, respond, body }) => {
  await ack();
  await respond({ text: `Pressed by ${body.user.id}`, replace_original: false, response_type: "in_channel" });
});
app.command("/ask", async ({ ack, respond, command }) => {
  await ack("Wait");
  await respond({ text: `You asked ${command.text}`, response_type: "in_channel" });
});

async function act(action, body) {
  const response = await fetch(control + action, { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) });
  assert.equal(response.status, 200, `${action}: ${await response.clone().text()}`);
  return response.json();
}
// answers waits until the bot has written more, and returns its texts.
const said = new Map();
async function answers(where, more) {
  said.set(where, (said.get(where) ?? 0) + more);
  const response = await fetch(`${control}messages?channel=${where}&answers=${said.get(where)}&seconds=60`);
  assert.equal(response.status, 200, await response.clone().text());
  return (await response.json()).filter((m) => m.from_bot);
}
const texts = (list) => list.map((m) => m.text);

async function talk() {
  await app.start(input.port);
  await act("say", { channel: dm, user, text: "hello" });
  const [hi] = await answers(dm, 1);
  await act("press", { channel: dm, ts: hi.ts, user, value: "1" });
  assert.deepEqual(texts(await answers(dm, 1)), [`Hi <@${user}>`, `Pressed by ${user}`]);
  await act("command", { channel: dm, user, command: "/ask", text: "why" });
  assert.deepEqual(texts(await answers(dm, 2)).slice(2).sort(), ["Wait", "You asked why"]); // in either order
  const { user_id: me } = await app.client.auth.test();
  const asked = await act("say", { channel, user, text: `<@${me}> help` });
  await answers(channel, 1);
  await act("react", { channel, ts: asked.ts, user, text: "eyes" });
  assert.deepEqual(texts(await answers(channel, 1)), ["At your service", ":eyes:"]);
  await calls(new WebClient(input.bot, { slackApiUrl: input.url, retryConfig: { retries: 0 } }), asked);
  if (!input.port) await app.stop(); // a server of Node also waits for connections that were never used
}

async function calls(web, asked) {
  const color = [{ color: "#36a64f", text: "Built", fallback: "Built" }];
  const metadata = { event_type: "built", event_payload: { id: "7" } };
  const posted = await web.chat.postMessage({ channel, text: "Done", attachments: color, metadata, unfurl_links: false });
  assert.equal(posted.message.attachments[0].text, "Built");
  const { messages } = await web.conversations.history({ channel, limit: 1, include_all_metadata: true });
  assert.deepEqual([messages[0].attachments[0].fallback, messages[0].metadata], ["Built", metadata]);
  await web.chat.update({ channel, ts: posted.ts, text: "Done again" });
  assert.ok((await web.chat.getPermalink({ channel, message_ts: posted.ts })).permalink.includes(channel));
  await web.chat.postEphemeral({ channel, user, text: "For you" });
  await web.reactions.add({ channel, timestamp: posted.ts, name: "tada" });
  const { message } = await web.reactions.get({ channel, timestamp: posted.ts });
  assert.deepEqual(message.reactions.map((r) => [r.name, r.count]), [["tada", 1]]);
  await web.reactions.remove({ channel, timestamp: posted.ts, name: "tada" });
  await web.chat.delete({ channel, ts: posted.ts });

  assert.equal((await web.api.test({ foo: "bar" })).args.foo, "bar");
  assert.equal((await web.conversations.info({ channel })).channel.id, channel);
  assert.ok((await web.conversations.list({ types: "public_channel,im" })).channels.some((c) => c.id === channel));
  assert.ok((await web.conversations.members({ channel })).members.includes(user));
  assert.equal((await web.conversations.replies({ channel, ts: asked.ts })).messages.length, 2);
  assert.equal((await web.conversations.open({ users: user })).channel.id, dm);
  const people = [];
  for await (const page of web.paginate("users.list", { limit: 1 })) people.push(...page.members);
  assert.ok(people.length > 1 && people.some((p) => p.id === user));
  assert.equal((await web.users.info({ user })).user.id, user);

  const uploaded = await web.files.uploadV2({ channel_id: channel, filename: "my report ü.txt", file: Buffer.from("report"), initial_comment: "Here" });
  const { file } = await web.files.info({ file: uploaded.files[0].files[0].id });
  assert.equal(file.name, "my report ü.txt");
  const got = await fetch(file.url_private, { headers: { Authorization: `Bearer ${input.bot}` } });
  assert.equal(await got.text(), "report");
  for (const buffer_size of [1, 256]) {
    const stream = web.chatStream({ channel, thread_ts: asked.ts, recipient_user_id: user, recipient_team_id: "T0ONECLAW", buffer_size });
    await stream.append({ markdown_text: "one " });
    await stream.append({ markdown_text: "two" });
    await stream.stop({ markdown_text: "!" });
    assert.equal((await web.conversations.replies({ channel, ts: asked.ts })).messages.at(-1).text, "one two!");
  }
  const task = (status) => ({ chunks: [{ type: "task_update", id: "1", title: "Search", status }] });
  const stream = web.chatStream({ channel, recipient_user_id: user, recipient_team_id: "T0ONECLAW" }); // a channel needs no thread
  await stream.append({ markdown_text: "Wait. " });
  await stream.append(task("in_progress"));
  await stream.append({ markdown_text: "Found." });
  const { ts } = await stream.stop(task("complete"));
  assert.equal((await web.conversations.replies({ channel, ts })).messages[0].text, "Wait. Found.");
  await web.views.publish({ user_id: user, view: { type: "home", blocks: [{ type: "section", text: { type: "mrkdwn", text: "Home" } }] } });

  for (const [method, params, code] of [
    ["chat.postMessage", { channel: "C9", text: "x" }, "channel_not_found"],
    ["chat.postMessage", { channel }, "no_text"],
    ["views.open", { trigger_id: "1", view: { type: "modal", title: { type: "plain_text", text: "x" }, blocks: [] } }, "invalid_trigger_id"],
    ["chat.startStream", { channel: dm, markdown_text: "x" }, "invalid_arguments"],
    ["chat.shout", {}, "unknown_method"],
  ]) {
    await assert.rejects(web.apiCall(method, params), (error) => error.data?.error === code);
  }
}

talk().then(() => process.exit(0), failed);
