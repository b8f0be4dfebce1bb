package outbox_test

import (
	"context"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
)

// acknowledging is a platform with reactions.
type acknowledging struct{ chats.Platform }

func (acknowledging) Acknowledge(context.Context, chats.Chat, string, bool) error { return nil }

// Which chats another process owns may depend on the queue, which reports a waiting message while it is
// locked: neither waits for the other.
func TestChatsAreDroppedWhileAMessageBeginsToWait(t *testing.T) {
	s := outbox.NewReactionTracker(outbox.ReactionTrackerConfig{Platforms: map[string]chats.Platform{"fake": acknowledging{}}})
	waits := func(chat string) {
		s.OnWaiting(&queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "fake", ID: chat}, ID: "1", Kind: chats.KindText}}})
	}
	waits("1")
	dropped := make(chan struct{})
	go func() {
		defer close(dropped)
		s.DropChats(func(chat chats.Chat) bool {
			waits("2")
			return chat.ID == "1"
		})
		s.DropChats(func(chat chats.Chat) bool {
			if chat.ID == "1" {
				t.Error("a dropped chat still has its reaction")
			}
			return true
		})
	}()
	select {
	case <-dropped:
	case <-time.After(time.Minute):
		t.Fatal("it hangs")
	}
}
