package learning_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/budget"
	"oneclaw/internal/learning"
	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

var clock = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)

// kept is a store with what bots have kept.
type kept struct {
	storage.Store

	t interface {
		Helper()
		Fatal(...any)
		Context() context.Context
	}
	secrets []string
	n       int
}

func newKept(t testing.TB) *kept {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return &kept{Store: store, t: t}
}

// place is a chat and who writes there.
type place struct {
	chat   chats.Chat
	direct bool
}

func private(user string) place {
	return place{chats.Chat{Platform: "telegram", ID: user}, true}
}

func team() place { return place{chats.Chat{Platform: "telegram", ID: "-100777"}, false} }

// say keeps a question with its turn, and the receipt with the feedback. It returns the job.
func (k *kept) say(in place, user, name, text string, feedback []receipts.Feedback, turn ...agent.Message) *receipts.Receipt {
	k.t.Helper()
	k.n++
	j := &receipts.Receipt{
		Message: chats.Message{Chat: in.chat, ID: fmt.Sprint(1000 + k.n), Kind: chats.KindText, User: user, UserName: name, Direct: in.direct, Text: text, Time: clock},
		State:   receipts.Done, Turn: receipts.Turn{Generation: 1, Feedback: feedback},
	}
	question := agent.Message{Role: agent.RoleUser, Text: text, Ref: j.Key(), Time: clock}
	if !in.direct {
		question.Sender = name
	}
	k.log(in, append([]agent.Message{question}, turn...)...)
	k.receipt(j)
	return j
}

func (k *kept) receipt(j *receipts.Receipt) {
	k.t.Helper()
	data, err := json.Marshal(j)
	if err == nil {
		_, err = k.Put(k.t.Context(), receipts.Prefix+j.Key(), data, storage.Any)
	}
	if err != nil {
		k.t.Fatal(err)
	}
}

func (k *kept) log(in place, messages ...agent.Message) {
	k.t.Helper()
	log := conversation.Session{Chat: in.chat, Generation: 1}.Log()
	last := storage.Position(0)
	for r, err := range k.Records(k.t.Context(), log, storage.Query{Backward: true, Limit: 1}) {
		if err != nil {
			k.t.Fatal(err)
		}
		last = r.Pos
	}
	for _, m := range messages {
		record, err := conversation.Encode(m)
		if err == nil {
			last, err = k.Append(k.t.Context(), log, last, record)
		}
		if err != nil {
			k.t.Fatal(err)
		}
	}
}

func (k *kept) consent() learning.Consent {
	return learning.Consent{Store: k.Store, Now: func() time.Time { return clock }}
}

// tell has a chat told.
func (k *kept) tell(in place) string {
	k.t.Helper()
	text, told, err := k.consent().FeedbackNotice(k.t.Context(), in.chat, clock)
	if err == nil && told != nil {
		err = told(k.t.Context())
	}
	if err != nil {
		k.t.Fatal(err)
	}
	return text
}

// answer has somebody give the command.
func (k *kept) command(user, args string) string {
	k.t.Helper()
	text, err := k.consent().Commands()[0].Run(k.t.Context(), bridge.CommandCall{Scope: toolgroups.Scope{User: user}, Args: args})
	if err != nil {
		k.t.Fatal(err)
	}
	return text
}

func (k *kept) exporter() learning.Exporter {
	return learning.Exporter{
		Store: k.Store, Redact: redact.New(k.secrets...).Text, WindowTokens: 1000, Now: func() time.Time { return clock },
		Price: func(model string) (budget.Price, bool) { return budget.Price{Input: 1, Output: 2}, model == "priced" },
	}
}

func (k *kept) export() (string, []learning.Case, learning.Counts) {
	k.t.Helper()
	var file bytes.Buffer
	counts, err := k.exporter().Write(k.t.Context(), &file)
	if err != nil {
		k.t.Fatal(err)
	}
	var cases []learning.Case
	for c, err := range learning.ReadCases(bytes.NewReader(file.Bytes())) {
		if err != nil {
			k.t.Fatal(err)
		}
		cases = append(cases, c)
	}
	return file.String(), cases, counts
}

func good(by string) []receipts.Feedback {
	return []receipts.Feedback{{By: by, Good: true, Given: true, At: clock}}
}

func answer(text string) agent.Message {
	return agent.Message{
		Role: agent.RoleAssistant, Text: text, Final: true, Model: "priced", Time: clock.Add(time.Second),
		Usage: &agent.Usage{Input: 100_000, Cached: 10, Output: 50_000},
	}
}

func TestACaseIsWhatTheModelSaw(t *testing.T) {
	k := newKept(t)
	here := private("12345678")
	load := agent.Call{ID: "x", Name: toolgroups.LoadToolGroup, Arguments: `{"group_name":"pdf"}`}
	k.say(here, "12345678", "Ann Lee", "old", nil,
		agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{load}},
		agent.Message{Role: agent.RoleTool, CallID: "x", Tool: toolgroups.LoadToolGroup, Status: agent.StatusOK, Text: "loaded"}, answer("fine"))
	k.log(here, agent.Message{Role: agent.RoleSummary, Text: "Ann Lee asked for something old."})
	k.say(here, "12345678", "Ann Lee", "and now?", nil, answer("still, Ann"))
	read := agent.Call{ID: "y", Name: toolgroups.ToolCall, Arguments: `{"name":"read_file","arguments":{"path":"ann.txt"}}`, Tool: "read_file", Input: `{"path":"ann.txt"}`}
	k.say(here, "12345678", "Ann Lee", "what is in it?", append(good("telegram:12345678"), receipts.Feedback{By: "telegram:12345678", Good: false, Given: false, At: clock}),
		agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{read}, Reasoning: "secret thought", Model: "priced", Usage: &agent.Usage{Input: 1}},
		agent.Message{Role: agent.RoleStarted, CallID: "y", Tool: "read_file"},
		agent.Message{Role: agent.RoleUser, Text: "quick", JoinedRef: "telegram:12345678/9/text"},
		agent.Message{Role: agent.RoleTool, CallID: "y", Tool: "read_file", Status: agent.StatusError, Code: "not_found", Text: "no such file of 12345678"}, answer("It is gone."))
	k.say(here, "12345678", "Ann Lee", "later", nil, answer("after"))
	k.log(here, agent.Message{Role: agent.RoleSummary, Text: "All of it."})
	if text := k.tell(here); !strings.Contains(text, "/learning no") {
		t.Errorf("the chat is told %q", text)
	}
	if text := k.tell(here); text != "" {
		t.Errorf("the chat is told again: %q", text)
	}
	_, cases, counts := k.export()
	if len(cases) != 1 || counts != (learning.Counts{Cases: 1}) {
		t.Fatalf("%d cases, %+v", len(cases), counts)
	}
	c := cases[0]
	who := c.Seen.Person
	want := learning.Case{Asked: clock, Ended: clock.Add(time.Second), Seen: learning.Seen{
		ID: c.Seen.ID, Person: who, Chat: c.Seen.Chat, Direct: true, Groups: []string{"pdf"}, Messages: []agent.Message{
			{Role: agent.RoleSummary, Text: who + " asked for something old."},
			{Role: agent.RoleUser, Text: "and now?"},
			{Role: agent.RoleAssistant, Text: "still, " + who, Final: true},
			{Role: agent.RoleUser, Text: "what is in it?"},
		},
	}, Outcome: learning.Outcome{Good: 1, Model: "priced", Used: learning.Usage{Rounds: 2, Input: 100_001, Cached: 10, Output: 50_000, USD: .200001}, Messages: []agent.Message{
		{Role: agent.RoleAssistant, Calls: []agent.Call{{
			ID: "call_1", Name: toolgroups.ToolCall, Arguments: `{"name":"read_file","arguments":{"path":"` + who + `.txt"}}`, Tool: "read_file", Input: `{"path":"` + who + `.txt"}`,
		}}},
		{Role: agent.RoleTool, CallID: "call_1", Tool: "read_file", Status: agent.StatusError, Code: "not_found", Text: "no such file of " + who},
		{Role: agent.RoleUser, Text: "quick", JoinedRef: "meanwhile"},
		{Role: agent.RoleAssistant, Text: "It is gone.", Final: true},
	}}}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Errorf("the case is other (-want +got):\n%s", diff)
	}
	if !strings.HasPrefix(who, "Person-") || !strings.HasPrefix(c.Seen.Chat, "Chat-") || !strings.HasPrefix(c.Seen.ID, "Case-") {
		t.Errorf("names %q, %q, %q", who, c.Seen.Chat, c.Seen.ID)
	}
	if _, again, _ := k.export(); cmp.Diff(cases, again) != "" {
		t.Error("a second export is other")
	}
	entries, err := audit.List(t.Context(), k.Store, 10)
	if e := entries; err != nil || len(e) != 2 || e[0].Action != "export" || e[0].By != "operator" || e[0].Chat != audit.TerminalChat || !e[0].At.Equal(clock) {
		t.Errorf("the audit has %+v, %v", entries, err)
	}
}

func TestWhoSaidNoIsInNoCase(t *testing.T) {
	const ann, bob = "telegram:12345678", "telegram:87654321"
	k := newKept(t)
	group, untold := team(), private("55555555")
	k.tell(group)
	k.tell(private("12345678"))
	k.say(private("12345678"), "12345678", "Ann", "hello", good(ann), answer("hi"))
	k.say(untold, "55555555", "Eve", "hello", good("telegram:55555555"), answer("hi"))
	k.say(group, "12345678", "Ann", "one", good(bob), answer("1"))
	k.say(group, "87654321", "Bob", "two", good(ann), answer("2"))
	gone := k.say(group, "12345678", "Ann", "gone", good(ann))
	_, cases, counts := k.export()
	if want := (learning.Counts{Cases: 3, NotNotified: 1, Unusable: 1}); counts != want || len(cases) != 3 {
		t.Fatalf("before anybody says no: %+v", counts)
	}
	if sender := cases[1].Seen.Messages[0].Sender; sender == "" || sender == "Ann" || sender == cases[1].Seen.Person {
		t.Errorf("Ann is %q in the question of Bob", sender)
	}
	if text := k.command(bob, " NO "); !strings.Contains(text, "will not be exported") {
		t.Errorf("told %q", text)
	}
	// The first of Ann in the group was judged by Bob alone, the second of Bob is his.
	if _, _, counts = k.export(); counts != (learning.Counts{Cases: 1, NotNotified: 1, Unusable: 1, OptedOut: 2}) {
		t.Errorf("after Bob said no: %+v", counts)
	}
	// A message whose author nobody knows any more may be Bob's; and so may what stands in a summary.
	if err := k.Delete(t.Context(), receipts.Prefix+gone.Key(), storage.Any); err != nil {
		t.Fatal(err)
	}
	k.say(group, "12345678", "Ann", "three", good(ann), answer("3"))
	k.say(group, "12345678", "Ann", "four", good(ann), answer("4"))
	if _, _, counts = k.export(); counts != (learning.Counts{Cases: 1, NotNotified: 1, OptedOut: 4}) {
		t.Errorf("with unknown authors: %+v", counts)
	}
	if text := k.command(bob, ""); !strings.Contains(text, "You have said no") {
		t.Errorf("told %q", text)
	}
	if text := k.command(bob, "yes"); !strings.Contains(text, "may export") {
		t.Errorf("told %q", text)
	}
	if _, _, counts = k.export(); counts != (learning.Counts{Cases: 5, NotNotified: 1}) {
		t.Errorf("after Bob said yes again: %+v", counts)
	}
	k.say(private("12345678"), "12345678", "Ann", "taken back", []receipts.Feedback{{By: ann, Good: true, At: clock}}, answer("5"))
	if _, _, counts = k.export(); counts.Cases != 5 {
		t.Errorf("feedback that was taken back makes a case: %+v", counts)
	}
}

// A rating from before the chat was told counts only if it is given again.
func TestRatingsFromBeforeTheNoticeAreNotExported(t *testing.T) {
	const ann = "telegram:12345678"
	k, here := newKept(t), private("12345678")
	early := []receipts.Feedback{{By: ann, Good: true, Given: true, At: clock.Add(-time.Second)}}
	j := k.say(here, "12345678", "Ann", "hello", early, answer("hi"))
	k.tell(here)
	if _, _, counts := k.export(); counts != (learning.Counts{NotNotified: 1}) {
		t.Errorf("rated before: %+v", counts)
	}
	j.Turn.Feedback = append(early, receipts.Feedback{By: ann, Given: true, At: clock})
	k.receipt(j)
	if _, cases, counts := k.export(); counts != (learning.Counts{Cases: 1}) || cases[0].Outcome.Good != 0 || cases[0].Outcome.Bad != 1 {
		t.Errorf("rated again: %+v, %+v", counts, cases)
	}
}

// Who said no and wants to be forgotten is in no case either, while what they asked in a group
// still waits for its turn to go: their receipts have no name any more.
func TestWhoSaidNoAndIsForgottenIsInNoCase(t *testing.T) {
	const ann, bob = "telegram:12345678", "telegram:87654321"
	k := newKept(t)
	k.tell(team())
	k.say(team(), "12345678", "Ann", "one", nil, answer("1"))
	k.say(team(), "87654321", "Bob", "two", good(bob), answer("2"))
	k.command(ann, "no")
	if _, _, counts := k.export(); counts != (learning.Counts{OptedOut: 1}) {
		t.Fatalf("before: %+v", counts)
	}
	if err := receipts.EraseEverywhere(t.Context(), k, ann); err != nil {
		t.Fatal(err)
	}
	if file, _, counts := k.export(); counts != (learning.Counts{OptedOut: 1}) {
		t.Errorf("exported %+v: %s", counts, file)
	}
}

// TestNoNameAndNoSecretIsExported puts names and secrets wherever texts come from.
func TestNoNameAndNoSecretIsExported(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		k := newKept(t)
		part := rapid.StringMatching(`[A-ZÄÖ][a-zäöüß]{3,8}q`)
		first, second, other := part.Draw(rt, "first"), part.Draw(rt, "second"), part.Draw(rt, "other")
		name := first + rapid.SampledFrom([]string{" ", "-", " von "}).Draw(rt, "between") + second
		secret := "hunter-" + rapid.StringMatching(`[a-z0-9"<&ü]{10}`).Draw(rt, "secret")
		user, chat := rapid.StringMatching(`[1-9][0-9]{7}`).Draw(rt, "user"), rapid.StringMatching(`-100[1-9][0-9]{6}`).Draw(rt, "chat")
		k.secrets = []string{secret}
		in := place{chats.Chat{Platform: "telegram", ID: chat}, rapid.Bool().Draw(rt, "direct")}
		if in.direct {
			in.chat.ID = user
		}
		words := rapid.SampledFrom([]string{
			name, strings.ToUpper(name), strings.ToLower(second), first + "'s", secret, user, in.chat.ID, strings.ReplaceAll(name, " ", "%20"), strings.ReplaceAll(name, " ", "+"),
			"(" + second + ")", other, jsonText(name), jsonText(secret), "tea", "<" + first + ">",
		})
		text := func() string {
			return strings.Join(rapid.SliceOfN(words, 1, 5).Draw(rt, "words"), rapid.SampledFrom([]string{" ", ", ", "\n", "/"}).Draw(rt, "joined"))
		}
		arguments := func() string {
			data, err := json.Marshal(map[string]string{"to": text()})
			if err != nil {
				rt.Fatal(err)
			}
			return string(data)
		}
		k.say(in, "99999999", other, text(), nil, answer(text()))
		k.log(in, agent.Message{Role: agent.RoleSummary, Text: text(), Kept: 2})
		k.say(in, user, name, text(), good("telegram:"+user),
			agent.Message{Role: agent.RoleAssistant, Text: text(), Calls: []agent.Call{{ID: name, Name: "send", Arguments: arguments()}}},
			agent.Message{Role: agent.RoleTool, CallID: name, Tool: "send", Status: agent.StatusOK, Text: arguments()},
			agent.Message{Role: agent.RoleUser, Text: text(), Sender: name, JoinedRef: "telegram:1/2/text", Quoted: text(), Recalled: text(), Files: []toolgroups.File{{Path: text() + ".pdf", Caption: text()}}},
			answer(text()))
		k.tell(in)
		file, cases, counts := k.export()
		if len(cases) != 1 {
			rt.Fatalf("%+v", counts)
		}
		plain := strings.ToLower(unquoted(file))
		for _, what := range []string{first, second, other, secret, user, strings.TrimPrefix(in.chat.ID, "-")} {
			if strings.Contains(plain, strings.ToLower(what)) {
				rt.Fatalf("%q stands in %s", what, file)
			}
		}
	})
}

func jsonText(text string) string {
	var out strings.Builder
	for _, r := range text {
		if r < 0x80 {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, `\u%04x`, r)
		}
	}
	return out.String()
}

// unquoted is a file of JSON with what its strings say.
func unquoted(file string) string {
	return strings.NewReplacer(`\"`, `"`, `\\`, `\`, `\u003c`, "<", `\u003e`, ">", `\u0026`, "&").Replace(file)
}

func TestAFileIsReadStrictly(t *testing.T) {
	k := newKept(t)
	k.tell(private("12345678"))
	for range 2 {
		k.say(private("12345678"), "12345678", "Ann", "hello", good("telegram:12345678"), answer("hi"))
	}
	file, _, _ := k.export()
	lines := strings.SplitAfter(strings.TrimSuffix(file, "\n"), "\n")
	if len(lines) != 4 {
		t.Fatalf("the file has %d lines", len(lines))
	}
	for name, test := range map[string]struct{ file, want string }{
		"nothing":           {"", "cut off"},
		"a recording":       {`{"time":"2026-11-20T12:00:00Z","direction":"in"}`, "holds no cases"},
		"another version":   {strings.Replace(file, `"version":1`, `"version":2`, 1), "of version 2, this oneclaw reads version 1"},
		"cut at a line":     {strings.Join(lines[:3], ""), "cut off"},
		"cut within a line": {file[:len(lines[0])+50], "line 2: the file is cut off"},
		"a case too few":    {lines[0] + lines[1] + lines[3], "line 3: the file has 1 cases"},
		"more behind":       {file + lines[1], "line 5: unexpected data after the last line"},
		"an unknown field":  {strings.Replace(file, `"direct":true`, `"direct":true,"phone":"1"`, 1), `line 2: json: unknown field "phone"`},
		"an unknown role":   {strings.Replace(file, `"role":"assistant"`, `"role":"system"`, 1), `line 2: "system" is no role`},
		"no answer":         {strings.Replace(file, `,"final":true`, "", 1), "line 2: a case without an answer"},
	} {
		t.Run(name, func(t *testing.T) {
			var failure error
			for _, err := range learning.ReadCases(strings.NewReader(test.file)) {
				failure = errors.Join(failure, err)
			}
			if failure == nil || !strings.Contains(failure.Error(), test.want) {
				t.Errorf("got %v, want %q in it", failure, test.want)
			}
			if _, err := learning.CopyCases(&bytes.Buffer{}, strings.NewReader(test.file)); err == nil {
				t.Error("it is copied all the same")
			}
		})
	}
	var copied bytes.Buffer
	if counts, err := learning.CopyCases(&copied, strings.NewReader(file)); err != nil || copied.String() != file || counts.Cases != 2 {
		t.Errorf("a whole file: %+v, %v", counts, err)
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"time":"2026-11-20T12:00:00Z","direction":"begin","version":1}
{"time":"2026-11-20T12:00:00Z","ended":"2026-11-20T12:00:01Z","direction":"case","service":"model","request":{"id":"Case-a","person":"Person-a","chat":"Chat-a","messages":[{"role":"user","text":"hello"}]},"response":{"messages":[{"role":"assistant","text":"hi","final":true}],"good":1,"used":{"rounds":1,"input":1,"output":1}}}
{"time":"2026-11-20T12:00:00Z","direction":"end","counts":{"cases":1}}
`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var out bytes.Buffer
		w, err := learning.NewWriter(&out, clock)
		if err != nil {
			t.Fatal(err)
		}
		var cases []learning.Case
		for c, err := range learning.ReadCases(bytes.NewReader(data)) {
			if err != nil {
				return
			}
			if len(c.Seen.Messages) == 0 || c.Answer() == "" && !slices.ContainsFunc(c.Outcome.Messages, func(m agent.Message) bool { return m.Final }) {
				t.Fatalf("%+v is no case", c)
			}
			cases = append(cases, c)
			if ok, err := w.WriteCase(c); !ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		if err := w.Close(learning.Counts{Cases: len(cases)}, clock); err != nil {
			t.Fatal(err)
		}
		n := 0
		for c, err := range learning.ReadCases(&out) {
			if err != nil || c.Seen.ID != cases[n].Seen.ID {
				t.Fatalf("written again: %+v, %v", c, err)
			}
			n++
		}
	})
}
