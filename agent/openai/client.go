// Package openai speaks to language models over the Chat Completions API, which
// most servers have beside OpenAI's own: hosted ones, gateways, and local ones; and
// over the Responses API where a model takes tools over that one alone.
//
// Servers differ in what they make of that API, so a reply counts only when it is
// whole: a stream that ends without a finish reason, stalls, or carries an error is
// a failure, and is asked for again. What cannot help by repeating it (a wrong
// key, a wrong request) is reported at once.
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

// DefaultBaseURL is where OpenAI takes requests.
const DefaultBaseURL = "https://api.openai.com/v1"

// maxTools is the largest tools array that OpenAI documents.
const maxTools = 128

// nearbyTimeout bounds an attempt at a server nearby, which may be slow.
const nearbyTimeout = 30 * time.Minute

// Config is what a [Client] is made of.
type Config struct {
	// BaseURL is the address in front of /chat/completions or /responses. Empty means
	// that of the dialect, [DefaultBaseURL] if it has none of its own.
	BaseURL string
	// Dialect is whose peculiarities the server has. Empty means what its host tells.
	Dialect Dialect
	// APIKey may be empty for servers that want none.
	APIKey string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// Retry bounds how a request is repeated.
	Retry provider.Retry
	// ContextTokens is the size of the model's context as its name or a list tells; 0 if
	// unknown. What the server itself says comes before it.
	ContextTokens int
	// Set is what the operator says, before all else.
	Set provider.Settings
	// API is [APIChat] or [APIResponses]; empty means what the model is known to need.
	API string
	// Effort is how hard the model is to think; empty leaves it to the provider.
	Effort string
	// FirstByte is how long the first byte of a reply may take. 0 means two minutes, and
	// ten for a server nearby, which may have to load its model.
	FirstByte time.Duration
	// Known is what is remembered of servers and models, for all clients that share it.
	// Nil means a memory of its own.
	Known *Known
	// Logger is told about repeated requests. Nil discards it.
	Logger *slog.Logger
}

// The forms of the API.
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

// Client is a model behind a Chat Completions API. It may be used concurrently. It
// starts no goroutines that outlive a call.
type Client struct {
	cfg    Config
	url    *url.URL
	hosted bool // by OpenAI itself
	// keeps says that the server caches prompts only when it is told to.
	keeps bool
	// quirks are what is known of the server by its address and its model.
	quirks quirks
	// origin stands in what is carried back to the server, so that it gets only its own.
	origin string
	// first and whole bound the time to the first byte, and to the last.
	first, whole time.Duration
}

// New makes a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	u, err := cfg.address()
	if err != nil {
		return nil, err
	}
	if cfg.Model == "" {
		return nil, errors.New("openai: no model is named")
	}
	if err := cfg.check(); err != nil {
		return nil, err
	}
	cfg.HTTPClient = provider.Within(cfg.HTTPClient)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Known == nil {
		cfg.Known = NewKnown()
	}
	c := &Client{
		cfg: cfg, url: u, hosted: hostedByOpenAI(u), keeps: cachesOnDemand(u, cfg.Model), origin: originOf(cfg),
		quirks: quirksOf(u, cfg), first: cmp.Or(cfg.FirstByte, provider.FirstTimeout), whole: provider.AttemptTimeout,
	}
	if nearby(u) {
		c.first, c.whole = cmp.Or(cfg.FirstByte, provider.AttemptTimeout), nearbyTimeout
	}
	c.quirks.responses = c.wantsResponses()
	return c, nil
}

// check refuses settings that cannot be meant, and fills in how requests are repeated.
func (cfg *Config) check() (err error) {
	if cfg.API != "" && cfg.API != APIChat && cfg.API != APIResponses {
		return fmt.Errorf("openai: the API must be %s or %s", APIChat, APIResponses)
	}
	if cfg.Retry, err = provider.Check(cfg.Retry, cfg.Set, cfg.ContextTokens, cfg.FirstByte); err != nil {
		return fmt.Errorf("openai: %w", err)
	}
	return nil
}

// Profile returns the name of the model, the size of its context and the largest tools
// array that the server takes.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{Name: c.cfg.Model, ContextTokens: c.context(), MaxTools: maxTools, Effort: c.cfg.Effort}
}

// Complete sends one request and returns the whole reply. It repeats what may pass
// (rate limits, server errors, broken and stalled streams) with growing pauses, or
// those that the server asks for. An error is a *[agent.ModelError], or the cause
// for which ctx ended.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (reply agent.Reply, err error) {
	q := c.known()
	known, streamed := q, false
	body, pictures := c.encode(req, q)
	err = c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() (fault *provider.Fault) {
		if streamed {
			onDelta(agent.Delta{Restart: true})
		}
		reply, streamed, fault = c.try(ctx, q, body, onDelta)
		return fault
	}, func(fault *provider.Fault) bool {
		again, better := c.otherwise(&req, q, fault, pictures)
		if again {
			q = better
			body, pictures = c.encode(req, q)
		} else {
			c.cfg.Known.Refused(c.origin, fault)
		}
		return again
	})
	if err == nil && q != known {
		c.cfg.Known.Learn(c.origin, q)
	}
	return reply, err
}

// otherwise changes a request that was refused into one that may be taken: in the way that
// the refusal names, or else without pictures, because an answer about the text is better
// than none.
func (c *Client) otherwise(req *agent.Request, q quirks, f *provider.Fault, pictures bool) (again bool, better quirks) {
	better = q.learn(f)
	if c.cfg.API == APIChat {
		better.responses = false
	}
	switch {
	case better.blind && !q.blind && !pictures:
		return false, q // There was none.
	case better != q:
		c.cfg.Logger.Info("model request is made otherwise, as the server wants it", "model", c.cfg.Model, "err", f.Failure)
		return true, better
	case pictures && (f.Failure.Kind == agent.KindRejected || f.Failure.Status == http.StatusInternalServerError && !c.Facts().Sees.Yes()):
		c.cfg.Logger.Warn("request with pictures refused, asked again without", "model", c.cfg.Model, "err", f.Failure)
		req.ReadFile = nil
		return true, q
	}
	return false, q
}

// try sends the request once. streamed reports whether onDelta was given anything.
func (c *Client) try(ctx context.Context, q quirks, body []byte, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, fault *provider.Fault) {
	ctx, alive, end := provider.WithDeadlines(ctx, c.first, c.whole)
	defer end()
	path := "/chat/completions"
	if q.responses {
		path = "/responses"
	}
	resp, err := c.send(ctx, c.cfg.BaseURL+path, body)
	if err != nil {
		return agent.Reply{}, false, c.judge(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	alive()
	resp.Body = provider.Bounded(resp.Body, alive)
	show := func(text string) {
		if text != "" && onDelta != nil {
			streamed = true
			onDelta(agent.Delta{Text: text})
		}
	}
	var a collector = &accumulator{show: show, origin: c.origin}
	if q.responses {
		a = &responseCollector{show: show, origin: c.origin}
	}
	if reply, err = a.end(provider.Events(resp, a.add)); err != nil {
		return agent.Reply{}, streamed, c.judge(ctx, err)
	}
	return reply, streamed, nil
}

// collector puts the events of a reply together.
type collector interface {
	// add takes an event. io.EOF says that none is needed any more.
	add(raw []byte) error
	// end returns the reply when there are no more events because of err.
	end(err error) (agent.Reply, error)
}
