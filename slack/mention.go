package slack

import (
	"context"

	"oneclaw/bridge/chats"
)

// Slack reports a message that mentions the bot with two events in either order, and the one of the mention
// often lacks the files. The inbox keeps the first of the two, so a mention is completed before that.

// completeMention reads the message of a mention again if it may lack files. If Slack does not answer soon,
// the other event completes it; see completesMention.
func (r *receiver) completeMention(ctx context.Context, e *event) {
	if e.Type != "app_mention" || len(e.Files) > 0 {
		return
	}
	key := e.Channel + "/" + e.TS
	if arrived, _ := r.mentions.Get(key); arrived {
		return // the inbox drops this one
	}
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	page, err := r.api.readMessages(ctx, &messageQuery{channel: e.Channel, thread: e.TS, limit: 1})
	if err != nil || len(page) == 0 || page[0].TS != e.TS {
		r.log.Debug("the message of a mention cannot be read", "channel", e.Channel, "id", e.TS, "err", err)
		r.mentions.Put(key, false, ignoredAge)
		return
	}
	whole := page[0].message
	e.Files, e.damaged = whole.Files, e.damaged || whole.damaged
	if len(whole.Blocks) > 0 {
		e.Blocks = whole.Blocks
	}
	if len(whole.Attachments) > 0 {
		e.Attachments = whole.Attachments
	}
}

// completesMention records that a message with a mention has arrived, and reports whether it has parts that
// an earlier event lacked.
func (r *receiver) completesMention(e *event, msg *chats.Message) bool {
	if e == nil || e.Type != "message" || e.Message != nil || msg.Kind != chats.KindText || !r.self.isMentioned(e.Text) {
		return false
	}
	key := e.Channel + "/" + e.TS
	whole, known := r.mentions.Get(key)
	r.mentions.Put(key, true, ignoredAge)
	return known && !whole && len(msg.Files)+len(msg.Skipped)+len(msg.Quoted) > 0
}
