package telegram

import (
	"hash/maphash"
	"slices"

	"oneclaw/bridge"
)

// maxEditions bounds the messages of one generation whose text is remembered.
const maxEditions = 2048

// editions remembers what messages said, because Telegram calls it an edit as well when
// the preview of a link appears or something else changes around an unchanged text. It
// forgets: then an edit that changes nothing is handed on, which does no harm. The zero
// value is ready.
type editions struct {
	seed        maphash.Seed
	recent, old map[edition]uint64
}

type edition struct{ chat, message string }

func (e *editions) sum(m *bridge.Message) (edition, uint64) {
	if e.recent == nil {
		e.seed, e.recent = maphash.MakeSeed(), map[edition]uint64{}
	}
	return edition{m.Chat.ID, m.ID}, maphash.String(e.seed, m.Text)
}

// changed returns the events without the edits that change no text.
func (e *editions) changed(events []event) []event {
	return slices.DeleteFunc(events, func(ev event) bool {
		if ev.message == nil || ev.message.Kind != bridge.KindEdit {
			return false
		}
		key, sum := e.sum(ev.message)
		before, known := e.recent[key]
		if !known {
			before, known = e.old[key]
		}
		return known && before == sum
	})
}

// keep remembers events that were accepted: one that was not will come again, and must
// not count as known then.
func (e *editions) keep(events []event) {
	for _, ev := range events {
		if ev.message == nil || ev.message.Kind == bridge.KindPress {
			continue
		}
		key, sum := e.sum(ev.message)
		if e.recent[key] = sum; len(e.recent) >= maxEditions {
			e.recent, e.old = map[edition]uint64{}, e.recent
		}
	}
}
