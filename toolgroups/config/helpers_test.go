package config_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/internal/settings"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/config"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// broken is a store whose writes can be made to fail.
type broken struct {
	storage.KV
	writes bool
	reads  bool
}

var errDisk = errors.New("write /var/lib/secret-path: disk full")

func (b *broken) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	if b.writes {
		return 0, errDisk
	}
	return b.KV.Put(ctx, key, value, rev)
}

func (b *broken) Delete(ctx context.Context, key string, rev storage.Revision) error {
	if b.writes {
		return errDisk
	}
	return b.KV.Delete(ctx, key, rev)
}

func (b *broken) Get(ctx context.Context, key string) (storage.Entry, error) {
	if b.reads {
		return storage.Entry{}, errDisk
	}
	return b.KV.Get(ctx, key)
}

// harness is the family at work, with a catalogue that follows the switches.
type harness struct {
	t        testing.TB
	settings *settings.Settings
	vault    *settings.Vault
	kv       *broken
	registry atomic.Pointer[toolgroups.Registry]
	family   *config.Tools
	fetched  []settings.Model
	fails    error
	log      bytes.Buffer
}

const presetKey = "sk-preset-secret"

// weekly is one skill, which is switched off.
type weekly struct{}

func (weekly) States() map[string]bool { return map[string]bool{"weekly": false} }

func (weekly) Description(string) string { return "sum up\n\"now\"" }

func newDesk(t testing.TB) *harness {
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
	d := &harness{t: t, kv: &broken{KV: store}}
	d.settings, d.vault, err = settings.Open(settings.Config{
		Now: time.Now, KV: d.kv, SecretKey: []byte("0123456789abcdef"),
		Preset:   settings.Preset{Type: settings.TypeOpenAI, BaseURL: "https://api.test/v1", Key: presetKey, Model: "gpt-5-mini"},
		Agents:   []settings.Agent{{ID: "assistant", Name: "Assistant", Prompt: strings.Repeat("You help. ", 30)}},
		Defaults: map[string]string{settings.SettingRouting: "groups", settings.SettingLogLevel: "info", settings.SettingTimeZone: "UTC"},
		Logger:   slog.New(slog.NewTextHandler(&d.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.family, err = config.New(config.Config{
		Settings: d.settings, Registry: d.registry.Load, OnSwitch: d.rebuild, Skills: weekly{},
		FetchModels: func(context.Context, settings.Provider) ([]settings.Model, error) { return d.fetched, d.fails },
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.rebuild(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d
}

// rebuild is what a catalogue does: the same tools with the switches of now.
func (d *harness) rebuild(ctx context.Context) error {
	offTools, offGroups, err := d.settings.Switches.ListOff(ctx)
	if err != nil {
		return err
	}
	groups := []toolgroups.Group{
		d.family.Group(), {Name: "pdf", DisplayName: "PDF Tools", Tools: []toolgroups.Tool{fake("pdf_info"), fake("pdf_extract_text")}}, {Name: "google_gmail"},
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{
		Core: []toolgroups.Tool{d.family.CreateAgent(), fake("exec")}, Groups: groups, DisabledTools: offTools, DisabledGroups: offGroups,
	})
	d.registry.Store(reg)
	return err
}

func fake(name string) toolgroups.Tool {
	return toolgroups.Tool{Name: name, Description: "Does " + name, Run: func(_ context.Context, call toolgroups.Call) (toolgroups.Result, error) {
		return toolgroups.TextResult("ran %s", call.Name)
	}}
}

func admin() toolgroups.Scope {
	return toolgroups.Scope{User: "telegram:1", Role: toolgroups.RoleAdmin, Chat: "telegram:1", Direct: true, Owner: "telegram:1"}
}

// call runs a tool through the dispatch: arguments are checked, texts bounded.
func (d *harness) call(scope toolgroups.Scope, name string, arguments any) (string, *toolgroups.Error) {
	d.t.Helper()
	tool, ok := d.registry.Load().Tool(name)
	if !ok {
		d.t.Fatalf("no tool %s", name)
	}
	raw, err := json.Marshal(arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	res, fault := toolgroups.Run(context.Background(), nil, tool, toolgroups.Call{ID: "1", Name: name, Arguments: raw, Scope: scope})
	if fault != nil {
		d.clean(fault.Message)
	}
	d.clean(res.Text)
	return res.Text, fault
}

// clean fails where a text holds what no tool may tell.
func (d *harness) clean(text string) {
	d.t.Helper()
	for _, word := range []string{"-secret", "secret-path", "disk full"} {
		if strings.Contains(text, word) {
			d.t.Errorf("%q in %s", word, text)
		}
	}
}

type args map[string]any

// ok wants the tool to succeed and its text to hold the words.
func (d *harness) ok(name string, arguments args, words ...string) string {
	d.t.Helper()
	text, fault := d.call(admin(), name, arguments)
	if fault != nil {
		d.t.Fatalf("%s: %s: %s", name, fault.Code, fault.Message)
	}
	for _, w := range words {
		if !strings.Contains(text, w) {
			d.t.Errorf("%s: no %q in:\n%s", name, w, text)
		}
	}
	return text
}

// fault wants the tool to fail with a code and words.
func (d *harness) fault(code, name string, arguments args, words ...string) {
	d.t.Helper()
	text, fault := d.call(admin(), name, arguments)
	if fault == nil {
		d.t.Errorf("%s %v: no error but %q", name, arguments, text)
		return
	}
	if fault.Code != code {
		d.t.Errorf("%s %v: %s (%s), want %s", name, arguments, fault.Code, fault.Message, code)
	}
	for _, w := range words {
		if !strings.Contains(fault.Message, w) {
			d.t.Errorf("%s %v: no %q in: %s", name, arguments, w, fault.Message)
		}
	}
}

// provider adds one and returns its id.
func (d *harness) provider() string {
	d.t.Helper()
	d.ok("create_provider", args{"name": "Local", "type": "OPENAI", "api_base_url": "http://127.0.0.1:11434/v1"})
	all, err := d.settings.Providers.List(d.t.Context())
	if err != nil || len(all) < 2 {
		d.t.Fatalf("%v, %v", all, err)
	}
	return all[1].ID
}

// agent makes one and returns its id.
func (d *harness) agent() string {
	d.t.Helper()
	text := d.ok("create_agent", args{"name": "Poet", "system_prompt": "Answer in rhymes."})
	_, rest, _ := strings.Cut(text, "with the id ")
	id, _, found := strings.Cut(rest, ".")
	if !found {
		d.t.Fatal(text)
	}
	return id
}

func repeat(n int) string { return strings.Repeat("ä", n) }
