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
	// ContextTokens is the size of the model's context; 0 if unknown.
	ContextTokens int
	// Logger is told about repeated requests. Nil discards it.
	Logger *slog.Logger
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
	hosted bool // by OpenAI itself
	// keeps says that the server caches prompts only when it is told to.
	keeps bool
	// responses says that the Responses API is spoken.
	responses bool
	// origin stands in what is carried back to the server, so that it gets only its own.
	origin string
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
	if cfg.Retry.MaxWait < 0 || min(cfg.Retry.MaxAttempts, cfg.ContextTokens) < 0 {
		return nil, errors.New("openai: a bound is negative")
	}
	cfg.Retry.MaxAttempts = cmp.Or(cfg.Retry.MaxAttempts, DefaultMaxAttempts)
	cfg.Retry.MaxWait = cmp.Or(cfg.Retry.MaxWait, DefaultMaxWait)
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{}
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	c := &Client{cfg: cfg, hosted: hostedByOpenAI(u), keeps: cachesOnDemand(u, cfg.Model), origin: originOf(cfg)}
	c.responses = c.wantsResponses()
	return c, nil
}

// Profile returns the name of the model, the size of its context and the largest tools
// array that the server takes.
func (c *Client) Profile() agent.Profile {
	return agent.Profile{Name: c.cfg.Model, ContextTokens: c.cfg.ContextTokens, MaxTools: maxTools}
}

// Complete sends one request and returns the whole reply. It repeats what may pass
// (rate limits, server errors, broken and stalled streams) with growing pauses, or
// those that the server asks for. An error is a *[agent.ModelError], or the cause
// for which ctx ended.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	body, pictures := c.encode(req)
	pauses := retry.New(minPause, maxPause)
	left := c.cfg.Retry.MaxWait
	for attempt := 1; ; attempt++ {
		reply, streamed, fault := c.try(ctx, body, onDelta)
		if fault == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return agent.Reply{}, fmt.Errorf("openai: %w", context.Cause(ctx))
		}
		if pictures && fault.failure.Kind == agent.KindRejected {
			// Rather an answer about the text than none.
			c.cfg.Logger.Warn("request with pictures refused, asked again without", "model", c.cfg.Model, "err", fault.failure)
			req.ReadFile = nil
			body, pictures = c.encode(req)
			continue
		}
		pause := pauses.Next(fault.failure.RetryAfter)
		if !fault.passing || attempt >= c.cfg.Retry.MaxAttempts || pause > left {
			return agent.Reply{}, fault.failure
		}
		left -= pause
		c.cfg.Logger.Warn("model request is repeated", "model", c.cfg.Model, "attempt", attempt, "pause", pause, "err", fault.failure)
		if err := retry.Wait(ctx, pause); err != nil {
			return agent.Reply{}, fmt.Errorf("openai: %w", err)
		}
		if streamed && onDelta != nil {
			onDelta(agent.Delta{Restart: true})
		}
	}
}

// try sends the request once. streamed reports whether onDelta was given anything.
func (c *Client) try(ctx context.Context, body []byte, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, fault *fault) {
	ctx, end := context.WithTimeoutCause(ctx, attemptTimeout, errSlow)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(firstTimeout, func() { cancel(errStalled) })
	defer watch.Stop()
	path := "/chat/completions"
	if c.responses {
		path = "/responses"
	}
	resp, err := c.send(ctx, path, body)
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
	if c.responses {
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
