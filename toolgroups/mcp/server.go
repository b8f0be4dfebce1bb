package mcp

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"path/filepath"
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
// While connecting it has one goroutine, while connected two; the idle timer's function is a
// third.
type server struct {
	name   string
	cfg    Server
	role   toolgroups.Role
	naming toolNames
	cache  cache
	redact redactor
	log    *slog.Logger
	family Config
	pauses *retry.Pauses // guarded by mu, as the failures
	dial   dialer

	secret string          // of the OAuth client
	signIn *http.Client    // for the authorisation server
	people personalServers // personal connections
	host   *server         // set for a personal connection: the server whose list it updates

	mu       sync.Mutex
	known    bool   // group comes from a list of the server
	listed   digest // of that list
	seen     list   // that list
	pins     pins   // what it is allowed to say
	old      bool   // use oldProtocol for the next attempt
	group    toolgroups.Group
	link     *link
	attempt  *attempt
	failures int
	next     time.Time // no attempt before this time
	reason   string    // of the last failure
	timer    *time.Timer
	closed   bool
	running  sync.WaitGroup
}

// attempt is one attempt to connect, which all calls that need it wait for.
type attempt struct {
	cancel context.CancelFunc
	done   chan struct{}
	err    error // valid once done is closed
}

func newServer(cfg Config, name string, own Server) (*server, error) {
	s := &server{
		name: name, cfg: withDefaults(own), naming: newNaming(cfg, name),
		log: cfg.Logger.With("mcp_server", name), family: cfg, pauses: retry.New(cfg.Retry, cfg.MaxRetry),
	}
	s.role, _ = toolgroups.ParseRole(cmp.Or(s.cfg.Role, "user"))
	s.cache.fingerprint = fingerprint(s.cfg)
	if cfg.DataDir != "" {
		s.cache.path = filepath.Join(cfg.DataDir, name+".json")
	}
	if err := s.prepare(cfg); err != nil {
		return nil, fmt.Errorf("mcp: server %q: %w", name, err)
	}
	l, sum, ok, err := s.cache.read()
	if err != nil {
		s.log.Warn("tool list of an MCP server is asked for anew", "err", err)
	}
	s.known, s.listed, s.seen, s.old = ok, sum, l, l.Old
	ctx, cancel := context.WithTimeout(context.Background(), pinTime)
	defer cancel()
	switch {
	case ok:
		s.pins, err = s.pin(ctx, l)
	case cfg.Accounts.KV != nil:
		s.pins, _, _, err = s.loadPins(ctx)
	}
	if err != nil {
		s.listed = digest{} // checked again at the next connection
		s.log.Error("all tools of an MCP server ask for now", "err", err)
	}
	s.group = s.build(pinned(l, s.pins.Allowed), ok)
	return s, nil
}

// withDefaults fills in defaults.
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
		s.redact = newRedactor(env, nil, "")
		s.dial = stdioDialer{cfg: s.cfg, env: env, max: cfg.MaxMessage, log: s.log, redact: s.redact}
		return nil
	}
	headers, err := expand("headers", s.cfg.Headers, cfg.LookupEnv)
	if err != nil {
		return err
	}
	s.redact = newRedactor(nil, headers, s.cfg.URL)
	reach, err := newWeb(s.cfg, headers, cfg)
	if err != nil || !s.personal() {
		s.dial = reach
		return err
	}
	secret, err := expand("client_secret", map[string]redact.Secret{"": s.cfg.ClientSecret}, cfg.LookupEnv)
	s.dial, s.secret, s.signIn = reach, secret[""], signInClient(reach.private, cfg)
	return err
}

func (s *server) snapshot() toolgroups.Group {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.group
	g.Tools = slices.Clone(g.Tools)
	return g
}

func (s *server) unknown() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.known
}

func (s *server) status() Status {
	s.mu.Lock()
	defer s.mu.Unlock()
	st := Status{Name: s.name, Group: s.group.Name, Connected: s.link != nil, Server: s.cfg, Added: s.cfg.added}
	if s.host == nil {
		s.people.status(&st)
	}
	if s.known {
		st.Tools = len(s.group.Tools)
	}
	st.Waiting, st.Code = s.waiting()
	if s.link == nil && s.failures > 0 {
		st.Problem, st.Retry = s.reason, s.next
	}
	return st
}

// acquire returns the connection, new if necessary, and counts its use.
func (s *server) acquire(ctx context.Context) (*link, error) {
	for {
		s.mu.Lock()
		switch {
		case s.closed:
			s.mu.Unlock()
			return nil, errClosed
		case s.link != nil:
			l := s.link
			l.users++
			s.stopTimer()
			s.mu.Unlock()
			return l, nil
		case s.attempt == nil && s.next.After(s.family.Now()):
			defer s.mu.Unlock()
			return nil, s.unavailable()
		case s.attempt == nil:
			s.begin()
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

// release ends a use; the last one sets the idle timer, or with rest ends the connection.
func (s *server) release(l *link, rest bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	l.users--
	if l.users > 0 || s.link != l || s.closed {
		return
	}
	if rest {
		s.end(l)
		return
	}
	s.arm(l)
}

// arm ends a connection that stays unused.
func (s *server) arm(l *link) {
	s.stopTimer()
	s.timer = time.AfterFunc(s.family.Idle, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.link == l && l.users == 0 && !s.closed {
			s.recovered()
			s.end(l)
		}
	})
}

// stopTimer needs the lock, as do arm, unavailable, begin, end and fail.
func (s *server) stopTimer() {
	if s.timer != nil {
		s.timer.Stop()
	}
}

// unavailable returns the error until the next attempt.
func (s *server) unavailable() error {
	wait := max(s.next.Sub(s.family.Now()), 0).Round(100 * time.Millisecond)
	if wait > 10*time.Second {
		wait = wait.Round(time.Second)
	}
	return toolgroups.Errorf(CodeUnavailable,
		"MCP server '%s' is unavailable: %s; next try in %s. Go on without it, or tell the user.", s.name, s.reason, wait)
}

// begin starts an attempt, which completes even if no caller waits.
func (s *server) begin() {
	ctx, cancel := context.WithTimeout(context.Background(), s.cfg.StartTimeout)
	a := &attempt{cancel: cancel, done: make(chan struct{})}
	s.attempt = a
	old := s.old
	s.running.Go(func() {
		defer cancel()
		defer close(a.done)
		l, err := s.attemptOnce(ctx, old)
		a.err = s.connected(l, err)
	})
}

// errFault is returned if a server's message made this program panic; the log has the details.
var errFault = errors.New("what it says cannot be read")

// attemptOnce connects and reads what the server says about itself.
func (s *server) attemptOnce(ctx context.Context, old bool) (l *link, err error) {
	err = rescue.Do(func() (err error) {
		var said list
		l, said, err = connect(ctx, s.dial, s.name, old)
		if reach, ok := s.dial.(*httpDialer); ok && err != nil && ctx.Err() == nil && reach.mayBeOlder() {
			if older, more, otherwise := connect(ctx, sseDialer{reach}, s.name, true); otherwise == nil {
				l, said, err = older, more, nil
			}
		}
		if err == nil {
			s.learn(said) // before others see the connection, and say how many tools there are
		}
		return err
	})
	if _, panicked := errors.AsType[*rescue.PanicError](err); panicked {
		s.log.Error("an MCP server was not survived", "err", err)
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

// connected handles the result of an attempt.
func (s *server) connected(l *link, err error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.attempt = nil
	switch {
	case err != nil && !s.closed && userFixable(err) != nil:
		return userFixable(err)
	case err != nil && !s.closed:
		s.fail(err)
		s.old = !s.old
		return s.unavailable()
	case err != nil:
		return errClosed
	case s.closed:
		s.running.Go(l.close)
		return errClosed
	}
	s.link = l
	s.arm(l)
	s.running.Go(func() { s.watch(l) })
	return nil
}

// fail records a failure and the time of the next try.
func (s *server) fail(err error) {
	s.failures++
	wait := s.pauses.Next(0)
	s.next = s.family.Now().Add(wait)
	s.reason = s.redact.line(reason(err).Error())
	s.log.Warn("MCP server is unavailable", "err", s.reason, "failures", s.failures, "retry_in", wait)
}

// recovered records that the server works again.
func (s *server) recovered() {
	s.failures = 0
	s.pauses.Reset()
}

// end removes the connection and closes it in the background.
func (s *server) end(l *link) {
	s.link = nil
	l.ended = true
	s.running.Go(l.close)
}

// drop gives up a broken connection. Without an error a new one may be made at once.
func (s *server) drop(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.link != l || s.closed {
		return
	}
	if err != nil {
		s.fail(err)
	}
	s.end(l)
}

// watch waits for the end of a connection, and reads a changed list.
func (s *server) watch(l *link) {
	dead := make(chan error, 1)
	s.running.Go(func() { dead <- l.session.Wait() })
	for {
		select {
		case <-l.refresh:
			rescue.Go(s.log, "reading the tools of an MCP server", func() { s.reload(l) })
		case err := <-dead:
			l.close()
			s.lost(l, err)
			return
		}
	}
}

// lost handles an end that we did not cause. If a call was served before, a new connection may
// be made at once.
func (s *server) lost(l *link, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l.ended || s.closed || s.link != l {
		return
	}
	s.link = nil
	s.fail(l.cause(err))
	if l.served || errors.Is(err, sdk.ErrSessionMissing) {
		s.recovered()
		s.next = time.Time{}
	}
}

// close ends all activity and waits for it.
func (s *server) close() {
	s.mu.Lock()
	s.closed = true
	s.stopTimer()
	if s.attempt != nil {
		s.attempt.cancel()
	}
	l := s.link
	s.link = nil
	s.mu.Unlock()
	if l != nil {
		l.close()
	}
	s.people.close()
	s.running.Wait()
	s.dial.rest()
}
