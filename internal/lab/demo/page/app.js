// The page shows what the demo tells it, whole, each time something has changed, and
// sends what the person writes. All text is put in as text, never as HTML.

const platforms = [
  { key: "telegram", title: "Telegram", where: "Private chat with @oneclaw_bot" },
  { key: "slack", title: "Slack", where: "Lighthouse" },
];
// What a person can try, by what it shows. An empty chat begins with two of each of the first four groups.
const ideas = [
  { title: "It reads and calculates", all: [
    { text: "What is this document about?", pdf: true },
    { text: "17*23" },
    { text: "What were the sales in October?" },
    { text: "How many pages does the PDF have?" },
    { text: "What does page 2 of the PDF say?" },
  ] },
  { title: "It remembers and reminds", all: [
    { text: "Remember that my cat is called Minka" },
    { text: "Remind me in 1 minute to stretch" },
    { text: "What is my cat called?" },
    { text: "Add milk and eggs to my shopping list" },
  ] },
  { title: "It makes pictures and files", all: [
    { text: "Draw a cat" },
    { text: "Make a spreadsheet: item, cost; rent, 900; food, 400" },
    { text: "Make it blue" },
    { text: "Read table.xlsx" },
  ] },
  { title: "It acts, and asks first", all: [
    { text: "Run echo hello", commands: true },
    // Accounts are connected in a direct chat, and the Slack pane begins in a channel.
    { text: "/connect google gmail calendar sheets", only: "telegram" },
    { text: "Check my email", only: "telegram" },
    { text: "Delete the spam ones", only: "telegram" },
    { text: "What is in my calendar?", only: "telegram" },
    { text: "Read the budget sheet", only: "telegram" },
    { text: "Run sleep 5 && echo done", commands: true },
  ] },
  { title: "Commands", all: [
    { text: "/voice on", only: "telegram" },
    { text: "/tools", only: "telegram" },
    { text: "/clear", only: "telegram" },
    // Slack keeps what begins with a slash for itself.
    { text: "!voice on", only: "slack" },
    { text: "!tools", only: "slack" },
    { text: "!clear", only: "slack" },
  ] },
];

const el = (name, props = {}, ...children) => {
  const node = Object.assign(document.createElement(name), props);
  node.append(...children);
  return node;
};

async function post(path, body) {
  const response = await fetch(path, {
    method: "POST", headers: { "Content-Type": "application/json" }, body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(await response.text());
  return response;
}

// Telegram's formatting: entities with offsets in UTF-16 units, as JavaScript counts.
const wrappers = {
  bold: () => el("b"), italic: () => el("i"), underline: () => el("u"), strikethrough: () => el("s"),
  code: () => el("code"), pre: () => el("pre"), blockquote: () => el("blockquote"),
  text_link: (e) => link(e.url), url: (e, text) => link(text),
};

function link(address) {
  const a = el("a", { rel: "noreferrer noopener", target: "_blank" });
  if (/^(https?|mailto|tg):/.test(address)) a.href = address;
  return a;
}

function entities(text, list, from = 0, to = text.length) {
  const out = document.createDocumentFragment();
  let at = from;
  for (let i = 0; i < list.length; i++) {
    const e = list[i];
    const end = e.offset + e.length;
    if (e.offset < at || end > to) continue;
    const block = e.type === "pre" || e.type === "blockquote";
    const before = text.slice(at, e.offset);
    out.append(block ? before.trimEnd() : before);
    const inner = list.slice(i + 1).filter((o) => o.offset >= e.offset && o.offset + o.length <= end);
    const wrap = wrappers[e.type]?.(e, text.slice(e.offset, end)) ?? document.createDocumentFragment();
    wrap.append(entities(text, inner, e.offset, end));
    out.append(wrap);
    at = end;
    while (block && text[at] === "\n") at++;
  }
  out.append(text.slice(at, to));
  return out;
}

// Slack's mrkdwn, as far as the bot writes it.
const unescape = (s) => s.replace(/&lt;/g, "<").replace(/&gt;/g, ">").replace(/&amp;/g, "&");
const marks = { "*": "b", "_": "i", "~": "s" };

function inline(text) {
  const out = document.createDocumentFragment();
  const pattern = /`([^`\n]+)`|<([^<>|]+)(?:\|([^<>]*))?>|(?<![\w*_~])([*_~])(?=\S)([^\n]*?\S)\4(?![\w*_~])/g;
  let at = 0;
  for (const m of text.matchAll(pattern)) {
    out.append(unescape(text.slice(at, m.index)));
    at = m.index + m[0].length;
    if (m[1] !== undefined) out.append(el("code", {}, unescape(m[1])));
    else if (m[2] !== undefined) out.append(reference(m[2], m[3]));
    else out.append(el(marks[m[4]], {}, inline(m[5])));
  }
  out.append(unescape(text.slice(at)));
  return out;
}

function reference(target, label) {
  if (target.startsWith("@")) return el("b", { className: "mention" }, "@OneClaw");
  const a = link(unescape(target));
  a.append(unescape(label || target));
  return a;
}

function mrkdwn(text) {
  const out = document.createDocumentFragment();
  text.split(/\n*```(?:[\w+#-]*\n)?([\s\S]*?)\n?```\n*/).forEach((piece, i) => {
    if (i % 2) return out.append(el("pre", {}, unescape(piece)));
    piece.split(/((?:^> ?.*(?:\n|$))+)/m).forEach((part, j) => {
      if (j % 2) out.append(el("blockquote", {}, inline(part.replace(/^> ?/gm, "").trimEnd())));
      else out.append(inline(part));
    });
  });
  return out;
}

// Slack names its reactions; this is the one that the bot gives.
const emoji = { eyes: "👀" };
const plural = (n, one, many) => `${n} ${n === 1 ? one : many}`;
const names = (m) => (m.files ?? []).map((f) => f.name).join(", ");
const brief = (m) => (m.text || names(m)).replace(/<@[^>]*>\s*/g, "").split("\n")[0].slice(0, 60);

// A file as the demo takes it. How long a recording lasts that was picked is a guess by its size.
async function upload(blob, name) {
  const address = await new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(reader.result);
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(blob);
  });
  const seconds = blob.type.startsWith("audio/") ? Math.max(1, Math.round(blob.size / 4000)) : 0;
  return { name, type: blob.type, data: address.slice(address.indexOf(",") + 1), seconds };
}

// A message of a request, with the words of others apart.
function shownToModel(m) {
  const item = el("li", {}, el("b", {}, m.role));
  if (m.quoted) item.append(el("span", { className: "quoted" }, m.quoted));
  if (m.text) item.append(el("span", {}, m.text));
  for (const p of m.pictures ?? []) item.append(el("span", {}, "🖼 " + p));
  for (const f of m.files ?? []) item.append(el("span", {}, "📎 " + f));
  if (m.calls) item.append(el("span", {}, "calls " + m.calls.join(", ")));
  return item;
}

// What a call cost is an estimate, and the README has the count: the page compares, and names no tokens.
const share = (c) => `${Math.round(100 * c.tokens / Math.max(1, c.all))} % of what all tools would cost`;
const bars = "Each bar is one call of the model: grey is what sending all tools would cost, orange what was sent.";

// A pane is a chat. In Slack it has another one at its side for the thread that is open, whose channel it is.
class Pane {
  constructor(platform, channel = null) {
    this.platform = platform;
    this.channel = channel;
    this.thread = ""; // the thread of a pane at the side; empty for none
    this.place = ""; // Slack's tab: the channel, "direct" or "home"
    this.open = {}; // the thread of each tab
    this.shown = "";
    this.files = []; // chosen and not sent
    this.reply = null; // the message that the next one answers
    this.edit = null; // the message that the text replaces
    const root = document.getElementById("pane").content.firstElementChild.cloneNode(true);
    const find = (selector) => root.querySelector(selector);
    this.parts = Object.fromEntries(["log", "busy", "ideas", "compose", "attach", "pick", "record", "files", "staged", "send", "problem", "groups", "chart", "back", "tabs", "home", "halt", "offered", "more", "hands"]
      .map((name) => [name, find("." + name)]));
    this.parts.caption = find("figcaption");
    this.parts.grid = find(".ideas .grid");
    this.parts.hint = find(".hint");
    this.root = root;
    this.input = find("textarea");
    const title = channel ? "Thread" : platform.title;
    root.id = channel ? platform.key + "-thread" : platform.key;
    find("h2").textContent = title;
    find("h2").id = root.id + "-title";
    root.setAttribute("aria-labelledby", root.id + "-title");
    find(".where").textContent = channel ? "" : platform.where;
    this.parts.log.setAttribute("aria-label", title + " messages");
    find("label span").textContent = channel ? "Reply in the thread" : "Message in " + platform.title;
    this.listen();
    if (!channel) return document.getElementById("panes").append(root);
    root.classList.add("side");
    root.hidden = true;
    this.parts.back.hidden = false;
    this.input.placeholder = "Reply…";
    for (const part of root.querySelectorAll(".cost, .home, .offered, .tabs")) part.remove();
    channel.root.append(root);
  }

  listen() {
    const { compose, attach, back, send, more, ideas } = this.parts;
    compose.addEventListener("submit", (e) => { e.preventDefault(); this.say(this.input.value); });
    this.input.addEventListener("keydown", (e) => {
      if (e.key === "Enter" && !e.shiftKey && !e.isComposing) { e.preventDefault(); compose.requestSubmit(); }
    });
    send.addEventListener("click", () => compose.requestSubmit());
    // The box grows with what is written.
    this.input.addEventListener("input", () => this.grow());
    for (const menu of [more, ideas]) {
      const close = () => { if (menu === more || !this.blank) menu.open = false; };
      menu.addEventListener("click", (e) => { if (e.target.closest("button")) close(); });
      menu.addEventListener("keydown", (e) => { if (e.key === "Escape") { close(); menu.firstElementChild.focus(); } });
      menu.addEventListener("focusout", (e) => { if (!menu.contains(e.relatedTarget)) close(); });
    }
    ideas.querySelector(".rest").addEventListener("click", () => ideas.classList.add("all"));
    attach.addEventListener("click", () => this.say(this.input.value || "What is this document about?", true));
    const { pick, record, files, staged } = this.parts;
    pick.addEventListener("click", () => files.click());
    files.addEventListener("change", async () => {
      try {
        this.files.push(...await Promise.all([...files.files].map((f) => upload(f, f.name))));
      } catch (err) {
        this.parts.problem.textContent = "Not read: " + err.message;
      }
      files.value = "";
      this.stage();
    });
    record.addEventListener("click", () => this.record());
    // Slack's apps have none of these; there a message is forwarded by quoting it.
    for (const sample of more.querySelectorAll(".sample")) {
      sample.hidden = this.platform.key === "slack";
      sample.addEventListener("click", () => this.sendSample(sample.value));
    }
    staged.querySelector("button").addEventListener("click", () => this.unstage());
    this.input.addEventListener("keydown", (e) => { if (e.key === "Escape") this.unstage(); });
    this.parts.halt.addEventListener("click", () => this.tell("stop", { thread: this.thread }));
    window.addEventListener("resize", () => this.toEnd());
    for (const tab of this.parts.tabs.children) tab.addEventListener("click", () => this.turnTo(tab.value));
    this.parts.tabs.hidden = this.platform.key !== "slack";
    back.addEventListener("click", () => this.channel.openThread(""));
  }

  toEnd() {
    this.parts.log.scrollTop = this.parts.log.scrollHeight;
    this.side?.toEnd();
  }

  grow() {
    this.input.style.height = "auto";
    this.input.style.height = Math.min(this.input.scrollHeight + 2, 128) + "px";
  }

  // Commands are suggested only where they can run.
  suggest(commands) {
    if (this.suggested === commands) return;
    this.suggested = commands;
    this.side?.suggest(commands);
    const fits = (i) => (!i.only || i.only === this.platform.key) && (!i.commands || commands);
    this.parts.grid.replaceChildren(...ideas.map((group) => [group.title, group.all.filter(fits)]).filter(([, all]) => all.length).map(([title, all]) =>
      el("div", {}, el("h3", {}, title), ...all.map((idea) => {
        const button = el("button", { type: "button" }, idea.pdf ? "Send the PDF: " + idea.text : idea.text);
        button.addEventListener("click", () => this.say(idea.text, idea.pdf));
        return button;
      }))));
  }

  openThread(id) {
    const { side, root, input } = this;
    const typing = root.contains(document.activeElement) && !input.value;
    side.thread = id;
    side.root.hidden = !id;
    this.render(this.state);
    this.toEnd();
    // What is written next is meant for the thread, and after it for the channel.
    if (typing) (id ? side.input : input).focus();
  }

  // Slack's tabs: the channel, the chat with the app, and what the app tells about itself.
  turnTo(place) {
    this.open[this.place] = this.side.thread;
    this.place = this.side.place = place;
    if (place) this.tell("open", {});
    this.openThread(this.open[place] ?? "");
  }

  async tell(what, more) {
    try {
      await post(what, { pane: this.platform.key, place: this.place, ...more });
      this.parts.problem.textContent = "";
    } catch (err) {
      this.parts.problem.textContent = "Not done: " + err.message;
    }
  }

  // What Slack shows of the app besides messages.
  renderSurface(surface) {
    const { tabs, home, halt, offered, log, compose, ideas, hands } = this.parts;
    halt.hidden = this.place !== "direct" || surface?.sessions[this.thread] !== "processing";
    if (!this.side) return;
    this.input.placeholder = this.place ? "Message OneClaw" : "Message #general";
    for (const tab of tabs.children) tab.setAttribute("aria-pressed", String(tab.value === this.place));
    const away = this.place === "home";
    for (const part of [log, compose, ideas, hands]) part.hidden = away;
    home.hidden = !away;
    const told = JSON.stringify(surface?.home ?? []);
    if (this.homeShown !== told) {
      this.homeShown = told;
      const blocks = (surface?.home ?? []).map((b) => b.type === "header"
        ? el("h3", {}, b.text.text) : el("div", {}, mrkdwn(b.text?.text ?? "")));
      home.replaceChildren(...(blocks.length ? blocks : ["The bot is asked what it can do for you …"]));
    }
    const prompts = this.place === "direct" && !this.side.thread ? surface?.prompts ?? [] : [];
    const key = JSON.stringify(prompts);
    offered.hidden = !prompts.length;
    if (key === this.promptsShown) return;
    this.promptsShown = key;
    offered.replaceChildren("OneClaw suggests: ", ...prompts.map((p) => {
      const button = el("button", { type: "button" }, p.title);
      button.addEventListener("click", () => this.say(p.message));
      return button;
    }));
  }

  // A forwarded message is the text in the box, or a sample.
  async sendSample(sample) {
    await this.tell("say", { sample, text: this.input.value });
    if (sample === "forward") this.input.value = "";
  }

  unstage() {
    if (this.edit) this.input.value = "";
    this.files = [];
    this.reply = this.edit = null;
    this.stage();
  }

  // What goes with the next message stands above the input.
  stage() {
    const { staged } = this.parts;
    const words = [];
    if (this.edit) words.push(`Editing “${brief(this.edit)}”`);
    if (this.reply) words.push(`${this.replies()} “${brief(this.reply)}”`);
    if (this.files.length) words.push("With " + this.files.map((f) => f.name).join(", "));
    staged.hidden = words.length === 0;
    staged.querySelector("span").textContent = words.join(". ");
    const at = document.activeElement;
    // Who has gone on to the other pane while this one was sent is left there.
    if (!at || at === document.body || at.closest("section") === this.input.closest("section")) this.input.focus();
  }

  // In Slack a message is passed on with words of one's own; in Telegram it is answered.
  replies() { return this.platform.key === "slack" ? "Quoting" : "Replying to"; }

  // A press begins to record, the next one sends. Without a microphone a recording is picked.
  async record() {
    const { record, problem, files } = this.parts;
    if (this.recorder) return this.recorder.stop();
    let stream;
    try {
      stream = await navigator.mediaDevices.getUserMedia({ audio: true });
    } catch {
      problem.textContent = "There is no microphone: pick a recording instead.";
      files.click();
      return;
    }
    const pieces = [], began = Date.now();
    const recorder = this.recorder = new MediaRecorder(stream);
    record.textContent = "Stop and send";
    recorder.addEventListener("dataavailable", (e) => pieces.push(e.data));
    recorder.addEventListener("stop", async () => {
      this.recorder = null;
      record.textContent = "Record";
      for (const track of stream.getTracks()) track.stop();
      const type = recorder.mimeType.split(";")[0];
      const sound = await upload(new Blob(pieces, { type }), "voice." + type.split("/")[1]);
      sound.seconds = Math.max(1, Math.round((Date.now() - began) / 1000));
      this.files.push(sound);
      await this.say(this.input.value);
    });
    recorder.start();
  }

  async say(text, pdf = false) {
    if (!text.trim() && !pdf && !this.files.length) return;
    this.parts.send.disabled = true;
    // The box and what goes with it are empty at once, for what is typed and picked meanwhile. A suggestion leaves a draft alone.
    const { files, reply, edit } = this;
    Object.assign(this, { files: [], reply: null, edit: null });
    this.stage();
    const typed = this.input.value === text ? text : "";
    if (typed) this.input.value = "";
    this.grow();
    try {
      const response = await post("say", { pane: this.platform.key, place: this.place, text, pdf, thread: this.thread, reply: reply?.id, edit: edit?.id, files });
      const sent = await response.json();
      this.parts.problem.textContent = "";
      if (this.side && !edit) this.openThread(sent.ts);
    } catch (err) {
      this.parts.problem.textContent = "Not sent: " + err.message;
      this.input.value ||= typed;
      this.grow();
      this.files.unshift(...files);
      this.reply ??= reply;
      this.edit ??= edit;
      this.stage();
    } finally {
      this.parts.send.disabled = false;
    }
  }

  render(state) {
    if (!state) return;
    this.state = state;
    this.renderSurface(state.surface);
    const here = state.messages.filter((m) => (m.place ?? "") === this.place);
    // A channel shows how its threads begin.
    const shown = this.side ? (m) => !m.thread || m.thread === m.id : (m) => !this.channel || (m.thread || m.id) === this.thread;
    const messages = here.filter(shown);
    const given = this.side ? new Map() : this.given(messages);
    const answered = state.busy ? messages.length : messages.findLastIndex((m) => m.bot);
    this.renderLog(messages.map((m, i) => ({
      ...m, given: given.get(m.id), seen: !m.bot && i < answered,
      replies: this.side ? here.filter((other) => other.thread === m.id && other.id !== m.id).length : 0,
      title: state.surface?.titles[m.id],
    })));
    const busy = state.busy && !this.side?.thread && !(messages.length && messages.at(-1).bot) ? "OneClaw is working…" : "";
    if (this.parts.busy.textContent !== busy) this.parts.busy.textContent = busy;
    this.side?.render(state);
    if (!this.channel) this.renderCost(state.ledgers[this.side?.thread ?? ""]);
  }

  renderLog(messages) {
    const key = JSON.stringify(messages);
    if (key === this.shown) return;
    this.shown = key;
    const { log } = this.parts;
    const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 60;
    const known = new Map([...log.children].map((node) => [node.dataset.id, node]));
    const nodes = messages.map((m) => {
      const node = known.get(m.id);
      return node && node.dataset.text === JSON.stringify(m) ? node : this.message(m);
    });
    this.invite(!messages.length && !this.channel);
    // Only what is new is put in, so that a screen reader reads only that.
    for (const node of [...log.children]) if (!nodes.includes(node)) node.remove();
    nodes.forEach((node, i) => { if (log.children[i] !== node) log.insertBefore(node, log.children[i] ?? null); });
    if (atEnd || !messages.at(-1)?.bot) log.scrollTop = log.scrollHeight;
  }

  // An empty chat is filled with suggestions; otherwise they are a menu above the message box.
  invite(blank) {
    const { ideas, hint } = this.parts;
    hint.textContent = this.platform.key === "telegram" ? "Write anything, or try one of these."
      : this.place ? "Each message here begins a conversation. Write anything, or try one of these."
        : "Write here and the bot is mentioned; it answers in a thread. Or try one of these.";
    if (this.blank === blank) return;
    this.blank = ideas.open = blank;
    ideas.classList.remove("all");
    this.root.classList.toggle("blank", blank);
  }

  // What the model was given for a question stands under the last answer to it.
  given(messages) {
    const under = new Map();
    messages.forEach((m, i) => {
      if (m.bot || !m.given) return;
      let at = i;
      while (messages[at + 1]?.bot) at++;
      under.set(messages[at].id, { question: m.id, tools: m.given });
    });
    return under;
  }

  // A message looks as in its app: a bubble with its time and ticks, or a row with a face and a name.
  message(m) {
    const slack = this.platform.key === "slack";
    const time = el("span", { className: "time" }, new Date(m.time).toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" }));
    const body = el("div", { className: "body" });
    const node = el("div", { className: m.bot ? "msg" : "msg mine" });
    node.dataset.id = m.id;
    node.dataset.text = JSON.stringify(m);
    if (slack) {
      const who = el("p", { className: "who" }, el("b", {}, m.bot ? "OneClaw" : "You"));
      if (m.bot) who.append(el("i", {}, "APP"));
      who.append(time);
      node.append(m.bot ? el("img", { className: "face", src: "icon.svg", alt: "" }) : el("span", { className: "face", ariaHidden: "true" }, "Y"), who);
    } else {
      body.append(el("span", { className: "hidden" }, m.bot ? "OneClaw: " : "You: "));
      if (!m.bot) time.append(el("span", { className: "ticks", title: m.seen ? "Read" : "Sent", role: "img", ariaLabel: m.seen ? "Read" : "Sent" }, m.seen ? "✓✓" : "✓"));
    }
    const answered = m.reply && this.state.messages.find((other) => other.id === m.reply);
    if (m.forwarded) body.append(el("span", { className: "re" }, "Forwarded from " + m.forwarded));
    if (answered) body.append(el("span", { className: "re" }, "↩ " + brief(answered)));
    (m.files ?? []).forEach((f, n) => body.append(...this.attachment(m, f, n)));
    if (m.tasks?.length) body.append(el("ul", { className: "tasks" }, ...m.tasks.map((t) => el("li", { className: t.done ? "done" : "" }, t.title))));
    body.append(slack ? mrkdwn(m.text) : entities(m.text, m.entities ?? []));
    if (!slack) body.append(time);
    node.append(body);
    if (m.reactions?.length) node.append(el("p", { className: "reactions" }, ...m.reactions.map((name) => el("span", {}, emoji[name] ?? name))));
    if (m.buttons?.length) node.append(this.buttons(m));
    if (this.side) node.append(this.threadOf(m));
    const reply = el("button", { type: "button", className: "reply", title: slack ? "Quote" : "Reply" }, slack ? "Quote" : "↩");
    reply.setAttribute("aria-label", `${reply.title}: ${brief(m)}`);
    reply.addEventListener("click", () => { this.reply = m; this.edit = null; this.stage(); });
    node.append(reply);
    if (!m.bot && m.text && !m.forwarded) {
      const edit = el("button", { type: "button", className: "reply edit", title: "Edit" }, slack ? "Edit" : "✎");
      edit.setAttribute("aria-label", `Edit: ${brief(m)}`);
      edit.addEventListener("click", () => {
        this.edit = m;
        this.reply = null;
        this.input.value = m.text.replace(/<@[^>]*>\s*/g, "");
        this.grow();
        this.stage();
      });
      node.append(edit);
    }
    if (m.given) node.append(this.fold(m.given));
    return node;
  }

  // A thread is opened at the message that it begins with.
  threadOf(m) {
    const label = m.replies ? plural(m.replies, "reply", "replies") : "Open the thread";
    const open = el("button", { type: "button", className: "thread" }, m.title && m.title !== m.text ? `${m.title} · ${label}` : label);
    open.addEventListener("click", () => this.openThread(m.id));
    return open;
  }

  // Every file can be saved; pictures are shown, and recordings played.
  attachment(m, f, n) {
    const src = `file?pane=${this.platform.key}&place=${this.place}&message=${encodeURIComponent(m.id)}&n=${n}`;
    const file = el("a", { className: "file", href: src, download: f.name }, f.name);
    file.dataset.kind = f.name.includes(".") ? f.name.split(".").at(-1).toUpperCase().slice(0, 4) : "FILE";
    if (f.type?.startsWith("image/")) return [file, el("img", { src, alt: f.name })];
    if (f.type?.startsWith("audio/")) return [file, el("audio", { src, controls: true, preload: "none", ariaLabel: f.name })];
    return [file];
  }

  // What the model was given is asked for when somebody wants to see it.
  fold({ question, tools }) {
    const fold = el("details", { className: "given" }, el("summary", {}, `What the model was given · ${tools} tools`));
    fold.addEventListener("toggle", async () => {
      if (!fold.open) return;
      const list = el("ol");
      try {
        const response = await fetch(`given?pane=${this.platform.key}&place=${this.place}&message=${encodeURIComponent(question)}`);
        if (!response.ok) throw new Error(await response.text());
        const given = await response.json();
        if (given.before) list.append(el("li", {}, `${given.before} older messages`));
        list.append(...given.messages.map(shownToModel));
      } catch (err) {
        list.append(el("li", {}, "Not known: " + err.message));
      }
      fold.replaceChildren(fold.firstElementChild, list);
      fold.scrollIntoView({ block: "nearest" });
    });
    return fold;
  }

  // Buttons under a message; a press goes the way of a press in the app.
  buttons(m) {
    return el("div", { className: "buttons" }, ...m.buttons.map((row) => el("div", {}, ...row.map((b) => {
      const button = el("button", { type: "button", className: b.style ?? "" }, b.label);
      button.addEventListener("click", async () => {
        button.disabled = true;
        try {
          await post("press", { pane: this.platform.key, place: this.place, message: m.id, data: b.data });
          this.parts.problem.textContent = "";
        } catch (err) {
          this.parts.problem.textContent = "Not pressed: " + err.message;
        } finally {
          button.disabled = false;
        }
      });
      return button;
    }))));
  }

  renderCost(ledger) {
    const { groups, chart, caption } = this.parts;
    const key = JSON.stringify(ledger ?? null);
    if (key === this.costShown) return;
    this.costShown = key;
    const names = ledger?.groups ?? [];
    groups.replaceChildren("Loaded: ", ...(names.length ? names.map((n) => el("span", { className: "chip" }, n)) : ["no tool group yet"]));
    const all = ledger?.calls ?? [], before = Math.max(0, all.length - 40), calls = all.slice(before);
    const top = Math.max(1, ...calls.map((c) => c.all));
    // Bars of calls that were routed alike stand together, over the name of the way.
    const runs = [];
    calls.forEach((c, i) => {
      if (!runs.length || runs.at(-1).routing !== c.routing) runs.push({ routing: c.routing, bars: [] });
      const used = el("i");
      used.style.height = (100 * c.tokens / top) + "%";
      runs.at(-1).bars.push(el("span", { className: "bar", title: `Call ${before + i + 1}, ${c.routing}: ${c.tools} tools, ${share(c)}` }, used));
    });
    chart.replaceChildren(...runs.map((r) => el("div", { className: "run" },
      el("div", { className: "bars" }, ...r.bars), el("div", { className: "mode" }, r.routing))));
    chart.scrollLeft = chart.scrollWidth;
    if (!calls.length) {
      chart.setAttribute("aria-label", "No calls of the model yet");
      caption.textContent = bars;
      return;
    }
    const now = calls.at(-1);
    const saved = Math.round(100 * (1 - ledger.sent / Math.max(1, ledger.all)));
    chart.setAttribute("aria-label", calls.map((c, i) => `Call ${before + i + 1}, ${c.routing}: ${c.tools} tools, ${share(c)}`).join("; "));
    caption.replaceChildren(bars + " Last: ", el("b", {}, `${plural(now.tools, "tool", "tools")}, ${share(now)}`),
      ". Saved so far: ", el("b", {}, `${saved} %`), ".");
  }
}

const panes = Object.fromEntries(platforms.map((p) => [p.key, new Pane(p)]));
panes.slack.side = new Pane(platforms[1], panes.slack);
const words = {
  starting: "Starting…", running: "Bot running",
  stopped: "Bot stopped: messages wait", failed: "Bot failed: see the terminal",
};
const bot = document.getElementById("bot");
const restart = document.getElementById("restart");

restart.addEventListener("click", async () => {
  restart.disabled = true;
  try { await fetch("restart", { method: "POST" }); } finally { restart.disabled = false; }
});

// Where there is room for one chat, two buttons say which.
const which = document.querySelector(".which");
function front(key) {
  for (const [name, pane] of Object.entries(panes)) pane.input.closest("section").classList.toggle("front", name === key);
  for (const button of which.children) button.setAttribute("aria-pressed", String(button.value === key));
  panes[key].toEnd();
}
which.replaceChildren(...platforms.map((p) => {
  const button = el("button", { type: "button", value: p.key }, p.title);
  button.addEventListener("click", () => front(p.key));
  return button;
}));
front("telegram");
// A keyboard begins at the message box; a finger would get a keyboard over half of the screen.
if (matchMedia("(pointer: fine)").matches) panes.telegram.input.focus();

// The tour is five steps. Each can be tried, and all of it left.
const steps = [
  { title: "One bot, two chats", text: "Telegram and Slack are emulated on this machine. The bot between them is the real one.", at: "#panes" },
  { title: "It reads what you send", text: "Send the sample PDF and ask about it.", at: "#telegram .ideas", action: "Send the PDF", run: () => panes.telegram.say("What is this document about?", true) },
  { title: "It loads only the tools it needs", text: "Each bar is one call of the model: the tools that it was sent, in front of what all tools would cost. The PDF tools were loaded when you asked.", at: "#telegram .cost" },
  { title: "It does things for you", text: "It schedules, remembers and calculates. What reaches others, cannot be undone or changes many things at once waits for your button.", at: "#telegram .log", action: "Ask for a reminder", run: () => panes.telegram.say("Remind me in 1 minute to stretch") },
  { title: "It loses nothing", text: "Restart it in the middle of something: what you send meanwhile waits and is answered once.", at: "#restart", action: "Restart now", run: () => restart.click() },
];
const guide = document.getElementById("guide");
let step = -1;
function show(n) {
  for (const spot of document.querySelectorAll(".spot")) spot.classList.remove("spot");
  step = n < steps.length ? n : -1;
  guide.hidden = step < 0;
  if (step < 0) return document.getElementById("tour").focus();
  front("telegram");
  const { title, text, at, action } = steps[step];
  guide.querySelector("h2").textContent = `${step + 1} of ${steps.length}: ${title}`;
  guide.querySelector("p").textContent = text;
  guide.querySelector(".try").hidden = !action;
  guide.querySelector(".try").textContent = action ?? "";
  guide.querySelector(".next").textContent = step + 1 < steps.length ? "Next" : "Done";
  document.querySelector(at).classList.add("spot");
  guide.querySelector("h2").focus();
}
document.getElementById("tour").addEventListener("click", () => show(0));
guide.querySelector(".next").addEventListener("click", () => show(step + 1));
guide.querySelector(".leave").addEventListener("click", () => show(steps.length));
guide.querySelector(".try").addEventListener("click", (e) => { e.target.hidden = true; steps[step].run(); guide.querySelector(".next").focus(); });
guide.addEventListener("keydown", (e) => { if (e.key === "Escape") show(steps.length); });

const routing = document.getElementById("routing");
routing.addEventListener("change", async () => {
  const problem = document.getElementById("routing-problem");
  try {
    await post("routing", { routing: routing.value });
    problem.textContent = "";
  } catch (err) {
    problem.textContent = "Not changed: " + err.message;
    routing.value = routing.dataset.now;
  }
});

function renderRouting(view) {
  const names = view.routings ?? [];
  if (routing.length !== names.length) routing.replaceChildren(...names.map((n) => el("option", { value: n }, n)));
  routing.disabled = view.bot !== "running";
  if (routing.dataset.now !== view.routing) routing.value = routing.dataset.now = view.routing;
}

const source = new EventSource("events");
source.onmessage = (e) => {
  const view = JSON.parse(e.data);
  document.getElementById("lost").hidden = true;
  if (bot.textContent !== words[view.bot]) bot.textContent = words[view.bot];
  bot.classList.toggle("off", view.bot !== "running");
  document.getElementById("model").textContent = document.getElementById("model").title = view.offline
    ? "Answers come from rules, not from an AI (set OPENAI_API_KEY for one). Nothing leaves this machine but requests for pages that you name."
    : "Model: " + view.model + ". Nothing but what it is asked leaves this machine.";
  renderRouting(view);
  for (const pane of Object.values(panes)) pane.suggest(view.commands);
  for (const [key, pane] of Object.entries(panes)) pane.render(view[key]);
  document.body.dataset.ready = "yes";
};
source.onerror = () => { document.getElementById("lost").hidden = false; };
