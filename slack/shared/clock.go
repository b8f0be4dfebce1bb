// Package shared holds the state that the processes of a Slack bot share in the store: up to when
// messages have arrived, which messages are still to be fetched, in which threads the bot participates,
// and where commands accept responses. A single process stores the same.
package shared

import (
	"net/http"
	"sync"
	"time"
)

// Clock returns Slack's time, whatever the clock of this machine says: requests for messages since a
// time need Slack's time. It uses the date of the last response and the monotonic clock since then. The
// zero value uses this machine's clock.
type Clock struct {
	mu    sync.Mutex
	at    time.Time // date of the last response
	heard time.Time // when it arrived
}

// Hear records the date of a response.
func (c *Clock) Hear(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.heard = at, time.Now()
}

// Now returns Slack's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at.Add(time.Since(c.heard))
}
