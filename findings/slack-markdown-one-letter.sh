#!/usr/bin/env bash
# slack-markdown 0.3.0 (npm): HTML of what Slack's messages say, as archives and bridges show them.
#
# Seen: a single letter between marks does not end there: "*A* or *B*?" becomes one bold text "A* or *B" with the inner marks
#       as letters, and so do italics and what is struck through. Words of two letters and code are read as expected.
# Valid: Slack's own mrkdwn; slack-message-parser 3.0.2 reads two bold letters.
# Best guess: two bold letters, as in "*AB* or *CD*?", which is two bold words.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts slack-markdown@0.3.0 slack-message-parser@3.0.2 >/dev/null 2>&1
cat >main.cjs <<'JS'
const { toHTML } = require("slack-markdown");
const { parse, NodeType } = require("slack-message-parser");

for (const text of ["*AB* or *CD*?", "*A* or *B*?", "*A* or *CD*?", "_A_ or _B_?", "~A~ or ~B~?", "`A` or `B`?"]) {
  console.log(`${text}  ${toHTML(text)}  ${parse(text).children.map((node) => NodeType[node.type]).join(", ")}`);
}
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
*AB* or *CD*?  <strong>AB</strong> or <strong>CD</strong>?  Bold, Text, Bold, Text
*A* or *B*?  <strong>A* or *B</strong>?  Bold, Text, Bold, Text
*A* or *CD*?  <strong>A* or *CD</strong>?  Bold, Text, Bold, Text
_A_ or _B_?  <em>A_ or _B</em>?  Italic, Text, Italic, Text
~A~ or ~B~?  <del>A~ or ~B</del>?  Strike, Text, Strike, Text
`A` or `B`?  <code>A</code> or <code>B</code>?  Code, Text, Code, Text
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
