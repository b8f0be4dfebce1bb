package bridge

import (
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/wording"
)

// DefaultStaleAfter is how old a message may be when it arrives before its answer says
// so.
const DefaultStaleAfter = time.Hour

// maxLate bounds the chats of which is remembered that they were told.
const maxLate = 10_000

// waited returns how long a message was on its way, if its answer has to say so: longer
// than StaleAfter, and nobody in its chat was told within that time. Nothing else is
// different for such a message. Messages and commands that waited are carried out in the
// order in which they were sent, so a /stop or /clear ends what came before it and
// nothing else.
func (b *Bridge) waited(m chats.Message) time.Duration {
	if b.cfg.Limits.StaleAfter < 0 || m.Time.IsZero() || m.Kind != chats.KindText {
		return 0
	}
	now := b.cfg.Now()
	late := now.Sub(m.Time)
	if late <= b.cfg.Limits.StaleAfter {
		return 0
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if told, ok := b.told[m.Chat]; ok && now.Sub(told).Abs() < b.cfg.Limits.StaleAfter {
		return 0
	}
	return late
}

// tell notes that a chat will be told.
func (b *Bridge) tell(chat chats.Chat) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.told) >= maxLate {
		clear(b.told)
	}
	b.told[chat] = b.cfg.Now()
}

// lateNotice stands above the answer to a message that waited.
func lateNotice(waited time.Duration) string {
	return "_I was away: this waited for " + wording.Roughly(waited) + "._\n\n"
}
