package delivery

import (
	"bytes"
	"errors"
	"net/http"
	"time"
)

// Control is the control side of a [Line]: what tests have the service do to connections and
// envelopes. Each of its methods takes the lock.
type Control struct{ l *Line }

// Control returns the control side.
func (l *Line) Control() Control { return Control{l} }

// Disconnect asks every open socket to go: with the reason "warning" it will be
// closed soon, with "refresh_requested" it gets nothing more where there is another
// one. It says how many were asked.
func (c Control) Disconnect(reason string) int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		k.leaving = k.leaving || reason != "warning"
		k.send(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-emulator"}})
	}
	return len(c.l.sockets)
}

// Drop breaks every open socket without a closing handshake and says how many.
func (c Control) Drop() int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		c.l.drop(k)
	}
	return len(c.l.sockets)
}

// Freeze makes half-open connections of the open sockets: they stay, but nothing is
// sent or heard on them any more. It says how many.
func (c Control) Freeze() int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		k.frozen = true
	}
	return len(c.l.sockets)
}

// Redeliver sends every envelope that is not acknowledged at once, as if the time
// of its next delivery had come, lost ones too.
func (c Control) Redeliver() int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	c.l.waiting = nil
	n := 0
	for _, e := range c.l.sequence {
		if e.state == Acked {
			continue
		}
		if e.timer != nil {
			e.timer.Stop()
		}
		e.state = Waiting
		n++
		c.l.dispatch(e)
	}
	return n
}

// Sign returns the headers of a request with this body, posted at a time.
func (c Control) Sign(body []byte, at time.Time) http.Header { return c.l.sign(body, at) }

// VerifyURL asks EventsURL to prove that it is the app's, as the service does when
// the address is set.
func (c Control) VerifyURL() error {
	body := []byte(`{"token":"verification","challenge":"3eZbrw1aB10FEM","type":"url_verification"}`)
	header := c.l.sign(body, c.l.cfg.Now())
	header.Set("Content-Type", "application/json")
	reply, err := c.l.request(body, header)
	if err != nil {
		return err
	}
	if !bytes.Contains(reply, []byte("3eZbrw1aB10FEM")) {
		return errors.New("slack emulator: the challenge was not answered")
	}
	return nil
}
