package openai_test

import (
	"bytes"
	"context"
	"io"
	"strings"
	"testing"

	api "github.com/sashabaranov/go-openai"

	"oneclaw/internal/emulator/openai"
)

// TestSpeechIsStrict has the library send what the service takes, and what it refuses. What was spoken is
// heard again.
func TestSpeechIsStrict(t *testing.T) {
	t.Parallel()
	server, base := startServer(t)
	client := newClient(base)
	good := api.CreateSpeechRequest{Model: openai.SpeechModel, Input: "Buy milk.", Voice: api.VoiceAlloy, ResponseFormat: api.SpeechResponseFormatOpus}
	speak := func(r api.CreateSpeechRequest) ([]byte, error) {
		answer, err := client.CreateSpeech(context.WithoutCancel(t.Context()), r)
		if err != nil {
			return nil, err
		}
		defer func() { _ = answer.Close() }()
		return io.ReadAll(answer)
	}
	sound, err := speak(good)
	if err != nil || !bytes.HasPrefix(sound, []byte("OggS")) || len(sound) > 1000 {
		t.Fatalf("%.40q, %v", sound, err)
	}
	heard, err := client.CreateTranscription(context.WithoutCancel(t.Context()), api.AudioRequest{Model: openai.DefaultModel, FilePath: "a.ogg", Reader: bytes.NewReader(sound)})
	if err != nil || heard.Text != "Buy milk." {
		t.Errorf("heard %q, %v", heard.Text, err)
	}
	plain := good
	plain.ResponseFormat = ""
	if sound, err := speak(plain); err != nil || !bytes.HasPrefix(sound, []byte("\xff\xfb")) {
		t.Errorf("%.10q, %v", sound, err)
	}
	for name, c := range map[string]struct {
		change func(*api.CreateSpeechRequest)
		want   string
	}{
		"no model":      {func(r *api.CreateSpeechRequest) { r.Model = "" }, "provide a model"},
		"unknown model": {func(r *api.CreateSpeechRequest) { r.Model = "tts-9" }, "does not exist"},
		"no text":       {func(r *api.CreateSpeechRequest) { r.Input = "" }, "at least 1 character"},
		"long text":     {func(r *api.CreateSpeechRequest) { r.Input = strings.Repeat("é", 4097) }, "at most 4096"},
		"voice":         {func(r *api.CreateSpeechRequest) { r.Voice = "bob" }, "'alloy', 'ash'"},
		"format":        {func(r *api.CreateSpeechRequest) { r.ResponseFormat = "midi" }, "'mp3', 'opus'"},
		"speed":         {func(r *api.CreateSpeechRequest) { r.Speed = 5 }, "between 0.25 and 4"},
	} {
		r := good
		c.change(&r)
		if _, err := speak(r); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if n := len(server.Spoken()); n != 2 {
		t.Errorf("%d texts were spoken", n)
	}
}
