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

// postpone records that the message of an event is still to be fetched.
func (r *receiver) postpone(ctx context.Context, e *event) error {
	m := e.subject()
	return r.progress.Postpone(ctx, e.chat(m), shared.Postponement{Since: m.TS, Kind: e.ChannelType, Shared: e.shared})
}

// fetchAllPostponed fetches the postponed messages, until none is left or ctx ends.
func (r *receiver) fetchAllPostponed(ctx context.Context) {
	pauses := retry.New(minBackOff, maxBackOff)
	for postponed := r.progress.Postponed(); len(postponed) > 0 && ctx.Err() == nil; postponed = r.progress.Postponed() {
		var failed error
		for _, chat := range slices.SortedFunc(maps.Keys(postponed), func(a, b chats.Chat) int { return parseTS(postponed[a].Since).Compare(parseTS(postponed[b].Since)) }) {
			if err := r.fetchPostponed(ctx, chat, postponed[chat]); err != nil {
				failed = err
			}
		}
		if failed != nil {
			wait := pauses.Next(retryAfter(failed))
			r.log.Warn("cannot determine yet whether messages are for the bot", "threads", len(postponed), "wait", wait, "err", failed)
			_ = retry.Wait(ctx, wait) // the loop checks ctx
		}
	}
}

// fetchPostponed fetches the postponed messages of a thread.
func (r *receiver) fetchPostponed(ctx context.Context, chat chats.Chat, d shared.Postponement) error {
	from := parseTS(d.Since).Add(-time.Microsecond)
	oldest := fmt.Sprintf("%d.%06d", from.Unix(), from.Nanosecond()/1000)
	if _, err := r.fillThread(ctx, conversation{id: chat.ID, kind: d.Kind, shared: d.Shared}, chat.Thread, oldest); err != nil {
		return err
	}
	return r.progress.Resolve(ctx, chat, d)
}
