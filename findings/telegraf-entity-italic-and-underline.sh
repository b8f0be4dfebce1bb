#!/usr/bin/env bash
# @telegraf/entity 0.7.0 (npm) meets TDLib 1.8.65 (npm prebuilt-tdlib 0.1008065.0), the parser behind the Bot API.
#
# Seen: toMarkdownV2 writes a message with formatting that Telegram itself can deliver as text that it refuses:
#       words both underlined and italic (___ab___), italics at the end of what is underlined (__a_b___), and italics
#       right before underlined words (_a___b__). The Bot API answers such a text with error 400.
# Valid: the entities are those that TDLib itself gives for the HTML of the same message, which toHTML writes.
# Best guess: the text gives the same entities again, so between the marks of italics and underline stands the empty bold
#       (**) which the documentation of MarkdownV2 asks for there.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts @telegraf/entity@0.7.0 tdl@8.1.0 prebuilt-tdlib@0.1008065.0 >/dev/null 2>&1
cat >main.cjs <<'JS'
const tdl = require("tdl");
const { getTdjson } = require("prebuilt-tdlib");
const { toHTML, toMarkdownV2 } = require("@telegraf/entity");

tdl.configure({ tdjson: getTdjson(), verbosityLevel: 0 });

function read(text, mode) {
  const read = tdl.execute({ _: "parseTextEntities", text, parse_mode: mode });
  if (read._ === "error") return read.message;
  const entities = read.entities.map(({ type, offset, length }) => `${type._.slice("textEntityType".length).toLowerCase()} ${offset}+${length}`);
  return [read.text, ...entities.sort()].join(", ");
}

const html = { _: "textParseModeHTML" };
const markdown = { _: "textParseModeMarkdown", version: 2 };
for (const entities of [
  [["italic", 0, 2], ["underline", 0, 2]],
  [["underline", 0, 2], ["italic", 1, 1]],
  [["italic", 0, 1], ["underline", 1, 1]],
  [["bold", 0, 2], ["italic", 1, 1]],
]) {
  const message = { text: "ab", entities: entities.map(([type, offset, length]) => ({ type, offset, length })) };
  for (const [text, mode] of [[toHTML(message), html], [toMarkdownV2(message), markdown]]) console.log(`${text}: ${read(text, mode)}`);
}
process.exit(0);
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
<i><u>ab</u></i>: ab, italic 0+2, underline 0+2
___ab___: Can't parse entities: Can't find end of Italic entity at byte offset 7
<u>a<i>b</i></u>: ab, italic 1+1, underline 0+2
__a_b___: Can't parse entities: Can't find end of Italic entity at byte offset 7
<i>a</i><u>b</u>: ab, italic 0+1, underline 1+1
_a___b__: Can't parse entities: Can't find end of Underline entity at byte offset 6
<b>a<i>b</i></b>: ab, bold 0+2, italic 1+1
*a_b_*: ab, bold 0+2, italic 1+1
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
