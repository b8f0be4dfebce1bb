// Package surface implements Slack's features for agent apps: streamed answers with Slack's own stop
// button, statuses, feedback buttons, prompts, and the Home tab. A feature that Slack refuses is not used
// again while the process runs, and the app behaves as a plain one in that respect.
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
	// Call calls a method through the library. Code returns the error code
	// that Slack gave for a failed call, or an empty string if the error has none.
	Call func(ctx context.Context, method string, with func(context.Context, *slack.Client) error) error
	Code func(error) string
	// Busy reports whether a call of a method would have to wait.
	Busy func(method string) bool
	// RenderBlocks renders a Markdown text as blocks.
	RenderBlocks func(markdown string) []slack.Block
	Log          *slog.Logger
}

// Slack allows 20 chat.startStream a minute and as many chat.stopStream, and 100 chat.appendStream
// (docs.slack.dev, rate limits, tiers 2 and 4).
const (
	beginRate, beginBurst   = 0.3, 10
	appendRate, appendBurst = 1.6, 20
	appendGap               = 800 * time.Millisecond
)

const (
	// maxBackground bounds the concurrent background work, backgroundTimeout its duration.
	maxBackground     = 8
	backgroundTimeout = 10 * time.Second
)

// Surface is the surface of one app. Its methods may be called concurrently.
type Surface struct {
	cfg                         Config
	startLimiter, appendLimiter *retry.OptionalLimiter

	background sync.WaitGroup

	mu        sync.Mutex
	accepting bool                // between Start and Stop
	running   int                 // running background work
	isAgent   bool                // the app is an agent
	refused   map[string]struct{} // methods and features that Slack refuses
	streams   map[string]*stream  // open ones, by message id
	ended     map[string]struct{} // messages that were streams
	waiting   map[chats.Chat]bool // threads in which a turn waits for a decision

	// sessionMu is held while a session's status is sent to Slack, so that the last status wins.
	sessionMu sync.Mutex
}

// New returns the surface of a plain app.
func New(cfg Config) *Surface {
	return &Surface{
		cfg: cfg, startLimiter: retry.NewOptionalLimiter(beginRate, beginBurst), appendLimiter: retry.NewOptionalLimiter(appendRate, appendBurst),
		refused: make(map[string]struct{}), streams: make(map[string]*stream), ended: make(map[string]struct{}), waiting: make(map[chats.Chat]bool),
	}
}

// Start allows background work. agent is set if the app is an agent, according to the scopes of its
// token.
func (s *Surface) Start(agent bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isAgent, s.accepting = agent, true
}

// Stop refuses further background work, and waits for the work in progress.
func (s *Surface) Stop() {
	s.mu.Lock()
	s.accepting = false
	s.mu.Unlock()
	s.background.Wait()
}

// RunInBackground runs do in the background, unless too much runs already. If do fails, the text failed
// is logged.
func (s *Surface) RunInBackground(ctx context.Context, failed string, do func(context.Context) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.accepting || s.running >= maxBackground {
		return
	}
	s.running++
	s.background.Go(func() {
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.running--
		}()
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), backgroundTimeout)
		defer cancel()
		if err := rescue.Do(func() error { return do(ctx) }); err != nil {
			s.cfg.Log.Warn("background work failed", "so", failed, "err", err)
		}
	})
}

// canUse reports whether the app may use a method or feature, as far as is known. All apps may use the
// Home tab and blocks.
func (s *Surface) canUse(method string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	_, refused := s.refused[method]
	return (s.isAgent || method == publishView || method == FeatureLayouts) && !refused
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
		s.RecordRefusal(method, err)
	}
	return err
}

// RecordRefusal records that Slack refuses the app a method or feature, and logs it once.
func (s *Surface) RecordRefusal(what string, err error) {
	s.mu.Lock()
	_, known := s.refused[what]
	s.refused[what] = struct{}{}
	s.mu.Unlock()
	if !known {
		s.cfg.Log.Info("slack refuses the app a feature: continuing without it", "part", what, "err", err)
	}
}
