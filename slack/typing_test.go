package slack

import (
	"context"
	"errors"
	"iter"
	"log/slog"
	"testing"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
)

// worker works until it is told how to end.
type worker struct {
	end chan func() (agent.Message, error)
}

func (w worker) Run(ctx context.Context, _ agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		select {
		case end := <-w.end:
			yield(end())
		case <-ctx.Done():
			yield(agent.Message{}, context.Cause(ctx))
		}
	}
}

func TestNoStatusOutlivesItsTurn(t *testing.T) {
	t.Parallel()
	answer := func(text string) (agent.Message, error) {
		return agent.Message{Role: agent.RoleAssistant, Text: text, Final: true}, nil
	}
	tests := []struct {
		name  string
		fault emulator.Fault
		end   func() (agent.Message, error) // nil for /stop
	}{
		{"answer", emulator.Fault{}, func() (agent.Message, error) { return answer("done") }},
		{"nothing to say", emulator.Fault{}, func() (agent.Message, error) { return answer("") }},
		{"error", emulator.Fault{}, func() (agent.Message, error) { return agent.Message{}, errors.New("no model") }},
		{"panic", emulator.Fault{}, func() (agent.Message, error) { panic("no model") }},
		{"stop", emulator.Fault{}, nil},
		{"answer refused", emulator.Fault{Method: postMessage, Times: 1, Effect: emulator.Refuse, Error: "restricted_action"}, func() (agent.Message, error) { return answer("done") }},
		{"answer lost", emulator.Fault{Method: postMessage, Times: 1, Effect: emulator.CutAfter}, func() (agent.Message, error) { return answer("done") }},
	}
	f := setup(t, quick(), nil)
	w := worker{end: make(chan func() (agent.Message, error))}
	f.bridged(w)
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := f.say(f.channel, "<@U0BOT> work", nil)
			f.wait(func(s emulator.State) bool { _, shown := s.Status(f.channel, root.TS); return shown })
			if tt.fault.Effect != "" {
				f.inject(tt.fault)
			}
			if tt.end == nil {
				f.say(f.channel, "<@U0BOT> stop", &emulator.SayOptions{Thread: root.TS})
			} else {
				w.end <- tt.end
			}
			if tt.name == "panic" {
				w.end <- tt.end // a job has two lives
			}
			f.wait(func(s emulator.State) bool { return s.StatusCount() == 0 })
		})
	}
}

func TestStatusesOfAKilledProcessAreCleared(t *testing.T) {
	kept := &notes{}
	f := start(t, quick(), func(c *config) { c.kv = kept })
	root := f.say(f.channel, "<@U0BOT> hi", nil)
	f.acked(root)
	f.stop()
	// It was killed before it could clear this.
	if err := f.p.SetTyping(t.Context(), chats.Address{Chat: chatOf(f.channel, root.TS)}, true); err != nil {
		t.Fatal(err)
	}
	p, err := newPlatform(config{
		Settings: Settings{BotToken: redact.Secret(f.BotToken()), AppToken: redact.Secret(f.AppToken()), APIURL: f.url}, httpClient: f.client, kv: kept,
		logger: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.p = p
	f.run()
	f.wait(func(s emulator.State) bool { return s.StatusCount() == 0 })
}
