package cards

import (
	"context"
	"fmt"
	"runtime/debug"
	"time"

	"oneclaw/bridge/jobs"
	"oneclaw/toolgroups"
)

// sweepInterval is how often the desk looks at the clock while cards are open: the clock
// may jump.
const sweepInterval = time.Second

// What stands under a card that nobody decided.
const (
	noteExpired = "_Expired._"
	noteUnseen  = "_Could not be shown whole._"
)

// deadline says when to look whether a card is still open, and how often that was tried.
type deadline struct {
	at    time.Time
	tries int
}

// await has the sweep look at an open card when its time is over.
func (d *Desk) await(kept *Kept) {
	if !kept.Open() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.open[kept.Token] = &deadline{at: kept.Expires}
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *Desk) forget(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.open, token)
}

// Load finds the cards that a former run left open.
func (d *Desk) Load(ctx context.Context) error {
	for kept, err := range d.all(ctx) {
		if err != nil {
			if err := d.cfg.Mend(ctx, err); err != nil {
				return err
			}
			continue
		}
		d.await(kept)
	}
	return nil
}

// Run ends the cards whose time is over, until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		next := tick.C
		if !d.sweep(ctx) {
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

// sweep ends the cards whose time is over now, and reports whether any are open.
func (d *Desk) sweep(ctx context.Context) bool {
	for token, tries := range d.due(d.cfg.Now()) {
		if err := d.expire(ctx, token, tries); err != nil && ctx.Err() == nil {
			d.cfg.Log.Warn("an expired card cannot be ended yet", "tries", tries, "err", err)
		}
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	return len(d.open) > 0
}

// due returns the cards whose time is over, and puts the next try of each off.
func (d *Desk) due(now time.Time) map[string]int {
	d.mu.Lock()
	defer d.mu.Unlock()
	over := make(map[string]int)
	for token, end := range d.open {
		if !now.Before(end.at) {
			end.tries++
			end.at = now.Add(time.Duration(end.tries) * sweepInterval)
			over[token] = end.tries
		}
	}
	return over
}

// expire closes a card whose time is over. It asks a handler that fails each time a few
// times.
func (d *Desk) expire(ctx context.Context, token string, tries int) error {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := d.Get(ctx, token)
	switch {
	case jobs.IsDamaged(err):
		return d.cfg.Mend(ctx, err)
	case err != nil:
		return err
	case kept == nil:
		d.forget(token)
		return nil
	case !kept.Open():
		return d.settled(ctx, kept)
	case tries > pressTries:
		return d.closeUndecided(ctx, kept, Result{}, Expired)
	}
	return d.lapse(ctx, kept, Expired)
}

// lapse closes a card that nobody has decided, with what its handler says.
func (d *Desk) lapse(ctx context.Context, kept *Kept, how End) error {
	result, err := d.undecided(ctx, kept)
	if err != nil {
		return fmt.Errorf("handle the end of a card of %s: %w", kept.Kind, err)
	}
	return d.closeUndecided(ctx, kept, result, how)
}

// undecided tells the handler of a card that nobody has decided. It logs a handler's panic
// and returns an empty result.
func (d *Desk) undecided(ctx context.Context, kept *Kept) (result Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			d.cfg.Log.Error("handler of an expired card panicked", "kind", kept.Kind, "panic", r, "stack", string(debug.Stack()))
		}
	}()
	handler := d.cfg.Handlers[kept.Kind]
	if handler == nil {
		return Result{}, nil
	}
	return handler(ctx, Press{Scope: toolgroups.Scope{Chat: kept.Chat.String()}, Place: kept.Chat, Expired: true, Card: kept.Card})
}

// closeUndecided ends a card that nobody has decided; a result without a text gets a note.
func (d *Desk) closeUndecided(ctx context.Context, kept *Kept, result Result, how End) error {
	if !kept.take(result) {
		note := noteExpired
		if how == Unseen {
			note = noteUnseen
		}
		kept.Text += "\n\n" + note
	}
	kept.end(d.cfg.Now(), how)
	return d.save(ctx, kept, edited)
}
