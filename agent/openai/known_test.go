package openai_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"oneclaw/agent/openai"
	"oneclaw/agent/provider"
	emulator "oneclaw/internal/emulator/openai"
)

// TestProvidersTell asks every service what its model can do. The table in docs/live.md is
// what it says; -update writes it.
func TestProvidersTell(t *testing.T) {
	var b strings.Builder
	b.WriteString("| service | context | longest reply | pictures | sound | reasoning | prompt cache | Responses API |\n|---|---|---|---|---|---|---|---|\n")
	for _, p := range emulator.Profiles() {
		l := newLive(t, p, func(cfg *emulator.Config) { cfg.Context = 100_000 })
		facts, err := l.model().CurrentFacts(t.Context())
		if err != nil {
			t.Errorf("%s: %v", p.Name, err)
		}
		tells := strings.Contains(p.ModelEntry, "{context}")
		for _, page := range p.Pages {
			tells = tells || strings.Contains(page, "{context}")
		}
		if tells != (facts.ContextTokens == provider.Fact[int]{Value: 100_000, From: "the provider"}) {
			t.Errorf("%s: %+v", p.Name, facts)
		}
		fmt.Fprintf(&b, "| %s (%s) | %s | %s | %s | %s | %s | %s | %s |\n", p.Name, p.Model, said(facts.ContextTokens), said(facts.OutputTokens),
			said(facts.Sees.Fact), said(facts.Hears.Fact), said(facts.Reasons.Fact), said(facts.Caches.Fact), said(facts.Responses.Fact))
		if again, err := l.model().CurrentFacts(t.Context()); err != nil || again != facts {
			t.Errorf("%s, again: %+v, %v", p.Name, again, err)
		}
	}
	document(t, liveDocument, "what is known", b.String())
}

// said is a cell of the table.
func said[T any](f provider.Fact[T]) string {
	if f.From == "" {
		return "–"
	}
	text := fmt.Sprint(f.Value)
	switch text {
	case "true":
		text = "yes"
	case "false":
		text = "no"
	case "100000":
		text = "as it is"
	}
	return text + ", " + f.From
}

// A provider is asked once a day, and one that does not answer rarely; nobody waits for it.
func TestAProviderIsAskedRarely(t *testing.T) {
	p, _ := emulator.ProfileByName("mistral")
	l := newLive(t, p)
	asked := 0
	count := func(cfg *openai.Config) {
		next := cfg.HTTPClient.Transport
		cfg.HTTPClient = &http.Client{Transport: roundTrip(func(req *http.Request) (*http.Response, error) {
			asked++
			return next.RoundTrip(req)
		})}
	}
	for range 3 {
		if _, err := l.model(count).CurrentFacts(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	l = newLive(t, p)
	l.moved("127.0.0.1:1")
	if _, err := l.model().CurrentFacts(t.Context()); err == nil {
		t.Error("no error of a server that is down")
	}
	if facts, err := l.model(count).CurrentFacts(t.Context()); err != nil || asked != 1 || facts.ContextTokens.From != "" {
		t.Errorf("asked again: %+v, %v", facts, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := newLive(t, p).model().CurrentFacts(ended); err == nil {
		t.Error("asked although nobody waits")
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// What the operator says comes before all else.
func TestSettingsOverrule(t *testing.T) {
	p, _ := emulator.ProfileByName("openrouter-gemini")
	l := newLive(t, p)
	m := l.model(func(cfg *openai.Config) {
		cfg.Settings, cfg.API, cfg.ContextTokens = provider.Settings{ContextTokens: 5000, Vision: "no"}, openai.APIChat, 7
	})
	facts, err := m.CurrentFacts(t.Context())
	if err != nil || facts.ContextTokens.Value != 5000 || !facts.Sees.No() || facts.Responses.From != "the settings" || facts.Hears.From != "the provider" {
		t.Errorf("%+v, %v", facts, err)
	}
	if got := m.Profile().ContextTokens; got != 5000 {
		t.Errorf("profile: %d", got)
	}
	for name, cfg := range map[string]openai.Config{
		"context": {Model: "m", Settings: provider.Settings{ContextTokens: -1}}, "vision": {Model: "m", Settings: provider.Settings{Vision: "maybe"}},
		"api": {Model: "m", API: "assistants"}, "time": {Model: "m", FirstByteTimeout: -1},
	} {
		if _, err := openai.New(cfg); err == nil {
			t.Errorf("a wrong %s: no error", name)
		}
	}
}
