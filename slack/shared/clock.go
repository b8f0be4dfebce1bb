// Package shared has the state that the processes of a Slack bot share in the store: up to which time
// messages have arrived, which messages are still to be fetched, in which threads the bot participates,
// and where commands accept responses. A single process stores the same state.
package shared

import (
	"net/http"
	"sync"
	"time"
)

// Clock returns Slack's time, whatever the clock of this machine shows: requests for messages since a
// time need Slack's time. It uses the date of the last response and the monotonic clock since then. The
// zero value uses this machine's clock.
type Clock struct {
	mu         sync.Mutex
	date       time.Time // date of the last response
	receivedAt time.Time // when it arrived
}

// Update records the date of a response.
func (c *Clock) Update(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.date, c.receivedAt = at, time.Now()
}

// Now returns Slack's time.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.date.IsZero() {
		return time.Now()
	}
	return c.date.Add(time.Since(c.receivedAt))
}
