package conversation

import (
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func open(t *testing.T) storage.Store {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// A chat that was answered elsewhere meanwhile comes back: its history is read again, also
// where a turn of the time before gives its copy back late.
func TestAHistoryThatWasForgottenIsReadAgain(t *testing.T) {
	store := open(t)
	here, other := NewCache(store, 1000), NewCache(store, 1000)
	say := func(c *Cache, text string) storage.Position {
		t.Helper()
		h, err := c.Take(t.Context(), "fake:1/1")
		if err == nil {
			_, err = h.Append(t.Context(), nil, agent.Message{Role: agent.RoleUser, Text: text})
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Put(h)
		return h.Last
	}
	say(here, "one")
	late, err := here.Take(t.Context(), "fake:1/1")
	if err != nil {
		t.Fatal(err)
	}
	say(other, "two")
	here.Clear()
	here.Put(late)
	if last := say(here, "three"); last != 3 {
		t.Errorf("the log ends at %d", last)
	}
	other.Clear()
	h, err := other.Take(t.Context(), "fake:1/1")
	if err != nil || len(h.Messages) != 3 {
		t.Errorf("%d messages (%v)", len(h.Messages), err)
	}
}

// What the model is shown does not depend on whether the history comes from the cache or from the log,
// where what was overheard for one question is not part of it.
func TestTheCachedHistoryIsThatOfTheLog(t *testing.T) {
	store := open(t)
	h, err := NewCache(store, 1000).Take(t.Context(), "fake:1/1")
	if err == nil {
		_, err = h.Append(t.Context(), nil,
			agent.Message{Role: agent.RoleUser, Text: "one", Quoted: "quoted", Overheard: "overheard, quoted"}, agent.Message{Role: agent.RoleAssistant, Text: "two"})
	}
	if err != nil {
		t.Fatal(err)
	}
	read, err := NewCache(store, 1000).Take(t.Context(), "fake:1/1")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(read.View(), h.View()); diff != "" {
		t.Errorf("the log (-) and the cache (+) differ:\n%s", diff)
	}
}

// A history that has lost its beginning says so, whether it grew here or was read.
func TestAHistoryWithoutItsBeginningIsTruncated(t *testing.T) {
	store := open(t)
	h, err := NewCache(store, 100).Take(t.Context(), "fake:1/1")
	for range 20 {
		if err == nil {
			_, err = h.Append(t.Context(), nil, agent.Message{Role: agent.RoleUser, Text: strings.Repeat("x", 100)})
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	read, err := NewCache(store, 100).Take(t.Context(), "fake:1/1")
	if err != nil {
		t.Fatal(err)
	}
	if !h.Truncated || !read.Truncated || len(h.Messages) == 20 {
		t.Errorf("grown: %t with %d messages, read: %t", h.Truncated, len(h.Messages), read.Truncated)
	}
}

// What the next summary can cover does not end inside a turn, which is larger than the window.
func TestWhatASummaryCoversEndsAtATurn(t *testing.T) {
	store := open(t)
	h, err := NewCache(store, 100).Take(t.Context(), "fake:1/1")
	if err != nil {
		t.Fatal(err)
	}
	long := strings.Repeat("x", 1000)
	for _, m := range []agent.Message{
		{Role: agent.RoleUser, Text: long, Ref: "one"},
		{Role: agent.RoleUser, Text: "hurry", JoinedRef: "joined"},
		{Role: agent.RoleAssistant, Text: "done", Final: true},
		{Role: agent.RoleUser, Text: long, Ref: "two"},
		{Role: agent.RoleAssistant, Text: "done", Final: true},
	} {
		if _, err := h.Append(t.Context(), nil, m); err != nil {
			t.Fatal(err)
		}
	}
	s, err := h.Unsummarized(t.Context())
	if err != nil || len(s.Messages) != 4 || s.Messages[3].Ref != "two" || s.Next != 5 {
		t.Errorf("%d messages up to %d (%v)", len(s.Messages), s.Next, err)
	}
}

// Commands that ended work in a chat end it in the chat to which it moves right behind them.
func TestWhatACommandEndedStaysEndedBehindAMove(t *testing.T) {
	store := open(t)
	from, to := chats.Chat{Platform: "fake", ID: "1"}, chats.Chat{Platform: "fake", ID: "2"}
	for _, chat := range []chats.Chat{from, to} {
		session, err := Current(t.Context(), store, chat)
		if chat == from {
			session.Generation, session.ClearedAt, session.StoppedAt, session.HaltedSeq = 2, 10, 20, 30
		}
		if err == nil {
			_, err = session.save(t.Context(), store)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := Move(t.Context(), store, from, to); err != nil {
		t.Fatal(err)
	}
	for seq, want := range map[int64]error{9: ErrCleared, 10: ErrStopped, 19: ErrStopped, 20: nil, 30: ErrStopped, 31: nil} {
		if _, err := SessionOf(t.Context(), store, &queue.Job{Message: chats.Message{Chat: to}, Seq: seq}); !errors.Is(err, want) {
			t.Errorf("message %d: %v, want %v", seq, err, want)
		}
	}
}

// A late press on the button of an older answer leaves the newer one stopped.
func TestAStoppedAnswerStaysStoppedBehindALatePressOnAnOlderOne(t *testing.T) {
	store, chat := open(t), chats.Chat{Platform: "fake", ID: "1"}
	for _, seq := range []int64{5, 9, 5} {
		session, err := Current(t.Context(), store, chat)
		if err == nil {
			_, err = session.StopAnswer(t.Context(), store, seq)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if _, err := SessionOf(t.Context(), store, &queue.Job{Message: chats.Message{Chat: chat}, Seq: 9}); !errors.Is(err, ErrStopped) {
		t.Errorf("the newer answer: %v", err)
	}
}
