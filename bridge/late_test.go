package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/storage"
)

// sentAt is a message with the time of its platform.
func sentAt(m chats.Message, at time.Time) chats.Message {
	m.Time = at
	return m
}

func TestOldMessagesAreNotReplayedAndStaleOnesSaySo(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	r := newHarness(t, echo, func(c *bridge.Config) { c.Now = func() time.Time { return now } })
	r.accept(sentAt(direct("1", "fresh"), now.Add(-59*time.Minute)))
	r.platform.wait(t, 1)
	r.stop()
	now = now.Add(5 * time.Hour)
	r.start()
	// The platform delivers again what was answered, and what came meanwhile.
	elsewhere := sentAt(direct("5", "elsewhere"), now.Add(-50*time.Hour))
	elsewhere.Chat.ID = "2"
	batch := []chats.Message{
		sentAt(direct("1", "fresh"), now.Add(-6*time.Hour)),
		sentAt(direct("2", "old"), now.Add(-3*time.Hour)), sentAt(direct("3", "older"), now.Add(-2*time.Hour)),
		sentAt(direct("4", "new"), now), elsewhere,
	}
	r.accept(batch...)
	r.platform.wait(t, 5)
	r.restart()
	r.accept(batch...)
	r.accept(sentAt(direct("6", "end"), now))
	byChat := map[string][]string{}
	for _, s := range r.platform.wait(t, 6) {
		byChat[s.to.Chat.ID] = append(byChat[s.to.Chat.ID], s.text)
	}
	want := map[string][]string{
		"1": {"re: fresh", "_I was away: this waited for 3 hours._\n\nre: old", "re: older", "re: new", "re: end"},
		"2": {"_I was away: this waited for 2 days._\n\nre: elsewhere"},
	}
	if fmt.Sprintf("%q", byChat) != fmt.Sprintf("%q", want) {
		t.Errorf("answers:\n%q\nwant\n%q", byChat, want)
	}
}

func TestStaleCommandsRunInTheirPlace(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Now = func() time.Time { return now } })
	old := now.Add(-75 * time.Minute)
	r.accept(sentAt(direct("1", "slow one"), old))
	<-s.asked
	r.accept(sentAt(direct("2", "/clear"), old), sentAt(direct("3", "after"), old))
	got := texts(r.platform.wait(t, 2))
	if !strings.Contains(got[0], "cleared") || got[1] != "re: after" {
		t.Errorf("answers: %q", got)
	}
}

func TestAMoveIsToldBeforeItIsDone(t *testing.T) {
	t.Parallel()
	var told []string
	var r *harness
	r = newHarness(t, echo, func(c *bridge.Config) {
		c.Hooks.OnChatMoved = func(ctx context.Context, from, to chats.Chat) error {
			told = append(told, from.String()+" "+to.String())
			if _, err := r.cfg.Store.Get(ctx, "session/fake:s"); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("the conversation was moved although the rest was not (%v)", err)
			}
			if len(told) == 1 {
				return errors.New("disk full")
			}
			return nil
		}
	})
	from, to := chats.Chat{Platform: "fake", ID: "g"}, chats.Chat{Platform: "fake", ID: "s"}
	r.accept(group("1", "5", "before"))
	r.platform.wait(t, 1)
	if err := r.bridge.Moved(t.Context(), from, to); err != nil {
		t.Fatal(err)
	}
	// It is tried again, and nobody is answered there before.
	r.accept(moved("1", "5", "after"))
	r.platform.wait(t, 2)
	r.stop()
	if want := []string{"fake:g fake:s", "fake:g fake:s"}; !slices.Equal(told, want) {
		t.Errorf("told %q", told)
	}
	if c := (conversation.Conversation{Chat: from, Generation: 1}); r.countOf(c.Log()) != 4 {
		t.Errorf("the conversation has %d messages", r.countOf(c.Log()))
	}
}

func (r *harness) countOf(log string) (n int) {
	r.t.Helper()
	for _, err := range conversation.Messages(r.t.Context(), r.cfg.Store, log) {
		if err != nil {
			r.t.Fatal(err)
		}
		n++
	}
	return n
}

func TestAMovedChatKeepsItsFormerConversations(t *testing.T) {
	r := newHarness(t, echo, func(c *bridge.Config) { c.Access.Admins = []string{"*"} })
	r.accept(group("1", "5", "first"))
	r.platform.wait(t, 1)
	r.accept(group("2", "5", "/clear"), group("3", "5", "second"))
	waitAnswered(t, r.platform, "re: second")
	from, to := chats.Chat{Platform: "fake", ID: "g"}, chats.Chat{Platform: "fake", ID: "s"}
	for range 2 {
		if err := r.bridge.Moved(t.Context(), from, to); err != nil {
			t.Fatal(err)
		}
	}
	r.accept(moved("1", "5", "third")) // is answered when the chat has moved
	waitAnswered(t, r.platform, "re: third")
	all, err := conversation.Conversations(t.Context(), r.cfg.Store, to.String())
	said := map[string]bool{}
	for _, c := range all {
		for m, err := range conversation.Messages(t.Context(), r.cfg.Store, c.Log()) {
			if err != nil {
				t.Fatal(err)
			}
			said[m.Text] = true
		}
	}
	if err != nil || len(all) != 2 || !said["first"] || !said["second"] || !said["third"] {
		t.Errorf("%d conversations (%v) with %v, want two with both messages", len(all), err, said)
	}
}

// TestWhatWaitedForARestartSaysSo lets the bot go down with messages it had accepted.
func TestWhatWaitedForARestartSaysSo(t *testing.T) {
	now := time.Date(2026, 7, 1, 12, 0, 0, 0, time.UTC)
	s := newSlow()
	r := newHarness(t, s.think, func(c *bridge.Config) { c.Now = func() time.Time { return now } })
	r.accept(sentAt(direct("1", "slow one"), now), sentAt(direct("2", "two"), now))
	<-s.asked
	r.stop()
	now = now.Add(3 * time.Hour)
	close(s.free)
	r.start()
	got := texts(r.platform.wait(t, 2))
	if want := []string{"_I was away: this waited for 3 hours._\n\nre: slow one", "re: two"}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("answers: %q, want %q", got, want)
	}
}
