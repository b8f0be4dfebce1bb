package bridge

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
)

// newDesk makes the desk of the cards. The handlers are filled in by those who have them.
func (b *Bridge) newDesk(handlers map[string]cards.Handler) *cards.Desk {
	return cards.New(cards.Config{
		Store: b.store, Platforms: b.platforms, Handlers: handlers, Jobs: deskJobs{b}, Sender: deskSender{b},
		Check: b.check,
		Role:  b.role, Scope: b.scopeOf, Over: b.release,
		Mend: func(ctx context.Context, err error) error {
			d, is := errors.AsType[*jobs.DamagedError](err)
			if !is {
				return err
			}
			_, err = b.mend(ctx, d, chats.Chat{}, "")
			return err
		},
		Redact: b.cfg.Redact, RedactCards: b.cfg.RedactCards, Spell: b.spelled, Log: b.log, Now: b.cfg.Now,
	})
}

// Post sends a card to a chat. When it returns nil, the card is on disk and is delivered
// like an answer; it waits for no turn. The key identifies it in its chat: a second card
// under the same key is dropped, for [jobs.ReceiptAge] after the first was delivered.
//
// Post waits until Run has found what a former run left open.
func (b *Bridge) Post(ctx context.Context, key string, to chats.Chat, card cards.Card) error {
	select {
	case <-b.resumed:
	case <-ctx.Done():
		return fmt.Errorf("post card: %w", context.Cause(ctx))
	}
	_, err := b.desk.Post(ctx, key, to, card)
	return err
}

// cardStep makes the run of a job that has no answer to deliver.
func (b *Bridge) cardStep(step func(context.Context, *jobs.Job) error) func(context.Context, *jobs.Job) error {
	return func(ctx context.Context, j *jobs.Job) error {
		if err := step(ctx, j); err != nil {
			return err
		}
		b.closeLater(j, jobs.StateDone)
		return nil
	}
}

// deskJobs carries the jobs of cards.
type deskJobs struct{ b *Bridge }

func (d deskJobs) Number() int64 { return d.b.nextSeq() }

func (d deskJobs) Queue(j *jobs.Job) { d.b.lanes.Queue(j) }

func (d deskJobs) Adopt(ctx context.Context, key string) error { return d.b.adopt(ctx, key) }

// Find sets a job aside that does not decode, and returns what stands for it then.
func (d deskJobs) Find(ctx context.Context, key string) (*jobs.Job, error) {
	j, err := d.b.jobs.Find(ctx, key)
	if damaged, is := errors.AsType[*jobs.DamagedError](err); is {
		if _, err := d.b.mend(ctx, damaged, chats.Chat{}, ""); err != nil {
			return nil, err
		}
		return d.b.jobs.Find(ctx, key)
	}
	return j, err
}

func (d deskJobs) Go(f func(ctx context.Context)) { d.b.lanes.Go(func() { f(d.b.lanes.Work()) }) }

// deskSender brings cards to the chats.
type deskSender struct{ b *Bridge }

func (d deskSender) Render(j *jobs.Job, text string) []jobs.SentPart {
	return d.b.renderMasked(j, text)
}

func (d deskSender) Edit(ctx context.Context, j *jobs.Job, chat chats.Chat, ids []string, parts []jobs.SentPart) error {
	editor, ok := d.b.platforms[chat.Platform].(chats.Editor)
	if !ok {
		return nil
	}
	for i := range parts {
		err := d.b.editPart(ctx, j, editor, chats.Address{Chat: chat}, ids[i], parts[i].Part)
		if errors.Is(err, errOverdue) {
			return d.b.asideJob(j, jobs.NewIncident())
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// editPart tries until the message is edited or can not be. While the platform is out of
// order it waits, and ends with [errOverdue] after a day. Doing it again does no harm.
func (b *Bridge) editPart(ctx context.Context, j *jobs.Job, editor chats.Editor, to chats.Address, id string, part chats.Part) error {
	if id == "" {
		return nil // its sending was lost
	}
	for wait := minRetry; ; wait = min(2*wait, maxRetry) {
		probe, err := b.pass(ctx, j)
		if err != nil {
			return err
		}
		call, cancel := context.WithTimeout(ctx, sendTimeout)
		err = editor.Edit(call, to, id, part)
		cancel()
		var failure *chats.SendError
		if err != nil && !errors.As(err, &failure) {
			failure = &chats.SendError{Outcome: chats.Unknown, Err: err}
			err = failure
		}
		b.breakers[to.Chat.Platform].report(probe, err)
		if err == nil {
			return nil
		}
		if failure.Outcome == chats.Refused {
			b.log.Warn("a card could not be edited", "chat", to.Chat.String(), "err", err)
			return nil
		}
		if err := b.waitAgain(ctx, j, failure, max(wait, failure.RetryAfter)); err != nil {
			return err
		}
	}
}
