package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/redact"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
	"oneclaw/toolgroups"
)

// errClosed is returned after Close.
var errClosed = errors.New("mcp: closed")

// maxHangs is the number of unanswered calls in a row that end the connection.
const maxHangs = 2

// server is one configured server, connected or not.
//
// While connecting, a server has one goroutine; while connected, it has two. The function of the idle
// timer is a third.
type server struct {
	name        string
	cfg         Server
	role        toolgroups.Role
	naming      toolNames
	fingerprint string
	redactor    redactor
	log         *slog.Logger
	clientCfg   Config
	backoff     *retry.Backoff // guarded by mu, like failures
	dial        dialer

	clientSecret string          // of the OAuth client
	authClient   *http.Client    // for the authorization server
	userServers  personalServers // personal connections
	parent       *server         // set for a personal connection: the server whose list it updates

	mu             sync.Mutex
	record         record
	listDigest     digest // digest of the last list of this process
	useOldProtocol bool   // use oldProtocol for the next attempt
	group          toolgroups.Group
	conn           *serverConn
	attempt        *attempt
	failures       int
	nextAttempt    time.Time // no attempt before this time
	lastAsked      time.Time // when a connection was last used or begun
	lastFailure    string    // the reason for the last failure
	lastOutput     string    // what the program said before it ended, for administrators
	timer          *time.Timer
	closed         bool
	running        sync.WaitGroup
}

// attempt is an attempt to connect. All calls that need the connection wait for it.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

func newServer(cfg Config, name string, own Server) (*server, error) {
	s := &server{
		name: name, cfg: withDefaults(own), naming: newToolNames(cfg, name),
		log: cfg.Logger.With("mcp_server", name), clientCfg: cfg, backoff: retry.New(cfg.RetryDelay, cfg.MaxRetryDelay),
	}
	s.role, _ = toolgroups.ParseRole(cmp.Or(s.cfg.Role, "user"))
	s.fingerprint = fingerprint(s.cfg)
	if err := s.prepare(cfg); err != nil {
		return nil, fmt.Errorf("mcp: server %q: %w", name, err)
	}
	if cfg.Accounts.KV != nil {
		ctx, cancel := context.WithTimeout(context.Background(), storeTime)
		defer cancel()
		var err error
		if s.record, _, _, err = s.load(ctx); err != nil {
			s.log.Error("cannot read the record of an MCP server: all its tools need approval for now", "err", err)
		}
	}
	s.useOldProtocol = s.record.Listed.OldProtocol
	s.group = s.buildGroup(s.record)
	return s, nil
}

// withDefaults returns a configuration with the default timeouts filled in.
func withDefaults(s Server) Server {
	s.Timeout = cmp.Or(s.Timeout, time.Minute)
	s.StartTimeout = cmp.Or(s.StartTimeout, 30*time.Second)
	return s
}

// prepare creates the dialer and redactor.
func (s *server) prepare(cfg Config) error {
	if s.cfg.URL == "" {
		env, err := environment(s.cfg, cfg.LookupEnv)
		if err != nil {
			return err
		}
		s.redactor = newRedactor(env, nil, "")
		s.dial = stdioDialer{cfg: s.cfg, env: env, maxMessage: cfg.MaxMessage, log: s.log, redactor: s.redactor}
		return nil
	}
	headers, err := expandAll("headers", s.cfg.Headers, cfg.LookupEnv)
	if err != nil {
		return err
	}
	s.redactor = newRedactor(nil, headers, s.cfg.URL)
	reach, err := newHTTPDialer(s.cfg, headers, cfg)
	if err != nil || !s.isPersonal() {
		s.dial = reach
		return err
	}
	secret, err := expandAll("client_secret", map[string]redact.Secret{"": s.cfg.ClientSecret}, cfg.LookupEnv)
	s.dial, s.clientSecret, s.authClient = reach, secret[""], signInClient(reach.private, cfg)
	return err
}

func (s *server) snapshot() toolgroups.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group
	g.Tools = slices.Clone(g.Tools)
	return g
}

func (s *server) lacksList() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.record.hasList()
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: s.name, Group: s.group.Name, Line: s.group.Description, Connected: s.conn != nil, LastAsked: s.lastAsked, Server: s.cfg, Added: s.cfg.addedInChat}
	if s.parent == nil {
		s.userServers.addStatus(&st)
	}
	if s.record.hasList() {
		st.Tools, st.LeftOut = len(s.group.Tools), s.group.LeftOut
	}
	p := s.pending(s.record)
	st.PendingChanges, st.ChangesLeft, st.ChangesCode, st.firstWords = p.Changes, p.left, p.code(), p.first
	if s.conn == nil && s.failures > 0 {
		st.Problem, st.NextRetry = s.lastFailure, s.nextAttempt
		if s.lastOutput != "" {
			st.Problem += ": " + s.lastOutput
		}
	}
	return st
}

// acquire returns the connection, making one if necessary, and counts its use.
func (s *server) acquire(ctx context.Context) (*serverConn, error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case s.conn != nil:
			l := s.conn
			l.uses++
			s.lastAsked = s.clientCfg.Now()
			s.stopTimer()
			s.mu.Unlock()
			return l, nil
		case s.attempt == nil && s.nextAttempt.After(s.clientCfg.Now()):
			defer s.mu.Unlock()
			return nil, s.unavailableError()
		case s.attempt == nil:
			s.startAttempt()
		}
		a := s.attempt
		s.mu.Unlock()
		select {
		case <-a.done:
			if a.err != nil {
				return nil, a.err
			}
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// release ends a use. The last use starts the idle timer or, with rest, closes the connection.
func (s *server) release(l *serverConn, rest bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.uses--
	if l.uses > 0 || s.conn != l || s.closed {
		return
	}
	if rest {
		s.endConn(l)
		return
	}
	s.armIdleTimer(l)
}

// armIdleTimer sets the timer that closes a connection if it stays unused.
func (s *server) armIdleTimer(l *serverConn) {
	s.stopTimer()
	s.timer = time.AfterFunc(s.clientCfg.IdleTimeout, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.conn == l && l.uses == 0 && !s.closed {
			s.resetFailures()
			s.endConn(l)
		}
	})
}

// stopTimer, armIdleTimer, unavailableError, startAttempt, endConn and recordFailure need the lock.
func (s *server) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// unavailableError returns the error for calls until the next attempt.
func (s *server) unavailableError() error {
	wait := max(s.nextAttempt.Sub(s.clientCfg.Now()), 0).Round(100 * time.Millisecond)
	if wait > 10*time.Second {
		wait = wait.Round(time.Second)
	}
	return toolgroups.Errorf(CodeUnavailable,
		"MCP server '%s' is unavailable: %s; next try in %s. Go on without it, or tell the user.", s.name, s.lastFailure, wait)
}

// startAttempt starts an attempt to connect, which completes even if no caller waits.
func (s *server) startAttempt() {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.StartTimeout)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	s.attempt, s.lastAsked = a, s.clientCfg.Now()
	old := s.useOldProtocol
	s.running.Go(func() {
		defer cancel()
		defer close(a.done)
		l, err := s.attemptOnce(ctx, old)
		a.err = s.finishAttempt(l, err)
	})
}

// errFault is returned if a server's message made this program panic; the log has the details.
var errFault = errors.New("its messages cannot be read")

// attemptOnce connects and learns the server's tools.
func (s *server) attemptOnce(ctx context.Context, old bool) (l *serverConn, err error) {
	err = rescue.Do(func() (err error) {
		var said toolList
		posting, status := withPostStatus(ctx)
		l, said, err = s.connect(posting, s.dial, old)
		if reach, ok := s.dial.(*httpDialer); ok && err != nil && ctx.Err() == nil && status.mayUseSSE() {
			if older, more, otherwise := s.connect(ctx, sseDialer{reach}, true); otherwise == nil {
				l, said, err = older, more, nil
			}
		}
		if _, program := s.dial.(stdioDialer); program && err != nil && !old && ctx.Err() == nil && !errors.Is(err, errNotOpened) {
			if older, more, otherwise := s.connect(posting, s.dial, true); otherwise == nil {
				l, said, err = older, more, nil
			}
		}
		if refusal := status.refusal.Load(); err != nil && refusal != nil && userFixableError(err) == nil {
			err = refusal
		}
		if err == nil {
			s.updateTools(said) // before other calls see the connection and report the number of tools
		}
		return err
	})
	if _, panicked := errors.AsType[*rescue.PanicError](err); panicked {
		s.log.Error("panic while connecting to an MCP server", "err", err)
		if l != nil {
			l.close()
		}
		return nil, errFault
	}
	if err != nil && ctx.Err() != nil {
		err = fmt.Errorf("it was not ready within %s", s.cfg.StartTimeout)
	}
	return l, err
}

// finishAttempt handles the result of an attempt.
func (s *server) finishAttempt(l *serverConn, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = nil
	switch {
	case err != nil && !s.closed && userFixableError(err) != nil:
		return userFixableError(err)
	case err != nil && !s.closed:
		s.recordFailure(err)
		s.useOldProtocol = !s.useOldProtocol
		return s.unavailableError()
	case err != nil:
		return errClosed
	case s.closed:
		s.running.Go(l.close)
		return errClosed
	}
	s.conn = l
	s.armIdleTimer(l)
	s.running.Go(func() { s.watchConn(l) })
	return nil
}

// recordFailure records a failure and the time of the next attempt.
func (s *server) recordFailure(err error) {
	s.failures++
	wait := s.backoff.Next(0)
	s.nextAttempt = s.clientCfg.Now().Add(wait)
	s.lastFailure, s.lastOutput = s.redactor.line(withoutURL(err).Error()), ""
	if reported, ok := errors.AsType[*reportedError](err); ok && reported.output != "" {
		s.lastOutput = s.redactor.output(reported.output)
	}
	s.log.Warn("MCP server is unavailable", "err", s.lastFailure, "said", s.lastOutput, "failures", s.failures, "retry_in", wait)
}

// resetFailures clears the count of failures and restarts the backoff.
func (s *server) resetFailures() {
	s.failures = 0
	s.backoff.Reset()
}

// endConn removes the connection and closes it in the background.
func (s *server) endConn(l *serverConn) {
	s.conn = nil
	l.closedByUs = true
	s.running.Go(l.close)
}

// dropConn gives up a broken connection. If err is nil, a new one may be made at once.
func (s *server) dropConn(l *serverConn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.conn != l || s.closed {
		return
	}
	if err != nil {
		s.recordFailure(err)
	}
	s.endConn(l)
}

// isShared reports whether several calls run on a connection.
func (s *server) isShared(l *serverConn) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return l.uses > 1
}

// watchConn waits for the end of a connection, and reads the list of tools again if it changes.
func (s *server) watchConn(l *serverConn) {
	dead := make(chan error, 1)
	s.running.Go(func() { dead <- l.session.Wait() })
	for {
		select {
		case <-l.listChanged:
			rescue.Go(s.log, "reading the tools of an MCP server", func() { s.reloadTools(l) })
		case err := <-dead:
			l.close()
			s.handleLostConn(l, err)
			return
		}
	}
}

// handleLostConn handles a connection that ended without our closing it. If it has served a call, a
// new connection may be made at once.
func (s *server) handleLostConn(l *serverConn, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.closedByUs || s.closed || s.conn != l {
		return
	}
	s.conn = nil
	s.recordFailure(l.cause(err))
	if l.served || errors.Is(err, sdk.ErrSessionMissing) {
		s.resetFailures()
		s.nextAttempt = time.Time{}
	}
}

// close ends all activity and waits until it has ended.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.stopTimer()
	if s.attempt != nil {
		s.attempt.cancel()
	}
	l := s.conn
	s.conn = nil
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
	s.userServers.close()
	s.running.Wait()
	s.dial.closeIdle()
}
