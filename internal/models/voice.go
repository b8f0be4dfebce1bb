package models

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"net/http"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge/turn"
	"oneclaw/internal/redact"
	"oneclaw/toolgroups"
)

// VoiceSettings configures the transcription model, on any server with /audio/transcriptions.
type VoiceSettings struct {
	// BaseURL is the model's server. Empty means the server of the program's own model, with its key.
	BaseURL string `yaml:"base_url" env:"ONECLAW_VOICE_BASE_URL"`
	// Model is the model's name; "off" disables transcription. Empty means [defaultVoiceModel] at
	// OpenAI, and "off" elsewhere.
	Model  string        `yaml:"model" env:"ONECLAW_VOICE_MODEL"`
	APIKey redact.Secret `yaml:"api_key" env:"ONECLAW_VOICE_API_KEY"`
	// MaxLength bounds the length of a recording. 0 means [defaultVoiceLength].
	MaxLength time.Duration `yaml:"max_length" env:"ONECLAW_VOICE_MAX_LENGTH"`
}

const (
	// defaultVoiceModel is the default on OpenAI's server.
	defaultVoiceModel = "gpt-4o-mini-transcribe"
	// defaultVoiceLength is below the 25 minutes that OpenAI's models accept.
	defaultVoiceLength = 20 * time.Minute
	// VoiceOff is the model name that disables transcription.
	VoiceOff = "off"
	// maxRecordingBytes is OpenAI's limit for a recording
	// (developers.openai.com/api/docs/guides/speech-to-text).
	maxRecordingBytes = 25 << 20
	// tokensPerSecond is the cost of a recording for audio models (the same guide).
	tokensPerSecond = 10
	// bytesPerSecond is a low data rate, used to estimate the length of a recording.
	bytesPerSecond = 4000
)

// Transcriber transcribes recordings.
type Transcriber struct {
	*media

	maxLength time.Duration
	charge    func(scope toolgroups.Scope, model agent.Model, name string) agent.Model
}

// NewTranscriber returns a transcriber, or nil if no model is set. It sends no requests. charge returns a model
// that charges its calls to the user who sent the recording.
func NewTranscriber(s VoiceSettings, cfg MediaConfig, charge func(scope toolgroups.Scope, model agent.Model, name string) agent.Model) (*Transcriber, error) {
	if s.MaxLength < 0 {
		return nil, errors.New("setting voice.max_length (ONECLAW_VOICE_MAX_LENGTH) is negative")
	}
	if s.Model == "" && isOpenAI(cmp.Or(s.BaseURL, cfg.BaseURL)) {
		s.Model = defaultVoiceModel
	}
	if s.Model == VoiceOff {
		return nil, nil
	}
	m, err := cfg.open("voice", s.Model, s.BaseURL, s.APIKey)
	if err != nil || m == nil {
		return nil, err
	}
	return &Transcriber{m, cmp.Or(s.MaxLength, defaultVoiceLength), charge}, nil
}

// Transcribe implements turn.Settings.Transcribe. It may be called on a nil Transcriber.
func (l *Transcriber) Transcribe(ctx context.Context, scope toolgroups.Scope, r turn.Recording) (string, error) {
	switch {
	case l == nil:
		return "", &turn.TranscriptionError{NotConfigured: true}
	case r.Length > l.maxLength:
		return "", &turn.TranscriptionError{Reason: fmt.Sprintf("is longer than the %v that I listen to", formatMinutes(l.maxLength))}
	case r.Size > maxRecordingBytes:
		return "", &turn.TranscriptionError{Reason: fmt.Sprintf("is larger than the %d MB that I listen to", maxRecordingBytes>>20)}
	}
	sound, err := io.ReadAll(io.LimitReader(r.Content, maxRecordingBytes))
	if err != nil {
		return "", fmt.Errorf("read a recording: %w", err)
	}
	name := fileName(sound)
	if name == "" {
		return "", unreadableError()
	}
	length := cmp.Or(r.Length, time.Duration(len(sound))*time.Second/bytesPerSecond)
	s := &audioModel{client: l.client, name: name, sound: sound, tokens: int(math.Ceil(length.Seconds() * tokensPerSecond))}
	// The estimate of a request counts ToolTokens.
	reply, err := l.charge(scope, s, l.model).Complete(ctx, agent.Request{ToolTokens: s.tokens}, nil)
	if err != nil {
		l.Logger.Warn("cannot transcribe a recording", "model", l.model, "err", err)
	}
	return reply.Text, userError(err)
}

func formatMinutes(d time.Duration) string {
	if d == time.Minute {
		return "minute"
	}
	return fmt.Sprintf("%v minutes", math.Round(d.Minutes()*10)/10)
}

func unreadableError() error {
	return &turn.TranscriptionError{Reason: "is of a kind that I cannot listen to, or damaged"}
}

// userError returns a [turn.TranscriptionError] if retrying would not help, otherwise err.
func userError(err error) error {
	failure, ok := errors.AsType[*agent.ModelError](err)
	if !ok {
		return err
	}
	switch failure.Kind {
	case agent.KindBudget:
		return &turn.TranscriptionError{Reason: "was not listened to: " + failure.Notice}
	case agent.KindOverflow:
		return &turn.TranscriptionError{Reason: "is larger than what the server that listens takes"}
	case agent.KindRejected:
		if failure.Status == http.StatusBadRequest || failure.Status == http.StatusUnsupportedMediaType || failure.Status == http.StatusUnprocessableEntity {
			return unreadableError()
		}
	}
	return err
}

// audioModel presents a transcription as a call of a model, so that it can be charged.
type audioModel struct {
	client *openai.Client
	name   string
	sound  []byte
	tokens int
}

// Complete implements agent.Model.
func (s *audioModel) Complete(ctx context.Context, _ agent.Request, _ func(agent.Delta)) (agent.Reply, error) {
	heard, err := s.client.Transcribe(ctx, s.name, s.sound)
	if err != nil {
		return agent.Reply{}, err
	}
	said := heard.Usage
	return agent.Reply{Text: heard.Text, Usage: agent.Usage{
		// If the server reports no usage, use the estimate from the recording's length.
		Input:  cmp.Or(said.Input, int(math.Ceil(said.Seconds*tokensPerSecond)), s.tokens),
		Output: cmp.Or(said.Output, len(heard.Text)/4+1),
	}}, nil
}

// fileName returns a file name with the extension for a recording's format, which it detects from the
// first bytes. It returns "" for formats that no model is known to accept.
func fileName(sound []byte) string {
	has := func(at int, magic string) bool {
		return len(sound) >= at+len(magic) && bytes.Equal(sound[at:at+len(magic)], []byte(magic))
	}
	switch {
	case has(0, "OggS"):
		return "voice.ogg"
	case has(0, "ID3"), len(sound) > 1 && sound[0] == 0xff && sound[1]&0xe6 == 0xe2:
		return "voice.mp3"
	case has(0, "RIFF") && has(8, "WAVE"):
		return "voice.wav"
	case has(0, "fLaC"):
		return "voice.flac"
	case has(4, "ftypM4A"):
		return "voice.m4a"
	case has(4, "ftyp"):
		return "voice.mp4"
	case has(0, "\x1a\x45\xdf\xa3"):
		return "voice.webm"
	}
	return ""
}
