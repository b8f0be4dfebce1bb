package slack

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
	"oneclaw/slack/shared"
)

// postpone stores that a message is still to be fetched.
func (r *receiver) postpone(ctx context.Context, e *event) error {
	m := e.subject()
	return r.reach.Postpone(ctx, e.chat(m), shared.Postponement{Since: m.TS, Kind: e.ChannelType, Shared: e.shared})
}

// settle fetches what was postponed, until nothing is left or ctx ends.
func (r *receiver) settle(ctx context.Context) {
	pauses := retry.New(minBackOff, maxBackOff)
	for postponed := r.reach.Postponed(); len(postponed) > 0 && ctx.Err() == nil; postponed = r.reach.Postponed() {
		var failed error
		for _, chat := range slices.SortedFunc(maps.Keys(postponed), func(a, b chats.Chat) int { return stamp(postponed[a].Since).Compare(stamp(postponed[b].Since)) }) {
			if err := r.fetchPostponed(ctx, chat, postponed[chat]); err != nil {
				failed = err
			}
		}
		if failed != nil {
			wait := pauses.Next(asked(failed))
			r.log.Warn("not known yet whether messages are for the bot", "threads", len(postponed), "wait", wait, "err", failed)
			_ = retry.Wait(ctx, wait) // the loop checks ctx
		}
	}
}

// fetchPostponed fetches the postponed messages of a thread.
func (r *receiver) fetchPostponed(ctx context.Context, chat chats.Chat, d shared.Postponement) error {
	from := stamp(d.Since).Add(-time.Microsecond)
	oldest := fmt.Sprintf("%d.%06d", from.Unix(), from.Nanosecond()/1000)
	if _, err := r.fillThread(ctx, conversation{id: chat.ID, kind: d.Kind, shared: d.Shared}, chat.Thread, oldest); err != nil {
		return err
	}
	return r.reach.Resolved(ctx, chat, d)
}
