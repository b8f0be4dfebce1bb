package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"oneclaw/slack/blocks"
)

func TestWordsOfPrograms(t *testing.T) {
	for raw, want := range map[string]string{
		`[{"pretext":"Alarm","title":"Disk full","text":"95 &lt; 96","fields":[{"title":"Host","value":"db1"},{}],"fallback":"x"}]`: "Alarm\nDisk full\n95 &lt; 96\nHost: db1",
		`[{"fallback":"Build 7 failed"},{"text":"on main","footer":"CI","image_url":"https://a.example/x.png"}]`:                    "Build 7 failed\non main\n[not received: a picture]\nCI",
		`[{"from_url":"https://a.example","title":"A page","fallback":"A page"},{"is_share":true,"text":"shared"}]`:                 "",
		`[{"fallback":"[no preview available]"}]`: "[not received: a part of an attachment that I cannot read]",
		`[7]`: "[not received: a part of an attachment that I cannot read]",
		`{}`:  "",
		`[{"title":"Disk","fields":7,"blocks":[{"type":"header","text":{"type":"plain_text","text":"full"}}]}]`: "Disk\nfull\n[not received: a part of an attachment that I cannot read]",
	} {
		if got := strings.Join(attachedTexts(blocks.NewReader(maxContent), json.RawMessage(raw), true), "\n"); got != want {
			t.Errorf("%s: got %q, want %q", raw, got, want)
		}
	}
}
