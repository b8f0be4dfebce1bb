package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"unicode"

	"oneclaw/agent/openai"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
	"oneclaw/toolgroups"
)

// SpeechSettings configures the model that speaks answers, on any server with /audio/speech.
type SpeechSettings struct {
	// Model is the model's name. Empty means that no answer is spoken.
	Model string `yaml:"model" env:"ONECLAW_SPEECH_MODEL"`
	// BaseURL is the model's server. Empty means the server of the program's own model, with its key.
	BaseURL string        `yaml:"base_url" env:"ONECLAW_SPEECH_BASE_URL"`
	APIKey  redact.Secret `yaml:"api_key" env:"ONECLAW_SPEECH_API_KEY"`
	// Voice is the name of the voice. Empty means [DefaultVoice].
	Voice string `yaml:"voice" env:"ONECLAW_SPEECH_VOICE"`
}

// DefaultVoice is a voice of all of OpenAI's models.
const DefaultVoice = "alloy"

// Validate returns an error for the first invalid setting.
func (s SpeechSettings) Validate() error {
	if s.Model == "" && s.BaseURL != "" {
		return errors.New("setting speech.base_url (ONECLAW_SPEECH_BASE_URL) names a server, and speech.model (ONECLAW_SPEECH_MODEL) no model there")
	}
	return nil
}

// SpeechConfig configures a [Speaker].
type SpeechConfig struct {
	Settings SpeechSettings
	// BaseURL and APIKey are those of the program's own model.
	BaseURL, APIKey string
	// HTTPClient sends the requests.
	HTTPClient *http.Client
	Ledger     *budget.Ledger
	// Payer returns the payer of a call.
	Payer func(scope toolgroups.Scope) budget.Payer
	// Chats stores the choice of each chat: on, off or auto.
	Chats  settings.Chats
	Logger *slog.Logger
}

// Speaker speaks answers, each of which is paid before it is spoken. Each chat decides whether its answers
// are spoken.
type Speaker struct {
	cfg    SpeechConfig
	client *openai.Client // nil if no model is set
}

// NewSpeaker returns a speaker, which speaks nothing if no model is set. It sends no requests.
func NewSpeaker(cfg SpeechConfig) (*Speaker, error) {
	s := &cfg.Settings
	if err := s.Validate(); err != nil || s.Model == "" {
		return &Speaker{cfg: cfg}, err
	}
	s.BaseURL, s.APIKey = serverOr(s.BaseURL, s.APIKey, cfg.BaseURL, cfg.APIKey)
	s.Voice = cmp.Or(s.Voice, DefaultVoice)
	client, err := openai.New(openai.Config{BaseURL: s.BaseURL, APIKey: string(s.APIKey), Model: s.Model, HTTPClient: cfg.HTTPClient, Logger: cfg.Logger})
	if err != nil {
		return nil, fmt.Errorf("setting speech: %w", err)
	}
	return &Speaker{cfg, client}, nil
}

// SpeechFor implements turn.Settings.SpeechFor.
func (s *Speaker) SpeechFor(ctx context.Context, scope toolgroups.Scope, heard bool) func(ctx context.Context, text, format string) ([]byte, error) {
	if s.client == nil {
		return nil
	}
	choice, err := s.choice(ctx, scope.Chat)
	if err != nil {
		s.cfg.Logger.Warn("an answer is not spoken, because the choice of the chat cannot be read", "chat", scope.Chat, "err", err)
		return nil
	}
	if choice == settings.VoiceOff || choice == settings.VoiceAuto && !heard {
		return nil
	}
	return func(ctx context.Context, text, format string) ([]byte, error) {
		return s.speak(ctx, scope, text, format)
	}
}

// choice returns what is spoken in a chat. A thread without a choice of its own has that of its chat.
func (s *Speaker) choice(ctx context.Context, chat string) (string, error) {
	own, err := s.cfg.Chats.Get(ctx, chat)
	if at, invalid := chats.ParseChat(chat); err == nil && invalid == nil && own.Voice == "" && at.Thread != "" {
		own, err = s.cfg.Chats.Get(ctx, at.WithoutThread().String())
	}
	return cmp.Or(own.Voice, settings.VoiceAuto), err
}

// speechTokens estimates the tokens of a spoken text, because the server reports no usage. gpt-4o-mini-tts
// makes about 20 a second for its price of $0.015 a minute
// (developers.openai.com/api/docs/models/gpt-4o-mini-tts), and a second has about 15 characters, or 4.5 of
// Chinese, Japanese and Korean.
func speechTokens(text string) budget.Tokens {
	tokens, seconds := 1.0, 0.0
	for _, r := range text {
		if unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul) {
			tokens, seconds = tokens+1, seconds+1/4.5
		} else {
			tokens, seconds = tokens+1.0/4, seconds+1.0/15
		}
	}
	return budget.Tokens{Input: int64(tokens), Output: int64(20*seconds) + 1}
}

// speak speaks a text. It pays first. The payment is returned only if the server certainly made nothing.
func (s *Speaker) speak(ctx context.Context, scope toolgroups.Scope, text, format string) ([]byte, error) {
	expected := s.cfg.Ledger.UsageOf(string(settings.TypeOpenAI), s.cfg.Settings.Model, speechTokens(text))
	settle, err := s.cfg.Ledger.Prepay(ctx, s.cfg.Payer(scope), s.cfg.Settings.Model, expected)
	if err != nil {
		return nil, err
	}
	sound, err := s.client.CreateSpeech(ctx, text, s.cfg.Settings.Voice, format)
	if failure, ok := errors.AsType[*openai.OnceError](err); ok && !failure.Unknown {
		settle(budget.Usage{})
	}
	return sound, err
}

// Commands returns the chat command for spoken answers.
func (s *Speaker) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "voice", Description: "Whether I also speak my answers: on, off or auto"},
		Hidden:      s.client == nil, Run: s.voiceCommand,
	}}
}

func (s *Speaker) voiceCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	if s.client == nil {
		if call.Role >= toolgroups.RoleAdmin {
			return "I can't speak yet. Set `speech.model`, for example to `gpt-4o-mini-tts`, and I can.", nil
		}
		return "I can't speak yet. An administrator can switch that on (`speech.model`).", nil
	}
	texts := map[string]string{
		settings.VoiceOn:   "I speak my answers here. The text always comes with it; long answers are text alone.",
		settings.VoiceOff:  "I don't speak here.",
		settings.VoiceAuto: "I speak here when you do: a voice note gets a spoken answer. The text always comes with it.",
	}
	wanted := strings.ToLower(strings.TrimSpace(call.Args))
	if wanted == "" {
		choice, err := s.choice(ctx, call.Chat)
		if err != nil {
			return "", err
		}
		return texts[choice] + " `/voice on`, `/voice off` and `/voice auto` change that.", nil
	}
	if !slices.Contains(settings.VoiceChoices(), wanted) {
		return "Write `/voice on`, `/voice off` or `/voice auto` (when you speak, I do).", nil
	}
	if err := call.Author.Record(ctx, "voice", wanted); err != nil {
		return "", err
	}
	chat := call.Chat
	if at, err := chats.ParseChat(chat); err == nil && call.BeginsThread {
		chat = at.WithoutThread().String() // on Slack each conversation is a thread
	}
	if err := s.cfg.Chats.SetVoice(ctx, chat, wanted); err != nil {
		return refusalText(err)
	}
	return texts[wanted], nil
}
