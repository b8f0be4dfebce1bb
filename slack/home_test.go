package slack

import (
	"context"
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
)

// house is an inbox that says what it can do.
type house struct{ *inbox }

func (h house) Welcome(_ context.Context, m chats.Message) (chats.Welcome, error) {
	return chats.Welcome{
		Prompts:  []chats.Prompt{{Title: "Mail", Message: "What can you do with Mail?"}, {Title: "Web", Message: "What can you do with the web?"}},
		Sections: []chats.Section{{Title: "What I can do", Text: "**Mail** for " + m.User + ", <!channel>"}, {Title: "Usage", Text: strings.Repeat("long ", 2000)}},
	}, nil
}

func TestWhoOpensTheAppIsWelcomed(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.p.Run(ctx, house{f.in}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for _, tab := range []string{"home", "messages"} {
		if _, err := f.OpenHome(f.user, tab); err != nil {
			t.Fatal(err)
		}
	}
	root := f.say(f.dm, "find my flight\nand the hotel", nil)
	f.say(f.dm, "with breakfast", &emulator.SayOptions{Thread: root.TS})
	command := f.say(f.dm, "!usage", nil)
	f.in.wait(t, 3)
	f.wait(func(s emulator.State) bool {
		return strings.Contains(s.Home(f.user), "*Mail* for U1") && len(s.Prompts(f.dm)) == 2 && s.Title(f.dm, root.TS) == "find my flight"
	})
	f.View(func(s emulator.State) {
		if home := s.Home(f.user); strings.Contains(home, "<!channel>") {
			t.Errorf("the tab calls people: %.100s", home)
		}
		if title := s.Title(f.dm, command.TS); title != "" {
			t.Errorf("a command is the title %q", title)
		}
	})
}

// A plain app is asked for nothing that it lacks, and one whose tab is refused once no more.
func TestAPlainAppWelcomesNobody(t *testing.T) {
	f := setup(t, quick(), nil)
	f.inject(emulator.Fault{Method: "views.publish", Effect: emulator.Refuse, Error: "not_enabled"})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- f.p.Run(ctx, house{f.in}) }()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	for _, tab := range []string{"messages", "home"} {
		if _, err := f.OpenHome(f.user, tab); err != nil {
			t.Fatal(err)
		}
	}
	f.wait(func(s emulator.State) bool { return s.CallCount("views.publish") == 1 })
	f.p.surface.Stop()
	f.p.surface.Start(false)
	sent, err := f.OpenHome(f.user, "home")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(sent)
	f.say(f.dm, "hello", nil)
	f.in.wait(t, 1)
	f.View(func(s emulator.State) {
		if s.CallCount("views.publish") != 1 || s.CallCount("assistant.threads.setSuggestedPrompts")+s.CallCount("assistant.threads.setTitle") > 0 {
			t.Error("slack is asked for what the app lacks")
		}
	})
}
