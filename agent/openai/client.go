// Package openai speaks to language models over the Chat Completions API, which
// most servers have beside OpenAI's own: hosted ones, gateways, and local ones; and
// over the Responses API where a model takes tools over that one alone.
//
// Servers differ in what they make of that API, so a reply counts only when it is
// whole: a stream that ends without a finish reason, stalls, or carries an error is
// a failure, and is asked for again. What can not help by repeating it (a wrong
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

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
	"oneclaw/internal/retry"
)

// Defaults of [Config].
const (
	DefaultBaseURL      = "https://api.openai.com/v1"
	DefaultFirstTimeout = 120 * time.Second
	DefaultStallTimeout = 60 * time.Second
	DefaultTimeout      = 10 * time.Minute
	DefaultMaxAttempts  = 4
	DefaultMaxWait      = time.Minute
	// DefaultMaxTools is the largest tools array that OpenAI documents.
	DefaultMaxTools = 128
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
	// API is which of the two APIs is spoken. Empty means [APIAuto].
	API API
	// APIKey may be empty for servers that want none.
	APIKey string
	// Model is the name of the model. It is required.
	Model string
	// HTTPClient sends the requests. Nil means a plain http.Client.
	HTTPClient *http.Client
	// FirstTimeout bounds the wait for the first byte of a reply. 0 means
	// [DefaultFirstTimeout].
	FirstTimeout time.Duration
	// StallTimeout bounds the wait for each further piece. 0 means
	// [DefaultStallTimeout].
	StallTimeout time.Duration
	// Timeout bounds one attempt. 0 means [DefaultTimeout].
	Timeout time.Duration
	// Retry bounds how a request is repeated.
	Retry Retry
	// MaxTools is the largest tools array that the server takes: whoever makes the
	// requests has to keep to it. 0 means [DefaultMaxTools].
	MaxTools int
	// ContextTokens is the size of the model's context; 0 if unknown.
	ContextTokens int
	// ReasoningEffort is sent as it stands; empty leaves it to the server.
	ReasoningEffort string
	// Vision says whether the model is shown pictures. Empty means [VisionAuto].
	Vision Vision
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
	log    *slog.Logger
	hosted bool // by OpenAI itself
	// keeps says that the server caches prompts only when it is told to.
	keeps bool
	// responses says that the Responses API is spoken.
	responses bool
	// origin stands in what is carried back to the server, so that it gets only its own.
	origin string
	arrays arrays
}

var (
	_ agent.Model        = (*Client)(nil)
	_ agent.ContextSizer = (*Client)(nil)
	_ agent.ToolLimiter  = (*Client)(nil)
	_ agent.Namer        = (*Client)(nil)
)

// New makes a client. It sends nothing.
func New(cfg Config) (*Client, error) {
	cfg.APIKey = strings.TrimSpace(cfg.APIKey)
	u, err := cfg.address()
	if err != nil {
		return nil, err
	}
	if cfg.API, err = parseAPI(cfg.API); err != nil {
		return nil, err
	}
	if cfg.Vision, err = parseVision(cfg.Vision); err != nil {
		return nil, err
	}
	if cfg.Model == "" {
		return nil, errors.New("openai: no model is named")
	}
	if min(cfg.FirstTimeout, cfg.StallTimeout, cfg.Timeout, cfg.Retry.MaxWait) < 0 ||
		min(cfg.Retry.MaxAttempts, cfg.MaxTools, cfg.ContextTokens) < 0 {
		return nil, errors.New("openai: a bound is negative")
	}
	cfg.FirstTimeout = cmp.Or(cfg.FirstTimeout, DefaultFirstTimeout)
	cfg.StallTimeout = cmp.Or(cfg.StallTimeout, DefaultStallTimeout)
	cfg.Timeout = cmp.Or(cfg.Timeout, DefaultTimeout)
	cfg.Retry.MaxAttempts = cmp.Or(cfg.Retry.MaxAttempts, DefaultMaxAttempts)
	cfg.Retry.MaxWait = cmp.Or(cfg.Retry.MaxWait, DefaultMaxWait)
	cfg.MaxTools = cmp.Or(cfg.MaxTools, DefaultMaxTools)
	if cfg.HTTPClient == nil {
		cfg.HTTPClient = &http.Client{}
	}
	log := cfg.Logger
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	c := &Client{cfg: cfg, log: log, hosted: hostedByOpenAI(u), keeps: cachesOnDemand(u, cfg.Model), origin: originOf(cfg)}
	c.responses = c.wantsResponses()
	return c, nil
}

// ContextTokens returns the size of the model's context; 0 if unknown.
func (c *Client) ContextTokens() int { return c.cfg.ContextTokens }

// MaxTools returns the largest tools array that the server takes.
func (c *Client) MaxTools() int { return c.cfg.MaxTools }

// ModelName returns the name of the model.
func (c *Client) ModelName() string { return c.cfg.Model }

// Complete sends one request and returns the whole reply. It repeats what may pass
// (rate limits, server errors, broken and stalled streams) with growing pauses, or
// those that the server asks for. An error is a *[agent.ModelError], or the cause
// for which ctx ended.
func (c *Client) Complete(ctx context.Context, req agent.Request, onDelta func(agent.Delta)) (agent.Reply, error) {
	p := c.payload(req)
	pauses := retry.New(minPause, maxPause)
	left := c.cfg.Retry.MaxWait
	for attempt := 1; ; attempt++ {
		reply, streamed, fault := c.try(ctx, p, onDelta)
		if fault == nil {
			return reply, nil
		}
		if ctx.Err() != nil {
			return agent.Reply{}, fmt.Errorf("openai: %w", context.Cause(ctx))
		}
		if p.pictures && fault.failure.Kind == agent.KindRejected {
			// Rather an answer about the text than none.
			c.log.Warn("request with pictures refused, asked again without", "model", c.cfg.Model, "err", fault.failure)
			req.ReadFile = nil
			p = c.payload(req)
			continue
		}
		pause := pauses.Next(fault.failure.RetryAfter)
		if !fault.passing || attempt >= c.cfg.Retry.MaxAttempts || pause > left {
			return agent.Reply{}, fault.failure
		}
		left -= pause
		c.log.Warn("model request is repeated", "model", c.cfg.Model, "attempt", attempt, "pause", pause, "err", fault.failure)
		if err := retry.Wait(ctx, pause); err != nil {
			return agent.Reply{}, fmt.Errorf("openai: %w", err)
		}
		if streamed && onDelta != nil {
			onDelta(agent.Delta{Restart: true})
		}
	}
}

// try sends the request once. streamed reports whether onDelta was given anything.
func (c *Client) try(ctx context.Context, p payload, onDelta func(agent.Delta)) (reply agent.Reply, streamed bool, fault *fault) {
	ctx, end := context.WithTimeoutCause(ctx, c.cfg.Timeout, errSlow)
	defer end()
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	watch := time.AfterFunc(c.cfg.FirstTimeout, func() { cancel(errStalled) })
	defer watch.Stop()
	d := &doer{
		client: c.cfg.HTTPClient, payload: p,
		alive: func() { watch.Reset(c.cfg.StallTimeout) },
	}
	cfg := api.DefaultConfig(c.cfg.APIKey)
	cfg.BaseURL = c.cfg.BaseURL
	cfg.HTTPClient = d
	// Comment lines that keep a connection alive count as empty messages. The size
	// of a reply is bounded instead.
	cfg.EmptyMessagesLimit = maxReply
	stream, err := c.open(ctx, api.NewClientWithConfig(cfg), p)
	if err != nil {
		return agent.Reply{}, false, c.judge(ctx, err, d)
	}
	defer func() { _ = stream.Close() }()
	a := c.collector(onDelta)
	for {
		raw, err := stream.RecvRaw()
		if err == nil {
			err = a.add(raw)
		}
		if err != nil {
			reply, err = a.end(err)
			if err != nil {
				return agent.Reply{}, a.shown(), c.judge(ctx, err, d)
			}
			return reply, a.shown(), nil
		}
	}
}

// stream is the events of a reply as they come.
type stream interface {
	RecvRaw() ([]byte, error)
	Close() error
}

// collector puts the events of a reply together.
type collector interface {
	// add takes an event. io.EOF says that none is needed any more.
	add(raw []byte) error
	// end returns the reply when there are no more events because of err.
	end(err error) (agent.Reply, error)
	// shown reports whether anything was given to onDelta.
	shown() bool
}

// open sends the request over the API that is spoken.
func (c *Client) open(ctx context.Context, library *api.Client, p payload) (stream, error) {
	if c.responses {
		return library.CreateResponseStream(ctx, c.responseSkeleton())
	}
	return library.CreateChatCompletionStream(ctx, c.skeleton(p))
}

func (c *Client) collector(onDelta func(agent.Delta)) collector {
	if c.responses {
		return &responseCollector{onDelta: onDelta, origin: c.origin}
	}
	return &accumulator{onDelta: onDelta, origin: c.origin}
}

// skeleton is the request without the parts that the payload holds encoded.
func (c *Client) skeleton(p payload) api.ChatCompletionRequest {
	req := api.ChatCompletionRequest{
		Model:           c.cfg.Model,
		Stream:          true,
		StreamOptions:   &api.StreamOptions{IncludeUsage: true},
		ReasoningEffort: c.cfg.ReasoningEffort,
	}
	if len(p.tools) > 0 {
		// The library checks what a model takes by whether there are tools.
		req.Tools = []api.Tool{{Type: api.ToolTypeFunction}}
	}
	return req
}
