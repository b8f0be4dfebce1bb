package app

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
	"oneclaw/storage/replicas"
)

// newAdminPages creates the administrators' pages, which require signing in.
func (b *Bot) newAdminPages(cfg config.Config) (http.Handler, error) {
	bot := admin.Bot{
		Version: cfg.Runtime.Version, ReceiveErrors: b.bridge.PlatformErrors, Examine: func(ctx context.Context) ([]doctor.Finding, error) { return runChecks(ctx, cfg) },
		QueueStats: b.bridge.QueueStats,
	}
	if b.store.Shared() {
		bot.Replicas = func(ctx context.Context) ([]replicas.Member, error) { return replicas.List(ctx, b.store) }
	}
	more, err := b.operationsViews(cfg)
	if err != nil {
		return nil, err
	}
	return admin.New(admin.Config{
		ExtraViews: more, Store: b.store, People: b.bridge.People().ListPeople, Explain: b.bridge.Explain, Bot: bot, Ledger: b.ledger,
		Texts: admin.Texts{Allowed: cfg.AdminTexts, Announce: func(ctx context.Context, chat chats.Chat, key, text string) error {
			return b.bridge.Post(ctx, key, chat, interact.Card{Text: text})
		}},
		Visitor: func(r *http.Request) (frame.Visitor, bool) {
			s, ok := signin.FromContext(r.Context())
			return frame.Visitor{Person: s.User, Name: s.Name, CSRF: s.CSRF}, ok
		},
		Tools:   admin.ToolSource{Registry: b.tools.Registry, Servers: b.tools.mcp.Status},
		Program: admin.Program{Settings: b.effectiveSettings(cfg), Errors: b.errors},
		SignOut: "leave", Redact: cfg.Redact.Text, Zone: zoneOf(b.tools.settings, cfg.Zone()), Log: b.log, Now: cfg.Runtime.Now,
	})
}

// groupOf returns the group of a tool for the ledger: core for core tools, "" for unknown ones.
func (b *Bot) groupOf(tool string) string {
	registry := b.tools.Registry()
	if group, grouped := registry.GroupOf(tool); grouped {
		return group
	}
	if _, known := registry.Tool(tool); known {
		return "core"
	}
	return ""
}

// runChecks returns doctor's findings about the running program.
func runChecks(ctx context.Context, cfg config.Config) (all []doctor.Finding, err error) {
	var out bytes.Buffer
	d := &checker{cfg: cfg, running: true}
	if err := doctor.Examine(ctx, d.checks(), cfg.Redact.Text, true, &out); err != nil && out.Len() == 0 {
		return nil, err
	}
	if err := json.NewDecoder(&out).Decode(&all); err != nil {
		return nil, errors.Join(ctx.Err(), fmt.Errorf("decode findings: %w", err))
	}
	if ctx.Err() != nil {
		all = append(all, doctor.Finding{Check: "the rest", Status: doctor.VerdictFail, Text: "these checks took too long, so others were not made: oneclaw doctor makes all of them"})
	}
	return all, nil
}

// effectiveSettings returns a function that lists the current settings, wherever they are set.
func (b *Bot) effectiveSettings(cfg config.Config) func(context.Context) ([]admin.Setting, error) {
	return func(ctx context.Context) ([]admin.Setting, error) {
		began, err := cfg.EffectiveSettings()
		if err != nil {
			return nil, err
		}
		all, err := b.changedSettings(ctx)
		if err != nil {
			return nil, err
		}
		for _, s := range began {
			all = append(all, admin.Setting{Name: s.Key, Value: s.Value, Source: s.From, Changed: s.Changed})
		}
		return all, nil
	}
}

// changedSettings returns the settings that administrators changed in a chat.
func (b *Bot) changedSettings(ctx context.Context) (all []admin.Setting, err error) {
	for _, name := range b.tools.settings.Values.Names() {
		value, changed, err := b.tools.settings.Values.GetStored(ctx, name)
		if err != nil {
			return nil, err
		}
		if changed {
			all = append(all, admin.Setting{Name: name, Value: value, Source: "changed in a chat; it counts instead of the setting below", Changed: true})
		}
	}
	return all, nil
}

// logChangedSettings tells an operator which settings of the file and the environment do not count.
func (b *Bot) logChangedSettings(ctx context.Context) {
	all, err := b.changedSettings(ctx)
	if err != nil {
		b.log.Warn("cannot read which settings were changed in a chat", "err", err)
	}
	for _, s := range all {
		b.log.Info("this setting was changed in a chat, which counts instead of the settings file and the environment; set_config with the value default takes it back", "setting", s.Name, "value", s.Value)
	}
}
