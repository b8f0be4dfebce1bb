package telegram

import (
	"context"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"oneclaw/internal/emulator/telegram/botapi"
	"oneclaw/internal/emulator/wire"
)

// The refusals of a second consumer (tdlib/telegram-bot-api, Client.cpp, abort_long_poll):
// a poll that finds nothing ends the one before. The server spaces these refusals by three
// seconds, which the emulator does not.
const (
	conflictPoll    = "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running"
	conflictWebhook = "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first"
	conflictSet     = "Conflict: terminated by setWebhook request"
)

// queue is what waits for the bot. Guarded by Server.mu.
type queue struct {
	updates   []update
	last      int64 // id of the newest update
	confirmed int64 // all up to here are gone for good
	again     []update
	allowed   []string // nil: all but those that must be asked for
	poll      *poll
	polls     int
	lost      int
	webhook   *webhook
	delivered map[int64]bool // to a webhook
}

func newQueue() queue {
	// The service starts at a number of its own, too.
	return queue{last: 500_000_000, confirmed: 500_000_000, webhook: &webhook{}, delivered: map[int64]bool{}}
}

type update struct {
	id    int64
	body  json.RawMessage
	album string
	chat  int64
	lane  string // updates of one lane reach a webhook in their order
}

// poll is a getUpdates that waits. Whoever takes it away says why in conflict and
// closes wake.
type poll struct {
	wake     chan struct{}
	woken    bool
	conflict string
}

func (p *poll) ring() {
	if !p.woken {
		p.woken = true
		close(p.wake)
	}
}

// push queues an update of a kind and wakes the poller. It returns 0 where the bot
// did not ask for that kind.
func (s *Server) push(kind string, v any) int64 {
	if !s.wanted(kind) {
		return 0
	}
	body, err := json.Marshal(v)
	if err != nil {
		panic(err) // only our own structs come here
	}
	s.last++
	text := make([]byte, 0, len(body)+len(kind)+40)
	text = append(text, `{"update_id":`...)
	text = strconv.AppendInt(text, s.last, 10)
	text = append(text, `,"`+kind+`":`...)
	text = append(append(text, body...), '}')
	u := update{id: s.last, body: text}
	u.chat, u.lane = laneOf(s.last, kind, body)
	if m, ok := v.(*botapi.Message); ok {
		u.album = m.MediaGroupID
	}
	s.updates = append(s.updates, u)
	if len(s.updates) > s.cfg.MaxUpdates {
		s.updates = s.updates[1:]
		s.lost++
	}
	if s.poll != nil {
		s.poll.ring()
	}
	s.emit(Event{Kind: EventUpdate, Update: s.last, Text: kind}, nil, nil)
	s.post()
	return s.last
}

// wanted says whether an update of a kind reaches the bot
// (core.telegram.org/bots/api#getupdates, allowed_updates). Some kinds come only
// when named.
func (s *Server) wanted(kind string) bool {
	if s.allowed == nil {
		return kind != "chat_member" && kind != "message_reaction" && kind != "message_reaction_count"
	}
	return slices.Contains(s.allowed, kind)
}

// allow takes over allowed_updates, which holds from now on until named again.
func (s *Server) allow(p *wire.Params) {
	var kinds []string
	there, err := p.JSON("allowed_updates", &kinds)
	if !there || err != nil {
		return
	}
	s.allowed = kinds
	if len(kinds) == 0 {
		s.allowed = nil
	}
}

func getUpdates(ctx context.Context, s *Server, p *wire.Params) (any, *apiError) {
	limit := 100
	if p.Text("limit") != "" {
		limit = int(min(max(p.Int("limit"), 1), 100))
	}
	wait := min(max(time.Duration(p.Int("timeout")), 0)*time.Second, maxPoll)
	s.mu.Lock()
	if s.webhook.URL != "" {
		s.mu.Unlock()
		return nil, errorf(409, conflictWebhook)
	}
	s.allow(p)
	s.polls++
	s.confirm(p.Int("offset"))
	s.emit(Event{Kind: EventPoll}, nil, nil)
	ready := s.take(limit)
	if len(ready) > 0 || wait == 0 {
		s.mu.Unlock()
		return ready, nil
	}
	if s.poll != nil {
		s.poll.conflict = conflictPoll
		s.poll.ring()
	}
	mine := &poll{wake: make(chan struct{})}
	s.poll = mine
	s.mu.Unlock()
	return s.await(ctx, mine, limit, wait)
}

// await holds a long poll until something comes, its time is over, or another
// poller takes its place.
func (s *Server) await(ctx context.Context, mine *poll, limit int, wait time.Duration) (any, *apiError) {
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-mine.wake:
	case <-timer.C:
	case <-ctx.Done():
	case <-s.life.Done():
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.poll == mine {
		s.poll = nil
		s.hub.Changed()
	}
	if mine.conflict != "" {
		return nil, errorf(409, "%s", mine.conflict) // see conflictPoll
	}
	if ctx.Err() != nil {
		return []json.RawMessage{}, nil // nobody listens: hand nothing out
	}
	return s.take(limit), nil
}

// confirm drops the updates below offset for good (core.telegram.org/bots/api#getupdates;
// tdlib/td, TQueue.cpp). A negative offset keeps only
// that many of the last; one far in the future is ignored.
func (s *Server) confirm(offset int64) {
	n := 0
	switch {
	case offset < 0:
		n = max(len(s.updates)+int(offset), 0)
	case offset == 0 || offset > s.last+11:
		return
	default:
		for n < len(s.updates) && s.updates[n].id < offset {
			n++
		}
	}
	if n == 0 {
		return
	}
	s.confirmed = s.updates[n-1].id
	clear(s.updates[:n])
	s.updates = s.updates[n:]
	s.emit(Event{Kind: EventConfirm, Update: s.confirmed}, nil, nil)
}

// take lists what is to be delivered. Nothing is removed: that is up to the next
// offset. The items of an album come one with each poll, as they often do
// (tdlib/telegram-bot-api #629).
func (s *Server) take(limit int) []json.RawMessage {
	out := make([]json.RawMessage, 0, min(limit, len(s.updates)+len(s.again)))
	for _, u := range s.again {
		out = append(out, u.body)
	}
	s.again = nil
	album := ""
	for _, u := range s.updates {
		if len(out) >= limit || album != "" && u.album == album {
			break
		}
		album = u.album
		out = append(out, u.body)
	}
	return out
}

// repeat makes the next poll deliver once more what this one did, whatever the
// offset says.
func (s *Server) repeat(result any) {
	bodies, ok := result.([]json.RawMessage)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, b := range bodies {
		s.again = append(s.again, update{body: b})
	}
	if s.poll != nil && len(bodies) > 0 {
		s.poll.ring()
	}
}
