package bridge

import (
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/wording"
)

// staleAfter is how old a message may be when it arrives, by the time of its platform,
// before its answer says so.
const staleAfter = time.Hour

// waited returns how long a message was on its way, if its answer has to say so: longer
// than staleAfter, and nobody in its chat was told within that time. Nothing else is
// different for such a message. Messages and commands that waited are carried out in the
// order in which they were sent, so a /stop or /clear ends what came before it and
// nothing else.
func (in *intake) waited(m chats.Message) time.Duration {
	if m.Time.IsZero() || m.Kind != chats.KindText {
		return 0
	}
	now := in.now()
	late := now.Sub(m.Time)
	if late <= staleAfter {
		return 0
	}
	if told, _ := in.late.Get(m.Chat); now.Sub(told).Abs() < staleAfter {
		return 0
	}
	return late
}

// lateNotice stands above the answer to a message that waited.
func lateNotice(waited time.Duration) string {
	return "_I was away: this waited for " + wording.Roughly(waited) + "._\n\n"
}
