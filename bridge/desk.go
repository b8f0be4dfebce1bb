package bridge

import (
	"context"
	"fmt"

	"oneclaw/bridge/approval"
	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// newDesk makes the desk of the cards. The handlers are filled in by those who have them.
func (b *Bridge) newDesk(handlers map[string]cards.Handler) *cards.Desk {
	return cards.New(cards.Config{
		Store: b.store, Platforms: b.platforms, Handlers: handlers, Jobs: deskJobs{b}, Sender: b.sender,
		Check: func(m chats.Message) error { return b.intake.check(m) },
		Role:  b.role, Scope: b.scopeOf, Over: b.carrier.release,
		Redact: b.cfg.Redact, RedactCards: b.cfg.RedactCards, Spell: b.commands.spelled, Log: b.log, Now: b.cfg.Now,
	})
}

// newGate makes the gate of the calls, which asks with cards.
func (b *Bridge) newGate() *approval.Gate {
	return approval.New(approval.Config{
		Policy: b.cfg.Approve, Timeout: b.cfg.Limits.ApprovalTimeout, Desk: b.desk, Role: b.people.Role,
		Lane:    b.lanes.Lane,
		Measure: b.cfg.Measure, Log: b.log, Now: b.cfg.Now,
	})
}

// Post sends a card to a chat. When it returns nil, the card is on disk and is delivered
// like an answer; it waits for no turn. The key identifies it in its chat: a second card
// under the same key is dropped, for [jobs.ReceiptAge] after the first was delivered.
//
// Post waits until Run has found what a former run left open.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card cards.Card) error {
	if err := b.ready(ctx); err != nil {
		return fmt.Errorf("post card: %w", err)
	}
	_, err := b.desk.Post(ctx, key, to, card)
	return err
}

// AdminChats returns the chats in which the bot is alone with its owner or with an
// administrator who was made one in a chat.
func (b *Bridge) AdminChats() []chats.Chat { return b.people.AdminChats() }

// cardStep makes the run of a job that has no answer to deliver.
func (b *Bridge) cardStep(step func(context.Context, *jobs.Job) error) func(context.Context, *jobs.Job) error {
	return func(ctx context.Context, j *jobs.Job) error {
		if err := step(ctx, j); err != nil {
			return err
		}
		b.carrier.closeLater(j, jobs.StateDone)
		return nil
	}
}

// deskJobs carries the jobs of cards.
type deskJobs struct{ b *Bridge }

func (d deskJobs) New(m chats.Message) *jobs.Job { return d.b.intake.job(m) }

func (d deskJobs) Queue(j *jobs.Job) { _ = d.b.lanes.Queue(j) }

func (d deskJobs) Adopt(ctx context.Context, key string) error { return d.b.intake.adopt(ctx, key) }

func (d deskJobs) Go(f func(ctx context.Context)) {
	d.b.lanes.Running.Go(func() { f(d.b.lanes.Work()) })
}
