package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptrace"
	"sync/atomic"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// OnceError is the error of a request that is sent at most once, because each costs money and makes
// something new.
type OnceError struct {
	// Failure is the cause. It wraps [provider.ErrFiltered] if the provider's filter refused the request.
	Failure *agent.ModelError
	// Unknown is set if the server may have done, and may bill, what was asked.
	Unknown bool
}

// Error returns the text of the cause.
func (e *OnceError) Error() string { return e.Failure.Error() }

// Unwrap returns the cause.
func (e *OnceError) Unwrap() error { return e.Failure }

// once calls send with a client of the library, and bounds its time. The error is a *[OnceError], or wraps
// the cause of ctx if ctx ended the call after it was sent.
func (c *Client) once(ctx context.Context, send func(ctx context.Context, client *api.Client) error) error {
	var sent atomic.Bool
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{WroteHeaders: func() { sent.Store(true) }})
	call, _, cancel := provider.WithTimeouts(traced, c.attemptTimeout, c.attemptTimeout)
	defer cancel()
	err := send(call, c.library(nil))
	if err == nil {
		return nil
	}
	fault := c.newFault(call, err)
	unknown := sent.Load() && (fault.Failure.Status == 0 || fault.Failure.Status >= http.StatusInternalServerError)
	if ctx.Err() != nil && unknown {
		return fmt.Errorf("openai: %w", context.Cause(ctx))
	}
	return &OnceError{fault.Failure, unknown}
}

// library returns a client of the library. If transcript is not nil, it gets the transcript in each
// response.
func (c *Client) library(transcript *Transcript) *api.Client {
	cfg := api.DefaultConfig(c.cfg.APIKey)
	cfg.BaseURL, cfg.HTTPClient = c.cfg.BaseURL, &httpDoer{c.cfg.HTTPClient, transcript}
	return api.NewClientWithConfig(cfg)
}

// httpDoer turns error responses into errors and bounds responses. It also decodes the fields of a
// transcript that the library drops.
type httpDoer struct {
	client     *http.Client
	transcript *Transcript
}

// Do implements the library's HTTPDoer.
func (a *httpDoer) Do(req *http.Request) (*http.Response, error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, provider.ReadRefusal(resp)
	}
	body := provider.LimitBody(resp.Body, func() {})
	data, err := io.ReadAll(body)
	if err = errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	if a.transcript != nil {
		*a.transcript = Transcript{}
		_ = json.Unmarshal(data, a.transcript) // the library reports invalid JSON
	}
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}
