package models

import (
	"fmt"
	"net/http"
	"strings"
	"time"

	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	"oneclaw/internal/budget"
	"oneclaw/internal/redact"
	"oneclaw/internal/settings"
)

// Own configures the program's own model, on any server with OpenAI's API. Settings override
// what is learnt about the model.
type Own struct {
	APIKey  redact.Secret `yaml:"api_key" env:"OPENAI_API_KEY"`
	BaseURL string        `yaml:"base_url" env:"OPENAI_BASE_URL"`
	Name    string        `yaml:"name" env:"OPENAI_MODEL"`
	// Context is the size of the model's context in tokens; Vision says whether it accepts
	// pictures: yes or no.
	Context int    `yaml:"context" env:"ONECLAW_MODEL_CONTEXT"`
	Vision  string `yaml:"vision" env:"ONECLAW_MODEL_VISION"`
	// API is chat, responses or messages; Effort is the reasoning effort.
	API    string `yaml:"api" env:"ONECLAW_MODEL_API"`
	Effort string `yaml:"effort" env:"ONECLAW_MODEL_EFFORT"`
	// FirstByteTimeout bounds the wait for the first byte of a reply, for any model.
	FirstByteTimeout time.Duration `yaml:"first_byte_timeout" env:"ONECLAW_MODEL_FIRST_BYTE_TIMEOUT"`
}

// apply applies the settings to a client's configuration.
func (m Own) apply(cfg *openai.Config) {
	cfg.Set = provider.Settings{Context: m.Context, Vision: m.Vision}
	cfg.API, cfg.Effort = m.API, m.Effort
}

// Client returns a client of the program's own model.
func (m Own) Client(through *http.Client) (Client, error) {
	cfg := openai.Config{
		BaseURL: m.BaseURL, APIKey: string(m.APIKey), Model: m.Name, ContextTokens: settings.ContextTokens(m.Name),
		FirstByte: m.FirstByteTimeout, HTTPClient: through,
	}
	m.apply(&cfg)
	if messages(cfg) {
		return claude(cfg, nil)
	}
	return openai.New(cfg)
}

// Known describes what is known about a model, with sources, on one line.
func Known(f provider.Facts) string {
	var list []string
	tokens := func(what string, n provider.Fact[int]) {
		if n.From != "" {
			list = append(list, fmt.Sprintf("%s %s tokens (%s)", what, budget.Count(int64(n.Value)), n.From))
		}
	}
	can := func(what string, c provider.Can) {
		switch {
		case c.Yes():
			list = append(list, fmt.Sprintf("%s: yes (%s)", what, c.From))
		case c.No():
			list = append(list, fmt.Sprintf("%s: no (%s)", what, c.From))
		}
	}
	if tokens("context", f.Context); f.Context.From == "" {
		list = append(list, "context unknown")
	}
	tokens("replies up to", f.Output)
	if can("pictures", f.Sees); f.Sees.From == "" {
		list = append(list, "pictures: tried when one comes")
	}
	can("sound", f.Hears)
	can("reasoning", f.Reasons)
	can("prompt cache", f.Caches)
	can("tool search", f.Searches)
	can("Responses API", f.Responses)
	return strings.Join(list, ", ")
}

// shortFacts describes a model for choosing it; empty if nothing is known.
func shortFacts(f provider.Facts) string {
	var list []string
	switch n := f.Context.Value; {
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

// leastContext is what instructions and tools need, with some room for the conversation.
const leastContext = 16_000

// Advice says what to do about a context that is too small, or that a server cuts silently;
// empty if nothing.
func Advice(name string, f provider.Facts) string {
	const advice = "Ollama drops the beginning of what is longer than its context and says nothing"
	switch {
	case f.Cuts && f.Context.From == "":
		return fmt.Sprintf("%s: %s; by default that is 4,096 tokens on most machines: set OLLAMA_CONTEXT_LENGTH=32768 or more for Ollama, and model.context (ONECLAW_MODEL_CONTEXT) to the same", name, advice)
	case f.Cuts && f.Context.Value < leastContext:
		return fmt.Sprintf("%s: the context has %s tokens (%s), and %s: set OLLAMA_CONTEXT_LENGTH=32768 or more for Ollama", name, budget.Count(int64(f.Context.Value)), f.Context.From, advice)
	case f.Context.From != "" && f.Context.Value < leastContext:
		return fmt.Sprintf("%s: the context has %s tokens (%s), which is little beside instructions and tools: load the model with more, or set model.context (ONECLAW_MODEL_CONTEXT) if that is wrong", name, budget.Count(int64(f.Context.Value)), f.Context.From)
	}
	return ""
}
