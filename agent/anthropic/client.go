// Package anthropic is a client for Anthropic's Messages API. Unlike OpenAI's Chat Completions, the API
// offers explicit cache breakpoints, signed thinking blocks that are sent back, and tool search by the
// provider.
//
// Package agent/provider has the code that all model clients share, such as the classification of
// failures, the facts about models, and the text of user messages.
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

// defaultBaseURL is the address of Anthropic's API.
const defaultBaseURL = "https://api.anthropic.com"

// Config configures a [Client].
type Config struct {
	// BaseURL is the address in front of /v1/messages; a trailing /v1 is ignored. Empty means
	// [defaultBaseURL].
	BaseURL string
	APIKey  string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// Retry bounds how a request is repeated; zero values mean the defaults.
	Retry provider.Retry
	// ContextTokens is the size of the model's context that its name implies; 0 if unknown.
	ContextTokens int
	// Settings holds the operator's settings, which override all other facts.
	Settings provider.Settings
	// Effort is the reasoning effort of requests that set none; empty leaves it to the model.
	Effort string
	// FirstByteTimeout bounds the wait for the first byte of a reply. 0 means two minutes.
	FirstByteTimeout time.Duration
	// ModelCache holds facts about models for all clients that share it. Nil means a private cache.
	ModelCache *ModelCache
	// Logger logs retries. Nil discards them.
	Logger *slog.Logger
}

// Client calls a model over the Messages API. It may be used concurrently. It starts no goroutine that
// outlives a call.
type Client struct {
	cfg Config
	// origin identifies the server in stored reasoning, so that each server gets back only its own.
	origin string
	family family
}

// New returns a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	base := strings.TrimRight(strings.TrimSpace(cmp.Or(cfg.BaseURL, defaultBaseURL)), "/")
	base = strings.TrimSuffix(base, "/v1")
	u, err := url.Parse(base)
	switch {
	case err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https":
		return nil, errors.New("anthropic: the base URL must look like https://host")
	case cfg.Model == "":
		return nil, errors.New("anthropic: the model's name is empty")
	}
	if cfg.Retry, err = provider.CheckSettings(cfg.Retry, cfg.Settings, cfg.ContextTokens, cfg.FirstByteTimeout); err != nil {
		return nil, fmt.Errorf("anthropic: %w", err)
	}
	cfg.BaseURL = base
	cfg.FirstByteTimeout = cmp.Or(cfg.FirstByteTimeout, provider.FirstTimeout)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.ModelCache == nil {
		cfg.ModelCache = NewModelCache()
	}
	cfg.HTTPClient = provider.RestrictRedirects(cfg.HTTPClient)
	sum := sha256.Sum256([]byte(base + "\n" + cfg.Model))
	return &Client{cfg: cfg, origin: hex.EncodeToString(sum[:8]), family: familyOf(cfg.Model)}, nil
}

// Profile returns what is known about the model.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{
		Name: c.cfg.Model, ContextTokens: c.contextTokens(), Effort: c.cfg.Effort, LongCache: true,
	}
}

// Complete sends one request and returns the whole reply. It retries transient failures, with growing
// pauses or the server's Retry-After, and adapts a request if the refusal names what to change. An
// error is a *[agent.ModelError], or the cause of ctx.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (reply agent.Reply, err error) {
	q := c.quirksFor(req.CacheKey)
	known, streamed := q, false
	offer := c.cfg.ModelCache.Offer(c.origin, req.Tools)
	req.Tools = offer.Tools
	var failed agent.Usage // of the attempts that failed
	err = c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() (fault *provider.Fault) {
		if streamed {
			onDelta(agent.Delta{Restart: true})
		}
		reply, streamed, fault = c.attempt(ctx, &req, q, onDelta)
		if fault != nil {
			failed = failed.Plus(reply.Usage)
			fault.CompareSize(req.EstimateTokens())
		}
		return fault
	}, func(fault *provider.Fault) (again bool) {
		if again, q = c.adaptRequest(&req, q, fault, offer); !again {
			c.cfg.ModelCache.LearnLimit(c.origin, fault)
		}
		return again
	})
	if err != nil {
		return agent.Reply{Usage: failed}, err
	}
	if q != known {
		c.saveQuirks(req.CacheKey, q)
	}
	c.cfg.ModelCache.Remember(c.origin, offer)
	reply.LeftOut = offer.Left()
	provider.RestoreNames(reply.Calls, c.cfg.ModelCache.Renamed(provider.FamilyClaude, req.Tools))
	reply.Usage = failed.Plus(reply.Usage)
	return reply, nil
}

// adaptRequest changes a refused request into one that may succeed. It leaves out the tools that the refusal
// names, or applies the change that it suggests, or else removes pictures, because an answer to the text alone
// is better than none.
func (c *Client) adaptRequest(req *agent.Request, q quirks, f *provider.Fault, offer *provider.Offer) (again bool, better quirks) {
	if offer.LeaveOut(f, wireNames(c.encodeTools(req.Tools))) {
		c.cfg.Logger.Warn("tools left out because the model's server refuses them", "model", c.cfg.Model, "tools", offer.Left(), "err", f.Failure)
		req.Tools = offer.Tools
		return true, q
	}
	pictures := !q.noVision && req.ReadFile != nil && len(agent.ShownPictures(req.Messages)) > 0
	better = q.learn(f, c.effort(req.Effort, q))
	switch {
	case better.noVision && !q.noVision && !pictures:
		return false, q // no pictures were shown
	case better != q:
		c.cfg.Logger.Info("model request adapted after a refusal", "model", c.cfg.Model, "err", f.Failure)
		return true, better
	case pictures && f.Failure.Kind == agent.KindRejected && !f.Failure.Filtered:
		c.cfg.Logger.Warn("model request with pictures refused, retrying without pictures", "model", c.cfg.Model, "err", f.Failure)
		req.ReadFile = nil
		return true, q
	}
	return false, q
}

// attempt sends the request once. streamed reports whether onDelta was called with text. After a fault the
// reply has only its usage.
func (c *Client) attempt(ctx context.Context, req *agent.Request, q quirks, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, f *provider.Fault) {
	ctx, alive, cancel := provider.WithTimeouts(ctx, c.cfg.FirstByteTimeout, provider.AttemptTimeout)
	defer cancel()
	show := func(text string) {
		if text != "" && onDelta != nil {
			streamed = true
			onDelta(agent.Delta{Text: text})
		}
	}
	a, err := c.stream(ctx, c.encode(req, q), alive, show)
	if err != nil {
		return agent.Reply{Usage: a.spent(req)}, streamed, provider.NewFault(ctx, err, c.cfg.APIKey)
	}
	if reply, err = a.reply(c.origin); err != nil {
		return reply, streamed, provider.NewFault(ctx, err, c.cfg.APIKey)
	}
	return reply, streamed, nil
}
