package bridge

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// expiryInterval is how often the clock is looked at while cards are open: the clock
// may jump.
const expiryInterval = time.Second

// expiry knows when the open cards end. It is only ever a copy of what the store has.
type expiry struct {
	mu   sync.Mutex
	open map[string]*cards.Kept
	more chan struct{} // told when there is a first one
}

func newExpiry() *expiry {
	return &expiry{open: make(map[string]*cards.Kept), more: make(chan struct{}, 1)}
}

func (e *expiry) add(kept *cards.Kept) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.open[kept.Token] = &cards.Kept{Card: cards.Card{Expires: kept.Expires}, Token: kept.Token, Chat: kept.Chat}
	select {
	case e.more <- struct{}{}:
	default:
	}
}

func (e *expiry) done(token string) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.open, token)
}

// due returns the cards whose time is over, and whether there are any at all.
func (e *expiry) due(now time.Time) (over []*cards.Kept, any bool) {
	e.mu.Lock()
	defer e.mu.Unlock()
	for _, kept := range e.open {
		if !now.Before(kept.Expires) {
			over = append(over, kept)
		}
	}
	return over, len(e.open) > 0
}

// watchCards ends the cards whose time is over, until ctx ends.
func (b *Bridge) watchCards(ctx context.Context) {
	tick := time.NewTicker(expiryInterval)
	defer tick.Stop()
	for {
		over, any := b.expiry.due(b.cfg.Now())
		for _, kept := range over {
			if err := b.expire(ctx, kept); err != nil && ctx.Err() == nil {
				b.log.Warn("an expired card can not be ended yet", "chat", kept.Chat.String(), "err", err)
			}
		}
		next := tick.C
		if !any {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-b.expiry.more:
		case <-next:
		}
	}
}

// expire makes the job that ends a card.
func (b *Bridge) expire(ctx context.Context, kept *cards.Kept) error {
	j := b.cardJob(jobs.KindExpire, kept, kept.Token)
	added, err := b.jobs.Add(ctx, j)
	if err != nil {
		return err
	}
	if added {
		b.lanes.Queue(j)
	}
	b.expiry.done(kept.Token)
	return nil
}

// endCard closes the card whose time is over. Presses of its chat wait for it, so a handler
// that goes wrong each time is not asked for ever.
func (b *Bridge) endCard(ctx context.Context, j *jobs.Job) error {
	limited, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := b.cards.Load(limited, j.Card)
	switch {
	case err != nil || kept == nil:
		return err
	case !kept.Open():
		return b.settled(limited, kept)
	case j.Tries >= pressTries:
		return b.closeCard(limited, kept, cards.Result{}, cards.Expired)
	}
	j.Tries++
	return b.lapse(limited, kept, cards.Expired)
}

// What stands under a card that nobody decided.
const (
	noteExpired = "_Expired._"
	noteUnseen  = "_Could not be shown whole._"
)

// lapse closes a card that nobody has decided.
func (b *Bridge) lapse(ctx context.Context, kept *cards.Kept, how cards.End) error {
	result := cards.Result{}
	if handler := b.handlers[kept.Kind]; handler != nil {
		var err error
		result, err = b.recovered(handler)(ctx, cards.Press{
			Scope: toolgroups.Scope{Chat: kept.Chat.String()}, Place: kept.Chat, Expired: true, Card: kept.Card,
		})
		if err != nil {
			return fmt.Errorf("handle the end of a card of %s: %w", kept.Kind, err)
		}
	}
	return b.closeCard(ctx, kept, result, how)
}

// closeCard ends a card that nobody has decided; a result without a text gets a note.
func (b *Bridge) closeCard(ctx context.Context, kept *cards.Kept, result cards.Result, how cards.End) error {
	if !kept.Take(result) {
		note := noteExpired
		if how == cards.Unseen {
			note = noteUnseen
		}
		kept.Text += "\n\n" + note
	}
	kept.End(b.cfg.Now(), how)
	return b.keepResult(ctx, kept)
}

// recovered has a handler that panics change nothing.
func (b *Bridge) recovered(handler cards.Handler) cards.Handler {
	return func(ctx context.Context, press cards.Press) (result cards.Result, err error) {
		defer func() {
			if r := recover(); r != nil {
				b.log.Error("handler of an expired card panicked", "kind", press.Card.Kind, "panic", r, "stack", string(debug.Stack()))
			}
		}()
		return handler(ctx, press)
	}
}

// openCards finds the cards that a former run left open.
func (b *Bridge) openCards(ctx context.Context) error {
	return b.cards.Each(ctx, func(kept *cards.Kept) error {
		if kept.Open() {
			b.expiry.add(kept)
		}
		return nil
	}, func(err error) error {
		d, is := errors.AsType[*jobs.DamagedError](err)
		if !is {
			return err
		}
		_, err = b.mend(ctx, d, chats.Chat{}, "")
		return err
	})
}
