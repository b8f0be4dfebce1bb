#!/usr/bin/env bash
# ical.js 2.2.1 (npm): the dates of a recurring event (ICAL.Recur.iterator).
#
# Seen: a monthly rule that names days and more than one hour also gives the first of a month, at the last of the hours.
#       "The last Friday of the month at 9 and at 17" meets on Sunday, 1 February at 17, "the fifth Friday" on the first
#       of each month that has none, and "day 31" on 1 February and 1 April. Such dates use up COUNT: real ones are
#       missing at the end.
# Valid: RFC 5545, 3.3.10: under FREQ=MONTHLY the days (BYDAY, BYMONTHDAY) and the hours (BYHOUR) expand the set, each
#       day with each hour, and no other day belongs to it. Each DTSTART here is a date of its own rule.
# Best guess: the parts that RFC 5545 lets combine give the dates that other libraries give.
# With one hour, as in the first rule, the dates are right. The judge beside it is rrule 2.8.1 (npm).
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts ical.js@2.2.1 rrule@2.8.1 >/dev/null 2>&1
cat >main.mjs <<'JS'
import ICAL from "ical.js";
import rrule from "rrule";

const digits = time => time.replace(/[-:]/g, "");

function tryRule(rule, start) {
  const iterator = ICAL.Recur.fromString(rule).iterator(ICAL.Time.fromString(start));
  const seen = [];
  for (let time; seen.length < 5 && (time = iterator.next());) seen.push(time.toString().slice(5, 13));
  const want = rrule.rrulestr(`DTSTART:${digits(start)}Z\nRRULE:${rule}`).all().map(date => date.toISOString().slice(5, 13));
  console.log(rule);
  console.log("  ical.js", seen.join(" "));
  console.log("  rrule  ", want.join(" "));
}

tryRule("FREQ=MONTHLY;COUNT=5;BYDAY=-1FR;BYHOUR=9", "2026-01-30T09:00:00");
tryRule("FREQ=MONTHLY;COUNT=5;BYDAY=-1FR;BYHOUR=9,17", "2026-01-30T09:00:00");
tryRule("FREQ=MONTHLY;COUNT=5;BYDAY=5FR;BYHOUR=9,17", "2026-01-30T09:00:00");
tryRule("FREQ=MONTHLY;COUNT=5;BYMONTHDAY=31;BYHOUR=9,17", "2026-01-31T09:00:00");
JS
seen=$(node main.mjs)
printf '%s\n' "$seen"
want='FREQ=MONTHLY;COUNT=5;BYDAY=-1FR;BYHOUR=9
  ical.js 01-30T09 02-27T09 03-27T09 04-24T09 05-29T09
  rrule   01-30T09 02-27T09 03-27T09 04-24T09 05-29T09
FREQ=MONTHLY;COUNT=5;BYDAY=-1FR;BYHOUR=9,17
  ical.js 01-30T09 01-30T17 02-01T17 02-27T09 02-27T17
  rrule   01-30T09 01-30T17 02-27T09 02-27T17 03-27T09
FREQ=MONTHLY;COUNT=5;BYDAY=5FR;BYHOUR=9,17
  ical.js 01-30T09 01-30T17 02-01T17 03-01T17 04-01T17
  rrule   01-30T09 01-30T17 05-29T09 05-29T17 07-31T09
FREQ=MONTHLY;COUNT=5;BYMONTHDAY=31;BYHOUR=9,17
  ical.js 01-31T09 01-31T17 02-01T17 03-31T09 03-31T17
  rrule   01-31T09 01-31T17 03-31T09 03-31T17 05-31T09'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
