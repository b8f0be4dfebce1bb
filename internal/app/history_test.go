package app

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/core"
	"oneclaw/toolgroups/memory"
)

// unhurried has a search read everything.
type unhurried struct{ core.History }

func (u unhurried) Passages(ctx context.Context, owner string, q core.HistoryQuery) iter.Seq2[core.Passage, error] {
	q.Words, q.CanStop = nil, nil
	return u.History.Passages(ctx, owner, q)
}

// newTalk stores an empty conversation that began an hour ago.
func newTalk(t *testing.T) (store *bolt.Store, c conversation.Conversation, begun time.Time) {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	begun = time.Now().Add(-time.Hour)
	c = conversation.Conversation{Owner: "telegram:1", Chat: chats.Chat{Platform: "telegram", ID: "1"}, Generation: 1, Title: "talk", StartedAt: begun}
	put(t, store, "conversation/telegram:1/"+c.Log(), c)
	return store, c, begun
}

// TestSearchFindsWhatAFullScanFinds: records that are left out by their bytes are none that
// would be found.
func TestSearchFindsWhatAFullScanFinds(t *testing.T) {
	store, c, begun := newTalk(t)
	var records []storage.Record
	for _, text := range []string{
		"ÄPFEL und Birnen", "Zeile\nfünf", `a "quoted" word`, "<b>tag</b> & more", "300 K\u212Aelvin", "\u0130stanbul", "tab\tbed",
		"C:\\temp\\file", "emoji 👍 thumbs", "日本語 の 文", "plain words here", "half of them", "nothing",
	} {
		data, err := json.Marshal(agent.Message{Role: agent.RoleUser, Time: begun, Text: text})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, storage.Record{Data: data})
	}
	for n := range 150 {
		data, err := json.Marshal(agent.Message{Role: agent.RoleUser, Time: begun.Add(time.Duration(n) * time.Second), Text: fmt.Sprintf("often %d, and %d", n, n*n)})
		if err != nil {
			t.Fatal(err)
		}
		records = append(records, storage.Record{Data: data})
	}
	if _, err := store.Append(t.Context(), c.Log(), 0, records...); err != nil {
		t.Fatal(err)
	}
	notes, err := memory.New(memory.Config{Now: time.Now, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, query := range []string{
		"äpfel", "fünf", "quoted word", "b tag", "kkelvin", "i\u0307stanbul", "istanbul", "bed", "temp file", "👍", "thumbs up", "文", "here",
		"half of something else", "***", "often", "often and", "and 4", "u003c", "role user", "BIRNEN und", "<b>", "zeile fünf",
	} {
		var answers []string
		for _, history := range []core.History{history{store: store, memory: notes}, unhurried{history{store: store, memory: notes}}} {
			answers = append(answers, searchFor(t, history, query))
		}
		if answers[0] != answers[1] {
			t.Errorf("%q finds %q, a full scan %q", query, answers[0], answers[1])
		}
		if !strings.Contains(answers[0], "Nothing matches") {
			found++
		}
	}
	if found < 5 {
		t.Errorf("only %d queries found anything", found)
	}
}

// A result that the model is not shown any more is found; one that it still is shown is not, because it
// sees that.
func TestSearchFindsResultsThatWereLeftOut(t *testing.T) {
	store, c, begun := newTalk(t)
	notes, err := memory.New(memory.Config{Now: time.Now, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	history := history{store: store, memory: notes}
	at := storage.Position(0)
	write := func(m agent.Message) {
		m.Time = begun
		data, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		if at, err = store.Append(t.Context(), c.Log(), at, storage.Record{Data: data}); err != nil {
			t.Fatal(err)
		}
	}
	write(agent.Message{Role: agent.RoleTool, CallID: "1", Tool: "mail_read", Status: agent.StatusOK, Text: strings.Repeat("greeting ", 200) + "the invoice is 4711"})
	if got := searchFor(t, history, "invoice"); strings.Contains(got, "4711") {
		t.Errorf("found what is in view: %s", got)
	}
	write(agent.Message{Role: agent.RoleCleared})
	if got := searchFor(t, history, "invoice"); !strings.Contains(got, "4711") {
		t.Errorf("what was left out is not found: %s", got)
	}
}

func TestAQuestionIsNotFoundByItsOwnTurn(t *testing.T) {
	store, c, begun := newTalk(t)
	for at, ref := range []string{"telegram:1/6/text", question} {
		data, err := json.Marshal(agent.Message{Role: agent.RoleUser, Time: begun, Ref: ref, Text: "the umbrella of " + ref})
		if err == nil {
			_, err = store.Append(t.Context(), c.Log(), storage.Position(at), storage.Record{Data: data})
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	notes, err := memory.New(memory.Config{Now: time.Now, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	got := searchFor(t, history{store: store, memory: notes}, "umbrella")
	if !strings.Contains(got, "telegram:1/6/text") || strings.Contains(got, question) {
		t.Errorf("found %s", got)
	}
}

// question is the message whose turn searches.
const question = "telegram:1/7/text"

func searchFor(t *testing.T, history core.History, query string) string {
	t.Helper()
	tools, err := core.New(core.Config{History: history, Location: func(context.Context, toolgroups.Scope) *time.Location { return time.UTC }})
	if err != nil {
		t.Fatal(err)
	}
	for _, tool := range tools {
		if tool.Name != "search_history" {
			continue
		}
		res, fault := toolgroups.Run(t.Context(), nil, tool, toolgroups.Call{
			Name: tool.Name, Arguments: fmt.Appendf(nil, `{"query":%q}`, query), Scope: toolgroups.Scope{Owner: "telegram:1", Role: toolgroups.RoleUser, Message: question},
		})
		if fault != nil {
			t.Fatal(fault)
		}
		return res.Text
	}
	t.Fatal("there is no search_history")
	return ""
}

// put stores a value as JSON.
func put(t testing.TB, kv storage.KV, key string, value any) {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := kv.Put(t.Context(), key, data, storage.Any); err != nil {
		t.Fatal(err)
	}
}
