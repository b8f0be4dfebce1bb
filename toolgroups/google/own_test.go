package google

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
)

// Google answers a change with what it changed: its author's words are no words of the program.
func TestAChangeRepeatsNothingOfWhatIsChanged(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	const mail = "From: zanzibar <eve@example.com>\r\nTo: ada@example.com\r\nSubject: zanzibar\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\nMessage-ID: <z@example.com>\r\n\r\nzanzibar"
	arguments := calls(t)
	for _, tool := range []string{"gmail_reply", "gmail_trash", "gmail_untrash", "gmail_mark_read", "gmail_mark_unread", "gmail_archive"} {
		arguments[tool] = json.RawMessage(`{"message_id":"stranger","body":"Thanks"}`)
	}
	for _, tool := range []string{"gmail_label_add", "gmail_label_remove"} {
		arguments[tool] = json.RawMessage(`{"message_id":"stranger","label_id":"Label_1"}`)
	}
	own := 0
	for _, tool := range r.tools {
		if tool.Origin != toolgroups.OriginOwn {
			continue
		}
		own++
		r.em.Reset()
		if err := r.em.DeliverMail(adaMail, "stranger", mail); err != nil {
			t.Fatal(err)
		}
		res, fault := r.run(t.Context(), ada, t.TempDir(), tool.Name, arguments[tool.Name])
		if fault != nil || strings.Contains(res.Text, "zanzibar") {
			t.Errorf("%s is said to be the program's own words: %s %v", tool.Name, res.Text, fault)
		}
	}
	if own == 0 {
		t.Error("no tool says that its results are the program's own words")
	}
}

// A result that repeats what Google says of a failure is none of the program's own words.
func TestAResultWithAReasonOfGoogleIsOfOthers(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	ids := make([]string, 1500)
	for i := range ids {
		ids[i] = fmt.Sprintf("x%d", i)
	}
	args, err := json.Marshal(map[string]any{"message_ids": ids})
	if err != nil {
		t.Fatal(err)
	}
	r.em.Inject(google.Fault{Method: "gmail.users.messages.batchModify", Status: 400, SkipFirst: 1, Times: 1, Message: "zanzibar"})
	res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_trash", args)
	if fault != nil || !strings.Contains(res.Text, "zanzibar") || res.Origin != toolgroups.OriginComputed {
		t.Errorf("%.200s of %q %v", res.Text, res.Origin, fault)
	}
}
