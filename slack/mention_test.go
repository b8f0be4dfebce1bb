package slack

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// Slack reports a mention before the message or after it, and often without its files.
func TestTheFilesOfAMentionArriveInEitherOrder(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		cfg := quick()
		cfg.Seed = seed
		f := start(t, cfg, nil)
		file := &emulator.SayOptions{Files: []emulator.Attachment{{Name: "a.txt", MIME: "text/plain", Data: []byte("x")}}}
		root := f.say(f.channel, "<@U0BOT> read this file", file)
		f.acked(root)
		file.Thread = f.say(f.channel, "lunch?", nil).TS
		reply := f.say(f.channel, "<@U0BOT> and this", file)
		f.acked(reply)
		first := map[string]bool{}
		for _, m := range f.in.all() { // the inbox keeps the first of two
			if !first[m.ID] && len(m.Files) != 1 {
				t.Errorf("seed %d: %q comes first, without its file", seed, m.Text)
			}
			first[m.ID] = true
		}
		if !first[root.TS] || !first[reply.TS] {
			t.Errorf("seed %d: got %+v", seed, f.in.all())
		}
	}
}

func TestTheOtherEventCompletesAMentionThatCannotBeReadAgain(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	f.inject(emulator.Fault{Method: "conversations.replies", Effect: emulator.Refuse, Error: "missing_scope"})
	common := `"channel":"C1","user":"U1","text":"<@U0BOT> read this","ts":"1700000000.000100"`
	bare := f.SendEvent("", json.RawMessage(`{"type":"app_mention",`+common+`}`))
	f.acked(bare)
	whole := json.RawMessage(`{"type":"message","subtype":"file_share","channel_type":"channel",` + common + `,"files":[{"id":"F1","name":"a.txt","url_private":"https://files.slack.com/a"}]}`)
	f.acked(f.SendEvent("", whole))
	f.acked(f.SendEvent("", whole)) // Slack repeats what was confirmed late
	type arrival struct {
		Kind  chats.Kind
		Files int
	}
	var got []arrival
	for _, m := range f.in.all() {
		got = append(got, arrival{m.Kind, len(m.Files)})
	}
	want := []arrival{{chats.KindText, 0}, {chats.KindText, 1}, {chats.KindEdit, 1}, {chats.KindText, 1}}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestAMentionIsReadAgainOnlyIfItComesFirst(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	common := `"channel":"C1","user":"U1","text":"<@U0BOT> hello","ts":"1700000000.000100"`
	for _, event := range []string{`{"type":"message","channel_type":"channel",` + common + `}`, `{"type":"app_mention",` + common + `}`} {
		f.acked(f.SendEvent("", json.RawMessage(event)))
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount("conversations.replies"); n != 0 {
			t.Errorf("it is read %d times", n)
		}
	})
}

func TestADeletedQuestionIsReported(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> one", nil)
	reply := f.say(f.channel, "two", &emulator.SayOptions{Thread: root.TS})
	aside := f.say(f.channel, "lunch?", nil)
	f.acked(root, reply, aside)
	before := len(f.in.all())
	for _, ts := range []string{reply.TS, aside.TS, root.TS} {
		sent, err := f.Delete(f.channel, ts)
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
	}
	tombstone := `{"type":"message","subtype":"message_changed","channel":"C1","ts":"1700000009.000100","message":{"subtype":"tombstone","user":"USLACKBOT","ts":"` + root.TS + `"},
		"previous_message":{"type":"message","user":"U1","text":"<@U0BOT> one","ts":"` + root.TS + `","thread_ts":"` + root.TS + `"}}`
	f.acked(f.SendEvent("", json.RawMessage(tombstone)))
	var got []string
	for _, m := range f.in.all()[before:] {
		got = append(got, string(m.Kind)+" "+m.ID+" "+m.Chat.Thread+" "+m.User+m.Text)
	}
	of := func(ts string) string { return "delete " + ts + " " + root.TS + " " + f.user }
	if diff := cmp.Diff([]string{of(reply.TS), of(root.TS), of(root.TS)}, got); diff != "" {
		t.Error(diff)
	}
}
