package bridge

import (
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

// What the bridge keeps in the store, and what bounds it:
//
//	job/open/     as many as wait: at most Config.MaxWaiting messages and as many
//	              commands for each chat
//	job/done/     receipts, for ReceiptAge
//	finished/     which of them are messages and tasks, by their time, as long
//	tally/        how many there were, a record for each hour; 400 days
//	card/         cards, for ReceiptAge after they were closed; they expire
//	access/       people who were let in, one record for each; those who were not are
//	              forgotten when their time is over, with what they wrote when they asked
//	stranger/     who was told that the bot does not know them, where replicas share the
//	              store; a day
//	observe/      one record for each group in which the bot listens
//	heard/        what it heard there: privacy.Kept messages of each place, for privacy.Age
//	sign/         one record for each message that may bear the sign that it was seen; it goes
//	              with the sign, when the message is answered
//	moved/        one record for each chat that goes on under another id
//	aside/        what was set aside, for AsideAge
//	session/      one record for each chat that was cleared or stopped
//	files/, blob/ what Hooks.Files keeps: within the quota of each owner; what no folder holds
//	              any more goes with the next sweep
//	learning/     which chats know of exports, who has said no; one record for each
//	error/        errors of the log, for the pages of administrators: at most 1,000, for 30 days
//	audit/        who did what: at most audit.Most for Limits.AuditAge
//	admin/        sessions of administrators on their pages, one record for each of them
//	asked/        in which conversations of shared chats a user has asked; as long as these
//	conversation/ one record for each conversation; those of tasks for TaskAge
//	begun/        the same by their beginnings
//
// The logs hold the conversations. Those of chats stay, cleared or not: their history
// can be searched. Those of tasks go with their record. Where Limits.HistoryAge is set, what
// is older goes, of all.

// TaskAge is how long the conversations of tasks are kept: their answers are in the
// chat, and there may be one every few minutes.
const TaskAge = 90 * 24 * time.Hour

// pruneInterval is how often what is too old is looked for, after a first time at the
// start.
const pruneInterval = time.Hour

// pruner removes what is too old.
type pruner struct {
	store       storage.Store
	cards       *interact.Cards
	people      *access.Registry
	observer    *privacy.Observer
	deadLetters queue.DeadLetters
	mender      *mender
	cache       interface{ Clear() }
	files       queue.Files                     // nil for none
	erased      func(ctx context.Context) error // see [Hooks]
	dataDir     string
	auditAge    time.Duration
	historyAge  time.Duration
	now         func() time.Time
	log         *slog.Logger
}

// prune removes what is too old until ctx ends. A clock that has just jumped is not
// believed until the next time: what is removed because of it would be missed.
func (p *pruner) prune(ctx context.Context) {
	tick := time.NewTicker(pruneInterval)
	defer tick.Stop()
	seen, jumped := p.now().Round(0), false
	for {
		if jumped {
			p.log.Warn("the clock has jumped: nothing is pruned until the next time", "now", seen)
		} else if err := p.pruneOnce(ctx); err != nil && ctx.Err() == nil {
			p.log.Warn("what is too old could not be pruned", "incident", queue.NewIncident(), "err", err)
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

// pruneOnce goes on with the rest where one kind fails.
func (p *pruner) pruneOnce(ctx context.Context) error {
	now := p.now()
	var closed, tasks int
	var all error
	for _, prune := range []func() error{
		func() (err error) {
			closed, err = receipts.Prune(ctx, p.store, now, func(entry storage.Entry, err error) error {
				return p.mender.mendQuietly(ctx, &queue.DamagedError{Key: entry.Key, Data: entry.Value, Err: err})
			})
			return err
		},
		func() (err error) { tasks, err = p.pruneConversations(ctx, now); return err },
		func() error { return p.sweep(ctx) },
		func() error { return p.cards.Prune(ctx, now.Add(-receipts.Age), p.mender.mendQuietly) },
		func() error { return p.people.Prune(ctx) },
		func() error { return p.observer.Prune(ctx) },
		func() error { return p.deadLetters.Prune(ctx, now.Add(-queue.DeadLetterAge)) },
		func() error { return audit.Prune(ctx, p.store, now.Add(-p.auditAge)) },
	} {
		all = errors.Join(all, rescue.Do(prune))
	}
	if closed+tasks > 0 {
		p.log.Debug("pruned", "receipts", closed, "conversations", tasks)
	}
	return all
}

// sweepParts removes what a former process was fetching when it was killed.
func (p *pruner) sweepParts(ctx context.Context) {
	folders, err := filepath.Glob(filepath.Join(filepath.Dir(workspace.Folder(p.dataDir, "any")), "*", turn.Inbox))
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
		p.log.Warn("what a former process was fetching may be left", "err", err)
	}
}

// sweep removes what is left of files that no user has any more.
func (p *pruner) sweep(ctx context.Context) error {
	if p.files == nil {
		return nil
	}
	removed, err := p.files.Sweep(ctx)
	if removed > 0 {
		p.log.Debug("swept", "parts of files", removed)
	}
	return err
}

// pruneConversations removes those of tasks that began too long ago, and of all what was said too long ago,
// where that has an age.
func (p *pruner) pruneConversations(ctx context.Context, now time.Time) (removed int, err error) {
	saidBefore := time.Time{}
	if age := p.historyAge; age > 0 {
		// By days: what is erased of a conversation costs it its summary.
		saidBefore = now.Add(-age).Truncate(24 * time.Hour)
	}
	removed, erased, err := conversation.Prune(ctx, p.store, now.Add(-TaskAge), saidBefore, p.erased)
	if erased {
		p.cache.Clear()
	}
	return removed, err
}
