#!/usr/bin/env bash
# TDLib 1.8.65 (npm prebuilt-tdlib 0.1008065.0), the library behind Telegram's apps and its Bot API, finds mailboxes in a text.
#
# Seen: of a mailbox with a dot before a plus (ann.lee+news@example.org) only what begins at the plus becomes the mailbox:
#       +news@example.org. Whoever taps on it writes to another address. So it is behind an apostrophe (o'neil@example.org
#       is neil@example.org), and a word with a colon or an equals sign before it makes it an address of the web.
# Valid: the mailboxes are such as people have; TDLib finds ann.lee@example.org and ann+news@example.org whole.
# Best guess: the mailbox is found whole, as the rules that its source states for mailboxes allow dots and pluses in any order.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts tdl@8.1.0 prebuilt-tdlib@0.1008065.0 >/dev/null 2>&1
cat >main.cjs <<'JS'
const tdl = require("tdl");
const { getTdjson } = require("prebuilt-tdlib");

tdl.configure({ tdjson: getTdjson(), verbosityLevel: 0 });
for (const text of ["ann.lee@example.org", "ann+news@example.org", "ann.lee+news@example.org", "o'neil@example.org", "mail=ann@example.org", "Mail:ann@example.org", "Mail: ann@example.org"]) {
  const { entities } = tdl.execute({ _: "getTextEntities", text });
  const found = entities.map(({ type, offset, length }) => `${type._.slice("textEntityType".length)} ${text.slice(offset, offset + length)}`);
  console.log(`${text}: ${found.join(", ")}`);
}
process.exit(0);
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
ann.lee@example.org: EmailAddress ann.lee@example.org
ann+news@example.org: EmailAddress ann+news@example.org
ann.lee+news@example.org: EmailAddress +news@example.org
o'neil@example.org: EmailAddress neil@example.org
mail=ann@example.org: Url mail=ann@example.org
Mail:ann@example.org: Url Mail:ann@example.org
Mail: ann@example.org: EmailAddress ann@example.org
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
