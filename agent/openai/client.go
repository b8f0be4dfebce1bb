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
	"oneclaw/internal/retry"
)

// Defaults of [Config].
const (
	DefaultBaseURL     = "https://api.openai.com/v1"
	DefaultMaxAttempts = 4
	DefaultMaxWait     = time.Minute
)

// maxTools is the largest tools array that OpenAI documents.
const maxTools = 128

// Bounds of one attempt.
const (
	firstTimeout   = 120 * time.Second // for the first byte of a reply
	stallTimeout   = 60 * time.Second  // for each further piece
	attemptTimeout = 10 * time.Minute
	nearbyTimeout  = 30 * time.Minute
)

// Pauses between the attempts of one request.
const (
	minPause = 350 * time.Millisecond
	maxPause = 20 * time.Second
)

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
	Retry Retry
	// ContextTokens is the size of the model's context as its name or a list tells; 0 if
	// unknown. What the server itself says comes before it.
	ContextTokens int
	// Set is what the operator says, before all else.
	Set Settings
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

// Settings are what an operator can say of a model.
type Settings struct {
	// Context is the size of its context in tokens; 0 is for the program to find out.
	Context int
	// Vision is whether it sees: "yes", "no", or empty for the program to find out.
	Vision string
}

// Retry bounds how a request is repeated that may pass the next time.
type Retry struct {
	// MaxAttempts bounds how often a request is sent. 0 means [DefaultMaxAttempts].
	MaxAttempts int
	// MaxWait bounds the time spent waiting between the attempts of one request. A
	// server that asks for a longer wait is not asked again. 0 means
	// [DefaultMaxWait].
	MaxWait time.Duration
}

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
	cfg.Retry.MaxAttempts = cmp.Or(cfg.Retry.MaxAttempts, DefaultMaxAttempts)
	cfg.Retry.MaxWait = cmp.Or(cfg.Retry.MaxWait, DefaultMaxWait)
	plain := http.Client{}
	if cfg.HTTPClient != nil {
		plain = *cfg.HTTPClient
	}
	plain.CheckRedirect = follow
	cfg.HTTPClient = &plain
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Known == nil {
		cfg.Known = NewKnown()
	}
	c := &Client{
		cfg: cfg, url: u, hosted: hostedByOpenAI(u), keeps: cachesOnDemand(u, cfg.Model), origin: originOf(cfg),
		quirks: quirksOf(u, cfg), first: cmp.Or(cfg.FirstByte, firstTimeout), whole: attemptTimeout,
	}
	if nearby(u) {
		c.first, c.whole = cmp.Or(cfg.FirstByte, attemptTimeout), nearbyTimeout
	}
	c.whole = max(c.whole, c.first+stallTimeout)
	c.quirks.responses = c.wantsResponses()
	return c, nil
}

// check refuses settings that cannot be meant.
func (cfg *Config) check() error {
	switch {
	case cfg.Retry.MaxWait < 0 || min(cfg.Retry.MaxAttempts, cfg.ContextTokens, cfg.Set.Context) < 0 || cfg.FirstByte < 0:
		return errors.New("openai: a bound is negative")
	case cfg.API != "" && cfg.API != APIChat && cfg.API != APIResponses:
		return fmt.Errorf("openai: the API must be %s or %s", APIChat, APIResponses)
	case cfg.Set.Vision != "" && cfg.Set.Vision != "yes" && cfg.Set.Vision != "no":
		return errors.New("openai: vision must be yes or no")
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
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	q := c.cfg.Known.quirks(c)
	known := q
	body, pictures := c.encode(req, q)
	pauses := retry.New(minPause, maxPause)
	left := c.cfg.Retry.MaxWait
	for attempt := 1; ; {
		reply, streamed, fault := c.try(ctx, q, body, onDelta)
		if fault == nil {
			if q != known {
				c.cfg.Known.learn(c, q)
			}
			return reply, nil
		}
		if ctx.Err() != nil {
			return agent.Reply{}, fmt.Errorf("openai: %w", context.Cause(ctx))
		}
		if again, better := c.otherwise(&req, q, fault, pictures); again {
			q = better
			body, pictures = c.encode(req, q)
		} else {
			pause := pauses.Next(fault.failure.RetryAfter)
			if !fault.passing || attempt >= fault.attempts(c.cfg.Retry.MaxAttempts) || pause > left {
				return agent.Reply{}, c.final(fault)
			}
			left -= pause
			c.cfg.Logger.Warn("model request is repeated", "model", c.cfg.Model, "attempt", attempt, "pause", pause, "err", fault.failure)
			if err := retry.Wait(ctx, pause); err != nil {
				return agent.Reply{}, fmt.Errorf("openai: %w", err)
			}
			attempt++
		}
		if streamed && onDelta != nil {
			onDelta(agent.Delta{Restart: true})
		}
	}
}

// otherwise changes a request that was refused into one that may be taken: in the way that
// the refusal names, or else without pictures, because an answer about the text is better
// than none.
func (c *Client) otherwise(req *agent.Request, q quirks, f *fault, pictures bool) (again bool, better quirks) {
	better = q.learn(f)
	if c.cfg.API == APIChat {
		better.responses = false
	}
	switch {
	case better.blind && !q.blind && !pictures:
		return false, q // There was none.
	case better != q:
		c.cfg.Logger.Info("model request is made otherwise, as the server wants it", "model", c.cfg.Model, "err", f.failure)
		return true, better
	case pictures && (f.failure.Kind == agent.KindRejected || f.failure.Status == http.StatusInternalServerError && !c.Facts().Sees.Yes()):
		c.cfg.Logger.Warn("request with pictures refused, asked again without", "model", c.cfg.Model, "err", f.failure)
		req.ReadFile = nil
		return true, q
	}
	return false, q
}

// final is the failure of a request that is given up.
func (c *Client) final(f *fault) error {
	if f.failure.Kind == agent.KindOverflow {
		c.cfg.Known.limit(c, limitIn(f.said))
	}
	return f.failure
}

// try sends the request once. streamed reports whether onDelta was given anything.
func (c *Client) try(ctx context.Context, q quirks, body []byte, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, fault *fault) {
	ctx, end := context.WithTimeoutCause(ctx, c.whole, errSlow)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.first, func() { cancel(errStalled) })
	defer watch.Stop()
	path := "/chat/completions"
	if q.responses {
		path = "/responses"
	}
	resp, err := c.send(ctx, c.cfg.BaseURL+path, body)
	if err != nil {
		return agent.Reply{}, false, c.judge(ctx, err)
	}
	defer func() { _ = resp.Body.Close() }()
	alive := func() { watch.Reset(stallTimeout) }
	alive()
	resp.Body = &limited{ReadCloser: resp.Body, left: maxReply, alive: alive}
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
	if reply, err = a.end(events(resp, a.add)); err != nil {
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
