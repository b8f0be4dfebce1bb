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
	// maxFrame bounds a message of a socket.
	maxFrame = 4 << 20
	// writeTimeout bounds a write to a socket.
	writeTimeout = 10 * time.Second
	// drainTime is how long a socket that was asked to leave is still read.
	drainTime = 10 * time.Second
)

// socket is a Socket Mode connection. Its goroutines are listen and ping.
type socket struct {
	conn   *websocket.Conn
	silent time.Duration // how long it may be silent
	frame  func(sent bool, data []byte)
	opened time.Time
	// leaving is closed when Slack asks the socket to leave, done when it has ended.
	leaving, done chan struct{}
	err           error // why it ended; set before done is closed
	greeted       bool  // Slack has said hello; only listen uses it
	replaces      bool  // it replaces one that was asked to leave and still lives

	mu      sync.Mutex // guards writing
	helloBy time.Time  // deadline for Slack's hello
	retired time.Time  // deadline after it was asked to leave
}

func (r *receiver) open(ctx context.Context, replaces bool) (*socket, error) {
	address, err := r.api.socketAddress(ctx)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, r.api.timeout)
	defer cancel()
	conn, resp, err := r.api.sockets.DialContext(ctx, address, nil)
	if resp != nil && resp.Body != nil {
		_ = resp.Body.Close() // gorilla has read the body
	}
	if err != nil {
		return nil, fmt.Errorf("slack: connect a socket: %w", r.api.Clean(err))
	}
	s := &socket{
		conn: conn, frame: r.api.Frame, silent: r.pingTimeout, opened: time.Now(), helloBy: time.Now().Add(r.pingTimeout), replaces: replaces,
		leaving: make(chan struct{}), done: make(chan struct{}),
	}
	conn.SetReadLimit(maxFrame)
	conn.SetPingHandler(func(data string) error {
		// A failed write shows in the next read.
		_ = conn.WriteControl(websocket.PongMessage, []byte(data), time.Now().Add(writeTimeout))
		return r.sign(s)
	})
	conn.SetPongHandler(func(string) error { return r.sign(s) })
	return s, nil
}

func (c *client) socketAddress(ctx context.Context) (string, error) {
	return ask(ctx, c, "apps.connections.open", func(ctx context.Context, api *slack.Client) (string, error) {
		_, address, err := api.StartSocketModeContext(ctx)
		return address, err
	})
}

func (r *receiver) sign(s *socket) error {
	if s.greeted {
		r.reach.SignOfLife()
	}
	return s.extend()
}

// extend extends the read deadline after a sign of life.
func (s *socket) extend() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	until := time.Now().Add(s.silent)
	for _, end := range []time.Time{s.helloBy, s.retired} {
		if !end.IsZero() && end.Before(until) {
			until = end
		}
	}
	return s.conn.SetReadDeadline(until)
}

func (s *socket) retire() {
	s.mu.Lock()
	s.retired = time.Now().Add(drainTime)
	s.mu.Unlock()
	if err := s.extend(); err != nil {
		s.close()
	}
}

// close closes the connection, which ends its goroutines.
func (s *socket) close() {
	_ = s.conn.Close() // it may be closed already
}

// serve starts the goroutines of a socket; done is closed when all have ended.
func (r *receiver) serve(ctx context.Context, s *socket) {
	r.running.Go(func() {
		ctx, cancel := context.WithCancel(ctx)
		var ping sync.WaitGroup
		ping.Go(func() { rescue.Go(r.log, "the signs of life of a socket", func() { s.ping(ctx) }) })
		s.err = rescue.Do(func() error { return r.listen(ctx, s) })
		cancel()
		s.close()
		ping.Wait()
		if s.greeted {
			r.health.closed(s.err)
		}
		close(s.done)
	})
}

// ping sends pings, and closes the socket when ctx ends.
func (s *socket) ping(ctx context.Context) {
	defer s.close()
	tick := time.NewTicker(s.silent / 3)
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

func (r *receiver) listen(ctx context.Context, s *socket) error {
	left := false
	for {
		// A wait for room in the queues must not count as silence.
		if err := s.extend(); err != nil {
			return err
		}
		var raw socketmode.Request
		_, data, err := s.conn.ReadMessage()
		if err != nil {
			return r.silence(s, err)
		}
		r.api.Frame(false, data)
		if s.greeted {
			r.reach.SignOfLife()
		}
		if err := json.Unmarshal(data, &raw); err != nil {
			r.log.Error("frame skipped: it does not decode", "bytes", len(data), "err", err)
			continue
		}
		switch raw.Type {
		case socketmode.RequestTypeHello:
			r.greet(s)
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

// greet counts a socket once Slack has said hello on it. Unless it replaces one that still lives,
// messages may have been missed.
func (r *receiver) greet(s *socket) {
	if s.greeted {
		return
	}
	s.greeted = true
	s.mu.Lock()
	s.helloBy = time.Time{}
	s.mu.Unlock()
	alone := r.health.opened()
	r.reach.Connected(alone || !s.replaces)
}

func (r *receiver) silence(s *socket, err error) error {
	var slow net.Error
	if !errors.As(err, &slow) || !slow.Timeout() {
		return r.api.Clean(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case !s.retired.IsZero():
		return errors.New("slack: it was replaced")
	case !s.helloBy.IsZero():
		return fmt.Errorf("slack: no hello came within %s", s.silent)
	}
	return fmt.Errorf("slack: no sign of life for %s", s.silent)
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
	s.frame(true, data)
	return s.conn.WriteMessage(websocket.TextMessage, data)
}

// stableAge is how long a socket must have lived for the next to be opened at once.
const stableAge = 10 * time.Second

// link keeps a socket open until ctx ends, and a second one while Slack replaces the first. It returns
// an error if retrying is useless.
func (r *receiver) link(ctx context.Context) error {
	pauses := retry.New(minBackOff, maxBackOff)
	var old *socket
	replaces := false
	for ctx.Err() == nil {
		s, err := r.open(ctx, replaces)
		if err != nil {
			if err := fatal(err); err != nil || ctx.Err() != nil {
				return err
			}
			wait := pauses.Next(asked(err))
			r.health.missed(err)
			r.log.Warn("slack cannot be reached", "err", err, "wait", wait)
			r.api.Close()
			_ = retry.Wait(ctx, wait) // the loop checks ctx
			continue
		}
		if old != nil {
			old.retire()
		}
		r.serve(ctx, s)
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

// fatal returns what to tell the operator if an error is permanent; else nil.
func fatal(err error) error {
	var ce *callError
	switch {
	case wrongToken(err):
		return fmt.Errorf("slack: the app-level token is refused: check SLACK_APP_TOKEN (xapp-…): %w", err)
	case errors.As(err, &ce) && ce.code == "missing_scope":
		return fmt.Errorf("slack: SLACK_APP_TOKEN lacks the scope connections:write: make a new app-level token with it: %w", err)
	}
	return nil
}
