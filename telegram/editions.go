package telegram

import (
	"hash/maphash"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
)

// maxEditions bounds the messages whose text is remembered.
const maxEditions = 4096

// editions remembers what messages said, because Telegram calls it an edit as well when
// the preview of a link appears. Where it has forgotten, an edit that changes nothing is
// handed on, which does no harm.
type editions struct {
	seed maphash.Seed
	sums *cache.Cache[edition, uint64]
}

type edition struct{ chat, message string }

func newEditions() editions {
	return editions{maphash.MakeSeed(), cache.New[edition, uint64](maxEditions)}
}

func (e *editions) sum(m *chats.Message) (edition, uint64) {
	return edition{m.Chat.ID, m.ID}, maphash.String(e.seed, m.Text)
}

// changed returns the events without the edits that change no text.
func (e *editions) changed(events []event) []event {
	return slices.DeleteFunc(events, func(ev event) bool {
		if ev.message == nil || ev.message.Kind != chats.KindEdit {
			return false
		}
		key, sum := e.sum(ev.message)
		before, known := e.sums.Get(key)
		return known && before == sum
	})
}

// maxFirst is how old a message may be that calls the bot only now: people can edit for two
// days, and an inbox knows for longer what it has accepted.
const maxFirst = 48 * time.Hour

// called has a user who mentions the bot by an edit speak to it for the first time. An inbox drops
// what it has accepted before.
func called(events []event) (all []event) {
	for _, e := range events {
		if e.first {
			m := *e.message
			m.Kind = chats.KindText
			all = append(all, event{message: &m})
		}
		all = append(all, e)
	}
	return all
}

// keep remembers events that were accepted: one that was not will come again, and must
// not count as known then.
func (e *editions) keep(events []event) {
	for _, ev := range events {
		if ev.message != nil && ev.message.Kind != chats.KindPress {
			key, sum := e.sum(ev.message)
			e.sums.Put(key, sum, cache.Forever)
		}
	}
}
