package settings_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/settings"
	"oneclaw/storage"
)

func TestValues(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	want := "budget_user_tokens_per_day default_agent default_model log_level routing time_zone"
	if got := strings.Join(s.Values.Names(), " "); got != want {
		t.Errorf("names %s", got)
	}
	for name, tc := range map[string]struct{ good, bad []string }{
		settings.SettingRouting:      {[]string{"all", " groups "}, []string{"search", "", "ALL"}},
		settings.SettingLogLevel:     {[]string{"debug", "error"}, []string{"loud"}},
		settings.SettingTimeZone:     {[]string{"UTC", "Europe/Berlin"}, []string{"Mars/Base", "Local", "", "../etc/passwd", "Europe//Berlin", strings.Repeat("./", 700) + "UTC"}},
		settings.SettingUserBudget:   {[]string{"0", "100000"}, []string{"-1", "1.5", "many", "99999999999999999999"}},
		settings.SettingDefaultAgent: {[]string{"assistant"}, []string{"nope", "", "a/b"}},
		settings.SettingDefaultModel: {[]string{"preset/gpt-5-mini"}, []string{"gpt-5-mini", "preset/nope", "nope/gpt-5-mini", ""}},
	} {
		for _, value := range tc.bad {
			wants(t, name+" "+value, s.Values.Set(ctx, name, value), settings.Invalid)
		}
		for _, value := range tc.good {
			must(t, s.Values.Set(ctx, name, value))
			if got, err := s.Values.Get(ctx, name); err != nil || got != strings.TrimSpace(value) {
				t.Errorf("%s = %q, %v", name, got, err)
			}
		}
	}
	for _, name := range []string{"", "theme_mode", "a/b", settings.SettingTotalBudget, "key/preset"} {
		_, err := s.Values.Get(ctx, name)
		wants(t, "get "+name, err, settings.NotFound)
		wants(t, "set "+name, s.Values.Set(ctx, name, "1"), settings.NotFound)
	}
	for name, want := range map[string]string{
		settings.SettingUserBudget: "100000", settings.SettingDefaultModel: "preset/gpt-5-mini", settings.SettingLogLevel: "error",
	} {
		if got, err := s.Values.Get(ctx, name); err != nil || got != want {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	mine, err := s.Agents.Add(ctx, settings.Agent{Name: "n", Prompt: "p", Owner: "telegram:1"})
	must(t, err)
	wants(t, "somebody's agent for all", s.Values.Set(ctx, settings.SettingDefaultAgent, mine.ID), settings.Invalid)
}

func TestResolve(t *testing.T) {
	ctx := t.Context()
	s, v := open(t, openKV(t))
	const chat, owner = "telegram:7", "telegram:7"
	route := func() string {
		t.Helper()
		a, err := s.Chats.Resolve(ctx, chat, owner)
		must(t, err)
		out := a.Agent.Name + ":"
		for _, r := range a.Routes {
			out += " " + r.Provider.Name + "/" + r.Model.ID
		}
		return out
	}
	step := func(what, want string) {
		t.Helper()
		if got := route(); got != want {
			t.Errorf("%s: %q, want %q", what, got, want)
		}
	}
	off, on, name := false, true, "Own"
	_, _, err := s.Providers.Change(ctx, settings.PresetID, settings.ProviderChange{Name: &name})
	must(t, err)
	step("at first", "Assistant: Own/gpt-5-mini")
	p, err := s.Providers.Add(ctx, "Other", settings.TypeOpenAI, "https://o.test/v1")
	must(t, err)
	ref := settings.Ref{Provider: p.ID, Model: "a/b"}
	_, err = s.Models.Add(ctx, ref, "")
	must(t, err)
	must(t, s.Values.Set(ctx, settings.SettingDefaultModel, ref.String()))
	step("inactive", "Assistant: Own/gpt-5-mini")
	wants(t, "choose an inactive one", s.Chats.SetModel(ctx, chat, ref), settings.Invalid)
	_, _, err = s.Providers.Change(ctx, p.ID, settings.ProviderChange{Active: &on})
	must(t, err)
	step("without a key", "Assistant: Own/gpt-5-mini")
	must(t, v.SetKey(ctx, p.ID, ""))
	step("default", "Assistant: Other/a/b Own/gpt-5-mini")
	poet, err := s.Agents.Add(ctx, settings.Agent{Name: "Poet", Prompt: "p", Owner: owner, PreferredModel: settings.Ref{Provider: settings.PresetID, Model: "gpt-5-mini"}})
	must(t, err)
	wants(t, "another's agent", s.Chats.SetAgent(ctx, chat, "telegram:8", poet.ID), settings.NotFound)
	must(t, s.Chats.SetAgent(ctx, chat, owner, poet.ID))
	step("preference", "Poet: Own/gpt-5-mini Other/a/b")
	must(t, s.Chats.SetModel(ctx, chat, ref))
	step("choice", "Poet: Other/a/b Own/gpt-5-mini")
	if other, err := s.Chats.Resolve(ctx, "slack:C1:9", "slack:C1"); err != nil || other.Agent.Name != "Assistant" {
		t.Errorf("another chat: %+v, %v", other, err)
	}
	if _, err := s.Agents.Delete(ctx, poet.ID); err != nil {
		t.Fatal(err)
	}
	step("agent gone", "Assistant: Other/a/b Own/gpt-5-mini")
	if _, err := s.Providers.Delete(ctx, p.ID); err != nil {
		t.Fatal(err)
	}
	step("provider gone", "Assistant: Own/gpt-5-mini")
	must(t, s.Chats.SetModel(ctx, chat, settings.Ref{}))
	must(t, s.Chats.SetAgent(ctx, chat, owner, ""))
	if c, err := s.Chats.Get(ctx, chat); err != nil || c != (settings.Choice{}) {
		t.Errorf("choice %+v, %v", c, err)
	}
	_, _, err = s.Providers.Change(ctx, settings.PresetID, settings.ProviderChange{Active: &off})
	wants(t, "all off", err, settings.Protected)
	_, err = s.Chats.Get(ctx, strings.Repeat("x", 600))
	wants(t, "long chat", err, settings.Invalid)
}

func TestSwitches(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	must(t, s.Switches.SetTool(ctx, "pdf_info", false))
	must(t, s.Switches.SetGroup(ctx, "pdf", false))
	must(t, s.Switches.SetTool(ctx, "exec", false))
	must(t, s.Switches.SetTool(ctx, "exec", true))
	must(t, s.Switches.SetTool(ctx, "exec", true))
	tools, groups, err := s.Switches.ListOff(ctx)
	must(t, err)
	if diff := cmp.Diff([][]string{{"pdf_info"}, {"pdf"}}, [][]string{tools, groups}); diff != "" {
		t.Errorf("switches (-want +got):\n%s", diff)
	}
	wants(t, "no name", s.Switches.SetTool(ctx, "", false), settings.Invalid)
}

func TestFollow(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s, v := open(t, openKV(t))
	changes, done := make(chan settings.Area, 100), make(chan error, 1)
	go func() {
		done <- s.Follow(ctx, func(_ context.Context, c settings.Area) error {
			changes <- c
			return nil
		})
	}()
	if first := <-changes; first != settings.AreaAll {
		t.Errorf("first %s", first)
	}
	p, err := s.Providers.Add(ctx, "P", settings.TypeOpenAI, "https://p.test")
	must(t, err)
	must(t, v.SetKey(ctx, p.ID, "sk-1"))
	must(t, s.Values.Set(ctx, settings.SettingRouting, "all"))
	must(t, s.Switches.SetGroup(ctx, "pdf", false))
	must(t, s.Switches.SetGroup(ctx, "pdf", true))
	must(t, s.Chats.SetModel(ctx, "slack:C1:1.2", settings.Ref{Provider: settings.PresetID, Model: "gpt-5-mini"}))
	for _, want := range []settings.Area{
		"provider", "key", settings.AreaValues, settings.AreaSwitches, settings.AreaSwitches, "chat",
	} {
		if got := <-changes; got != want {
			t.Errorf("change of %s, want %s", got, want)
		}
	}
	cancel()
	if err := <-done; err != nil {
		t.Errorf("at the end: %v", err)
	}
	stop := errors.New("enough")
	if err := s.Follow(t.Context(), func(context.Context, settings.Area) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("stopped by the function: %v", err)
	}
}

// Whatever lies in the store, nothing panics, the rest keeps working, and what is
// broken can be written anew.
func FuzzSettings(f *testing.F) {
	for _, seed := range []string{
		`{"id":"x","name":"P","type":"OPENAI","base_url":"http://h","active":true}`, `[{"id":"m","source":"MANUAL"}]`, `"all"`, `null`, `[]`,
		`{"agent":"a1","model":{"provider":"p1","model":"m"}}`, `{`, "\xff", `{"temperature":1e999}`, `[null]`, `{"prompt":7}`, `"p1/m"`,
	} {
		f.Add([]byte(seed))
	}
	kv := openKV(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		ctx := t.Context()
		s, v := open(t, kv)
		for _, key := range []string{
			"provider/p1", "provider/preset", "models/p1", "models/preset", "agent/a1", "agent/assistant", "value/routing", "value/default_model",
			"value/default_agent", "value/unknown", "variable/V", "key/p1", "off/tool/x", "chat/c",
		} {
			if _, err := kv.Put(ctx, "settings/"+key, data, storage.Any); err != nil {
				t.Fatal(err)
			}
		}
		answer, err := s.Chats.Resolve(ctx, "c", "o")
		if err != nil || answer.Agent.Prompt == "" {
			t.Errorf("%+v, %v", answer, err)
		}
		all, err := s.Providers.List(ctx)
		must(t, err)
		for _, p := range all {
			if _, err := s.Models.List(ctx, p.ID); err != nil {
				t.Error(err)
			}
			if key, err := v.Key(ctx, p); err == nil && p.ID != settings.PresetID {
				t.Errorf("a key %q out of nothing", key)
			}
		}
		if _, err := s.Agents.List(ctx); err != nil {
			t.Error(err)
		}
		must(t, s.Values.Set(ctx, settings.SettingRouting, "all"))
		if value, err := s.Values.Get(ctx, settings.SettingRouting); err != nil || value != "all" {
			t.Errorf("%q, %v", value, err)
		}
		must(t, s.Variables.Set(ctx, "V", "new"))
		if got, err := v.Variables(ctx, []string{"V"}); err != nil || got["V"] != "new" {
			t.Errorf("%v, %v", got, err)
		}
	})
}
