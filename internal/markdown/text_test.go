package markdown_test

import (
	"testing"

	"oneclaw/internal/markdown"
)

func TestTextIsWhatAChatShowsAndThenTheAddressesOfItsLinks(t *testing.T) {
	for text, want := range map[string]string{
		"# A **plan**\n\n- one\n- `two`":                 "A plan\none\n\ntwo\n\n\n\n",
		"[a](https://x.example/(b))c ![d](e.png)":        "ac d\n\nhttps://x.example/(b)\ne.png\n",
		"<https://x.example> and https://y.example/z":    "https://x.example and https://y.example/z\n\n",
		`1\.5 &amp; more<br>of <b>it</b>`:                "1.5 & more\nof <b>it</b>\n\n",
		"```go\nx := `1`\n```":                           "x := `1`\n\n\n",
		"[a][b\\]c]\n\n[b\\]c]: https://x.example/a\\-b": "a\n\nhttps://x.example/a-b\n",
	} {
		if got := markdown.Parse(text).Text(); got != want {
			t.Errorf("%q:\n got %q\nwant %q", text, got, want)
		}
	}
}
