package slack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/gorilla/websocket"
	"github.com/slack-go/slack"
	"github.com/slack-go/slack/socketmode"

	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

const (
	// maxFrame bounds a message of a socket: what is too long for the bot is to be shortened with a note, while
	// a socket that closes would lose it.
	maxFrame = 64 << 20
	// writeTimeout bounds a write to a socket.
	writeTimeout = 10 * time.Second
	// drainTime is how long a socket is still read after Slack asked it to disconnect.
	drainTime = 10 * time.Second
)

// socket is a Socket Mode connection. Its goroutines run listen and ping.
type socket struct {
	conn       *websocket.Conn
	maxSilence time.Duration // how long it may be silent
	opened     time.Time
	// leaving is closed when Slack asks for a disconnect, done when the socket has ended.
	leaving, done chan struct{}
	err           error // why it ended; set before done is closed
	greeted       bool  // Slack has sent its hello; used only in the goroutine of listen
	replaces      bool  // it replaces a socket that Slack asked to disconnect and that is still open

	mu       sync.Mutex // guards writing, and the following fields
	helloBy  time.Time  // deadline for Slack's hello
	retireBy time.Time  // deadline after Slack asked for a disconnect
}

func (r *receiver) openSocket(ctx context.Context, replaces bool) (*socket, error) {
	address, err := r.api.socketAddress(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.api.timeout)
	defer cancel()
	conn, resp, err := r.api.dialer.DialContext(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // gorilla has read the body
	}
	if err != nil {
		return nil, fmt.Errorf("slack: connect a socket: %w", r.api.CleanError(err))
	}
	s := &socket{
		conn: conn, maxSilence: r.pingTimeout, opened: time.Now(), helloBy: time.Now().Add(r.pingTimeout), replaces: replaces,
		leaving: make(chan struct{}), done: make(chan struct{}),
	}
	conn.SetReadLimit(maxFrame)
	conn.SetPingHandler(func(data string) error {
		// A failed write shows in the next read.
		_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return r.handleAlive(s)
	})
	conn.SetPongHandler(func(string) error { return r.handleAlive(s) })
	return s, nil
}

func (c *client) socketAddress(ctx context.Context) (string, error) {
	return callWithResult(ctx, c, "apps.connections.open", func(ctx context.Context, api *slack.Client) (string, error) {
		_, address, err := api.StartSocketModeContext(ctx)
		return address, err
	})
}

func (r *receiver) handleAlive(s *socket) error {
	if s.greeted {
		r.progress.RecordAlive()
	}
	return s.extendDeadline()
}

// extendDeadline sets the read deadline to maxSilence from now, or to helloBy or retireBy if that is
// earlier.
func (s *socket) extendDeadline() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now().Add(s.maxSilence)
	for _, end := range []time.Time{s.helloBy, s.retireBy} {
		if !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	return s.conn.SetReadDeadline(until)
}

func (s *socket) retire() {
	s.mu.Lock()
	s.retireBy = time.Now().Add(drainTime)
	s.mu.Unlock()
	if err := s.extendDeadline(); err != nil {
		s.close()
	}
}

// close closes the connection, which ends the socket's goroutines.
func (s *socket) close() {
	_ = s.conn.Close() // it may be closed already
}

// startSocket starts the goroutines of a socket, whose done is closed when all have ended.
func (r *receiver) startSocket(ctx context.Context, s *socket) {
	r.running.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		var ping sync.WaitGroup
		ping.Go(func() { rescue.Go(r.log, "the signs of life of a socket", func() { s.ping(ctx) }) })
		s.err = rescue.Do(func() error { return r.listen(ctx, s) })
		cancel()
		s.close()
		ping.Wait()
		if s.greeted {
			r.health.handleClosed(s.err)
		}
		close(s.done)
	})
}

// ping sends pings until ctx ends, and then closes the socket.
func (s *socket) ping(ctx context.Context) {
	defer s.close()
	tick := time.NewTicker(s.maxSilence / 3)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if err := s.conn.WriteControl(websocket.PingMessage, nil, time.Now().Add(writeTimeout)); err != nil {
				return
			}
		}
	}
}

// listen reads from a socket until the socket fails, and returns why it did.
func (r *receiver) listen(ctx context.Context, s *socket) error {
	left := false
	for {
		// Waiting for room in the queues must not count as silence.
		if err := s.extendDeadline(); err != nil {
			return err
		}
		var raw socketmode.Request
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			return r.readError(s, err)
		}
		if s.greeted {
			r.progress.RecordAlive()
		}
		if _, err := decodeLoosely(data, &raw); err != nil {
			r.log.Error("frame skipped: it does not decode", "bytes", len(data), "err", err)
			continue
		}
		switch raw.Type {
		case socketmode.RequestTypeHello:
			r.handleHello(s)
			r.log.Info("slack connected", "sockets", raw.NumConnections)
		case socketmode.RequestTypeDisconnect:
			r.log.Info("slack asks for a new connection", "reason", raw.Reason)
			if !left {
				left = true
				close(s.leaving)
			}
		default:
			if raw.EnvelopeID != "" {
				r.enqueue(ctx, s, raw)
			}
		}
	}
}

// handleHello counts a socket once Slack has sent its hello. Unless the socket replaces one that is
// still open, messages may have been missed.
func (r *receiver) handleHello(s *socket) {
	if s.greeted {
		return
	}
	s.greeted = true
	s.mu.Lock()
	s.helloBy = time.Time{}
	s.mu.Unlock()
	alone := r.health.handleOpened()
	r.progress.RecordConnection(alone || !s.replaces)
}

func (r *receiver) readError(s *socket, err error) error {
	var slow net.Error
	if !errors.As(err, &slow) || !slow.Timeout() {
		return r.api.CleanError(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.retireBy.IsZero():
		return errors.New("slack: it was replaced")
	case !s.helloBy.IsZero():
		return fmt.Errorf("slack: no hello came within %s", s.maxSilence)
	}
	return fmt.Errorf("slack: no sign of life for %s", s.maxSilence)
}

func (s *socket) write(v any) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.conn.SetWriteDeadline(time.Now().Add(writeTimeout)); err != nil {
		return err
	}
	data, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.conn.WriteMessage(websocket.TextMessage, data)
}

// stableAge is how long a socket must have been open for the next one to be opened at once.
const stableAge = 10 * time.Second

// keepConnected keeps a socket open until ctx ends, and a second one while Slack replaces the first. It
// returns an error if retrying is useless.
func (r *receiver) keepConnected(ctx context.Context) error {
	pauses := retry.New(minBackOff, maxBackOff)
	var old *socket
	replaces := false
	for ctx.Err() == nil {
		s, err := r.openSocket(ctx, replaces)
		if err != nil {
			if err := permanentError(err); err != nil || ctx.Err() != nil {
				return err
			}
			wait := pauses.Next(retryAfter(err))
			r.health.handleConnectError(err)
			r.log.Warn("slack cannot be reached", "err", err, "wait", wait)
			r.api.Close()
			_ = retry.Wait(ctx, wait) // the loop checks ctx
			continue
		}
		if old != nil {
			old.retire()
		}
		r.startSocket(ctx, s)
		select {
		case <-s.done:
			replaces = false
			if ctx.Err() == nil {
				r.log.Warn("socket lost", "err", s.err, "age", time.Since(s.opened).Round(time.Second))
			}
		case <-s.leaving:
			if old != nil {
				old.close()
				<-old.done
			}
			old, replaces = s, true
		}
		if time.Since(s.opened) >= stableAge {
			pauses.Reset()
			continue
		}
		_ = retry.Wait(ctx, pauses.Next(0)) // the loop checks ctx
	}
	return nil
}

// permanentError returns an error for the operator if an error is permanent, and otherwise nil.
func permanentError(err error) error {
	var ce *callError
	switch {
	case isTokenError(err):
		return fmt.Errorf("slack: the app-level token is refused: check SLACK_APP_TOKEN (xapp-…): %w", err)
	case errors.As(err, &ce) && ce.code == "missing_scope":
		return fmt.Errorf("slack: SLACK_APP_TOKEN lacks the scope connections:write: make a new app-level token with it: %w", err)
	}
	return nil
}
