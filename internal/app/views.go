package app

import (
	"context"
	"net/http"
	"slices"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/config"
	"oneclaw/internal/doctor"
)

// newAdminPages creates the administrators' pages, which require signing in.
func (b *Bot) newAdminPages(cfg config.Config) (http.Handler, error) {
	return admin.New(admin.Config{
		Store: b.store, People: b.bridge.People(), Approvals: bridge.ApprovalsOf(b.bridge), Explain: b.bridge.Explain, Ledger: b.ledger, Allowance: cfg.Allowance(), Errors: cfg.Errors,
		Bot: admin.Bot{
			Version: cfg.Runtime.Version, QueueStats: b.bridge.QueueStats, ChatName: b.bridge.ChatName,
			Health:  func(ctx context.Context) []doctor.Finding { return b.health(ctx, cfg) },
			Examine: func(ctx context.Context) []doctor.Finding { return runChecks(ctx, cfg) },
		},
		Texts: admin.Texts{Allowed: cfg.AdminTexts, Announce: func(ctx context.Context, chat chats.Chat, key, text string) error {
			return b.bridge.Post(ctx, key, chat, interact.Card{Text: text})
		}},
		Tools:   admin.ToolSource{Registry: b.tools.Registry, Servers: b.tools.mcp.Status},
		Visitor: func(r *http.Request) (signin.Session, bool) { return signin.FromContext(r.Context()) },
		Redact:  cfg.Redact.Text, RedactCards: cfg.Redact.MaskKnown, Zone: zoneOf(b.tools.settings, cfg.Zone()), Log: b.log, Now: cfg.Runtime.Now,
	})
}

// healthTimeout bounds each check of a page about the bot's health.
const healthTimeout = 3 * time.Second

// health returns the state of each platform and of the model, with doctor's advice about those that do not work.
func (b *Bot) health(ctx context.Context, cfg config.Config) []doctor.Finding {
	var checks []doctor.Check
	failures := b.bridge.PlatformErrors()
	for name, platform := range cfg.All {
		failure, runs := failures[name]
		if !runs {
			continue
		}
		checks = append(checks, doctor.Check{Name: name, Run: func(ctx context.Context) *doctor.Finding {
			failure := failure
			if failure == nil {
				failure = b.bridge.Ping(ctx, name)
			}
			if failure == nil {
				return doctor.OK("receives")
			}
			if found := platform.Doctor(ctx); found != nil && found.Status == doctor.VerdictFail {
				return found
			}
			return doctor.Fail("receives nothing: %v", failure)
		}})
	}
	checks = append(checks, doctor.Check{Name: "model", Run: (&checker{cfg: cfg, running: true}).checkModel})
	return slices.Collect(doctor.Run(ctx, checks, healthTimeout, cfg.Redact.Text))
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
func runChecks(ctx context.Context, cfg config.Config) []doctor.Finding {
	all := slices.Collect(doctor.Run(ctx, (&checker{cfg: cfg, running: true}).checks(), doctor.Timeout, cfg.Redact.Text))
	if ctx.Err() != nil {
		all = append(all, doctor.Finding{Check: "the rest", Status: doctor.VerdictFail, Text: "these checks took too long, so others were not made: oneclaw doctor makes all of them"})
	}
	return all
}

// logChangedSettings tells an operator which settings of the file and the environment do not count.
func (b *Bot) logChangedSettings(ctx context.Context) {
	for _, name := range b.tools.settings.Values.Names() {
		value, changed, err := b.tools.settings.Values.GetStored(ctx, name)
		if err != nil {
			b.log.Warn("cannot read which settings were changed in a chat", "err", err)
		} else if changed {
			b.log.Info("this setting was changed in a chat, which counts instead of the settings file and the environment; set_config with the value default takes it back", "setting", name, "value", value)
		}
	}
}
