package slack

import (
	"slices"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// Reactions that mean something arrive with who gave them and their emoji, also if they are taken back; where the app may
// not read reactions, it promises none.
func TestReactionsArrive(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	ts, err := f.send(chatOf(f.channel, ""), chats.Part{Text: "May I?"})
	if err != nil {
		t.Fatal(err)
	}
	if !f.p.ReportsReactions(t.Context(), chatOf(f.channel, "")) {
		t.Error("it promises no reactions")
	}
	type said struct {
		emoji string
		what  chats.Feedback
	}
	var want []said
	for _, one := range []struct {
		name, emoji string
		back        bool
		what        chats.Feedback
	}{
		{"+1::skin-tone-3", "👍", false, chats.FeedbackGood}, {"white_check_mark", "✅", false, chats.FeedbackGood}, {"heart", "❤", false, chats.FeedbackGood},
		{"-1", "👎", false, chats.FeedbackBad}, {"x", "❌", false, chats.FeedbackBad}, {"tada", "", false, ""}, {"x", "❌", true, chats.FeedbackNotBad},
	} {
		sent, err := f.React(f.channel, ts, f.user, one.name, one.back)
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
		if one.emoji != "" {
			want = append(want, said{one.emoji, one.what})
		}
	}
	var got []said
	for _, m := range f.in.all() {
		if m.Kind != chats.KindFeedback || m.User != f.user || m.UserName != "Ann Lee" || m.Direct || m.TargetID != ts || m.Time.IsZero() {
			t.Errorf("arrived: %+v", m)
		}
		got = append(got, said{m.Emoji, chats.Feedback(m.Text)})
	}
	if !slices.Equal(got, want) {
		t.Errorf("arrived %q, want %q", got, want)
	}
	lacks := quick()
	lacks.Scopes = slices.DeleteFunc(emulator.DefaultScopes(), func(scope string) bool { return scope == "reactions:read" })
	if f = start(t, lacks, nil); f.p.ReportsReactions(t.Context(), chatOf(f.channel, "")) {
		t.Error("without the scope it promises reactions")
	}
}
