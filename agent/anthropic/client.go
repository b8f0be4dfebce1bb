// Package anthropic is a client of Anthropic's Messages API, which offers what OpenAI's Chat
// Completions do not: prompts cached up to marks, thinking that goes back with its signatures, and
// tools that the provider finds.
//
// Package agent/provider holds the code that all model clients share: how failures are classified, what
// is known of a model, how a user message is written.
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

// DefaultBaseURL is the address of Anthropic's API.
const DefaultBaseURL = "https://api.anthropic.com"

// Config configures a [Client].
type Config struct {
	// BaseURL is the address in front of /v1/messages; a trailing /v1 is ignored. Empty means
	// [DefaultBaseURL].
	BaseURL string
	APIKey  string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// Retry bounds how a request is repeated.
	Retry provider.Retry
	// ContextTokens is the size of the model's context that its name implies; 0 if unknown.
	ContextTokens int
	// Set holds the operator's settings, which come before everything else.
	Set provider.Settings
	// Effort is the reasoning effort of requests that set none; empty leaves it to the model.
	Effort string
	// FirstByte bounds the wait for the first byte of a reply. 0 means two minutes.
	FirstByte time.Duration
	// Known remembers facts about models for all clients that share it. Nil means a memory of its own.
	Known *Known
	// Logger logs repeated requests. Nil discards them.
	Logger *slog.Logger
}

// Client calls a model over the Messages API. It may be used concurrently. It starts no goroutine that
// outlives a call.
type Client struct {
	cfg Config
	// origin is stored with what goes back to the server, so that each server gets only its own.
	origin string
	family family
}

// New returns a client. It sends nothing.
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
	cfg.HTTPClient = provider.RestrictRedirects(cfg.HTTPClient)
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

// Complete sends one request and returns the whole reply. It repeats transient failures, with growing
// pauses or those that the server asks for, and adapts a request whose refusal says what to change. An
// error is a *[agent.ModelError], or the cause for which ctx ended.
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

// maxPauses bounds how often a reply is continued that the provider paused because its own tools took
// many rounds.
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
			err = r.continueAnswer(a)
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
