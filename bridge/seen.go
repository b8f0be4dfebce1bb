package bridge

import (
	"oneclaw/bridge/chats"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
)

// newSigns makes the room of signs. Where none are wanted it only takes away what a former run
// has left.
func (b *Bridge) newSigns(shared queue.Shared) *outbox.Reactions {
	return outbox.NewReactions(outbox.ReactionsConfig{
		Shared: shared, Store: b.store, Mark: b.jobs.LeaseToken, InOrder: b.sender.IsUp, Go: b.lanes.TryGo, Work: b.lanes.Context,
		Waits: func(chat chats.Chat, key string) bool {
			j, _ := b.lanes.Waiting(chat, func(j *queue.Run) bool { return j.Key() == key })
			return j != nil
		},
	})
}

// waits returns what is told of messages whose turn has to wait; nil where nobody is.
func (b *Bridge) waits() func(*queue.Run) {
	if !b.cfg.Turns.Acknowledge {
		return nil
	}
	return func(j *queue.Run) { b.signs.Wait(j) }
}
