package config

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
	// Questions are what setup asks for, in order.
	Questions() []doctor.Question
}

// Linking is a platform with links that claim the bot.
type Linking interface {
	// Link returns what makes a link of a code, or nil where the platform cannot tell.
	Link(ctx context.Context, log *slog.Logger) func(code string) string
}

// All yields each platform under its name in the settings.
func (p *Platforms) All(yield func(string, platform) bool) {
	for field, value := range reflect.ValueOf(p).Elem().Fields() {
		if !yield(field.Tag.Get("yaml"), value.Addr().Interface().(platform)) {
			return
		}
	}
}

// PlatformNames are the names of all platforms, configured or not.
func PlatformNames() []string {
	var names []string
	for name := range new(Platforms).All {
		names = append(names, name)
	}
	return names
}

// publish tells platforms where the bot is reached from outside.
func (c *Config) publish() {
	for _, one := range c.All {
		if p, ok := one.(interface{ Publish(address string) }); ok {
			p.Publish(c.PublicURL)
		}
	}
}

// Check says what to set where no platform is configured.
func (p *Platforms) Check() error {
	var hints []string
	for _, one := range p.All {
		hint := one.Missing()
		if hint == "" {
			return nil
		}
		hints = append(hints, hint)
	}
	return errors.New("no platform is configured: oneclaw setup asks for what is needed, or " + strings.Join(hints, ", or "))
}

// Open returns the platforms that are configured. Those that share work ask leads whether
// this process leads.
func (p *Platforms) Open(kv storage.KV, leads func() bool, log *slog.Logger) ([]chats.Platform, error) {
	var opened []chats.Platform
	for _, one := range p.All {
		if one.Missing() != "" {
			continue
		}
		if sharing, ok := one.(interface{ Share(leads func() bool) }); ok {
			sharing.Share(leads)
		}
		made, err := one.Open(kv, log)
		if err != nil {
			return nil, err
		}
		opened = append(opened, made)
	}
	return opened, nil
}
