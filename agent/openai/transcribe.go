package openai

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"oneclaw/agent/provider"

	api "github.com/sashabaranov/go-openai"
)

// Transcript is the text of a recording.
type Transcript struct {
	Text string
	// Usage is the reported cost: the length of the recording in seconds, or tokens. All fields are 0
	// if the server reports nothing.
	Usage struct {
		Seconds float64 `json:"seconds"`
		Input   int     `json:"input_tokens"`
		Output  int     `json:"output_tokens"`
	} `json:"usage"`
}

// Transcribe returns the text of a recording, using /audio/transcriptions. The server derives the format
// from the extension of name. Retries and errors are as in [Client.Complete].
func (c *Client) Transcribe(ctx context.Context, name string, sound []byte) (Transcript, error) {
	cfg := api.DefaultConfig(c.cfg.APIKey)
	answers := &httpDoer{client: c.cfg.HTTPClient}
	cfg.BaseURL, cfg.HTTPClient = c.cfg.BaseURL, answers
	client := api.NewClientWithConfig(cfg)
	err := c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() *provider.Fault {
		call, _, cancel := provider.WithTimeouts(ctx, c.attemptTimeout, c.attemptTimeout)
		defer cancel()
		answer, err := client.CreateTranscription(call, api.AudioRequest{
			Model: c.cfg.Model, FilePath: name, Reader: bytes.NewReader(sound), Format: api.AudioResponseFormatJSON,
		})
		if err != nil {
			return c.newFault(call, err)
		}
		answers.transcript.Text = answer.Text
		return nil
	}, func(*provider.Fault) bool { return false })
	if err != nil {
		return Transcript{}, err
	}
	return answers.transcript, nil
}

// httpDoer turns error responses into errors and bounds responses. It also decodes the fields of a
// response that the library drops.
type httpDoer struct {
	client     *http.Client
	transcript Transcript
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
	a.transcript = Transcript{}
	_ = json.Unmarshal(data, &a.transcript) // the library reports invalid JSON
	resp.Body = io.NopCloser(bytes.NewReader(data))
	return resp, nil
}
