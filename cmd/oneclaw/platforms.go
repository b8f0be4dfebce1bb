package main

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/internal/doctor"
	"oneclaw/slack"
	"oneclaw/storage"
	"oneclaw/telegram"
)

// Platforms are the settings of all platforms. A new one is a package and a line here.
type Platforms struct {
	Telegram telegram.Settings `yaml:"telegram"`
	Slack    slack.Settings    `yaml:"slack"`
}

// platform is what the settings of each can do. The package of the platform says more.
type platform interface {
	Default()
	Missing() string // what to set; empty where the platform is configured
	Validate() error
	Open(kv storage.KV, log *slog.Logger) (chats.Platform, error)
	Doctor(ctx context.Context) *doctor.Finding
}

// linking is a platform with links that claim the bot.
type linking interface {
	Link(ctx context.Context, log *slog.Logger) func(code string) string
}

// asking is a platform that setup asks about.
type asking interface {
	Question() (explanation, what, key string)
	Answer(ctx context.Context, answer string) (string, error)
}

// all yields each platform under its name in the settings.
func (p *Platforms) all(yield func(string, platform) bool) {
	for field, value := range reflect.ValueOf(p).Elem().Fields() {
		if !yield(field.Tag.Get("yaml"), value.Addr().Interface().(platform)) {
			return
		}
	}
}

// publish tells platforms where the bot is reached from outside.
func (c *Config) publish() {
	for _, one := range c.all {
		if p, ok := one.(interface{ Publish(address string) }); ok {
			p.Publish(c.PublicURL)
		}
	}
}

func (p *Platforms) check() error {
	var hints []string
	for _, one := range p.all {
		hint := one.Missing()
		if hint == "" {
			return nil
		}
		hints = append(hints, hint)
	}
	return errors.New("no platform is configured: oneclaw setup asks for what is needed, or " + strings.Join(hints, ", or "))
}

func (p *Platforms) open(kv storage.KV, leads func() bool, log *slog.Logger) ([]chats.Platform, error) {
	p.Slack.Share(leads)
	var opened []chats.Platform
	for _, one := range p.all {
		if one.Missing() != "" {
			continue
		}
		made, err := one.Open(kv, log)
		if err != nil {
			return nil, err
		}
		opened = append(opened, made)
	}
	return opened, p.check()
}
