package google

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// What Google has done is told as done, also where its answer makes no sense or breaks off: told
// as a failure, a mail would be sent again. What only reads has failed.
func TestAWriteWhoseAnswerCannotBeReadIsDone(t *testing.T) {
	d := newDesk(t)
	const mail = `{"to":"a@b.example","subject":"s","body":"b"}`
	for name, answer := range map[string]string{"nonsense": "<html>", "nothing": " ", "half of it": `{"id":"m1","thre`} {
		d.reply("POST /gmail/v1/users/me/messages/send", answer)
		d.reply("POST /v1/documents/d1:batchUpdate", answer)
		d.take()
		res, fault := d.run(t.Context(), "gmail_send", mail)
		if fault != nil || !strings.Contains(res.Text, "has done it, but the answer could not be read") || !strings.Contains(res.Text, "Do not make this call again") {
			t.Errorf("%s: %q, %+v", name, res.Text, fault)
		}
		if sent := d.take(); len(sent) != 1 {
			t.Errorf("%s: sent %q", name, sent)
		}
	}
	d.reply("POST /gmail/v1/users/me/messages/send", `400 {"error":{"code":400,"message":"no"}}`)
	if _, fault := d.run(t.Context(), "gmail_send", mail); codeOf(fault) != toolgroups.CodeInvalid {
		t.Errorf("refused: %+v", fault)
	}
	d.reply("GET /gmail/v1/users/me/messages/m1", "<html>")
	if _, fault := d.run(t.Context(), "gmail_read", `{"message_id":"m1"}`); codeOf(fault) != toolgroups.CodeExecution {
		t.Errorf("a read: %+v", fault)
	}
}

// What a call lacks is known before a person is asked to approve it.
func TestWhatIsMissingIsKnownBeforeACall(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "tasks")
	for tool, c := range map[string]struct{ user, code, text string }{
		"gmail_send":                    {ada, toolgroups.CodeDenied, "permission gmail"},
		"tasks_delete_task":             {"telegram:9", service.CodeNotConnected, "/connect google"},
		"gmail_settings_add_forwarding": {ada, toolgroups.CodeDenied, "domain-wide delegation"},
		"gmail_settings_list_delegates": {"telegram:9", toolgroups.CodeDenied, "domain-wide delegation"},
	} {
		requests := len(r.em.Requests())
		err := r.tools[tool].CheckReady(t.Context(), toolgroups.Call{Name: tool, Arguments: json.RawMessage(`{}`), Scope: toolgroups.Scope{User: c.user}})
		fault, _ := errors.AsType[*toolgroups.Error](err)
		if codeOf(fault) != c.code || !strings.Contains(fault.Message, c.text) {
			t.Errorf("%s: %v", tool, err)
		}
		if n := len(r.em.Requests()); n != requests {
			t.Errorf("%s: Google was asked", tool)
		}
	}
	if err := r.tools["tasks_delete_task"].CheckReady(t.Context(), toolgroups.Call{Scope: toolgroups.Scope{User: ada}}); err != nil {
		t.Errorf("what was granted: %v", err)
	}
}
