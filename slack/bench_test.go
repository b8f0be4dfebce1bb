package slack

import (
	"context"
	"net/http"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
)

// answering answers each message in its thread.
type answering struct {
	p    *platform
	sent chan error
}

func (a *answering) Accept(_ context.Context, messages ...chats.Message) error {
	for _, m := range messages {
		go func() {
			_, err := a.p.Send(context.Background(), chats.Address{Chat: m.Chat}, chats.Part{Text: "answer"})
			a.sent <- err
		}()
	}
	return nil
}

func (a *answering) Moved(context.Context, chats.Chat, chats.Chat) error { return nil }

// BenchmarkRoundTrip is from a direct message to its answer at Slack, over a socket
// and HTTP on this machine, without a bridge or a model.
func BenchmarkRoundTrip(b *testing.B) {
	s, err := emulator.New(emulator.Config{})
	if err != nil {
		b.Fatal(err)
	}
	address, err := s.Start(b.Context())
	if err != nil {
		b.Fatal(err)
	}
	user := s.AddUser(emulator.User{}).ID
	dm, err := s.AddChannel(emulator.ChannelSpec{Kind: emulator.DM, Members: []string{user}})
	if err != nil {
		b.Fatal(err)
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 8}}
	p, err := newPlatform(config{Settings: Settings{BotToken: redact.Secret(s.BotToken()), AppToken: redact.Secret(s.AppToken()), APIURL: address}, httpClient: client})
	if err != nil {
		b.Fatal(err)
	}
	in := &answering{p: p, sent: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, in) }()
	for b.Loop() {
		if _, err := s.Say(dm, user, "hi", nil); err != nil {
			b.Fatal(err)
		}
		if err := <-in.sent; err != nil {
			b.Fatal(err)
		}
	}
	cancel()
	if err := <-done; err != nil {
		b.Error(err)
	}
	if err := s.Close(); err != nil {
		b.Error(err)
	}
	client.CloseIdleConnections()
}

// TestManyThreads answers a mention in each of hundreds of threads at once.
func TestManyThreads(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), nil)
	const threads = 300
	for range threads {
		f.say(f.channel, "<@U0BOT> hi", nil)
	}
	in := &answering{p: f.p, sent: make(chan error, 2*threads)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.p.Run(ctx, in) }()
	f.wait(func(s emulator.State) bool { return s.CountAnswers(f.channel) >= 2*threads })
	for range 2 * threads {
		if err := <-in.sent; err != nil {
			t.Error(err)
		}
	}
	f.wait(func(s emulator.State) bool { return s.UnackedCount() == 0 })
	cancel()
	if err := <-done; err != nil {
		t.Error(err)
	}
	perThread := map[string]int{}
	for _, m := range f.Messages(f.channel) {
		if m.FromBot {
			perThread[m.Thread]++
		}
	}
	if len(perThread) != threads || perThread[""] != 0 {
		t.Errorf("answers in %d threads, %d in none", len(perThread), perThread[""])
	}
}
