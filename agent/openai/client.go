// Package openai is a client for the Chat Completions API, which most servers offer (OpenAI, other
// hosts, gateways, local servers), and for the Responses API, for models that accept tools only there.
//
// Servers implement the API differently, so a reply counts only when it is complete. A stream that ends
// without a finish reason, stalls, or contains an error is a failure, and the request is retried.
// Failures that a retry cannot fix (a wrong key, an invalid request) are returned at once.
package openai

import (
	"cmp"
	"context"
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

// DefaultBaseURL is the address of OpenAI's API.
const DefaultBaseURL = "https://api.openai.com/v1"

// maxTools is the largest tools array that OpenAI documents.
const maxTools = 128

// localTimeout bounds an attempt at a local server, which may be slow.
const localTimeout = 30 * time.Minute

// Config configures a [Client].
type Config struct {
	// BaseURL is the address in front of /chat/completions or /responses. Empty means the dialect's
	// own, or else [DefaultBaseURL].
	BaseURL string
	// Dialect is the server's dialect of the API. Empty derives it from the host.
	Dialect Dialect
	// APIKey may be empty for servers that need none.
	APIKey string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// Retry bounds how a request is repeated; zero values mean the defaults.
	Retry provider.Retry
	// ContextTokens is the size of the model's context that its name or a list implies; 0 if unknown.
	// A size reported by the server takes precedence.
	ContextTokens int
	// Settings holds the operator's settings, which override all other facts.
	Settings provider.Settings
	// API is [APIChat] or [APIResponses]. Empty chooses the API that the model requires.
	API string
	// Effort is the reasoning effort; empty leaves it to the provider.
	Effort string
	// FirstByteTimeout bounds the wait for the first byte of a reply. 0 means two minutes, or ten for a
	// local server, which may have to load its model.
	FirstByteTimeout time.Duration
	// ModelCache holds facts about servers and models for all clients that share it. Nil means a private
	// cache.
	ModelCache *ModelCache
	// Logger logs retries. Nil discards them.
	Logger *slog.Logger
}

// Values of [Config.API].
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

// Client calls a model over the Chat Completions API or the Responses API. It may be used concurrently.
// It starts no goroutine that outlives a call.
type Client struct {
	cfg          Config
	url          *url.URL
	openAIHosted bool // by OpenAI itself
	// marksCache is set if the server caches prompts only on request.
	marksCache bool
	// quirks are the quirks implied by the address and the model's name.
	quirks quirks
	// origin identifies the server in stored reasoning, so that each server gets back only its own.
	origin string
	// firstByteTimeout bounds the time to the first byte of a reply, attemptTimeout to the last.
	firstByteTimeout, attemptTimeout time.Duration
}

// New returns a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	u, err := cfg.resolveAddress()
	if err != nil {
		return nil, err
	}
	if cfg.Model == "" {
		return nil, errors.New("openai: the model's name is empty")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.HTTPClient = provider.RestrictRedirects(cfg.HTTPClient)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.ModelCache == nil {
		cfg.ModelCache = NewModelCache()
	}
	c := &Client{
		cfg: cfg, url: u, openAIHosted: hostedByOpenAI(u), marksCache: cachesOnDemand(u, cfg.Model), origin: originOf(cfg),
		quirks: quirksOf(u, cfg), firstByteTimeout: cmp.Or(cfg.FirstByteTimeout, provider.FirstTimeout), attemptTimeout: provider.AttemptTimeout,
	}
	if isLocal(u) {
		c.firstByteTimeout, c.attemptTimeout = cmp.Or(cfg.FirstByteTimeout, provider.AttemptTimeout), localTimeout
	}
	c.quirks.useResponses = c.wantsResponses()
	return c, nil
}

// check rejects invalid settings and fills in the defaults of Retry.
func (cfg *Config) check() (err error) {
	if cfg.API != "" && cfg.API != APIChat && cfg.API != APIResponses {
		return fmt.Errorf("openai: the API must be %s or %s", APIChat, APIResponses)
	}
	if cfg.Retry, err = provider.CheckSettings(cfg.Retry, cfg.Settings, cfg.ContextTokens, cfg.FirstByteTimeout); err != nil {
		return fmt.Errorf("openai: %w", err)
	}
	return nil
}

// Profile returns what is known about the model.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{Name: c.cfg.Model, ContextTokens: c.contextTokens(), MaxTools: maxTools, Effort: c.cfg.Effort, NoTools: c.currentQuirks().noTools}
}

// Complete sends one request and returns the whole reply. It retries transient failures (rate limits,
// server errors, broken and stalled streams), with growing pauses or the server's Retry-After, and adapts
// a request if the refusal names what to change. An error is a *[agent.ModelError], or wraps the cause of
// ctx.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (reply agent.Reply, err error) {
	q := c.currentQuirks()
	known, streamed := q, false
	offer := c.cfg.ModelCache.Offer(c.origin, req.Tools)
	req.Tools = offer.Tools
	body, pictures := c.encode(req, q)
	var failed agent.Usage // of the attempts that failed
	err = c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() (fault *provider.Fault) {
		if streamed {
			onDelta(agent.Delta{Restart: true})
		}
		reply, streamed, fault = c.attempt(ctx, &req, q, body, onDelta)
		if fault != nil {
			failed = failed.Plus(reply.Usage)
			fault.CompareSize(req.EstimateTokens())
		}
		return fault
	}, func(fault *provider.Fault) bool {
		again, better := c.adaptRequest(&req, q, fault, pictures, offer)
		if again {
			q = better
			body, pictures = c.encode(req, q)
		} else {
			c.cfg.ModelCache.LearnLimit(c.origin, fault)
		}
		return again
	})
	if err != nil {
		return agent.Reply{Usage: failed}, err
	}
	if q != known {
		c.cfg.ModelCache.SetQuirks(c.origin, q)
	}
	c.cfg.ModelCache.Remember(c.origin, offer)
	reply.LeftOut = offer.Left()
	provider.RestoreNames(reply.Calls, c.cfg.ModelCache.Renamed(q.family, req.Tools))
	if failed != (agent.Usage{}) && reply.Usage == (agent.Usage{}) { // the server reports nothing
		reply.Usage = agent.Usage{Input: req.EstimateTokens(), Output: agent.EstimateTokens([]agent.Message{{Text: reply.Text, Calls: reply.Calls}})}
	}
	reply.Usage = failed.Plus(reply.Usage)
	return reply, nil
}

// adaptRequest changes a refused request into one that may succeed. It leaves out the tools that the refusal
// names, or applies the change that it suggests, or else removes pictures, because an answer to the text alone
// is better than none.
func (c *Client) adaptRequest(req *agent.Request, q quirks, f *provider.Fault, pictures bool, offer *provider.Offer) (again bool, better quirks) {
	if family := refusingFamily(f); len(req.Tools) > 0 && family != provider.FamilyOther && family != q.family && c.cfg.Dialect == dialectOpenai {
		q.family = family
		c.cfg.Logger.Info("schemas of tools adapted after a refusal", "model", c.cfg.Model, "err", f.Failure)
		return true, q
	}
	if offer.LeaveOut(f, provider.ToolNames(req.Tools)) {
		c.cfg.Logger.Warn("tools left out because the model's server refuses them", "model", c.cfg.Model, "tools", offer.Left(), "err", f.Failure)
		req.Tools = offer.Tools
		return true, q
	}
	better = q.learn(f, c.effort(req.Effort, q), c.temperature(req, q))
	if c.cfg.API == APIChat {
		better.useResponses = false
	}
	switch {
	case better.noVision && !q.noVision && !pictures:
		return false, q // no pictures were shown
	case better != q:
		c.cfg.Logger.Info("model request adapted after a refusal", "model", c.cfg.Model, "err", f.Failure)
		return true, better
	case pictures && (f.Failure.Kind == agent.KindRejected || f.Failure.Status == http.StatusInternalServerError && !c.Facts().Sees.Yes()):
		c.cfg.Logger.Warn("model request with pictures refused, retrying without pictures", "model", c.cfg.Model, "err", f.Failure)
		req.ReadFile = nil
		return true, q
	}
	return false, q
}

// attempt sends the request once. streamed reports whether onDelta was called with text. After a fault the
// reply has only its usage.
func (c *Client) attempt(ctx context.Context, req *agent.Request, q quirks, body []byte, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, fault *provider.Fault) {
	ctx, alive, cancel := provider.WithTimeouts(ctx, c.firstByteTimeout, c.attemptTimeout)
	defer cancel()
	path := "/chat/completions"
	if q.useResponses {
		path = "/responses"
	}
	resp, err := c.send(ctx, c.cfg.BaseURL+path, body)
	if err != nil {
		return agent.Reply{}, false, c.newFault(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	alive()
	resp.Body = provider.LimitBody(resp.Body, alive)
	show := func(text string) {
		if text != "" && onDelta != nil {
			streamed = true
			onDelta(agent.Delta{Text: text})
		}
	}
	var a collector = &accumulator{onText: show, origin: c.origin, family: q.family}
	if q.useResponses {
		a = &responseCollector{onText: show, origin: c.origin, family: q.family}
	}
	if reply, err = a.reply(provider.ForEachEvent(resp, a.handleEvent)); err != nil {
		reported, received := a.usage()
		return agent.Reply{Usage: provider.Spent(req, reported, received)}, streamed, c.newFault(ctx, err)
	}
	return reply, streamed, nil
}

// collector assembles a reply from events.
type collector interface {
	// handleEvent adds an event to the reply. It returns io.EOF if no more events are needed.
	handleEvent(raw []byte) error
	// reply returns the assembled reply. It is called after the last event, with the error that ended
	// the events: io.EOF if the stream was read to its end.
	reply(err error) (agent.Reply, error)
	// usage returns the usage that the server has reported, and how many bytes of the reply it has sent.
	usage() (reported agent.Usage, received int)
}
