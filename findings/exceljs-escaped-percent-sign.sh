#!/usr/bin/env bash
# ExcelJS 4.4.0 (npm): a workbook that is opened and saved again, shown before and after by SheetJS 0.18.5.
#
# Seen: ExcelJS drops the backslashes of number formats as it reads them. A percent sign that a format only writes
#       (0\%, as LibreOffice saves it) becomes one that multiplies: 25% is 2500% once saved. A literal \d makes a number of days
#       a date, also in the value that ExcelJS gives.
# Valid: a backslash before a literal character (ECMA-376, 18.8.31); Excel and LibreOffice write such formats.
# Best guess: the format of a cell that nobody touches is kept as it is.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts exceljs@4.4.0 xlsx@0.18.5 >/dev/null 2>&1
cat >main.cjs <<'JS'
const ExcelJS = require("exceljs"), XLSX = require("xlsx");

const sheet = XLSX.utils.aoa_to_sheet([[25, 5, 25]]);
["0\\%", "0\\d", '0"%"'].forEach((format, i) => { sheet[XLSX.utils.encode_cell({ r: 0, c: i })].z = format; });
const book = XLSX.utils.book_new();
XLSX.utils.book_append_sheet(book, sheet, "S");
const before = XLSX.write(book, { type: "buffer", bookType: "xlsx" });
const shown = (data) => {
  const s = XLSX.read(data, { cellNF: true }).Sheets.S;
  return ["A1", "B1", "C1"].map((at) => `${s[at].w} (${s[at].z})`).join(", ");
};
(async () => {
  const between = new ExcelJS.Workbook();
  await between.xlsx.load(before);
  console.log("before:", shown(before));
  console.log("ExcelJS:", between.getWorksheet("S").getRow(1).values.slice(1).map((v) => JSON.stringify(v)).join(", "));
  console.log("after:", shown(await between.xlsx.writeBuffer()));
})();
JS
seen=$(TZ=UTC node main.cjs)
printf '%s\n' "$seen"
want='before: 25% (0\%), 5d (0\d), 25% (0"%")
ExcelJS: 25, "1900-01-04T00:00:00.000Z", 25
after: 2500% (0%), 55 (0d), 25% (0"%")'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
