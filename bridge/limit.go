package bridge

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/storage"
)

const (
	// fullInterval is how long a sender is not told again that too much waits.
	fullInterval = 10 * time.Minute
	// maxTold bounds how many chats and bursts are remembered.
	maxTold = 10_000
)

// Concurrency bounds the jobs that run or wait at the same time. 0 means the default of each.
type Concurrency struct {
	// MaxTurns bounds the turns that run at the same time, and the sends.
	MaxTurns int `yaml:"turns" env:"ONECLAW_MAX_TURNS"`
	// MaxWaiting bounds the waiting messages of one chat, and likewise its commands.
	MaxWaiting int `yaml:"waiting" env:"ONECLAW_MAX_WAITING"`
	// MaxWaitingMember bounds the waiting messages and commands of one user in shared chats.
	MaxWaitingMember int `yaml:"waiting_member" env:"ONECLAW_MAX_WAITING_MEMBER"`
}

// Defaults of [Concurrency].
const (
	DefaultMaxTurns         = 1000
	DefaultMaxWaiting       = 100
	DefaultMaxWaitingMember = 20
)

func (c Concurrency) complete() Concurrency {
	c.MaxTurns = cmp.Or(c.MaxTurns, DefaultMaxTurns)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, DefaultMaxWaiting)
	c.MaxWaitingMember = cmp.Or(c.MaxWaitingMember, DefaultMaxWaitingMember)
	return c
}

// limiter bounds the waiting jobs, and tells senders that there is no room.
type limiter struct {
	workers  *workers
	store    storage.KV
	jobs     queue.Store
	queue    *queue.Queue
	inserter *inserter
	cards    *interact.Cards
	limits   Concurrency
	now      func() time.Time
	log      *slog.Logger

	mu   sync.Mutex
	told *cache.Cache[string, time.Time] // when a burst's sender was told
}

// room is how many jobs wait in the chat and of the sender of a message, and whether that is too many.
type room struct {
	chat, sender         queue.Occupancy
	chatFull, senderFull bool
}

// reserve counts a job among the waiting ones of its sender.
func (l *limiter) reserve(j *queue.Run) room {
	var r room
	r.chat, r.sender = l.queue.Reserve(j, l.limits.MaxWaitingMember)
	r.chatFull, r.senderFull = r.chat.Waiting >= l.limits.MaxWaiting, r.sender.Waiting >= l.limits.MaxWaitingMember
	return r
}

// refuse reports whether a message is rejected because too many wait in its chat or of its sender. Then
// it sends one notice for a burst, in the queue of the cards, and stores a receipt, so that the message
// is rejected again however often it is delivered.
func (l *limiter) refuse(ctx context.Context, j *queue.Run, room room) (bool, error) {
	l.queue.Release(j)
	if l.queue.Has(j.Key()) {
		return false, nil
	}
	if known, err := l.jobs.Closed(ctx, j.Key()); known || err != nil {
		return known, err
	}
	w := l.workers.of(j)
	if _, stops := w.(stopper); stops {
		return true, l.stopUnanswered(ctx, j)
	}
	whose, full, what := j.Message.By(), room.sender, ""
	outbox.Of(j).Notice = fmt.Sprintf("%d of your messages are waiting already, so I take no more of yours for now. "+
		"Please send this one again when they are answered.", room.sender.Waiting)
	if room.chatFull {
		whose, full, what = j.Message.Chat.String(), room.chat, "messages"
		if w.declares().Barrier {
			what = "commands"
		}
		outbox.Of(j).Notice = fmt.Sprintf("%d %s are waiting here already, so I take no more for now. "+
			"Please send yours again later, or send /stop to drop the waiting messages.", room.chat.Waiting, what)
	}
	if burst := fmt.Sprint(whose, " ", what, full.Burst); l.tellFull(burst) {
		if _, err := l.cards.Post(ctx, "full/"+j.Key(), j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: outbox.Of(j).Notice}); err != nil {
			l.told.Put(burst, time.Time{}, cache.Forever)
			return true, err
		}
		l.log.Warn("messages are refused: too many wait", "chat", j.Message.Chat.String(), "whose", whose)
	}
	l.workers.decide(j) // its worker changes with the notice
	j.State, j.Closed = receipts.Refused, l.now()
	return true, l.jobs.WriteReceipt(ctx, j, storage.Absent)
}

// stopUnanswered applies a /stop when there is no room for its reply.
func (l *limiter) stopUnanswered(ctx context.Context, j *queue.Run) error {
	added, err := l.inserter.add(ctx, j)
	if !added || j.Unclaimed || err != nil {
		return err
	}
	l.inserter.stopOlder(j)
	j.State, j.Closed = receipts.Done, l.now()
	return l.jobs.Close(ctx, j, nil)
}

// tellFull reports whether a burst's sender is to be told, and records that they are.
func (l *limiter) tellFull(burst string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if at, _ := l.told.Get(burst); now.Sub(at).Abs() < fullInterval {
		return false
	}
	l.told.Put(burst, now, cache.Forever)
	return true
}

// roomFor returns ErrBusy if too many tasks of a chat wait, here or at the process that owns it. A
// known task needs no room.
func (l *limiter) roomFor(ctx context.Context, j *queue.Run) error {
	chat, _ := l.queue.Reserve(j, 0)
	waiting := chat.Waiting
	if j.Unclaimed {
		for entry, err := range l.store.List(ctx, storage.Range{Prefix: queue.OpenPrefix + j.Message.Chat.WithoutThread().String() + "/"}) {
			if err != nil {
				return fmt.Errorf("list open jobs: %w", err)
			}
			if strings.HasSuffix(entry.Key, "/"+string(receipts.KindTask)) {
				waiting++
			}
		}
	}
	if waiting < l.limits.MaxWaiting {
		return nil
	}
	known, err := l.jobs.Find(ctx, j.Key())
	if known == nil && err == nil {
		err = ErrBusy
	}
	return err
}
