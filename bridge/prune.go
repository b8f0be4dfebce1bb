package bridge

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"path/filepath"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/rescue"
	"oneclaw/internal/workspace"
	"oneclaw/storage"
)

// Prefixes of the keys that this package, its subpackages and some others write, and what bounds the
// records under them:
//
//	job/open/     open jobs: at most Limits.MaxWaiting messages and as many commands
//	              for each chat
//	new/          notices of unclaimed jobs for the owners of their chats, who delete them
//	job/done/     receipts, for receipts.Age
//	finished/     index of the receipts by time, for receipts.Age
//	sweep         where the next sweep of receipts begins, one record
//	numbers       the base of job numbers, one record
//	card/         cards, which expire; closed ones for receipts.Age
//	allowed/      lasting approvals, a few for each user in a conversation; until the
//	              conversation is cleared, at most 90 days or Limits.HistoryDays
//	unattended/   numbers of the unattended runs of a day, and the rounds that people have added;
//	              for two days
//	unreachable/  a record for each chat that takes no messages from the bot; until it does
//	claim         the newest claim of the bot, one record
//	access/       a record for each admitted user; requests and refusals expire,
//	              with the message that made the request
//	stranger/     strangers who were notified that the bot does not know them, for a day
//	replicas/     leases and members, if replicas share the store
//	observe/      a record for each group in which the bot listens
//	heard/        messages in these groups: a bounded number for each thread, for privacy.MaxAge
//	sign/         a record for each message that may have the bot's reaction; deleted with
//	              the reaction, when the message is answered
//	moved/        a record for each chat that continues under another id
//	forgotten/    a record for each person who was forgotten, for a day
//	aside/        dead letters, for queue.DeadLetterAge
//	session/      a record for each chat that was cleared or stopped
//	files/, blob/ the content of Hooks.Files: within the quota of each owner
//	audit/        audit entries: a bounded number, for Limits.AuditDays
//	admin/        sessions on the administrators' pages, a record for each
//	asked/        index of conversations in shared chats by user; kept as long as they are
//	conversation/ a record for each conversation; those of tasks for TaskAge
//
// The logs hold the conversations. Those of chats stay, cleared or not, so that their history
// can be searched. Those of tasks are deleted with their record. If Limits.HistoryDays is set,
// older messages of all conversations are erased.

// TaskAge is how long the conversations of tasks are kept. Their answers are in the chat, and a schedule
// may start a task every few minutes.
const TaskAge = 90 * 24 * time.Hour

// Retention says how long records are kept, in days.
type Retention struct {
	// AuditDays is how long audit entries are kept. 0 means [audit.DefaultAge].
	AuditDays int `yaml:"audit_days" env:"ONECLAW_AUDIT_DAYS"`
	// HistoryDays is how long conversations are kept. 0 means forever.
	HistoryDays int `yaml:"history_days" env:"ONECLAW_HISTORY_DAYS"`
}

const day = 24 * time.Hour

// DefaultAuditDays is the default of [Retention].
const DefaultAuditDays = int(audit.DefaultAge / day)

func (a Retention) withDefaults() Retention {
	a.AuditDays = cmp.Or(a.AuditDays, DefaultAuditDays)
	return a
}

// pruneInterval is the time between prunings. The first runs at the start.
const pruneInterval = time.Hour

// pruner deletes old records.
type pruner struct {
	store         storage.Store
	cards         *interact.Cards
	unattended    *unattended
	lasting       interact.LastingList
	people        *access.Registry
	observer      *privacy.Observer
	eraser        *privacy.Eraser
	deadLetters   queue.DeadLetterStore
	damageHandler *damageHandler
	cache         interface{ Clear() }
	onErased      func(ctx context.Context) error // see [Hooks]
	pruneRest     func(ctx context.Context) error // see [Hooks]
	dataDir       string
	retention     Retention
	now           func() time.Time
	log           *slog.Logger
}

// prune deletes old records at intervals until ctx ends. After a jump of the clock it skips a pruning,
// because a deletion due to a wrong clock cannot be undone.
func (p *pruner) prune(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	seen, jumped := p.now().Round(0), false
	for {
		if jumped {
			p.log.Warn("the clock has jumped: this pruning is skipped", "now", seen)
		} else if err := p.pruneOnce(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("old records cannot be pruned", "incident", queue.NewIncident(), "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := p.now().Round(0)
		jumped = (now.Sub(seen) - pruneInterval).Abs() > pruneInterval
		seen = now
	}
}

// pruneOnce deletes the old records of each kind. If one kind fails, it continues with the others.
func (p *pruner) pruneOnce(ctx context.Context) error {
	now := p.now()
	var closed, tasks int
	var all error
	for _, prune := range []func() error{
		func() (err error) {
			closed, err = receipts.Prune(ctx, p.store, now, func(entry storage.Entry, err error) error {
				return p.damageHandler.deadLetterQuietly(ctx, &queue.DamagedError{Key: entry.Key, Data: entry.Value, Err: err})
			})
			return err
		},
		func() (err error) { tasks, err = p.pruneConversations(ctx, now); return err },
		func() error { return p.cards.Prune(ctx, now.Add(-receipts.Age), p.damageHandler.deadLetterQuietly) },
		func() error { return p.lasting.Prune(ctx, p.oldestKept(now)) },
		func() error { return p.people.Prune(ctx) },
		func() error { return p.observer.Prune(ctx) },
		func() error { return p.eraser.Sweep(ctx) },
		func() error { return p.pruneRest(ctx) },
		func() error { return p.unattended.prune(ctx) },
		func() error { return p.deadLetters.Prune(ctx, now.Add(-queue.DeadLetterAge)) },
		func() error { return audit.Prune(ctx, p.store, now.Add(-time.Duration(p.retention.AuditDays)*day)) },
	} {
		all = errors.Join(all, rescue.Do(prune))
	}
	if closed+tasks > 0 {
		p.log.Debug("pruned", "receipts", closed, "conversations", tasks)
	}
	return all
}

// sweepPartialFiles deletes the partial files of downloads that a crash of the program cut off.
func (p *pruner) sweepPartialFiles(ctx context.Context) {
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(workspace.OwnerDir(p.dataDir, "any")), "*", turn.Inbox))
	for _, folder := range folders {
		if ctx.Err() != nil {
			return
		}
		root, opened := workspace.Open(filepath.Dir(folder))
		if opened == nil {
			opened = errors.Join(root.Sweep(turn.Inbox), root.Close())
		}
		err = errors.Join(err, opened)
	}
	if err != nil {
		p.log.Warn("partial files cannot be removed", "err", err)
	}
}

// pruneConversations deletes the old conversations of tasks, and erases old messages of all
// conversations if they have a maximum age.
func (p *pruner) pruneConversations(ctx context.Context, now time.Time) (removed int, err error) {
	removed, erased, err := conversation.Prune(ctx, p.store, now.Add(-TaskAge), p.oldestKept(now), p.onErased)
	if erased {
		p.cache.Clear()
	}
	return removed, err
}

// oldestKept returns the time from which on messages are kept; the zero time if all are.
func (p *pruner) oldestKept(now time.Time) time.Time {
	days := p.retention.HistoryDays
	if days <= 0 {
		return time.Time{}
	}
	// Whole days, because each erasure makes a conversation lose its summary.
	return now.Add(-time.Duration(days) * day).Truncate(day)
}
