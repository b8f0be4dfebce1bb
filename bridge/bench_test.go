package bridge_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// BenchmarkMessage carries one message after another from the platform to the answer,
// with every write on disk, and counts what is allocated on the way.
func BenchmarkMessage(b *testing.B) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "db")})
	if err != nil {
		b.Fatal(err)
	}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		b.Fatal(err)
	}
	p := newPlatform()
	bot, err := bridge.New(bridge.Config{
		Store: store, Turns: turn.Settings{Agent: thinker(echo), Tools: func() *toolgroups.Registry { return registry }},
		Platforms: []chats.Platform{p}, Access: access.Access{Allow: []string{"*"}}, DataDir: b.TempDir(), Limits: bridge.Limits{DrainTimeout: -1},
	})
	if err != nil {
		b.Fatal(err)
	}
	ctx, cancel := context.WithCancel(b.Context())
	done := make(chan error, 1)
	go func() { done <- bot.Run(ctx) }()
	b.ReportAllocs()
	n := 0
	for b.Loop() {
		p.mu.Lock()
		answered := p.changed
		p.mu.Unlock()
		if err := bot.Accept(ctx, direct(fmt.Sprint(n), "hello")); err != nil {
			b.Fatal(err)
		}
		<-answered
		n++
	}
	b.StopTimer()
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := store.Close(); err != nil {
		b.Error(err)
	}
}
