package slack

import (
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
)

// Slack takes the end of a stream for the end of the work: a turn that waits for a decision
// leaves its preview, and what is shown then is that it waits.
func TestSlackShowsThatADecisionIsDue(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	f.run()
	root := f.say(f.dm, "do it", nil)
	f.in.wait(t, 1)
	to := chats.Address{Chat: chatOf(f.dm, root.TS)}
	is := func(status string) {
		t.Helper()
		f.wait(func(s emulator.State) bool { return s.Session(f.dm, root.TS) == status })
	}
	id, err := f.p.Begin(t.Context(), to, chats.Preview{Part: chats.Part{Text: "I am"}, Text: "I am", UnclosedText: "I am"})
	if err != nil {
		t.Fatal(err)
	}
	is("processing")
	f.p.SetWaiting(t.Context(), to.Chat, true)
	is("suspended")
	set := 0
	f.View(func(s emulator.State) { set = s.CallCount("agents.sessions.setStatus") })
	if err := f.p.Finish(t.Context(), to, id, chats.Part{Text: "I am asking."}); err != nil {
		t.Fatal(err)
	}
	f.wait(func(s emulator.State) bool { return s.CallCount("agents.sessions.setStatus") > set })
	is("suspended")
	f.p.SetWaiting(t.Context(), to.Chat, false)
	is("active")
	f.p.SetWaiting(t.Context(), to.Chat.WithoutThread(), true) // there is no session outside of a thread
}
