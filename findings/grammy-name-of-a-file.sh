#!/usr/bin/env bash
# grammY 1.46.0 (npm) uploads a file, which busboy 1.6.0 (npm, the reader of forms under multer and @fastify/multipart) reads.
#
# Seen: the name of the file stands in the header as it is, without quotes and without escapes (filename=my report.txt).
#       With a space, a letter beyond ASCII, a quote or a semicolon in it busboy finds no file at all, and the call
#       succeeds nevertheless.
# Valid: InputFile takes a name, and such names are those of most files of people.
# Best guess: the name is quoted, with escapes, as FormData and the form-data package write it.
#
# Output seen on 2026-11-30.
# Needs Node and the npm registry. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
cd "$dir"
npm init -y >/dev/null
npm install --no-audit --no-fund --ignore-scripts busboy@1.6.0 grammy@1.46.0 >/dev/null 2>&1
cat >main.cjs <<'JS'
const http = require("http");
const busboy = require("busboy");
const { Api, InputFile } = require("grammy");

async function main() {
  let header, names;
  const server = http.createServer((request, response) => {
    const chunks = [];
    names = [];
    request.on("data", (chunk) => chunks.push(chunk));
    request.pipe(busboy({ headers: request.headers, defParamCharset: "utf8" }))
      .on("file", (field, file, { filename }) => { names.push(filename); file.resume(); })
      .on("close", () => {
        header = Buffer.concat(chunks).toString().match(/filename[^\r]*/)[0];
        response.setHeader("content-type", "application/json").end(JSON.stringify({ ok: true, result: {} }));
      });
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  const api = new Api("1:a", { apiRoot: "http://127.0.0.1:" + server.address().port });
  for (const name of ["report.txt", "my report.txt", "minutes; final.txt", 'the "new" one.txt', "Übersicht.txt"]) {
    await api.sendDocument(1, new InputFile(Buffer.from("x"), name));
    console.log(`${name}: ${header}, read as ${names[0] ?? "no file"}`);
  }
  process.exit(0);
}
main();
JS
seen=$(node main.cjs)
printf '%s\n' "$seen"
want=$(
	cat <<'OUT'
report.txt: filename=report.txt, read as report.txt
my report.txt: filename=my report.txt, read as no file
minutes; final.txt: filename=minutes; final.txt, read as no file
the "new" one.txt: filename=the "new" one.txt, read as no file
Übersicht.txt: filename=Übersicht.txt, read as no file
OUT
)
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
