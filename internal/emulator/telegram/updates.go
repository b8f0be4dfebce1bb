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

// The refusals of a second consumer (tdlib/telegram-bot-api, Client.cpp, abort_long_poll). A new
// poll that finds no updates ends the previous one. The real server delays these refusals by three
// seconds.
const (
	conflictPoll    = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	conflictWebhook = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	conflictSet     = "Conflict: terminated by setWebhook request"
)

// queue stores the bot's updates and delivers them to a poll or to a webhook. It does not interpret
// the JSON of updates.
//
// It is guarded by mu. redeliver and background work take the lock; callers of other methods, and
// users of fields, must hold it.
type queue struct {
	mu     *sync.Mutex // lock of the world
	cfg    *Config
	life   *wire.Lifecycle
	hub    *wire.Hub[int64, Message]
	faults *wire.Faults[int64]

	waiting   []update
	lastID    int64 // id of the newest update
	confirmed int64 // all updates up to this id are confirmed
	repeated  []update
	allowed   []string // nil means all but those that must be requested
	poll      *poll
	pollCount int
	lostCount int
	webhook   *webhook
	delivered map[int64]bool // ids of updates delivered to a webhook
}

func newQueue(cfg *Config, mu *sync.Mutex, life *wire.Lifecycle, hub *wire.Hub[int64, Message], faults *wire.Faults[int64]) *queue {
	return &queue{
		mu: mu, cfg: cfg, life: life, hub: hub, faults: faults, webhook: &webhook{}, delivered: map[int64]bool{},
		lastID: 500_000_000, confirmed: 500_000_000, // the service does not start at 0 either
	}
}

type update struct {
	id    int64
	body  json.RawMessage
	album string
	chat  int64
	queue string // a webhook gets the updates of a queue in order
}

// poll is a waiting call of getUpdates. Terminating it sets conflict and closes wake.
type poll struct {
	wake     chan struct{}
	woken    bool
	conflict string
}

func (p *poll) wakeUp() {
	if p != nil && !p.woken {
		p.woken = true
		close(p.wake)
	}
}

// terminate ends a poll because of a conflict. A nil poll is ignored.
func (p *poll) terminate(conflict string) {
	if p != nil {
		p.conflict = conflict
		p.wakeUp()
	}
}

// push queues an update of a kind and wakes the poller. It returns 0 if the bot did not request
// that kind.
func (q *queue) push(kind string, v any) int64 {
	if !q.isAllowed(kind) {
		return 0
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own structs
	}
	q.lastID++
	u := update{id: q.lastID, body: fmt.Appendf(nil, `{"update_id":%d,"%s":%s}`, q.lastID, kind, body)}
	if _, recorded := v.(json.RawMessage); !recorded {
		q.life.RecordViolation(contract().Check(u.body, "update"))
	}
	u.chat, u.queue = updateTarget(q.lastID, kind, body)
	if m, ok := v.(*botapi.Message); ok {
		u.album = m.MediaGroupID
	}
	q.waiting = append(q.waiting, u)
	if len(q.waiting) > q.cfg.MaxUpdates {
		q.waiting = q.waiting[1:]
		q.lostCount++
	}
	q.poll.wakeUp()
	q.hub.Emit(event{Kind: EventUpdate, Update: q.lastID, Text: kind}, nil)
	q.postDue()
	return q.lastID
}

// isAllowed reports whether updates of a kind are sent to the bot
// (core.telegram.org/bots/api#getupdates, allowed_updates). Some kinds are sent only on request.
func (q *queue) isAllowed(kind string) bool {
	if q.allowed == nil {
		return kind != "chat_member" && kind != "message_reaction" && kind != "message_reaction_count"
	}
	return slices.Contains(q.allowed, kind)
}

// setAllowed stores allowed_updates, which apply until a call names others. Nil changes nothing, and an
// empty list restores the default.
func (q *queue) setAllowed(kinds []string) {
	if kinds != nil {
		q.allowed = kinds
	}
	if len(q.allowed) == 0 {
		q.allowed = nil
	}
}

// longPoll waits, without the lock, until there is an update, the timeout passes, or another poll
// replaces this one. Being replaced is a conflict, and so is an active webhook.
func (q *queue) longPoll(ctx context.Context, offset int64, limit int, wait time.Duration, kinds []string) (ready []json.RawMessage, conflict string) {
	if q.webhook.URL != "" {
		return nil, conflictWebhook
	}
	q.setAllowed(kinds)
	q.pollCount++
	q.confirm(offset)
	q.hub.Emit(event{Kind: eventPoll}, nil)
	if ready = q.nextUpdates(limit); len(ready) > 0 || wait == 0 {
		return ready, ""
	}
	q.poll.terminate(conflictPoll)
	mine := &poll{wake: make(chan struct{})}
	q.poll = mine
	q.awaitUpdate(ctx, mine, wait)
	if q.poll == mine {
		q.poll = nil
		q.hub.Wake()
	}
	if mine.conflict != "" || ctx.Err() != nil {
		return []json.RawMessage{}, mine.conflict // without a client, nothing is delivered
	}
	return q.nextUpdates(limit), ""
}

// awaitUpdate waits until a poll is woken or times out, without the lock.
func (q *queue) awaitUpdate(ctx context.Context, mine *poll, wait time.Duration) {
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
// TQueue.cpp). A negative offset keeps only that many of the newest updates. An offset far in the
// future is ignored.
func (q *queue) confirm(offset int64) {
	n := 0
	switch {
	case offset < 0:
		n = max(len(q.waiting)+int(offset), 0)
	case offset == 0 || offset > q.lastID+11:
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
	q.hub.Emit(event{Kind: eventConfirm, Update: q.confirmed}, nil)
}

// nextUpdates returns the updates to deliver. They stay queued until the next offset. Each poll gets one
// item of an album, as often happens (tdlib/telegram-bot-api #629).
func (q *queue) nextUpdates(limit int) []json.RawMessage {
	out := make([]json.RawMessage, 0, min(limit, len(q.waiting)+len(q.repeated)))
	for _, u := range q.repeated {
		out = append(out, u.body)
	}
	q.repeated = nil
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

// redeliver makes the next poll deliver earlier updates again, regardless of its offset.
func (q *queue) redeliver(bodies []json.RawMessage) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, b := range bodies {
		q.repeated = append(q.repeated, update{body: b})
	}
	if len(bodies) > 0 {
		q.poll.wakeUp()
	}
}
