package interact

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/rescue"
)

const (
	// sweepInterval is how often the loop checks the clock while cards are open: the clock may jump.
	sweepInterval = time.Second
	// sweepPause is how long the loop skips a card that could not be closed.
	sweepPause = 10 * time.Second
)

// due is an open card and when to look at it.
type due struct {
	at   time.Time
	chat chats.Chat
	kind string
}

// await makes the sweep look at an open card when it expires.
func (d *Cards) await(kept *StoredCard) {
	if !kept.Open() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due[kept.Token] = due{kept.Expires, kept.Chat, kept.Kind}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

// forget removes a card from the open ones, and reports whether it was one.
func (d *Cards) forget(token string) (open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open = d.due[token]
	delete(d.due, token)
	return open
}

// Waits returns the open cards of a kind in a chat.
func (d *Cards) Waits(ctx context.Context, kind string, in chats.Chat) ([]*StoredCard, error) {
	var tokens []string
	d.mu.Lock()
	for token, card := range d.due {
		if card.kind == kind && card.chat == in {
			tokens = append(tokens, token)
		}
	}
	d.mu.Unlock()
	var open []*StoredCard
	for _, token := range tokens {
		kept, err := d.Get(ctx, token)
		if err != nil {
			return nil, err
		}
		if kept != nil && kept.Open() {
			open = append(open, kept)
		}
	}
	return open, nil
}

// Load reads the cards that a former run left open, and reports those that do not decode.
func (d *Cards) Load(ctx context.Context, damaged func(context.Context, *queue.DamagedError) error) error {
	for kept, err := range d.all(ctx) {
		if broken, is := errors.AsType[*queue.DamagedError](err); is {
			err = damaged(ctx, broken)
		} else if err == nil {
			d.await(kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Watch follows the cards that other processes post and close, until ctx ends, beginning with what was
// missed: a decision may free a turn here that waits in another chat, and the cards of a chat are known
// when it is taken over. After an error it has to be called again.
func (d *Cards) Watch(ctx context.Context) error {
	changes := d.cfg.Store.Watch(ctx, prefix)
	for kept, err := range d.all(ctx) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		d.learn(kept)
	}
	for e, err := range changes {
		switch {
		case err != nil:
			return fmt.Errorf("watch cards: %w", err)
		case e.Deleted:
			d.RecordLost(e.Key)
			continue
		}
		if kept, err := decode(e.Entry); err == nil {
			d.learn(kept)
		}
	}
	return nil
}

// RecordLost wakes what waits for a card if the record with this key was that of an open one. It has
// been deleted or does not decode.
func (d *Cards) RecordLost(key string) {
	if token, is := strings.CutPrefix(key, prefix); is {
		d.lost(token)
	}
}

func (d *Cards) lost(token string) {
	if d.forget(token) {
		d.cfg.Host.CardLost(token)
	}
}

// learn applies a card as it was written.
func (d *Cards) learn(kept *StoredCard) {
	if kept.Open() {
		d.await(kept)
		return
	}
	d.forget(kept.Token)
	d.cfg.Host.CardClosed(kept)
}

// Run closes expired cards, until ctx ends.
func (d *Cards) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		over, any := d.overdue(d.cfg.Now())
		for _, token := range over {
			if err := rescue.Do(func() error { return d.expire(ctx, token) }); err != nil && ctx.Err() == nil {
				d.cfg.Log.Warn("a card whose time is over cannot be ended yet", "err", err)
			}
		}
		next := tick.C
		if !any {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-d.more:
		case <-next:
		}
	}
}

// overdue returns the expired cards of the chats that this process owns, and whether any card is open.
// It postpones the next look at them.
func (d *Cards) overdue(now time.Time) (over []string, any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for token, card := range d.due {
		if !now.Before(card.at) && d.cfg.Owns(card.chat) {
			over = append(over, token)
			d.due[token] = due{now.Add(sweepPause), card.chat, card.kind}
		}
	}
	return over, len(d.due) > 0
}

func (d *Cards) expire(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := d.Get(ctx, token)
	switch {
	case kept == nil && err == nil, queue.IsDamaged(err):
		d.lost(token)
		return err
	case err != nil:
		return err
	case !kept.Open():
		return d.settled(ctx, kept)
	}
	return d.closeUndecided(ctx, kept, Expired)
}
