// Package openai is a client of the Chat Completions API, which most servers offer (OpenAI, other
// hosts, gateways, local servers), and of the Responses API for models that take tools only there.
//
// Servers differ in their versions of the API, so a reply counts only when it is complete: a stream
// that ends without a finish reason, stalls, or carries an error is a failure and is requested again.
// Failures that a repetition cannot help (a wrong key, a wrong request) are reported at once.
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

// nearbyTimeout bounds an attempt at a local server, which may be slow.
const nearbyTimeout = 30 * time.Minute

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
	// Retry bounds how a request is repeated.
	Retry provider.Retry
	// ContextTokens is the size of the model's context that its name or a list implies; 0 if unknown.
	// The server's own report comes first.
	ContextTokens int
	// Set holds the operator's settings, which come before everything else.
	Set provider.Settings
	// API is [APIChat] or [APIResponses]; empty chooses the one that the model needs.
	API string
	// Effort is the reasoning effort; empty leaves it to the provider.
	Effort string
	// FirstByte bounds the wait for the first byte of a reply. 0 means two minutes, and ten for a local
	// server, which may have to load its model.
	FirstByte time.Duration
	// Known remembers facts about servers and models for all clients that share it. Nil means a memory
	// of its own.
	Known *Known
	// Logger logs repeated requests. Nil discards them.
	Logger *slog.Logger
}

// Values of [Config.API].
const (
	APIChat      = "chat"
	APIResponses = "responses"
)

// Client calls a model over the Chat Completions API. It may be used concurrently. It starts no
// goroutine that outlives a call.
type Client struct {
	cfg    Config
	url    *url.URL
	hosted bool // by OpenAI itself
	// keeps says that the server caches prompts only if asked.
	keeps bool
	// quirks are the quirks that the address and the model's name imply.
	quirks quirks
	// origin is stored with what goes back to the server, so that each server gets only its own.
	origin string
	// first and whole bound the time to the first byte, and to the last.
	first, whole time.Duration
}

// New returns a client. It sends nothing.
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
	cfg.HTTPClient = provider.RestrictRedirects(cfg.HTTPClient)
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

// check rejects invalid settings and fills in the defaults of Retry.
func (cfg *Config) check() (err error) {
	if cfg.API != "" && cfg.API != APIChat && cfg.API != APIResponses {
		return fmt.Errorf("openai: the API must be %s or %s", APIChat, APIResponses)
	}
	if cfg.Retry, err = provider.Check(cfg.Retry, cfg.Set, cfg.ContextTokens, cfg.FirstByte); err != nil {
		return fmt.Errorf("openai: %w", err)
	}
	return nil
}

// Profile returns what is known of the model.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{Name: c.cfg.Model, ContextTokens: c.context(), MaxTools: maxTools, Effort: c.cfg.Effort}
}

// Complete sends one request and returns the whole reply. It repeats transient failures (rate limits,
// server errors, broken and stalled streams), with growing pauses or those that the server asks for. An
// error is a *[agent.ModelError], or the cause for which ctx ended.
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
		again, better := c.adaptRequest(&req, q, fault, pictures)
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

// adaptRequest changes a refused request into one that may pass: as the refusal suggests, or else without
// pictures, because an answer to the text alone is better than none.
func (c *Client) adaptRequest(req *agent.Request, q quirks, f *provider.Fault, pictures bool) (again bool, better quirks) {
	better = q.learn(f)
	if c.cfg.API == APIChat {
		better.responses = false
	}
	switch {
	case better.blind && !q.blind && !pictures:
		return false, q // no pictures were shown
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

// collector assembles a reply from events.
type collector interface {
	// add handles an event. io.EOF means that no more are needed.
	add(raw []byte) error
	// end returns the reply after the last event; err is why no more come.
	end(err error) (agent.Reply, error)
}
