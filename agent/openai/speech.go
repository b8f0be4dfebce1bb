package openai

import (
	"bytes"
	"context"
	"errors"
	"io"

	api "github.com/sashabaranov/go-openai"
)

var errNoSpeech = errors.New("the response is no recording in the format that was asked for")

// CreateSpeech speaks a text, using /audio/speech, and returns the recording in a format: opus (in Ogg)
// or mp3. It sends one request and never repeats it. An error is a *[OnceError], or the cause of ctx.
func (c *Client) CreateSpeech(ctx context.Context, text, voice, format string) (sound []byte, err error) {
	err = c.once(ctx, func(ctx context.Context, client *api.Client) error {
		answer, err := client.CreateSpeech(ctx, api.CreateSpeechRequest{
			Model: api.SpeechModel(c.cfg.Model), Input: text, Voice: api.SpeechVoice(voice), ResponseFormat: api.SpeechResponseFormat(format),
		})
		if err != nil {
			return err
		}
		defer func() { _ = answer.Close() }()
		if sound, err = io.ReadAll(answer); err == nil && !hasFormat(sound, format) {
			sound, err = nil, errNoSpeech
		}
		return err
	})
	return sound, err
}

// hasFormat reports whether a recording begins like one in a format.
func hasFormat(sound []byte, format string) bool {
	if format == string(api.SpeechResponseFormatOpus) {
		return bytes.HasPrefix(sound, []byte("OggS")) && bytes.Contains(sound[:min(len(sound), 64)], []byte("OpusHead"))
	}
	return bytes.HasPrefix(sound, []byte("ID3")) || len(sound) > 1 && sound[0] == 0xff && sound[1]&0xe6 == 0xe2
}
