package openai

import (
	"bytes"
	"context"
	"fmt"
	"net/http"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/internal/retry"
)

// Transcribe writes speech down over /audio/transcriptions. The ending of the name tells the
// server what the sound is. What may pass is repeated as by [Client.Complete], and errors are
// the same.
func (c *Client) Transcribe(ctx context.Context, name string, sound []byte) (string, error) {
	cfg := api.DefaultConfig(c.cfg.APIKey)
	cfg.BaseURL, cfg.HTTPClient = c.cfg.BaseURL, answering{c.cfg.HTTPClient}
	client := api.NewClientWithConfig(cfg)
	pauses, left := retry.New(minPause, maxPause), c.cfg.Retry.MaxWait
	for attempt := 1; ; attempt++ {
		call, end := context.WithTimeoutCause(ctx, c.whole, errSlow)
		answer, err := client.CreateTranscription(call, api.AudioRequest{
			Model: c.cfg.Model, FilePath: name, Reader: bytes.NewReader(sound), Format: api.AudioResponseFormatJSON,
		})
		if err == nil {
			end()
			return answer.Text, nil
		}
		fault := c.judge(call, err)
		end()
		if ctx.Err() != nil {
			return "", fmt.Errorf("openai: transcribe: %w", context.Cause(ctx))
		}
		pause := pauses.Next(fault.failure.RetryAfter)
		if !fault.passing || attempt >= fault.attempts(c.cfg.Retry.MaxAttempts) || pause > left {
			return "", fault.failure
		}
		left -= pause
		c.cfg.Logger.Warn("a recording is sent again", "model", c.cfg.Model, "attempt", attempt, "pause", pause, "err", fault.failure)
		if err := retry.Wait(ctx, pause); err != nil {
			return "", fmt.Errorf("openai: transcribe: %w", err)
		}
	}
}

// answering makes errors of answers that are none, and bounds those that are.
type answering struct{ client *http.Client }

// Do implements the library's HTTPDoer.
func (a answering) Do(req *http.Request) (*http.Response, error) {
	resp, err := a.client.Do(req)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode/100 != 2 {
		return nil, refusal(resp)
	}
	resp.Body = Bounded(resp.Body, func() {})
	return resp, nil
}
