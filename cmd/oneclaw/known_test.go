package main

import (
	"strings"
	"testing"

	"oneclaw/internal/doctor"
	"oneclaw/internal/emulator/openai"
)

// served starts a model server with the manners of a service and sends the bot there.
func (w *harness) served(name string, context int) openai.Profile {
	w.t.Helper()
	p, ok := openai.ProfileByName(name)
	if !ok {
		w.t.Fatal(name)
	}
	_, w.env["OPENAI_BASE_URL"] = startModel(w.t, openai.Config{Profile: p, Context: context, MaxTools: 200})
	w.env["OPENAI_MODEL"] = p.Model
	return p
}

// Ollama cuts what is too long and says nothing, so doctor does.
//
// Ollama cuts a long prompt and says nothing.
func TestDoctorWarnsOfASmallContext(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		service string
		context int
		set     string
		want    doctor.Verdict
		says    []string
	}{
		{"ollama", 4096, "", doctor.VerdictWarn, []string{"4,096 tokens", "OLLAMA_CONTEXT_LENGTH=8192"}},
		{"ollama", 8192, "", doctor.VerdictOK, []string{"context 8,192 tokens (the provider)"}},
		{"ollama", 32_768, "", doctor.VerdictOK, []string{"context 32,768 tokens (the provider)", "pictures: no (the provider)"}},
		{"ollama", 4096, "32768", doctor.VerdictOK, []string{"context 32,768 tokens (the settings)"}},
		{"lmstudio", 4096, "", doctor.VerdictWarn, []string{"4,096 tokens (the provider)", "ONECLAW_MODEL_CONTEXT"}},
		{"lmstudio", 8192, "", doctor.VerdictOK, []string{"context 8,192 tokens (the provider)"}},
		{"llama.cpp", 65_536, "", doctor.VerdictOK, []string{"context 65,536 tokens (the provider)", "pictures: no (the provider)"}},
		{"vllm", 65_536, "", doctor.VerdictOK, []string{"context 65,536 tokens (the provider)", "pictures: tried"}},
	} {
		w := newHarness(t, openai.Offline{})
		w.served(tc.service, tc.context)
		if tc.set != "" {
			w.env["ONECLAW_MODEL_CONTEXT"] = tc.set
		}
		all, _ := examined(t, w.env)
		found := all["model"]
		if found.Status != tc.want {
			t.Errorf("%s of %d: %+v", tc.service, tc.context, found)
		}
		for _, words := range tc.says {
			if !strings.Contains(found.Text, words) {
				t.Errorf("%s of %d: %q does not say %q", tc.service, tc.context, found.Text, words)
			}
		}
	}
}

// /model says what is known of the model that answers.
func TestModelCommandSaysWhatIsKnown(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	p := w.served("mistral", 40_000)
	w.env["ONECLAW_MODEL_VISION"] = "no"
	bot := w.run()
	ann := w.person("ann")
	w.ask(bot, ann, "hello", nil)
	got := w.ask(bot, ann, "/model", nil)
	wantIn(t, got, "Model: "+p.Model+" (40k context).")
}
