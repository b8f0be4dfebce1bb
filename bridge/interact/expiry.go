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

// dueCard is an open card and the time of its next check.
type dueCard struct {
	at   time.Time
	chat chats.Chat
	kind string
}

// track makes the sweep check an open card when it expires.
func (d *Cards) track(kept *StoredCard) {
	if !kept.IsOpen() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due[kept.Token] = dueCard{kept.Expires, kept.Chat, kept.Kind}
	select {
	case d.opened <- struct{}{}:
	default:
	}
}

// untrack removes a card from the open cards and reports whether it was open.
func (d *Cards) untrack(token string) (open bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	_, open = d.due[token]
	delete(d.due, token)
	return open
}

// openInChat returns the open cards of a kind in a chat.
func (d *Cards) openInChat(ctx context.Context, kind string, in chats.Chat) ([]*StoredCard, error) {
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
		if kept != nil && kept.IsOpen() {
			open = append(open, kept)
		}
	}
	return open, nil
}

// Load reads the cards that an earlier run left open, and calls damaged with those that do not decode.
func (d *Cards) Load(ctx context.Context, damaged func(context.Context, *queue.DamagedError) error) error {
	for kept, err := range d.all(ctx) {
		if broken, is := errors.AsType[*queue.DamagedError](err); is {
			err = damaged(ctx, broken)
		} else if err == nil {
			d.track(kept)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// Watch follows the cards that other processes post and close until ctx ends, including changes from
// before the call. A decision in one chat may free a turn that waits in another, and a process that
// takes over a chat has to know its cards. After an error it has to be called again.
func (d *Cards) Watch(ctx context.Context) error {
	changes := d.cfg.Store.Watch(ctx, cardPrefix)
	for kept, err := range d.all(ctx) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return err
		}
		d.applyRecord(kept)
	}
	for e, err := range changes {
		switch {
		case err != nil:
			return fmt.Errorf("watch cards: %w", err)
		case e.Deleted:
			d.HandleLostRecord(e.Key)
			continue
		}
		if kept, err := decodeCard(e.Entry); err == nil {
			d.applyRecord(kept)
		}
	}
	return nil
}

// HandleLostRecord wakes the turn that waits for a card, if the record with this key was that of an open
// card. The record has been deleted or does not decode.
func (d *Cards) HandleLostRecord(key string) {
	if token, is := strings.CutPrefix(key, cardPrefix); is {
		d.handleLost(token)
	}
}

func (d *Cards) handleLost(token string) {
	if d.untrack(token) {
		d.cfg.Host.OnCardLost(token)
	}
}

// applyRecord applies a card as it was written.
func (d *Cards) applyRecord(kept *StoredCard) {
	if kept.IsOpen() {
		d.track(kept)
		return
	}
	d.untrack(kept.Token)
	d.cfg.Host.OnCardClosed(kept)
}

// Run closes expired cards, until ctx ends.
func (d *Cards) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		over, any := d.takeOverdue(d.cfg.Now())
		for _, token := range over {
			if err := rescue.Do(func() error { return d.expire(ctx, token) }); err != nil && ctx.Err() == nil {
				d.cfg.Log.Warn("an expired card cannot be closed yet", "err", err)
			}
		}
		next := tick.C
		if !any {
			next = nil
		}
		select {
		case <-ctx.Done():
			return
		case <-d.opened:
		case <-next:
		}
	}
}

// takeOverdue returns the expired cards of the chats that this process owns, and whether any card is
// open. It postpones the next check of those cards.
func (d *Cards) takeOverdue(now time.Time) (over []string, any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for token, card := range d.due {
		if !now.Before(card.at) && d.cfg.Owns(card.chat) {
			over = append(over, token)
			d.due[token] = dueCard{now.Add(sweepPause), card.chat, card.kind}
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
		d.handleLost(token)
		return err
	case err != nil:
		return err
	case !kept.IsOpen():
		return d.finishChange(ctx, kept)
	}
	return d.closeUndecided(ctx, kept, expired)
}
