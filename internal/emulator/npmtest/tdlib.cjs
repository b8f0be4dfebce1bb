// Reads texts with TDLib, the library behind the Bot API, without an account and without a network.
// Its input is a list of {text, html}; its output a list of {error} or {text, entities, found}: the entities
// that a text asks for, as they are stored, and those that are found in it besides.
const fs = require("fs");
const path = require("path");
const tdl = require("tdl");

const tdjson = path.join(path.dirname(require.resolve("@prebuilt-tdlib/linux-x64-glibc/package.json")), "libtdjson.so");
tdl.configure({ tdjson, verbosityLevel: 0 });

// parseMarkdown is the only call without an account that puts entities in order. It also reads marks, which
// are hidden from it.
const marks = "*_~|`[]()>";
const hide = (text) => text.replace(/[*_~|`[\]()>]/g, (mark) => String.fromCharCode(0xe000 + marks.indexOf(mark)));
const show = (text) => text.replace(/[\ue000-\ue009]/g, (hidden) => marks[hidden.charCodeAt(0) - 0xe000]);

const names = {
  Url: "url", EmailAddress: "email", PreCode: "pre", TextUrl: "text_link", MentionName: "text_mention", BotCommand: "bot_command",
  BlockQuote: "blockquote", ExpandableBlockQuote: "expandable_blockquote", CustomEmoji: "custom_emoji", DateTime: "date_time",
};
// The Bot API has no kind for these.
const unnamed = new Set(["BankCardNumber", "MediaTimestamp"]);

function convert(entities) {
  return entities.filter(({ type }) => !unnamed.has(type._.slice("textEntityType".length))).map(({ offset, length, type }) => {
    const kind = type._.slice("textEntityType".length);
    const about = type.url ?? type.language ?? type.custom_emoji_id ?? type.user_id ?? type.unix_time ?? "";
    return { type: names[kind] ?? kind.toLowerCase(), offset, length, about: String(about) };
  });
}

const end = (e) => e.offset + e.length;
const overlap = (a, b) => a.offset < end(b) && b.offset < end(a);
const whole = new Set(["code", "pre", "text_link", "text_mention", "custom_emoji", "date_time"]);

// keeps says whether an entity that was found stays beside one that was asked for.
function keeps(found, asked) {
  if (whole.has(asked.type)) return !overlap(found, asked);
  const crosses = overlap(found, asked) && !(asked.offset <= found.offset && end(found) <= end(asked));
  return !asked.type.endsWith("blockquote") || !crosses;
}

function read({ text, html }) {
  const asked = html ? tdl.execute({ _: "parseTextEntities", text, parse_mode: { _: "textParseModeHTML" } }) : { text, entities: [] };
  if (asked._ === "error") return { error: asked.message };
  const stored = tdl.execute({ _: "parseMarkdown", text: { _: "formattedText", text: hide(asked.text), entities: asked.entities } });
  if (stored._ === "error") return { error: stored.message };
  const shown = show(stored.text);
  const entities = convert(stored.entities);
  const found = convert(tdl.execute({ _: "getTextEntities", text: shown }).entities);
  return { text: shown, entities, found: found.filter((f) => entities.every((e) => keeps(f, e))) };
}

process.stdout.write(JSON.stringify(JSON.parse(fs.readFileSync(0, "utf8")).map(read)), () => process.exit(0));
