package slack

import (
	"net/http"
	"sync"
	"time"
)

// clock tells what time it is at Slack, whatever the clock of this machine says: what is
// asked of Slack since some time has to be in Slack's time. It goes by the date of the last
// answer and by the monotonic clock since then. The zero value knows only this machine's.
type clock struct {
	mu    sync.Mutex
	at    time.Time // the date of the last answer
	heard time.Time // when it came
}

func (c *clock) hear(h http.Header) {
	at, err := http.ParseTime(h.Get("Date"))
	if err != nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at, c.heard = at, time.Now()
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.at.IsZero() {
		return time.Now()
	}
	return c.at.Add(time.Since(c.heard))
}
