// Package surface implements Slack's features for agent apps: streamed answers, with Slack's own stop
// button. A feature that Slack refuses is not used again while the process lives, and the app behaves
// as a plain one there.
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

// Config configures a [Surface]. All fields are required.
type Config struct {
	// Call calls a method through the library, and Code returns Slack's error code of an error; empty
	// for others.
	Call func(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error
	Code func(error) string
	// Busy reports whether a call of a method would have to wait.
	Busy func(method string) bool
	// Blocks lays out a Markdown text.
	Blocks func(markdown string) []slack.Block
	Log    *slog.Logger
}

// Slack takes 20 chat.startStream a minute and as many chat.stopStream, and 100 chat.appendStream
// (docs.slack.dev, rate limits, tiers 2 and 4).
const (
	beginRate, beginBurst   = 0.3, 10
	appendRate, appendBurst = 1.6, 20
	appendGap               = 800 * time.Millisecond
)

const (
	// maxBackground bounds concurrent background work, backgroundTimeout its duration.
	maxBackground     = 8
	backgroundTimeout = 10 * time.Second
)

// Surface is the surface of one app. Its methods may be called concurrently.
type Surface struct {
	cfg          Config
	begins, more *retry.OptionalLimiter

	background sync.WaitGroup

	mu      sync.Mutex
	works   bool                // between Work and Rest
	busy    int                 // running background work
	agent   bool                // the app is an agent
	refused map[string]struct{} // methods that Slack refuses
	streams map[string]*stream  // open ones, by message id
	ended   map[string]struct{} // messages that were streams
	waiting map[chats.Chat]bool // threads in which a turn waits for a decision

	// telling is held while Slack is told of that, so that the last state wins.
	telling sync.Mutex
}

// New returns the surface of a plain app.
func New(cfg Config) *Surface {
	return &Surface{
		cfg: cfg, begins: retry.NewOptionalLimiter(beginRate, beginBurst), more: retry.NewOptionalLimiter(appendRate, appendBurst),
		refused: make(map[string]struct{}), streams: make(map[string]*stream), ended: make(map[string]struct{}), waiting: make(map[chats.Chat]bool),
	}
}

// Work allows background work. agent says whether the app is an agent, according to the scopes of its
// token.
func (s *Surface) Work(agent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.agent, s.works = agent, true
}

// Rest stops background work, and waits for what is running.
func (s *Surface) Rest() {
	s.mu.Lock()
	s.works = false
	s.mu.Unlock()
	s.background.Wait()
}

// Background runs do in the background, unless too much runs already. A failure is logged with the text
// failed.
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

// may reports whether the app may call a method, as far as is known. All apps may use the Home tab and
// blocks.
func (s *Surface) may(method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, refused := s.refused[method]
	return (s.agent || method == publishView || method == Layouts) && !refused
}

// permanentRefusals lists permanent refusals: the app or its workspace lacks what the method needs.
var permanentRefusals = map[string]bool{
	"missing_scope": true, "not_authorized": true, "not_allowed": true, "not_allowed_token_type": true, "access_denied": true,
	"no_permission": true, "unknown_method": true, "method_deprecated": true, "feature_not_enabled": true, "not_enabled": true, "team_access_not_granted": true,
}

// call calls a method that the app may lack.
func (s *Surface) call(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error {
	err := s.cfg.Call(ctx, method, with)
	if permanentRefusals[s.cfg.Code(err)] {
		s.Lacks(method, err)
	}
	return err
}

// Lacks records that Slack refuses the app something, and logs it once.
func (s *Surface) Lacks(what string, err error) {
	s.mu.Lock()
	_, known := s.refused[what]
	s.refused[what] = struct{}{}
	s.mu.Unlock()
	if !known {
		s.cfg.Log.Info("slack refuses this app a part of its surface: it goes on without", "part", what, "err", err)
	}
}
