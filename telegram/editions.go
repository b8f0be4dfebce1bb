package telegram

import (
	"hash/maphash"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
)

// maxEditions bounds the remembered texts.
const maxEditions = 4096

// editions remembers the texts of messages, because Telegram also reports an edit when the preview of a
// link appears. An edit of a forgotten message is passed on even if it changes nothing, which does no
// harm.
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

// changed returns the events without edits that change no text.
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

// maxFirst bounds the age of a message that mentions the bot only after an edit: users can edit for two
// days, and an inbox remembers longer what it has accepted.
const maxFirst = 48 * time.Hour

// mentionsAdded converts edits that mention the bot to new messages as well. An inbox drops those it has
// accepted before.
func mentionsAdded(events []event) (all []event) {
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

// keep remembers events that were accepted; others will come again, and must not count as known then.
func (e *editions) keep(events []event) {
	for _, ev := range events {
		if ev.message != nil && ev.message.Kind != chats.KindPress {
			key, sum := e.sum(ev.message)
			e.sums.Put(key, sum, cache.Forever)
		}
	}
}
