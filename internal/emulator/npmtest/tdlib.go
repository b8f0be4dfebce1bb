package npmtest

import (
	_ "embed"
	"encoding/json"
	"testing"
)

//go:embed tdlib.cjs
var tdlibScript string

// Text is a text as a bot sends it: plain, or in the HTML of the Bot API.
type Text struct {
	Text string `json:"text"`
	HTML bool   `json:"html"`
}

// Entity is an entity with the names of the Bot API. About is its address, language, id or time.
type Entity struct {
	Type   string `json:"type"`
	Offset int    `json:"offset"`
	Length int    `json:"length"`
	About  string `json:"about"`
}

// Reading is what Telegram makes of a text, or why it refuses it. Found are the entities that it finds besides
// those that the text asks for. White space at both ends is still there.
type Reading struct {
	Error    string   `json:"error"`
	Text     string   `json:"text"`
	Entities []Entity `json:"entities"`
	Found    []Entity `json:"found"`
}

// ReadByTelegram has TDLib, the library behind the Bot API, read texts.
func ReadByTelegram(t testing.TB, texts []Text) []Reading {
	t.Helper()
	var read []Reading
	if err := json.Unmarshal(Run(t, tdlibScript, texts, "tdl", "@prebuilt-tdlib/linux-x64-glibc"), &read); err != nil {
		t.Fatal(err)
	}
	if len(read) != len(texts) {
		t.Fatalf("%d of %d texts were read", len(read), len(texts))
	}
	return read
}
