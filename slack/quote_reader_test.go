package slack

import (
	"encoding/json"
	"strings"
	"testing"
)

func TestWordsOfPrograms(t *testing.T) {
	r := quoteReader{Text: func(raw string) string { return strings.ReplaceAll(raw, "&lt;", "<") }}
	for raw, want := range map[string]string{
		`[{"pretext":"Alarm","title":"Disk full","text":"95 &lt; 96","fields":[{"title":"Host","value":"db1"},{}],"fallback":"x"}]`: "Alarm\nDisk full\n95 < 96\nHost: db1",
		`[{"fallback":"Build 7 failed"},7,{"fallback":"[no preview available]"}]`:                                                   "Build 7 failed",
		`[{"from_url":"https://a.example","title":"A page","fallback":"A page"},{"is_share":true,"text":"shared"}]`:                 "",
		`{}`: "",
	} {
		if got := r.AttachmentText(json.RawMessage(raw)); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
