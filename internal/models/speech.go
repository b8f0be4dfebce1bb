package models

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"strings"
	"unicode"

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
	// Voice is the name of the voice. Empty means [defaultVoice].
	Voice string `yaml:"voice" env:"ONECLAW_SPEECH_VOICE"`
}

// defaultVoice is a voice of all of OpenAI's models.
const defaultVoice = "alloy"

// Speaker speaks answers, each of which is paid before it is spoken. Each chat decides whether its answers
// are spoken.
type Speaker struct {
	*media // nil if no model is set

	voice string
	chats settings.Chats
	log   *slog.Logger
}

// NewSpeaker returns a speaker, which speaks nothing if no model is set. It sends no requests. choices has the
// choice of each chat: on, off or auto.
func NewSpeaker(s SpeechSettings, cfg MediaConfig, choices settings.Chats) (*Speaker, error) {
	m, err := cfg.open("speech", s.Model, s.BaseURL, s.APIKey)
	return &Speaker{m, cmp.Or(s.Voice, defaultVoice), choices, cfg.Logger}, err
}

// SpeechFor implements turn.Settings.SpeechFor.
func (s *Speaker) SpeechFor(ctx context.Context, scope toolgroups.Scope, heard bool) func(ctx context.Context, text, format string) ([]byte, error) {
	if s.media == nil {
		return nil
	}
	choice, err := s.choice(ctx, scope.Chat)
	if err != nil {
		s.log.Warn("an answer is not spoken, because the choice of the chat cannot be read", "chat", scope.Chat, "err", err)
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
	own, err := s.chats.Get(ctx, chat)
	if at, invalid := chats.ParseChat(chat); err == nil && invalid == nil && own.Voice == "" && at.Thread != "" {
		own, err = s.chats.Get(ctx, at.WithoutThread().String())
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

// speak speaks a text. It pays first.
func (s *Speaker) speak(ctx context.Context, scope toolgroups.Scope, text, format string) (sound []byte, err error) {
	err = s.pay(ctx, scope, s.usage(speechTokens(text)), func() (_ *budget.Usage, err error) {
		sound, err = s.client.CreateSpeech(ctx, text, s.voice, format)
		return nil, err
	})
	return sound, err
}

// Commands returns the chat command for spoken answers.
func (s *Speaker) Commands() []bridge.Command {
	return []bridge.Command{{
		CommandInfo: chats.CommandInfo{Name: "voice", Description: "Whether I also speak my answers: on, off or auto"},
		Hidden:      s.media == nil, Run: s.voiceCommand,
	}}
}

func (s *Speaker) voiceCommand(ctx context.Context, call bridge.CommandCall) (string, error) {
	if s.media == nil {
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
	if err := s.chats.SetVoice(ctx, chat, wanted); err != nil {
		return refusalText(err)
	}
	return texts[wanted], nil
}
