// Package anthropic speaks to Claude over Anthropic's own Messages API, which has what the
// form of OpenAI's requests has no room for: prompts that are cached up to marks, thinking
// that goes back with its signatures, and tools that the provider finds.
//
// What is common to all clients of models (how failures are judged, what is known of a
// model, what a message of a person looks like) is agent/provider.
package anthropic

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/url"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// DefaultBaseURL is where Anthropic takes requests.
const DefaultBaseURL = "https://api.anthropic.com"

// Config is what a [Client] is made of.
type Config struct {
	// BaseURL is the address in front of /v1/messages; /v1 at its end does not matter.
	// Empty means [DefaultBaseURL].
	BaseURL string
	APIKey  string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// Retry bounds how a request is repeated.
	Retry provider.Retry
	// ContextTokens is the size of the model's context as its name tells; 0 if unknown.
	ContextTokens int
	// Set is what the operator says, before all else.
	Set provider.Settings
	// Effort is how hard the model is to think where a request does not say; empty leaves
	// it to the model.
	Effort string
	// FirstByte is how long the first byte of a reply may take. 0 means two minutes.
	FirstByte time.Duration
	// Known is what is remembered of models, for all clients that share it. Nil means a
	// memory of its own.
	Known *Known
	// Logger is told about repeated requests. Nil discards it.
	Logger *slog.Logger
}

// Client is a model behind the Messages API. It may be used concurrently. It starts no
// goroutines that outlive a call.
type Client struct {
	cfg Config
	// origin stands in what is carried back to the server, so that it gets only its own.
	origin string
	family family
}

// New makes a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	base := strings.TrimRight(strings.TrimSpace(cmp.Or(cfg.BaseURL, DefaultBaseURL)), "/")
	base = strings.TrimSuffix(base, "/v1")
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("anthropic: the base URL must look like https://host")
	case cfg.Model == "":
		return nil, errors.New("anthropic: no model is named")
	}
	if cfg.Retry, err = provider.Check(cfg.Retry, cfg.Set, cfg.ContextTokens, cfg.FirstByte); err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	cfg.BaseURL = base
	cfg.FirstByte = cmp.Or(cfg.FirstByte, provider.FirstTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Known == nil {
		cfg.Known = NewKnown()
	}
	cfg.HTTPClient = provider.Within(cfg.HTTPClient)
	sum := sha256.Sum256([]byte(base + "\n" + cfg.Model))
	return &Client{cfg: cfg, origin: hex.EncodeToString(sum[:8]), family: familyOf(cfg.Model)}, nil
}

// Profile returns what is known of the model.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{
		Name: c.cfg.Model, ContextTokens: c.context(), Effort: c.cfg.Effort, LongCache: true,
		Native: c.family.searches && !c.known("").noSearch,
	}
}

// Complete sends one request and returns the whole reply. It repeats what may pass with
// growing pauses, or those that the server asks for, and asks otherwise what is refused in a
// way that says how. An error is a *[agent.ModelError], or the cause for which ctx ended.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (reply agent.Reply, err error) {
	q := c.known(req.CacheKey)
	known, streamed := q, false
	err = c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() (fault *provider.Fault) {
		if streamed {
			onDelta(agent.Delta{Restart: true})
		}
		reply, streamed, fault = c.try(ctx, &req, q, onDelta)
		return fault
	}, func(fault *provider.Fault) bool {
		better := q.learn(fault)
		if better == q {
			c.cfg.Known.Refused(c.origin, fault)
			return false
		}
		c.cfg.Logger.Info("model request is made otherwise, as the server wants it", "model", c.cfg.Model, "err", fault.Failure)
		q = better
		return true
	})
	if err == nil && q != known {
		c.learn(req.CacheKey, q)
	}
	return reply, err
}

// maxPauses is how often a reply is gone on with that the provider paused, because its own
// tools took many rounds.
const maxPauses = 5

// try sends the request once. streamed reports whether onDelta was given anything.
func (c *Client) try(ctx context.Context, req *agent.Request, q quirks, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, f *provider.Fault) {
	ctx, alive, end := provider.WithDeadlines(ctx, c.cfg.FirstByte, provider.AttemptTimeout)
	defer end()
	show := func(text string) {
		if text != "" && onDelta != nil {
			streamed = true
			onDelta(agent.Delta{Text: text})
		}
	}
	r := c.encode(req, q)
	var whole collected
	for range maxPauses {
		a, err := c.stream(ctx, r, alive, show)
		if err == nil {
			err = whole.add(a)
		}
		if err == nil && a.stop == stopPause {
			err = r.goOn(a)
		}
		if err != nil {
			return agent.Reply{}, streamed, provider.Judge(ctx, err, c.cfg.APIKey)
		}
		if a.stop != stopPause {
			break
		}
	}
	reply, err := whole.reply(c.origin)
	if err != nil {
		return agent.Reply{}, streamed, provider.Judge(ctx, err, c.cfg.APIKey)
	}
	return reply, streamed, nil
}
