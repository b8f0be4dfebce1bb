package cards

import (
	"context"
	"errors"
	"time"

	"oneclaw/bridge/jobs"
)

const (
	// sweepInterval is how often the desk looks at the clock while cards are open: the
	// clock may jump.
	sweepInterval = time.Second
	// sweepPause is how long it leaves a card alone that could not be ended.
	sweepPause = 10 * time.Second
)

// await has the sweep look at an open card when its time is over.
func (d *Desk) await(kept *Kept) {
	if !kept.Open() {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.due[kept.Token] = kept.Expires
	select {
	case d.more <- struct{}{}:
	default:
	}
}

func (d *Desk) forget(token string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	delete(d.due, token)
}

// Load finds the cards that a former run left open, and reports those that do not decode.
func (d *Desk) Load(ctx context.Context, damaged func(context.Context, *jobs.DamagedError) error) error {
	for kept, err := range d.all(ctx) {
		if broken, is := errors.AsType[*jobs.DamagedError](err); is {
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

// Run ends the cards whose time is over, until ctx ends.
func (d *Desk) Run(ctx context.Context) {
	tick := time.NewTicker(sweepInterval)
	defer tick.Stop()
	for {
		over, any := d.overdue(d.cfg.Now())
		for _, token := range over {
			if err := d.expire(ctx, token); err != nil && ctx.Err() == nil {
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

// overdue returns the cards whose time is over, and whether any card is open. It puts off
// when to look at them again.
func (d *Desk) overdue(now time.Time) (over []string, any bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for token, at := range d.due {
		if !now.Before(at) {
			over = append(over, token)
			d.due[token] = now.Add(sweepPause)
		}
	}
	return over, len(d.due) > 0
}

func (d *Desk) expire(ctx context.Context, token string) error {
	ctx, cancel := context.WithTimeout(ctx, pressTimeout)
	defer cancel()
	kept, err := d.Get(ctx, token)
	switch {
	case err != nil:
		return err
	case kept == nil:
		d.forget(token)
		return nil
	case !kept.Open():
		return d.settled(ctx, kept)
	}
	return d.lapse(ctx, kept, Expired)
}
