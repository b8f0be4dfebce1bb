#!/usr/bin/env bash
# chrono-node 2.10.3 (npm): times from what people write, as bots for reminders use it.
#
# Seen: "in an hour and a half" is read as "in an hour", so the reminder comes half an hour early; only the found text says
#       that a part was left unread. "in a day and a half" loses twelve hours alike. And "in an hour and a quarter" is
#       read whole, as one hour and a quarter of a year: 2 June for 2 March.
# Valid: plain English, the language that it reads unless told otherwise.
# Best guess: an hour and a half is 90 minutes, as half an hour is 30 and 1.5 hours are 90.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts chrono-node@2.10.3 >/dev/null 2>&1
cat >main.mjs <<'JS'
import * as chrono from "chrono-node";

const now = { instant: new Date("2026-03-02T10:00:00Z"), timezone: "UTC" };
for (const text of [
  "in half an hour",
  "in 1.5 hours",
  "in an hour and 30 minutes",
  "in an hour and a half",
  "remind me in an hour and a half to call",
  "in a day and a half",
  "in an hour and a quarter",
]) {
  const found = chrono.parse(text, now).map(result => `${result.date().toISOString().slice(0, 16)} from "${result.text}"`);
  console.log(`${text}: ${found.join(", ")}`);
}
JS
seen=$(TZ=UTC node main.mjs)
printf '%s\n' "$seen"
want='in half an hour: 2026-03-02T10:30 from "in half an hour"
in 1.5 hours: 2026-03-02T11:30 from "in 1.5 hours"
in an hour and 30 minutes: 2026-03-02T11:30 from "in an hour and 30 minutes"
in an hour and a half: 2026-03-02T11:00 from "in an hour"
remind me in an hour and a half to call: 2026-03-02T11:00 from "in an hour"
in a day and a half: 2026-03-03T10:00 from "in a day"
in an hour and a quarter: 2026-06-02T11:00 from "in an hour and a quarter"'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
