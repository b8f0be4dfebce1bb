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

// Platforms has the settings of all platforms. To add a platform, write a package and add a field here.
type Platforms struct {
	Telegram telegram.Settings `yaml:"telegram"`
	Slack    slack.Settings    `yaml:"slack"`
}

// platform is implemented by the settings of each platform.
type platform interface {
	Default()
	Missing() string // what to set; empty if the platform is configured
	Validate() error
	Open(kv storage.KV, log *slog.Logger) (chats.Platform, error)
	Doctor(ctx context.Context) *doctor.Finding
	// Questions returns the questions of setup, in order.
	Questions() []doctor.Question
}

// ClaimLinker is implemented by platforms that have links for claiming the bot.
type ClaimLinker interface {
	// Link returns a function that returns the link for a code, or nil if the bot's name is unknown.
	Link(ctx context.Context, log *slog.Logger) func(code string) string
}

// All yields the name and the settings of each platform.
func (p *Platforms) All(yield func(string, platform) bool) {
	for field, value := range reflect.ValueOf(p).Elem().Fields() {
		if !yield(field.Tag.Get("yaml"), value.Addr().Interface().(platform)) {
			return
		}
	}
}

// PlatformNames returns the names of all platforms, configured or not.
func PlatformNames() []string {
	var names []string
	for name := range new(Platforms).All {
		names = append(names, name)
	}
	return names
}

// publish passes the bot's external address to the platforms that need it.
func (c *Config) publish() {
	for _, one := range c.All {
		if p, ok := one.(interface{ Publish(address string) }); ok {
			p.Publish(c.PublicURL)
		}
	}
}

// Check returns an error that says what to set if no platform is configured.
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

// Open returns the configured platforms. leads reports whether this process is the leader.
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
