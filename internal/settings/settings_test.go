package settings_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oneclaw/internal/settings"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const (
	secret    = "0123456789abcdef"
	presetKey = "sk-preset-secret"
)

func config(kv storage.KV) settings.Config {
	return settings.Config{
		Now: time.Now, KV: kv, SecretKey: []byte(secret),
		Preset: settings.Preset{Type: settings.TypeOpenAI, BaseURL: "https://api.test/v1", Key: presetKey, Model: "gpt-5-mini"},
		Agents: []settings.Agent{{ID: "assistant", Name: "Assistant", Prompt: "You help."}},
		Defaults: map[string]string{
			settings.SettingRouting: "groups", settings.SettingLogLevel: "info", settings.SettingTimeZone: "UTC",
			settings.SettingUserBudget: "0",
		},
	}
}

func openKV(t testing.TB) storage.KV {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func open(t testing.TB, kv storage.KV) (*settings.Settings, *settings.Vault) {
	t.Helper()
	s, v, err := settings.Open(config(kv))
	if err != nil {
		t.Fatal(err)
	}
	return s, v
}

// wants fails unless an error is a refusal for a reason.
func wants(t testing.TB, what string, err error, reason settings.Reason) {
	t.Helper()
	if !settings.Is(err, reason) {
		t.Errorf("%s: %v, want a refusal (%s)", what, err, reason)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestOpenRefuses(t *testing.T) {
	for name, breaks := range map[string]func(*settings.Config){
		"no store":         func(c *settings.Config) { c.KV = nil },
		"short key":        func(c *settings.Config) { c.SecretKey = []byte("short") },
		"no agent":         func(c *settings.Config) { c.Agents = nil },
		"agent without id": func(c *settings.Config) { c.Agents = []settings.Agent{{Name: "a", Prompt: "p"}} },
		"blank agent":      func(c *settings.Config) { c.Agents = []settings.Agent{{ID: "a"}} },
		"preset's type":    func(c *settings.Config) { c.Preset.Type = "FOO" },
		"preset's address": func(c *settings.Config) { c.Preset.BaseURL = "ftp://x" },
		"preset's model":   func(c *settings.Config) { c.Preset.Model = "" },
		"unknown setting":  func(c *settings.Config) { c.Defaults = map[string]string{"theme": "dark"} },
		"wrong setting":    func(c *settings.Config) { c.Defaults = map[string]string{settings.SettingLogLevel: "loud"} },
	} {
		cfg := config(openKV(t))
		breaks(&cfg)
		if _, _, err := settings.Open(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestProviders(t *testing.T) {
	ctx := t.Context()
	s, v := open(t, openKV(t))
	p, err := s.Providers.Add(ctx, " Local ", settings.TypeOpenAI, "http://127.0.0.1:11434/v1/ ")
	must(t, err)
	want := settings.Provider{ID: p.ID, Name: "Local", Type: settings.TypeOpenAI, BaseURL: "http://127.0.0.1:11434/v1"}
	if diff := cmp.Diff(want, p); diff != "" || p.ID == "" {
		t.Errorf("added (-want +got):\n%s", diff)
	}
	all, err := s.Providers.List(ctx)
	must(t, err)
	if len(all) != 2 || all[0].ID != settings.PresetID || !all[0].Active || !all[0].HasKey || all[1] != p {
		t.Errorf("providers %+v", all)
	}
	for what, args := range map[string][3]string{
		"blank name": {" ", "OPENAI", "http://h/v1"}, "two lines": {"a\nb", "OPENAI", "http://h/v1"},
		"long name": {strings.Repeat("ä", 101), "OPENAI", "http://h/v1"}, "type": {"a", "openai", "http://h/v1"},
		"scheme": {"a", "OPENAI", "ftp://h/v1"}, "no host": {"a", "OPENAI", "http://"}, "user": {"a", "OPENAI", "http://u:p@h/v1"},
		"query": {"a", "OPENAI", "http://h/v1?k=1"}, "blank address": {"a", "OPENAI", ""},
	} {
		_, err := s.Providers.Add(ctx, args[0], settings.Type(args[1]), args[2])
		wants(t, what, err, settings.Invalid)
	}
	must(t, v.SetKey(ctx, p.ID, "sk-1"))
	name, on := "Ollama", true
	before, after, err := s.Providers.Change(ctx, p.ID, settings.ProviderChange{Name: &name, Active: &on})
	must(t, err)
	if before.Name != "Local" || after.Name != name || !after.Active || !after.HasKey {
		t.Errorf("changed %+v to %+v", before, after)
	}
	deleted, err := s.Providers.Delete(ctx, p.ID)
	must(t, err)
	if deleted.Name != name {
		t.Errorf("deleted %+v", deleted)
	}
	_, err = s.Providers.Get(ctx, p.ID)
	wants(t, "deleted", err, settings.NotFound)
	_, err = v.Key(ctx, p)
	wants(t, "key of the deleted", err, settings.NotFound)
	for _, id := range []string{"", "nope", "a/b", strings.Repeat("x", 600), "\xff"} {
		_, _, err := s.Providers.Change(ctx, id, settings.ProviderChange{})
		wants(t, "change", err, settings.NotFound)
		_, err = s.Providers.Delete(ctx, id)
		wants(t, "delete", err, settings.NotFound)
	}
}

func TestPresetIsProtected(t *testing.T) {
	ctx := t.Context()
	kv := openKV(t)
	s, v := open(t, kv)
	_, err := s.Providers.Delete(ctx, settings.PresetID)
	wants(t, "delete", err, settings.Protected)
	elsewhere := "https://evil.test/v1"
	_, _, err = s.Providers.Change(ctx, settings.PresetID, settings.ProviderChange{BaseURL: &elsewhere})
	wants(t, "move", err, settings.Protected)
	wants(t, "key", v.SetKey(ctx, settings.PresetID, "sk-other"), settings.Protected)
	wants(t, "model", s.Models.Delete(ctx, settings.Ref{Provider: settings.PresetID, Model: "gpt-5-mini"}), settings.Protected)
	off, name := false, "Ours"
	addUsable(t, s, v)
	_, _, err = s.Providers.Change(ctx, settings.PresetID, settings.ProviderChange{Active: &off, Name: &name})
	must(t, err)
	s, v = open(t, kv)
	p, err := s.Providers.Get(ctx, settings.PresetID)
	must(t, err)
	if p.Active || p.Name != name || p.BaseURL != "https://api.test/v1" {
		t.Errorf("after a restart %+v", p)
	}
	if key, err := v.Key(ctx, p); err != nil || key != presetKey {
		t.Errorf("key %q, %v", key, err)
	}
	cfg := config(kv)
	cfg.Preset = settings.Preset{}
	s, _, err = settings.Open(cfg)
	must(t, err)
	if all, err := s.Providers.List(ctx); err != nil || len(all) != 1 {
		t.Errorf("without a preset %+v, %v", all, err)
	}
}

// addUsable adds a provider whose model can be asked.
func addUsable(t *testing.T, s *settings.Settings, v *settings.Vault) settings.Ref {
	t.Helper()
	p, err := s.Providers.Add(t.Context(), "Other", settings.TypeOpenAI, "https://other.test/v1")
	must(t, err)
	must(t, v.SetKey(t.Context(), p.ID, "sk-other"))
	ref := settings.Ref{Provider: p.ID, Model: "m"}
	_, err = s.Models.Add(t.Context(), ref, "")
	must(t, err)
	_, _, err = s.Providers.Change(t.Context(), p.ID, settings.ProviderChange{Active: new(true)})
	must(t, err)
	return ref
}

func TestTheLastModelThatCanBeAskedStays(t *testing.T) {
	ctx := t.Context()
	s, v := open(t, openKV(t))
	off, elsewhere := settings.ProviderChange{Active: new(false)}, settings.ProviderChange{BaseURL: new("https://third.test/v1")}
	_, _, err := s.Providers.Change(ctx, settings.PresetID, off)
	wants(t, "the only provider switched off", err, settings.Protected)
	p, err := s.Providers.Add(ctx, "No model", settings.TypeOpenAI, "https://none.test/v1")
	must(t, err)
	must(t, v.SetKey(ctx, p.ID, "sk-none"))
	_, _, err = s.Providers.Change(ctx, p.ID, settings.ProviderChange{Active: new(true)})
	must(t, err)
	_, _, err = s.Providers.Change(ctx, settings.PresetID, off)
	wants(t, "beside a provider without a model", err, settings.Protected)
	ref := addUsable(t, s, v)
	_, _, err = s.Providers.Change(ctx, settings.PresetID, off)
	must(t, err)
	_, _, err = s.Providers.Change(ctx, ref.Provider, off)
	wants(t, "the other one switched off", err, settings.Protected)
	_, _, err = s.Providers.Change(ctx, ref.Provider, elsewhere)
	wants(t, "the other one moved away from its key", err, settings.Protected)
	wants(t, "its model deleted", s.Models.Delete(ctx, ref), settings.Protected)
	_, err = s.Providers.Delete(ctx, ref.Provider)
	wants(t, "the other one deleted", err, settings.Protected)
	if usable, err := s.Providers.AnyUsable(ctx, ""); !usable || err != nil {
		t.Errorf("usable %t, %v", usable, err)
	}
	_, _, err = s.Providers.Change(ctx, settings.PresetID, settings.ProviderChange{Active: new(true)})
	must(t, err)
	_, err = s.Providers.Delete(ctx, ref.Provider)
	must(t, err)
}

// A key is sent to no server but the one that it was entered for.
func TestKeyStaysWithItsServer(t *testing.T) {
	ctx := t.Context()
	kv := openKV(t)
	s, v := open(t, kv)
	p, err := s.Providers.Add(ctx, "A", settings.TypeOpenAI, "https://a.test/v1")
	must(t, err)
	_, err = v.Key(ctx, p)
	wants(t, "no key yet", err, settings.NotFound)
	must(t, v.SetKey(ctx, p.ID, "sk-moving-secret\n"))
	path := "https://A.test/v2"
	_, after, err := s.Providers.Change(ctx, p.ID, settings.ProviderChange{BaseURL: &path})
	must(t, err)
	if key, err := v.Key(ctx, after); err != nil || key != "sk-moving-secret" {
		t.Errorf("the path changed: key %q, %v", key, err)
	}
	forged := after
	forged.BaseURL = "https://evil.test/v1"
	if key, err := v.Key(ctx, forged); err == nil || strings.Contains(err.Error(), "sk-") {
		t.Errorf("key for another server %q, %v", key, err)
	}
	sealed, err := kv.Get(ctx, "settings/key/"+p.ID)
	must(t, err)
	if bytes.Contains(sealed.Value, []byte("secret")) {
		t.Error("the key is not encrypted")
	}
	moved := "https://b.test/v1"
	_, after, err = s.Providers.Change(ctx, p.ID, settings.ProviderChange{BaseURL: &moved})
	must(t, err)
	if after.HasKey {
		t.Error("the key moved with the address")
	}
	_, err = v.Key(ctx, after)
	wants(t, "moved", err, settings.NotFound)
	must(t, v.SetKey(ctx, p.ID, "sk-2"))
	cfg := config(kv)
	cfg.SecretKey = []byte("another secret key")
	_, other, err := settings.Open(cfg)
	must(t, err)
	if key, err := other.Key(ctx, after); err == nil {
		t.Errorf("key %q with another secret key", key)
	}
	wants(t, "two lines", v.SetKey(ctx, p.ID, "a\nb"), settings.Invalid)
	wants(t, "long", v.SetKey(ctx, p.ID, strings.Repeat("k", settings.MaxKey+1)), settings.Invalid)
	wants(t, "unknown", v.SetKey(ctx, "nope", "k"), settings.NotFound)
}

func TestModels(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	ref := settings.Ref{Provider: settings.PresetID, Model: "meta/llama-4"}
	_, err := s.Models.Add(ctx, ref, "Llama")
	must(t, err)
	_, err = s.Models.Add(ctx, ref, "")
	wants(t, "again", err, settings.Exists)
	_, err = s.Models.Add(ctx, settings.Ref{Provider: settings.PresetID, Model: "gpt-5-mini"}, "")
	wants(t, "the preset's", err, settings.Exists)
	_, err = s.Models.Add(ctx, settings.Ref{Provider: "nope", Model: "m"}, "")
	wants(t, "unknown provider", err, settings.NotFound)
	for _, id := range []string{"", "a b", "a\x00", strings.Repeat("m", 257), "\xff"} {
		_, err = s.Models.Add(ctx, settings.Ref{Provider: settings.PresetID, Model: id}, "")
		wants(t, "id "+id, err, settings.Invalid)
	}
	n, err := s.Models.Replace(ctx, settings.PresetID, []settings.Model{
		{ID: "old"}, {ID: "meta/llama-4", Name: "fetched"}, {ID: "bad id"}, {ID: "claude-x", ContextTokens: 5}, {ID: "old"},
	})
	if err != nil || n != 2 {
		t.Fatalf("%d, %v", n, err)
	}
	_, err = s.Models.Replace(ctx, settings.PresetID, []settings.Model{{ID: "claude-x"}, {ID: "gpt-5-mini"}})
	must(t, err)
	got, err := s.Models.List(ctx, settings.PresetID)
	must(t, err)
	want := []settings.Model{
		{Provider: settings.PresetID, ID: "claude-x", Name: "claude-x", ContextTokens: 200_000, Source: settings.SourceDynamic},
		{Provider: settings.PresetID, ID: "gpt-5-mini", Name: "gpt-5-mini", ContextTokens: 400_000, Source: settings.SourcePreset},
		{Provider: settings.PresetID, ID: "meta/llama-4", Name: "Llama", Source: settings.SourceManual},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("models (-want +got):\n%s", diff)
	}
	wants(t, "delete a fetched one", s.Models.Delete(ctx, settings.Ref{Provider: settings.PresetID, Model: "claude-x"}), settings.Protected)
	wants(t, "delete an unknown one", s.Models.Delete(ctx, settings.Ref{Provider: settings.PresetID, Model: "x"}), settings.NotFound)
	must(t, s.Models.Delete(ctx, ref))
	_, err = s.Models.Get(ctx, ref)
	wants(t, "deleted", err, settings.NotFound)
	many := make([]settings.Model, settings.MaxModels+5)
	for i := range many {
		many[i].ID = fmt.Sprint("m", i)
	}
	if n, err := s.Models.Replace(ctx, settings.PresetID, many); err != nil || n != settings.MaxModels {
		t.Errorf("%d, %v", n, err)
	}
	_, err = s.Models.Add(ctx, ref, "")
	wants(t, "full", err, settings.Full)
}

func TestContextTokens(t *testing.T) {
	for model, want := range map[string]int{
		"gpt-5-mini": 400_000, "gpt-5-chat-latest": 128_000, "openai/gpt-4o": 128_000, "claude-sonnet-4-5": 200_000,
		"gemini-2.5-flash": 1_048_576, "llama3": 0, "": 0, "x/": 0,
	} {
		if got := settings.ContextTokens(model); got != want {
			t.Errorf("%s: %d, want %d", model, got, want)
		}
	}
}

// What an agent is told counts as the words of whoever had it made, and after they are forgotten as nobody's own.
func TestAnAgentOfAnotherMemberHoldsWordsOfOthers(t *testing.T) {
	s, _ := open(t, openKV(t))
	made := func(a settings.Agent) settings.Agent {
		a.Name, a.Prompt = "n", "p"
		a, err := s.Agents.Add(t.Context(), a)
		must(t, err)
		return a
	}
	bobs, own, outside := made(settings.Agent{Owner: "telegram:-1", Author: "telegram:2"}), made(settings.Agent{Owner: "telegram:1", Author: "telegram:1"}),
		made(settings.Agent{Owner: "telegram:1", Author: "telegram:1", Outside: true})
	common := settings.Agent{}
	for n, c := range []struct {
		agent   settings.Agent
		user    string
		direct  bool
		foreign bool
	}{
		{bobs, "telegram:1", false, true}, {bobs, "telegram:2", false, false}, {own, "telegram:1", true, false}, {outside, "telegram:1", true, true}, {common, "telegram:1", false, false},
	} {
		if got := c.agent.IsOthers(c.user, c.direct); got != c.foreign {
			t.Errorf("%d: %t", n, got)
		}
	}
	must(t, s.Chats.Forget(t.Context(), "telegram:2", "telegram:2"))
	left, err := s.Agents.Get(t.Context(), bobs.ID)
	must(t, err)
	if left.Author != "" || !left.IsOthers("telegram:2", false) {
		t.Errorf("after its author was forgotten: %+v", left)
	}
}

func TestAgents(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	a, err := s.Agents.Add(ctx, settings.Agent{ID: "assistant", BuiltIn: true, Name: "Poet", Prompt: "Rhyme.", Owner: "telegram:1"})
	must(t, err)
	twin, err := s.Agents.Add(ctx, settings.Agent{Name: "Poet", Prompt: "Rhyme."})
	must(t, err)
	if a.ID == twin.ID || a.ID == "assistant" || a.BuiltIn {
		t.Errorf("ids %s, %s", a.ID, twin.ID)
	}
	for owner, want := range map[string]int{"telegram:1": 3, "telegram:2": 2} {
		if got, err := s.Agents.ListFor(ctx, owner); err != nil || len(got) != want {
			t.Errorf("%s sees %d agents, %v", owner, len(got), err)
		}
	}
	hot := 2.1
	for what, bad := range map[string]settings.Agent{
		"blank name": {Prompt: "p"}, "long name": {Name: strings.Repeat("n", 101), Prompt: "p"}, "blank prompt": {Name: "n", Prompt: " \n"},
		"long prompt": {Name: "n", Prompt: strings.Repeat("ä", 50_001)}, "temperature": {Name: "n", Prompt: "p", Temperature: &hot},
		"iterations": {Name: "n", Prompt: "p", MaxIterations: 200},
	} {
		_, err := s.Agents.Add(ctx, bad)
		wants(t, what, err, settings.Invalid)
	}
	_, err = s.Agents.Add(ctx, settings.Agent{Name: strings.Repeat("ä", 100), Prompt: strings.Repeat("ä", 50_000)})
	must(t, err)
	_, after, err := s.Agents.Change(ctx, a.ID, func(a *settings.Agent) { a.Name, a.Owner, a.ID = "Bard", "thief", "x" })
	must(t, err)
	if after.Name != "Bard" || after.Owner != "telegram:1" || after.ID != a.ID {
		t.Errorf("changed to %+v", after)
	}
	_, _, err = s.Agents.Change(ctx, a.ID, func(a *settings.Agent) { a.Name = "" })
	wants(t, "to nothing", err, settings.Invalid)
	if got, err := s.Agents.Get(ctx, a.ID); err != nil || got.Name != "Bard" {
		t.Errorf("after a refused change %+v, %v", got, err)
	}
	_, _, err = s.Agents.Change(ctx, "assistant", func(*settings.Agent) {})
	wants(t, "change the built-in one", err, settings.Protected)
	_, err = s.Agents.Delete(ctx, "assistant")
	wants(t, "delete the built-in one", err, settings.Protected)
	_, err = s.Agents.Delete(ctx, a.ID)
	must(t, err)
	_, err = s.Agents.Delete(ctx, a.ID)
	wants(t, "delete again", err, settings.NotFound)
	for range settings.MaxAgents {
		_, err = s.Agents.Add(ctx, settings.Agent{Name: "n", Prompt: "p", Owner: "telegram:3"})
		must(t, err)
	}
	_, err = s.Agents.Add(ctx, settings.Agent{Name: "n", Prompt: "p", Owner: "telegram:3"})
	wants(t, "one too many", err, settings.Full)
}

func TestVariables(t *testing.T) {
	ctx := t.Context()
	kv := openKV(t)
	s, v := open(t, kv)
	must(t, s.Variables.Set(ctx, "B_TOKEN", "hidden value"))
	must(t, s.Variables.Set(ctx, "A", ""))
	must(t, s.Variables.Delete(ctx, "NEVER_THERE"))
	if names, err := s.Variables.Names(ctx); err != nil || strings.Join(names, " ") != "A B_TOKEN" {
		t.Errorf("names %v, %v", names, err)
	}
	got, err := v.Variables(ctx, []string{"B_TOKEN", "A", "C", "not a name"})
	if diff := cmp.Diff(map[string]string{"A": "", "B_TOKEN": "hidden value"}, got); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for _, name := range []string{"", "1A", "a-b", "A/B", strings.Repeat("A", 129), "Ä"} {
		wants(t, name, s.Variables.Set(ctx, name, "v"), settings.Invalid)
		wants(t, name, s.Variables.Delete(ctx, name), settings.Invalid)
	}
	wants(t, "long value", s.Variables.Set(ctx, "A", strings.Repeat("v", settings.MaxVariable+1)), settings.Invalid)
	// A value that was put under another name does not open there.
	entry, err := kv.Get(ctx, "settings/variable/B_TOKEN")
	must(t, err)
	if bytes.Contains(entry.Value, []byte("hidden")) {
		t.Error("the value is not encrypted")
	}
	_, err = kv.Put(ctx, "settings/variable/A", entry.Value, storage.Any)
	must(t, err)
	if got, err := v.Variables(ctx, []string{"A"}); err == nil {
		t.Errorf("a moved value was opened: %v", got)
	}
}

func TestSettingsOfOneKeyAreWrittenSideBySide(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			if _, err := s.Models.Add(ctx, settings.Ref{Provider: settings.PresetID, Model: fmt.Sprint("m", i)}, ""); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if models, err := s.Models.List(ctx, settings.PresetID); err != nil || len(models) != 9 {
		t.Errorf("%d models, %v", len(models), err)
	}
}

// Nothing that is logged or returned as an error holds a secret.
func TestSecretsStaySecret(t *testing.T) {
	ctx := t.Context()
	var log bytes.Buffer
	cfg := config(openKV(t))
	cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s, v, err := settings.Open(cfg)
	must(t, err)
	p, err := s.Providers.Add(ctx, "P", settings.TypeGemini, "https://g.test")
	must(t, err)
	must(t, v.SetKey(ctx, p.ID, "sk-value-secret"))
	must(t, s.Variables.Set(ctx, "V", "var-value-secret"))
	canceled, cancel := context.WithCancel(ctx)
	cancel()
	var texts strings.Builder
	for _, err := range []error{
		v.SetKey(canceled, p.ID, "sk-value-secret"), s.Variables.Set(canceled, "V", "var-value-secret"),
		v.SetKey(ctx, p.ID, "sk-value-secret with spaces"), s.Variables.Set(ctx, "bad name", "var-value-secret"),
	} {
		if err == nil {
			t.Error("no error")
		}
		fmt.Fprintln(&texts, err)
	}
	all, err := s.Providers.List(ctx)
	must(t, err)
	answer, err := s.Chats.Resolve(ctx, "telegram:1", "telegram:1")
	must(t, err)
	fmt.Fprintf(&texts, "%+v %+v %+v", all, answer, log.String())
	if strings.Contains(texts.String(), "-secret") {
		t.Errorf("a secret in %s", texts.String())
	}
}

// Whoever masks secrets learns all that there are, and each that comes.
func TestSecretsAreRevealedToWhoMasksThem(t *testing.T) {
	kv := openKV(t)
	var seen []string
	cfg := config(kv)
	cfg.OnSecret = func(secret string) { seen = append(seen, secret) }
	s, v, err := settings.Open(cfg)
	must(t, err)
	must(t, s.Variables.Set(t.Context(), "A", "value of A"))
	p, err := s.Providers.Add(t.Context(), "Mine", settings.TypeOpenAI, "https://api.example.com/v1")
	must(t, err)
	must(t, v.SetKey(t.Context(), p.ID, "key-of-mine"))
	if want := []string{"value of A", "key-of-mine"}; !slices.Equal(seen, want) {
		t.Errorf("told %q, want %q", seen, want)
	}
	seen = nil
	_, v, err = settings.Open(cfg)
	must(t, err)
	must(t, v.ReportSecrets(t.Context()))
	slices.Sort(seen)
	if want := []string{"key-of-mine", "value of A"}; !slices.Equal(slices.DeleteFunc(seen, func(s string) bool { return s == cfg.Preset.Key }), want) {
		t.Errorf("at the next start told %q, want %q", seen, want)
	}
}

func TestForgetTakesTheChoicesOfAChatAndTheAgentsOfItsOwner(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	mine, err := s.Agents.Add(ctx, settings.Agent{Name: "Mine", Prompt: "p", Owner: "fake:1"})
	must(t, err)
	theirs, err := s.Agents.Add(ctx, settings.Agent{Name: "Theirs", Prompt: "p", Owner: "fake:2"})
	must(t, err)
	for _, chat := range []string{"fake:1", "fake:1:thread", "fake:10"} {
		must(t, s.Chats.SetEffort(ctx, chat, "low"))
	}
	chosen, err := s.Chats.ListChoices(ctx, "fake:1")
	if err != nil || len(chosen) != 2 {
		t.Fatalf("chosen: %v, %v", chosen, err)
	}
	for range 2 {
		must(t, s.Chats.Forget(ctx, "fake:1", "fake:1"))
	}
	for chat, want := range map[string]string{"fake:1": "", "fake:1:thread": "", "fake:10": "low"} {
		if choice, err := s.Chats.Get(ctx, chat); err != nil || choice.Effort != want {
			t.Errorf("%s has chosen %+v, %v", chat, choice, err)
		}
	}
	_, err = s.Agents.Get(ctx, mine.ID)
	wants(t, "the agent of who is forgotten", err, settings.NotFound)
	_, err = s.Agents.Get(ctx, theirs.ID)
	must(t, err)
}

// The voice of a chat is chosen like its model: it moves with the chat, and is listed and forgotten with it.
func TestTheVoiceOfAChatIsOneOfItsChoices(t *testing.T) {
	ctx := t.Context()
	s, _ := open(t, openKV(t))
	wants(t, "an unknown voice", s.Chats.SetVoice(ctx, "fake:1", "loud"), settings.Invalid)
	must(t, s.Chats.SetVoice(ctx, "fake:1", settings.VoiceOn))
	must(t, s.Chats.Move(ctx, "fake:1", "fake:1", "fake:2", "fake:2"))
	chosen, err := s.Chats.ListChoices(ctx, "fake:2")
	if err != nil || chosen["fake:2"].Voice != settings.VoiceOn {
		t.Errorf("after a move: %v, %v", chosen, err)
	}
	must(t, s.Chats.Forget(ctx, "fake:2", "fake:2"))
	for _, chat := range []string{"fake:1", "fake:2"} {
		if choice, err := s.Chats.Get(ctx, chat); err != nil || choice != (settings.Choice{}) {
			t.Errorf("%s has chosen %+v, %v", chat, choice, err)
		}
	}
}
