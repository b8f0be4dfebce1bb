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
	// fullInterval is the minimum time between two notices about the same burst of messages.
	fullInterval = 10 * time.Minute
	// maxTold bounds how many chats and bursts are remembered with their last notice, and how many
	// messages with their failed attempts.
	maxTold = 10_000
)

// Concurrency bounds the jobs that run or wait at the same time, and those that nobody watches. 0 means the default of each.
type Concurrency struct {
	// MaxTurns bounds the turns that run at the same time, and likewise the concurrent sends.
	MaxTurns int `yaml:"turns" env:"ONECLAW_MAX_TURNS"`
	// MaxWaiting bounds the waiting messages of one chat, and likewise its commands.
	MaxWaiting int `yaml:"waiting" env:"ONECLAW_MAX_WAITING"`
	// MaxWaitingMember bounds the waiting messages and commands of one user in shared chats.
	MaxWaitingMember int `yaml:"waiting_member" env:"ONECLAW_MAX_WAITING_MEMBER"`
	// MaxUnattended bounds the runs of schedules, webhooks and background tasks that begin for one user in
	// a day.
	MaxUnattended int `yaml:"unattended_runs" env:"ONECLAW_MAX_UNATTENDED_RUNS"`
}

// Defaults of [Concurrency].
const (
	DefaultMaxTurns         = 1000
	defaultMaxWaiting       = 100
	defaultMaxWaitingMember = 20
	defaultMaxUnattended    = 288
)

func (c Concurrency) withDefaults() Concurrency {
	c.MaxTurns = cmp.Or(c.MaxTurns, DefaultMaxTurns)
	c.MaxWaiting = cmp.Or(c.MaxWaiting, defaultMaxWaiting)
	c.MaxWaitingMember = cmp.Or(c.MaxWaitingMember, defaultMaxWaitingMember)
	c.MaxUnattended = cmp.Or(c.MaxUnattended, defaultMaxUnattended)
	return c
}

// limiter bounds the waiting jobs, and notifies the senders of refused messages.
type limiter struct {
	workers  *workerRegistry
	store    storage.KV
	jobs     queue.Store
	queue    *queue.Queue
	inserter *inserter
	cards    *interact.Cards
	limits   Concurrency
	now      func() time.Time
	log      *slog.Logger

	mu         sync.Mutex
	lastNotice *cache.Cache[string, time.Time] // when a burst's sender was last notified
}

// backlog counts the waiting jobs of a message's chat and of its sender, and says whether it is full.
type backlog struct {
	chat, sender         queue.Occupancy
	chatFull, senderFull bool
}

// reserve counts a job among the waiting jobs of its sender, and returns the backlog before it.
func (l *limiter) reserve(j *queue.Run) backlog {
	var r backlog
	r.chat, r.sender = l.queue.Reserve(j, l.limits.MaxWaitingMember)
	r.chatFull, r.senderFull = r.chat.Waiting >= l.limits.MaxWaiting, r.sender.Waiting >= l.limits.MaxWaitingMember
	return r
}

// refuse rejects a message because too many wait in its chat or from its sender, and reports whether it
// did. It posts one notice per burst and fullInterval, as a card, and stores a receipt, so that
// redeliveries of the message are rejected, too. A /stop takes effect all the same, without an answer. A
// message that is queued or closed already is not rejected. ErrConflict means that another process has
// stored the message meanwhile.
func (l *limiter) refuse(ctx context.Context, j *queue.Run, room backlog) (bool, error) {
	l.queue.Unreserve(j)
	if l.queue.Has(j.Key()) {
		return false, nil
	}
	if known, err := l.jobs.HasReceipt(ctx, j.Key()); known || err != nil {
		return false, err
	}
	w := l.workers.forJob(j)
	if _, stops := w.(stopper); stops {
		return true, l.stopUnanswered(ctx, j)
	}
	whose, full, what := j.Message.SenderID(), room.sender, ""
	outbox.DeliveryOf(j).Notice = fmt.Sprintf("%d of your messages are waiting already, so I take no more of yours for now. "+
		"Please send this one again when they are answered.", room.sender.Waiting)
	if room.chatFull {
		whose, full, what = j.Message.Chat.String(), room.chat, "messages"
		if w.policy().Barrier {
			what = "commands"
		}
		outbox.DeliveryOf(j).Notice = fmt.Sprintf("%d %s are waiting here already, so I take no more for now. "+
			"Please send yours again later, or send /stop to drop the waiting messages.", room.chat.Waiting, what)
	}
	if burst := fmt.Sprint(whose, " ", what, full.Burst); l.shouldNotify(burst) {
		if _, err := l.cards.Post(ctx, "full/"+j.Key(), j.Message.Chat, interact.Card{ReplyTo: j.Message.ID, Text: outbox.DeliveryOf(j).Notice}); err != nil {
			l.lastNotice.Put(burst, time.Time{}, cache.Forever)
			return true, err
		}
		l.log.Warn("message refused: too many are waiting", "chat", j.Message.Chat.String(), "whose", whose)
	}
	l.workers.setKind(j) // the notice changes the kind of the job
	j.State, j.Closed = receipts.Refused, l.now()
	return true, l.jobs.WriteReceipt(ctx, j)
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

// shouldNotify reports whether to notify the sender of a burst now, and if so, records the time.
func (l *limiter) shouldNotify(burst string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.now()
	if at, _ := l.lastNotice.Get(burst); now.Sub(at).Abs() < fullInterval {
		return false
	}
	l.lastNotice.Put(burst, now, cache.Forever)
	return true
}

// checkTaskRoom returns ErrBusy if too many tasks of a chat wait, here or in the process that owns the
// chat. A task that is stored already is always accepted.
func (l *limiter) checkTaskRoom(ctx context.Context, j *queue.Run) error {
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
