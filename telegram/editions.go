package telegram

import (
	"hash/maphash"
	"slices"
	"strconv"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
)

// maxSeenTexts bounds the texts in memory.
const maxSeenTexts = 4096

// seenTexts remembers the texts and files of messages, because Telegram also reports an edit when the preview of
// a link appears. An edit of a forgotten message is passed on even if it changes nothing, which does no
// harm.
type seenTexts struct {
	seed maphash.Seed
	sums *cache.Cache[messageKey, uint64]
}

type messageKey struct{ chat, message string }

func newSeenTexts() seenTexts {
	return seenTexts{maphash.MakeSeed(), cache.New[messageKey, uint64](maxSeenTexts)}
}

func (e *seenTexts) sum(m *chats.Message) (messageKey, uint64) {
	var h maphash.Hash
	h.SetSeed(e.seed)
	for _, part := range append(refsOf(m.Files), m.Text) {
		_, _ = h.WriteString(strconv.Itoa(len(part)) + " " + part) // never fails
	}
	return messageKey{m.Chat.ID, m.ID}, h.Sum64()
}

func refsOf(files []chats.Attachment) (refs []string) {
	for _, f := range files {
		refs = append(refs, f.Ref)
	}
	return refs
}

// dropUnchanged returns the events without the edits that change neither text nor files.
func (e *seenTexts) dropUnchanged(events []event) []event {
	return slices.DeleteFunc(events, func(ev event) bool {
		if ev.message == nil || ev.message.Kind != chats.KindEdit {
			return false
		}
		key, sum := e.sum(ev.message)
		before, known := e.sums.Get(key)
		return known && before == sum
	})
}

// maxFirstMentionAge bounds the age of a message that mentions the bot only after an edit: users can
// edit for two days, and an inbox remembers accepted messages for longer.
const maxFirstMentionAge = 48 * time.Hour

// addFirstMentions inserts a new message before each edit that may be the first to mention the bot. An
// inbox drops the new messages that it has accepted before.
func addFirstMentions(events []event) (all []event) {
	for _, e := range events {
		if e.mayBeFirstMention {
			m := *e.message
			m.Kind = chats.KindText
			all = append(all, event{message: &m})
		}
		all = append(all, e)
	}
	return all
}

// remember records accepted events. An event that was not accepted arrives again, and must not count as
// known then. An ambient message is not recorded: an edit may add the mention, which is no part of the
// text.
func (e *seenTexts) remember(events []event) {
	for _, ev := range events {
		if ev.message != nil && ev.message.Kind != chats.KindPress && ev.message.Kind != chats.KindAmbient {
			key, sum := e.sum(ev.message)
			e.sums.Put(key, sum, cache.Forever)
		}
	}
}
