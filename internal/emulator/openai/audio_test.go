package openai_test

import (
	"bytes"
	"context"
	"strings"
	"testing"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

// TestTranscriptionsAreStrict has the library send what the service takes, and what it
// refuses.
func TestTranscriptionsAreStrict(t *testing.T) {
	t.Parallel()
	server, base := startServer(t)
	client := newClient(base)
	speech := openai.Speech(strings.Repeat("Buy milk. ", 40))
	for name, c := range map[string]struct {
		req  api.AudioRequest
		want string // in the words, or in the refusal
	}{
		"speech":           {api.AudioRequest{Model: openai.DefaultModel, FilePath: "a.ogg", Reader: bytes.NewReader(speech)}, "Buy milk. Buy milk."},
		"no ending":        {api.AudioRequest{Model: openai.DefaultModel, FilePath: "voice", Reader: bytes.NewReader(speech)}, "Unrecognized file format"},
		"another kind":     {api.AudioRequest{Model: openai.DefaultModel, FilePath: "a.wav", Reader: bytes.NewReader(speech)}, "corrupted or unsupported"},
		"unknown model":    {api.AudioRequest{Model: "whisper-9", FilePath: "a.ogg", Reader: bytes.NewReader(speech)}, "does not exist"},
		"no model":         {api.AudioRequest{FilePath: "a.ogg", Reader: bytes.NewReader(speech)}, "you must provide a model"},
		"unknown format":   {api.AudioRequest{Model: openai.DefaultModel, FilePath: "a.ogg", Reader: bytes.NewReader(speech), Format: api.AudioResponseFormatSRT}, "not compatible"},
		"more than 25 MiB": {api.AudioRequest{Model: openai.DefaultModel, FilePath: "a.ogg", Reader: bytes.NewReader(make([]byte, 26<<20))}, "Maximum content size limit"},
	} {
		answer, err := client.CreateTranscription(context.WithoutCancel(t.Context()), c.req)
		said := answer.Text
		if err != nil {
			said = err.Error()
		}
		if !strings.Contains(said, c.want) {
			t.Errorf("%s: %q", name, said)
		}
	}
	if server.TranscriptionCount() != 1 {
		t.Errorf("%d were heard", server.TranscriptionCount())
	}
}
