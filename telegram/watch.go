package telegram

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"strings"
	"time"

	"oneclaw/internal/retry"
)

// Times of the watchdog.
const (
	watchInterval = 5 * time.Second
	// maxJump bounds the difference between wall clock and monotonic clock: beyond it, the machine
	// slept, or the clock was set.
	maxJump = 30 * time.Second
)

// errAwake ends a poll after the machine slept: its connection is most likely gone, and its timeout did
// not run during the sleep.
var errAwake = errors.New("telegram: the machine slept: polling again")

// clockReader returns the wall time and the time that counts only while the machine runs.
type clockReader func() (wall time.Time, running time.Duration)

func newClockReader() clockReader {
	begin := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(begin)
	}
}

// watch supervises the poll loop until ctx ends. It ends a poll after a sleep of the machine, and logs
// when the loop stalls and when it runs again. It also deletes old items of albums.
func (r *receiver) watch(ctx context.Context) {
	wall, running := r.readClocks()
	ill := false
	for retry.Wait(ctx, watchInterval) == nil {
		w, n := r.readClocks()
		if ahead := w.Sub(wall) - (n - running); ahead > maxJump {
			r.log.Info("the machine slept or its clock was set: connecting again", "ahead", ahead.Round(time.Second))
			r.api.RenewConnections()
			r.interrupt(errAwake)
		}
		wall, running = w, n
		err := r.Health()
		switch {
		case err != nil && !ill && ctx.Err() == nil:
			r.log.Error("telegram is not ready", "platform", "telegram", "err", err)
		case err == nil && ill:
			r.log.Info("telegram is ready again")
		}
		ill = err != nil
		if err := r.decode.albums.undecided.deleteOld(ctx); err != nil && ctx.Err() == nil {
			r.log.Warn("cannot delete the items of albums yet", "err", err)
		}
	}
}

func (r *receiver) interrupt(why error) {
	r.polling.Lock()
	defer r.polling.Unlock()
	if r.cancel != nil {
		r.cancel(why)
	}
}

// reportConflict determines which process gets the updates instead of this bot, and logs it. It names
// only the host of a webhook's address, as the rest may be a secret. It removes a webhook of this
// program, which belongs to a process in webhook mode that may be gone.
func (r *receiver) reportConflict(ctx context.Context, cause error) {
	who := "another program polls with this token: stop it, or give this bot a token of its own"
	if hook, err := r.api.getWebhook(ctx); err == nil && hook.URL != "" {
		host := "an unknown host"
		u, err := url.Parse(hook.URL)
		if err == nil && u.Host != "" {
			host = u.Host
		}
		if err == nil && strings.HasSuffix(u.Path, hookPath) {
			if dropped, _ := r.dropWebhook(ctx); dropped {
				return
			}
		}
		who = fmt.Sprintf("a webhook to %s is set for this bot, so it gets no updates: stop the program that sets it and restart this bot, which removes the webhook, or give this bot a token of its own", host)
	}
	if r.health.setHolder(who) {
		r.log.Error("this bot gets no messages", "reason", who, "err", cause)
	}
}

// addJitter adds up to a quarter of d, so that two bots do not collide each time.
func addJitter(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
