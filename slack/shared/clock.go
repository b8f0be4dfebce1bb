// Package shared is what the processes of a Slack bot keep in the store together: up to when
// messages have arrived, what is still to be looked at, where the bot takes part, and where
// commands take answers. One process alone keeps the same.
package shared

import (
	"net/http"
	"sync"
	"time"
)

// Clock tells what time it is at Slack, whatever the clock of this machine says: what is
// asked of Slack since some time has to be in Slack's time. It goes by the date of the last
// answer and by the monotonic clock since then. The zero value knows only this machine's.
type Clock struct {
	mu    sync.Mutex
	at    time.Time // the date of the last answer
	heard time.Time // when it came
}

// Hear notes the date of an answer.
func (c *Clock) Hear(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.heard = at, time.Now()
}

// Now is the time at Slack.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at.Add(time.Since(c.heard))
}
