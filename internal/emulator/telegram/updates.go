package telegram

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// The refusals of a second consumer (tdlib/telegram-bot-api, Client.cpp, abort_long_poll): a new
// poll without updates ends the previous one. The real server delays these refusals by three
// seconds.
const (
	conflictPoll    = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	conflictWebhook = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	conflictSet     = "Conflict: terminated by setWebhook request"
)

// queue stores the bot's updates, and delivers them: to a poll, or to a webhook. The content of
// updates is opaque JSON.
//
// It is guarded by mu, which repeat and background work take; callers of other methods, or users
// of fields, hold it.
type queue struct {
	mu     *sync.Mutex // the world's
	cfg    *Config
	life   *wire.Lifecycle
	hub    *wire.Hub[int64, Message]
	faults *wire.Faults[int64]

	waiting   []update
	last      int64 // id of the newest update
	confirmed int64 // all up to here are confirmed
	again     []update
	allowed   []string // nil: all but those that must be requested
	poll      *poll
	polls     int
	lost      int
	webhook   *webhook
	delivered map[int64]bool // to a webhook
}

func newQueue(cfg *Config, mu *sync.Mutex, life *wire.Lifecycle, hub *wire.Hub[int64, Message], faults *wire.Faults[int64]) *queue {
	return &queue{
		mu: mu, cfg: cfg, life: life, hub: hub, faults: faults, webhook: &webhook{}, delivered: map[int64]bool{},
		last: 500_000_000, confirmed: 500_000_000, // the service does not start at 0 either
	}
}

type update struct {
	id    int64
	body  json.RawMessage
	album string
	chat  int64
	queue string // updates of one queue reach a webhook in order
}

// poll is a waiting getUpdates. Removing it sets conflict and closes wake.
type poll struct {
	wake     chan struct{}
	woken    bool
	conflict string
}

func (p *poll) ring() {
	if p != nil && !p.woken {
		p.woken = true
		close(p.wake)
	}
}

// end ends a poll, if any.
func (p *poll) end(conflict string) {
	if p != nil {
		p.conflict = conflict
		p.ring()
	}
}

// push queues an update of a kind and wakes the poller. It returns 0 if the bot did not ask for
// that kind.
func (q *queue) push(kind string, v any) int64 {
	if !q.wanted(kind) {
		return 0
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own structs
	}
	q.last++
	u := update{id: q.last, body: fmt.Appendf(nil, `{"update_id":%d,"%s":%s}`, q.last, kind, body)}
	if _, recorded := v.(json.RawMessage); !recorded {
		q.life.Broken(contract().Check(u.body, "update"))
	}
	u.chat, u.queue = queueOf(q.last, kind, body)
	if m, ok := v.(*botapi.Message); ok {
		u.album = m.MediaGroupID
	}
	q.waiting = append(q.waiting, u)
	if len(q.waiting) > q.cfg.MaxUpdates {
		q.waiting = q.waiting[1:]
		q.lost++
	}
	q.poll.ring()
	q.hub.Emit(Event{Kind: EventUpdate, Update: q.last, Text: kind}, nil)
	q.post()
	return q.last
}

// wanted reports whether an update of a kind reaches the bot
// (core.telegram.org/bots/api#getupdates, allowed_updates). Some kinds are only sent on request.
func (q *queue) wanted(kind string) bool {
	if q.allowed == nil {
		return kind != "chat_member" && kind != "message_reaction" && kind != "message_reaction_count"
	}
	return slices.Contains(q.allowed, kind)
}

// allow stores allowed_updates, which stays until named again. Nil names nothing.
func (q *queue) allow(kinds []string) {
	if kinds != nil {
		q.allowed = kinds
	}
	if len(q.allowed) == 0 {
		q.allowed = nil
	}
}

// get is a poll: it waits, without the lock, until there is an update, its time is over, or
// another poll replaces it. That, and an active webhook, is a conflict.
func (q *queue) get(ctx context.Context, offset int64, limit int, wait time.Duration, kinds []string) (ready []json.RawMessage, conflict string) {
	if q.webhook.URL != "" {
		return nil, conflictWebhook
	}
	q.allow(kinds)
	q.polls++
	q.confirm(offset)
	q.hub.Emit(Event{Kind: EventPoll}, nil)
	if ready = q.take(limit); len(ready) > 0 || wait == 0 {
		return ready, ""
	}
	q.poll.end(conflictPoll)
	mine := &poll{wake: make(chan struct{})}
	q.poll = mine
	q.await(ctx, mine, wait)
	if q.poll == mine {
		q.poll = nil
		q.hub.Changed()
	}
	if mine.conflict != "" || ctx.Err() != nil {
		return []json.RawMessage{}, mine.conflict // without a listener, nothing is delivered
	}
	return q.take(limit), ""
}

// await waits for a poll, without the lock.
func (q *queue) await(ctx context.Context, mine *poll, wait time.Duration) {
	q.mu.Unlock()
	defer q.mu.Lock()
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-mine.wake:
	case <-timer.C:
	case <-ctx.Done():
	case <-q.life.Done():
	}
}

// confirm drops the updates below offset (core.telegram.org/bots/api#getupdates; tdlib/td,
// TQueue.cpp). A negative offset keeps only that many of the last; one far in the future is
// ignored.
func (q *queue) confirm(offset int64) {
	n := 0
	switch {
	case offset < 0:
		n = max(len(q.waiting)+int(offset), 0)
	case offset == 0 || offset > q.last+11:
		return
	default:
		for n < len(q.waiting) && q.waiting[n].id < offset {
			n++
		}
	}
	if n == 0 {
		return
	}
	q.confirmed = q.waiting[n-1].id
	clear(q.waiting[:n])
	q.waiting = q.waiting[n:]
	q.hub.Emit(Event{Kind: EventConfirm, Update: q.confirmed}, nil)
}

// take lists the updates to deliver. They stay until the next offset. Each poll gets one item of
// an album, as often happens (tdlib/telegram-bot-api #629).
func (q *queue) take(limit int) []json.RawMessage {
	out := make([]json.RawMessage, 0, min(limit, len(q.waiting)+len(q.again)))
	for _, u := range q.again {
		out = append(out, u.body)
	}
	q.again = nil
	album := ""
	for _, u := range q.waiting {
		if len(out) >= limit || album != "" && u.album == album {
			break
		}
		album = u.album
		out = append(out, u.body)
	}
	return out
}

// repeat makes the next poll deliver earlier updates again, whatever the offset says.
func (q *queue) repeat(bodies []json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range bodies {
		q.again = append(q.again, update{body: b})
	}
	if len(bodies) > 0 {
		q.poll.ring()
	}
}
