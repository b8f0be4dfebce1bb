package delivery

import (
	"bytes"
	"errors"
	"net/http"
	"time"
)

// Control lets tests disturb the connections and envelopes of a [Line]. Its methods take the
// lock.
type Control struct{ l *Line }

// Control returns the control of the line, for tests.
func (l *Line) Control() Control { return Control{l} }

// Disconnect asks every open socket to disconnect. With the reason "warning" the socket stays in use;
// with "refresh_requested" it gets nothing more if there is another one. It returns how many sockets
// it asked.
func (c Control) Disconnect(reason string) int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		k.disconnecting = k.disconnecting || reason != "warning"
		k.send(map[string]any{"type": "disconnect", "reason": reason, "debug_info": map[string]any{"host": "applink-emulator"}})
	}
	return len(c.l.sockets)
}

// BreakSockets breaks every open socket without a closing handshake and returns their number.
func (c Control) BreakSockets() int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		c.l.breakConn(k)
	}
	return len(c.l.sockets)
}

// Freeze makes the open sockets half-open: they stay connected, but nothing is sent or received.
// It returns their number.
func (c Control) Freeze() int {
	c.l.cfg.Mu.Lock()
	defer c.l.cfg.Mu.Unlock()
	for _, k := range c.l.sockets {
		k.frozen = true
	}
	return len(c.l.sockets)
}

// Redeliver sends every unacknowledged envelope at once, including lost ones, as if its next delivery
// were due. It returns their number.
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

// SignatureHeaders returns the headers of a request with the given body that is sent at a given time.
func (c Control) SignatureHeaders(body []byte, at time.Time) http.Header {
	return c.l.signatureHeaders(body, at)
}

// VerifyURL sends the url_verification challenge to EventsURL, as the service does when the URL
// is set.
func (c Control) VerifyURL() error {
	body := []byte(`{"token":"verification","challenge":"3eZbrw1aB10FEM","type":"url_verification"}`)
	header := c.l.signatureHeaders(body, c.l.cfg.Now())
	header.Set("Content-Type", "application/json")
	reply, err := c.l.send(body, header)
	if err != nil {
		return err
	}
	if !bytes.Contains(reply, []byte("3eZbrw1aB10FEM")) {
		return errors.New("slack emulator: the challenge was not answered")
	}
	return nil
}
