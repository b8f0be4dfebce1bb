package openai

import (
	"bytes"
	"context"
	"time"

	"oneclaw/agent/provider"

	api "github.com/sashabaranov/go-openai"
)

// maxRecording bounds the reported length of a recording. A server that reports more is wrong.
const maxRecording = 24 * time.Hour

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
	var transcript Transcript
	client := c.library(&transcript)
	err := c.cfg.Retry.Repeat(ctx, c.cfg.Logger.With("model", c.cfg.Model), func() *provider.Fault {
		call, _, cancel := provider.WithTimeouts(ctx, c.attemptTimeout, c.attemptTimeout)
		defer cancel()
		answer, err := client.CreateTranscription(call, api.AudioRequest{
			Model: c.cfg.Model, FilePath: name, Reader: bytes.NewReader(sound), Format: api.AudioResponseFormatJSON,
		})
		if err != nil {
			return c.newFault(call, err)
		}
		transcript.Text = answer.Text
		return nil
	}, func(*provider.Fault) bool { return false })
	if err != nil {
		return Transcript{}, err
	}
	u := &transcript.Usage
	if u.Input, u.Output = max(u.Input, 0), max(u.Output, 0); u.Seconds < 0 || u.Seconds > maxRecording.Seconds() {
		u.Seconds = 0
	}
	return transcript, nil
}
