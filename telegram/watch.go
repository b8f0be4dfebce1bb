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
	// maxJump is how far the clock on the wall may run ahead of the one that counts: the
	// machine slept for the difference, or the clock was set.
	maxJump = 30 * time.Second
)

// errAwake is why a poll is given up after the machine slept: its connection is most
// likely gone, and would be waited for until its timeout, which slept as well.
var errAwake = errors.New("telegram: the machine slept: polling anew")

// clocks returns the time on the wall and the time that runs while the machine does.
type clocks func() (wall time.Time, running time.Duration)

func newClocks() clocks {
	begin := time.Now()
	return func() (time.Time, time.Duration) {
		now := time.Now()
		return now.Round(0), now.Sub(begin)
	}
}

// watch looks after the poll loop until ctx ends: it gives a poll up that was slept
// through, and says in the log where the loop stands still and where it runs again.
func (r *receiver) watch(ctx context.Context) {
	wall, running := r.clocks()
	ill := false
	for retry.Wait(ctx, watchInterval) == nil {
		w, n := r.clocks()
		if ahead := w.Sub(wall) - (n - running); ahead > maxJump {
			r.log.Info("the machine slept or its clock was set: connecting anew", "ahead", ahead.Round(time.Second))
			r.api.Renew()
			r.interrupt(errAwake)
		}
		wall, running = w, n
		err := r.Health()
		switch {
		case err != nil && !ill && ctx.Err() == nil:
			r.log.Error("telegram is not ready", "err", err)
		case err == nil && ill:
			r.log.Info("telegram is ready again")
		}
		ill = err != nil
	}
}

func (r *receiver) interrupt(why error) {
	r.polling.Lock()
	defer r.polling.Unlock()
	if r.cancel != nil {
		r.cancel(why)
	}
}

// blame finds out who gets the updates instead of this bot, and says so. It names no more
// of a webhook's address than its host: the rest may be a secret. A webhook that this
// program sets is removed: it is of a process that was to be posted its updates, and may be
// gone.
func (r *receiver) blame(ctx context.Context, cause error) {
	who := "another program polls with this token: stop it, or give this bot a token of its own"
	if hook, err := r.api.webhook(ctx); err == nil && hook.URL != "" {
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
	if r.health.blame(who) {
		r.log.Error("this bot gets no messages", "reason", who, "err", cause)
	}
}

// jittered adds up to a quarter, so that two bots do not meet each time.
func jittered(d time.Duration) time.Duration { return d + rand.N(d/4+1) }
