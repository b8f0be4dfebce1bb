#!/usr/bin/env bash
# goldmark, v1.8.7 (github.com/yuin/goldmark), Markdown without extensions.
#
# Seen: a list in which an item begins with the definition of a link is loose, although it holds no blank line: each of
#       its items becomes a paragraph. With the definition after the list, or after a heading in the item, it is tight.
# Valid: CommonMark 0.31.2, 5.3: a list is loose if blank lines separate its items, or two blocks inside one of them, and
#       tight otherwise. commonmark.js, micromark, markdown-it and marked give a tight list for the first text.
# Best guess: the HTML of commonmark.js on each short text of Markdown's marks, as goldmark follows that specification.
#
# Output seen on 2026-11-30.
# Needs Go and the module proxy. Prints "as found" and exits 0 while it behaves so; exits 1 if that changes.
set -euo pipefail
dir=$(mktemp -d)
trap 'chmod -R u+w "$dir" && rm -rf "$dir"' EXIT
cd "$dir"
cat >main.go <<'GO'
package main

import (
	"bytes"
	"fmt"
	"strings"

	"github.com/yuin/goldmark"
)

func main() {
	for _, text := range []string{
		"- [x]: /u\n  a [x]\n- b",
		"- a [x]\n- b\n\n[x]: /u",
		"- # a [x]\n  [x]: /u\n- b",
	} {
		var html bytes.Buffer
		if err := goldmark.Convert([]byte(text), &html); err != nil {
			panic(err)
		}
		fmt.Printf("%q: %s\n", text, strings.ReplaceAll(html.String(), "\n", ""))
	}
}
GO
{
	go mod init example.com/finding
	go get github.com/yuin/goldmark@v1.8.7
	go mod tidy
} >/dev/null 2>&1
seen=$(go run .)
printf '%s\n' "$seen"
want='"- [x]: /u\n  a [x]\n- b": <ul><li><p>a <a href="/u">x</a></p></li><li><p>b</p></li></ul>
"- a [x]\n- b\n\n[x]: /u": <ul><li>a <a href="/u">x</a></li><li>b</li></ul>
"- # a [x]\n  [x]: /u\n- b": <ul><li><h1>a <a href="/u">x</a></h1></li><li>b</li></ul>'
[ "$seen" = "$want" ] || { echo "no longer as found"; exit 1; }
echo "as found"
