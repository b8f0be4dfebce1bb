package models

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
)

// OwnModel configures the program's own model, on any server with OpenAI's API or Anthropic's. These
// settings override detected facts about the model.
type OwnModel struct {
	APIKey  redact.Secret `yaml:"api_key" env:"OPENAI_API_KEY"`
	BaseURL string        `yaml:"base_url" env:"OPENAI_BASE_URL"`
	Name    string        `yaml:"name" env:"OPENAI_MODEL"`
	// Context is the size of the model's context in tokens. Vision is "yes" if the model accepts
	// pictures, "no" if not, or empty to detect it.
	Context int    `yaml:"context" env:"ONECLAW_MODEL_CONTEXT"`
	Vision  string `yaml:"vision" env:"ONECLAW_MODEL_VISION"`
	// API is chat, responses or messages; if it is empty, the bot chooses. Effort is the reasoning effort.
	API    string `yaml:"api" env:"ONECLAW_MODEL_API"`
	Effort string `yaml:"effort" env:"ONECLAW_MODEL_EFFORT"`
	// Headers are sent with each request to the model's server.
	Headers Headers `yaml:"headers" env:"ONECLAW_MODEL_HEADERS"`
	// FirstByteTimeout bounds the wait for the first byte of a reply from any model.
	FirstByteTimeout time.Duration `yaml:"first_byte_timeout" env:"ONECLAW_MODEL_FIRST_BYTE_TIMEOUT"`
}

// Validate returns an error for an unusable address or name of the model.
func (m OwnModel) Validate() error {
	if err := (settings.Preset{Type: settings.TypeOpenAI, BaseURL: m.BaseURL, Model: m.Name}).Check(); err != nil {
		return fmt.Errorf("setting model (OPENAI_BASE_URL, OPENAI_MODEL): %w", err)
	}
	return m.Headers.validate()
}

// LacksKey reports whether there is no key although the server wants one.
func (m OwnModel) LacksKey() bool { return m.APIKey == "" && m.BaseURL == openai.DefaultBaseURL }

// apply applies the settings to a client's configuration.
func (m OwnModel) apply(cfg *openai.Config) {
	cfg.Settings = provider.Settings{ContextTokens: m.Context, Vision: m.Vision}
	cfg.API, cfg.Effort = m.API, m.Effort
}

// Client returns a client for the program's own model.
func (m OwnModel) Client(through *http.Client) (Client, error) {
	cfg := openai.Config{
		BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Name, ContextTokens: settings.ContextTokens(m.Name),
		FirstByteTimeout: m.FirstByteTimeout, HTTPClient: through,
	}
	m.apply(&cfg)
	if usesMessagesAPI(cfg) {
		return newAnthropic(cfg, nil)
	}
	return openai.New(cfg)
}

// DescribeFacts describes what is known about a model, with sources, on one line.
func DescribeFacts(f provider.Facts) string {
	var list []string
	tokens := func(what string, n provider.Fact[int]) {
		if n.From != "" {
			list = append(list, fmt.Sprintf("%s %s tokens (%s)", what, budget.FormatCount(int64(n.Value)), n.From))
		}
	}
	can := func(what string, c provider.Ability) {
		switch {
		case c.Yes():
			list = append(list, fmt.Sprintf("%s: yes (%s)", what, c.From))
		case c.No():
			list = append(list, fmt.Sprintf("%s: no (%s)", what, c.From))
		}
	}
	if tokens("context", f.ContextTokens); f.ContextTokens.From == "" {
		list = append(list, "context unknown")
	}
	tokens("replies up to", f.OutputTokens)
	if can("pictures", f.Sees); f.Sees.From == "" {
		list = append(list, "pictures: tried when one comes")
	}
	can("sound", f.Hears)
	can("reasoning", f.Reasons)
	can("prompt cache", f.Caches)
	can("tools", f.Tools)
	can("Responses API", f.Responses)
	return strings.Join(list, ", ")
}

// shortFacts describes a model briefly for users who choose one; "" if nothing is known.
func shortFacts(f provider.Facts) string {
	var list []string
	switch n := f.ContextTokens.Value; {
	case n >= 1_000_000:
		list = append(list, fmt.Sprintf("%gM context", float64(n/100_000)/10))
	case n >= 1000:
		list = append(list, fmt.Sprintf("%dk context", n/1000))
	}
	if f.Sees.Yes() {
		list = append(list, "sees pictures")
	}
	if f.Hears.Yes() {
		list = append(list, "hears")
	}
	return strings.Join(list, ", ")
}

// ContextAdvice advises the operator if the model takes no tools, if the context is too small, or if the server
// cuts long prompts. It returns "" if there is no problem.
func ContextAdvice(name string, f provider.Facts) string {
	const ollama = "Ollama drops the beginning of what is longer than its context and says nothing"
	size := budget.FormatCount(int64(f.ContextTokens.Value))
	switch {
	case f.Tools.No():
		return fmt.Sprintf("%s takes no tools (%s), so the bot can only talk: choose a model with tools, or start its server with them (vLLM: --enable-auto-tool-choice and --tool-call-parser; llama.cpp: --jinja)", name, f.Tools.From)
	case f.TruncatesSilently && f.ContextTokens.From == "":
		return fmt.Sprintf("%s: %s; by default that is 4,096 tokens on most machines: set OLLAMA_CONTEXT_LENGTH=8192 or more for Ollama, and model.context (ONECLAW_MODEL_CONTEXT) to the same", name, ollama)
	case f.ContextTokens.From == "" || f.ContextTokens.Value >= agent.MinContextTokens:
		return ""
	case f.TruncatesSilently:
		return fmt.Sprintf("%s: the context has %s tokens (%s), too few for instructions, tools and a conversation: set OLLAMA_CONTEXT_LENGTH=8192 or more for Ollama, better 32768, and start it again", name, size, f.ContextTokens.From)
	}
	return fmt.Sprintf("%s: the context has %s tokens (%s), too few for instructions, tools and a conversation: load the model with 8,192 or more, or set model.context (ONECLAW_MODEL_CONTEXT) if that is wrong", name, size, f.ContextTokens.From)
}
