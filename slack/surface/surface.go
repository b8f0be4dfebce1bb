// Package surface is what Slack shows for apps that are agents: answers that stream, with
// Slack's own button to stop. What Slack refuses an app is left for as long as the process
// lives, and the app works as a plain one there.
package surface

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/rescue"
	"oneclaw/internal/retry"
)

// Config is what a [Surface] is made of. All of it is needed.
type Config struct {
	// Call has the library call a method, and Code returns Slack's word for the refusal of
	// one; empty where it was none.
	Call func(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error
	Code func(error) string
	// Busy reports whether a call of a method would have to wait.
	Busy func(method string) bool
	// Blocks lays a text in Markdown out.
	Blocks func(markdown string) []slack.Block
	Log    *slog.Logger
}

// Slack takes 20 chat.startStream a minute and as many chat.stopStream, and 100
// chat.appendStream (docs.slack.dev, rate limits, tiers 2 and 4).
const (
	beginRate, beginBurst   = 0.3, 10
	appendRate, appendBurst = 1.6, 20
	appendGap               = 800 * time.Millisecond
)

const (
	// maxBackground bounds what is done beside the messages at a time, backgroundTimeout how long.
	maxBackground     = 8
	backgroundTimeout = 10 * time.Second
)

// Surface is the surface of one app. Its methods may be called concurrently.
type Surface struct {
	cfg          Config
	begins, more *retry.Spare

	background sync.WaitGroup

	mu      sync.Mutex
	works   bool                // between Work and Rest
	busy    int                 // what is being done beside the messages
	agent   bool                // the app is an agent
	refused map[string]struct{} // methods that it may not call
	streams map[string]*stream  // that are open, by the id of their message
	ended   map[string]struct{} // messages that were streams
	waiting map[chats.Chat]bool // the threads in which a turn waits for a decision

	// telling is held while Slack is told of that, so that what is told last is true.
	telling sync.Mutex
}

// New returns the surface of an app that is no agent yet.
func New(cfg Config) *Surface {
	return &Surface{
		cfg: cfg, begins: retry.NewSpare(beginRate, beginBurst), more: retry.NewSpare(appendRate, appendBurst),
		refused: make(map[string]struct{}), streams: make(map[string]*stream), ended: make(map[string]struct{}), waiting: make(map[chats.Chat]bool),
	}
}

// Work begins the time in which something may be done beside the messages. Agent says whether
// the app is an agent, as Slack tells with the scopes of its token.
func (s *Surface) Work(agent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent, s.works = agent, true
}

// Rest ends it, and waits for what is being done.
func (s *Surface) Rest() {
	s.mu.Lock()
	s.works = false
	s.mu.Unlock()
	s.background.Wait()
}

// Background does something beside the messages, unless too much is being done already. What is
// said where that failed goes to the log.
func (s *Surface) Background(ctx context.Context, failed string, do func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.works || s.busy >= maxBackground {
		return
	}
	s.busy++
	s.background.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.busy--
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundTimeout)
		defer cancel()
		if err := rescue.Do(func() error { return do(ctx) }); err != nil {
			s.cfg.Log.Warn("not done beside the messages", "so", failed, "err", err)
		}
	})
}

// may reports whether the app may call a method, as far as is known. The Home tab is for all, and
// so are blocks.
func (s *Surface) may(method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, refused := s.refused[method]
	return (s.agent || method == publishView || method == Layouts) && !refused
}

// never are refusals that last: the app or its workspace lacks what the method takes.
var never = map[string]bool{
	"missing_scope": true, "not_authorized": true, "not_allowed": true, "not_allowed_token_type": true, "access_denied": true,
	"no_permission": true, "unknown_method": true, "method_deprecated": true, "feature_not_enabled": true, "not_enabled": true, "team_access_not_granted": true,
}

// call makes a call of a method that the app may lack.
func (s *Surface) call(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error {
	err := s.cfg.Call(ctx, method, with)
	if never[s.cfg.Code(err)] {
		s.Lacks(method, err)
	}
	return err
}

// Lacks notes that Slack refuses the app something, and tells the log once.
func (s *Surface) Lacks(what string, err error) {
	s.mu.Lock()
	_, known := s.refused[what]
	s.refused[what] = struct{}{}
	s.mu.Unlock()
	if !known {
		s.cfg.Log.Info("slack refuses this app a part of its surface: it goes on without", "part", what, "err", err)
	}
}
