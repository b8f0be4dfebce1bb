package slack

import (
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
	"oneclaw/slack/surface"
)

func TestAnswersAreJudgedWithSlacksButtons(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	f.run()
	root := f.say(f.dm, "tell", nil)
	f.in.wait(t, 1)
	part := chats.Part{Text: "*well* told", FeedbackButtons: true}
	ts, err := f.send(chatOf(f.dm, root.TS), part)
	if err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, ts); !m.HasFeedback || m.Shown != part.Text || m.Text != part.Text {
		t.Errorf("there stands %+v", m)
	}
	for i, says := range []chats.Feedback{chats.FeedbackGood, chats.FeedbackBad} {
		if _, err := f.Press(f.dm, ts, f.user, string(map[chats.Feedback]string{chats.FeedbackGood: "good", chats.FeedbackBad: "bad"}[says]), false); err != nil {
			t.Fatal(err)
		}
		got := f.in.wait(t, i+2)[i+1]
		if got.Kind != chats.KindFeedback || got.TargetID != ts || got.Text != string(says) || got.User != f.user {
			t.Errorf("it comes as %+v", got)
		}
	}
	f.wait(func(s emulator.State) bool {
		n := 0
		for _, m := range s.Messages(f.dm) {
			if m.Ephemeral == f.user && m.Shown == surface.FeedbackThanks {
				n++
			}
		}
		return n == 2
	})
	// A workspace that does not know the buttons is not asked again.
	f.inject(emulator.Fault{Method: "chat.update", Times: 1, Effect: emulator.Refuse, Error: "invalid_blocks"})
	to := chats.Address{Chat: chatOf(f.dm, root.TS)}
	if err := f.p.Edit(t.Context(), to, ts, part); err != nil {
		t.Fatal(err)
	}
	again, err := f.send(to.Chat, part)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{ts, again} {
		if m := f.message(f.dm, id); m.HasFeedback || m.Shown != part.Text {
			t.Errorf("there stands %+v", m)
		}
	}
}

func TestAPlainAppShowsNoButtonsToJudge(t *testing.T) {
	f := start(t, quick(), nil)
	ts, err := f.send(chatOf(f.dm, ""), chats.Part{Text: "told", FeedbackButtons: true})
	if err != nil {
		t.Fatal(err)
	}
	if m := f.message(f.dm, ts); m.HasFeedback || len(m.Blocks) > 0 {
		t.Errorf("there stands %+v", m)
	}
}
