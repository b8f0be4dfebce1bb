package bridge

import (
	"time"

	"oneclaw/bridge/chats"
)

// DefaultStaleAfter is how old a message may be when it arrives before its answer says
// so.
const DefaultStaleAfter = time.Hour

// waited returns how long a message was on its way, if its answer has to say so: longer
// than StaleAfter, and nobody in its chat was told within that time. Nothing else is
// different for such a message. Messages and commands that waited are carried out in the
// order in which they were sent, so a /stop or /clear ends what came before it and
// nothing else.
func (in *intake) waited(m chats.Message) time.Duration {
	if in.cfg.Limits.StaleAfter < 0 || m.Time.IsZero() || m.Kind != chats.KindText {
		return 0
	}
	now := in.cfg.Now()
	late := now.Sub(m.Time)
	if late <= in.cfg.Limits.StaleAfter {
		return 0
	}
	if told, _ := in.late.Get(m.Chat); now.Sub(told).Abs() < in.cfg.Limits.StaleAfter {
		return 0
	}
	return late
}
