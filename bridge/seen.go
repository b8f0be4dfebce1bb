package bridge

import (
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/signs"
)

// newSigns makes the room of signs. Where none are wanted it only takes away what a former run
// has left.
func (b *Bridge) newSigns(shared jobs.Shared) *signs.Signs {
	return signs.New(signs.Config{
		Shared: shared, Store: b.store, Mark: b.jobs.Mark, InOrder: b.sender.InOrder, Go: b.lanes.TryGo, Work: b.lanes.Work,
		Waits: func(chat chats.Chat, key string) bool {
			j, _ := b.lanes.Waiting(chat, func(j *jobs.Job) bool { return j.Key() == key })
			return j != nil
		},
	})
}

// waits returns what is told of messages whose turn has to wait; nil where nobody is.
func (b *Bridge) waits() func(*jobs.Job) {
	if !b.cfg.Turns.Seen {
		return nil
	}
	return func(j *jobs.Job) { b.signs.Wait(j) }
}
