package slack

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

var me = identity{user: "U0BOT", bot: "B0BOT", name: "oneclaw", team: "T0ONECLAW"}

// offline is a receiver that can look nothing up, so that names are ids.
func offline(t testing.TB) *receiver {
	t.Helper()
	p, err := newPlatform(config{Settings: Settings{BotToken: "xoxb-test-0123456789", AppToken: "xapp-test-0123456789", APIURL: "http://127.0.0.1:1/api/"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"U1", "U2"} {
		p.people.Put(id, person{name: "name of " + id}, personAge)
	}
	return &receiver{platform: p, in: newInbox(), self: me, queues: newWorkQueues(nil)}
}

func wrap(t testing.TB, event []byte) []byte {
	t.Helper()
	data, err := json.Marshal(map[string]any{
		"type": "event_callback", "team_id": me.team, "event_id": "Ev1", "event": json.RawMessage(event),
	})
	if err != nil {
		t.Fatal(err)
	}
	return data
}

var update = flag.Bool("update", false, "rewrite what is expected in testdata")

func TestEvents(t *testing.T) {
	const name = "testdata/events.txtar"
	archive, err := txtar.ParseFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{}
	for _, f := range archive.Files {
		want[f.Name] = string(f.Data)
	}
	rewritten := &txtar.Archive{Comment: archive.Comment}
	for _, f := range archive.Files {
		title, isEvent := strings.CutSuffix(f.Name, "/event")
		if !isEvent {
			continue
		}
		t.Run(title, func(t *testing.T) {
			got := eventOf(t, f.Data)
			if diff := cmp.Diff(want[title+"/message"], got); diff != "" && !*update {
				t.Errorf("message (-want +got):\n%s", diff)
			}
			rewritten.Files = append(rewritten.Files, f, txtar.File{Name: title + "/message", Data: []byte(got)})
		})
	}
	if *update {
		if err := os.WriteFile(name, txtar.Format(rewritten), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// eventOf converts an event of the archive.
func eventOf(t *testing.T, event []byte) string {
	t.Helper()
	r := offline(t)
	r.join(t.Context(), chatOf("C1", "1700000000.000100"), "U2")
	// Elsewhere the bot was looked for and not found.
	r.threads.Put(chatOf("C1", "1500000000.000100"), thread{opener: "U2", lookedUp: true}, absentAge)
	in, err := me.decode(kindEvent, wrap(t, bytes.TrimSpace(event)))
	if err != nil {
		t.Fatal(err)
	}
	var msg *chats.Message
	if in.event != nil {
		if msg, err = r.convert(t.Context(), in.event); err != nil {
			t.Fatal(err)
		}
	}
	got, err := json.MarshalIndent(msg, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	return string(got) + "\n"
}

// An audio clip that another person has recorded can be shared like any file, and so can a file of the bot. It holds no
// words of its sender.
func TestAClipOfSomebodyElseIsNotSpokenByItsSender(t *testing.T) {
	for author, want := range map[string]chats.SoundKind{"U1": chats.SoundSpoken, "U2": chats.SoundFile, me.user: chats.SoundFile} {
		r := offline(t)
		in, err := me.decode(kindEvent, wrap(t, []byte(`{"type":"message","subtype":"file_share","channel":"D1","channel_type":"im","user":"U1","team":"`+me.team+`","text":"","ts":"1700000001.000100",
			"files":[{"id":"F1","user":"`+author+`","name":"audio_message.m4a","mimetype":"audio/mp4","subtype":"slack_audio","duration_ms":3000,"size":9,"url_private":"https://files.slack.com/F1"}]}`)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := r.convert(t.Context(), in.event)
		if err != nil || msg == nil || len(msg.Files) != 1 || msg.Files[0].Sound.Kind != want || msg.Files[0].FromBot != (author == me.user) {
			t.Errorf("a clip of %s is %+v, %v; want %s", author, msg, err, want)
		}
	}
}

// listening is an inbox that wants what is said in C1 and not to the bot.
type listening struct{ *inbox }

func (listening) WantsAmbient(chat chats.Chat) bool { return chat.ID == "C1" }

// What bots and workflows say in a channel is overheard as the words of people are, where that is wanted,
// and asks the bot nothing.
func TestWhatProgramsSayIsOverheard(t *testing.T) {
	r := offline(t)
	in, _ := r.in.(*inbox)
	r.in = listening{in}
	for name, tt := range map[string]struct{ event, by, user, text string }{
		"a bot": {`{"type":"message","subtype":"bot_message","channel":"C1","bot_id":"B9","username":"ci","text":"<@U0BOT> build failed",
			"attachments":[{"title":"main","text":"red"}],"ts":"1.000002"}`, "ci", "B9", "@oneclaw build failed\nmain\nred"},
		"a workflow": {
			`{"type":"message","channel":"C1","user":"U9","bot_id":"B8","bot_profile":{"name":"Holidays"},"text":"for <@U1>","ts":"1.000002"}`,
			"Holidays", "U9", "for @name of U1",
		},
		"a bot with a name":    {`{"type":"message","channel":"C1","user":"U2","bot_id":"B7","text":"up","ts":"1.000002"}`, "name of U2", "U2", "up"},
		"in a thread":          {event: `{"type":"message","channel":"C1","bot_id":"B9","text":"x","thread_ts":"1.000001","ts":"1.000002"}`},
		"in a channel unheard": {event: `{"type":"message","channel":"C2","bot_id":"B9","text":"x","ts":"1.000002"}`},
		"the bot itself":       {event: `{"type":"message","channel":"C1","user":"U0BOT","bot_id":"B0BOT","text":"x","ts":"1.000002"}`},
		"a change":             {event: `{"type":"message","subtype":"message_changed","channel":"C1","message":{"bot_id":"B9","text":"y","ts":"1.000002"},"previous_message":{"text":"x"}}`},
		"nothing":              {event: `{"type":"message","channel":"C1","bot_id":"B9","ts":"1.000002"}`},
		"of Slack":             {event: `{"type":"message","subtype":"channel_join","channel":"C1","user":"U1","text":"joined","ts":"1.000002"}`},
	} {
		got, err := me.decode(kindEvent, wrap(t, []byte(tt.event)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := r.convert(t.Context(), got.event)
		var want *chats.Message
		if tt.user != "" {
			want = &chats.Message{
				Chat: chatOf("C1", ""), ID: "1.000002", Kind: chats.KindAmbient, User: tt.user, UserName: tt.by, Text: tt.text, Time: parseTS("1.000002"),
			}
		}
		if diff := cmp.Diff(want, msg); diff != "" || err != nil {
			t.Errorf("%s: %v\n%s", name, err, diff)
		}
	}
}

// What people change or delete of what was overheard is changed or deleted.
func TestWhatIsOverheardFollowsItsMessage(t *testing.T) {
	r := offline(t)
	in, _ := r.in.(*inbox)
	r.in = listening{in}
	const before = `"previous_message":{"user":"U1","text":"the PIN is 4711","ts":"1.000002"}`
	for name, tt := range map[string]struct {
		event, text string
		kind        chats.Kind
	}{
		"changed": {`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","text":"never mind","ts":"1.000002"},` + before + `}`, "never mind", chats.KindAmbient},
		"deleted": {`{"type":"message","subtype":"message_deleted","channel":"C1","deleted_ts":"1.000002",` + before + `}`, "", chats.KindDelete},
		"changed with replies": {
			`{"type":"message","subtype":"message_changed","channel":"C1","message":{"user":"U1","text":"never mind","ts":"1.000002","thread_ts":"1.000002"},"previous_message":{"user":"U1","text":"the PIN is 4711","ts":"1.000002","thread_ts":"1.000002"}}`,
			"never mind", chats.KindAmbient,
		},
		"deleted with replies": {
			`{"type":"message","subtype":"message_changed","channel":"C1","message":{"subtype":"tombstone","user":"USLACKBOT","ts":"1.000002","thread_ts":"1.000002"},"previous_message":{"user":"U1","text":"the PIN is 4711","ts":"1.000002","thread_ts":"1.000002"}}`,
			"", chats.KindDelete,
		},
		"unheard": {event: `{"type":"message","subtype":"message_deleted","channel":"C2","deleted_ts":"1.000002",` + before + `}`},
	} {
		got, err := me.decode(kindEvent, wrap(t, []byte(tt.event)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := r.convert(t.Context(), got.event)
		switch {
		case err != nil:
			t.Error(err)
		case tt.kind == "" && msg == nil:
		case msg == nil || msg.Kind != tt.kind || msg.Text != tt.text || msg.ID != "1.000002" || msg.Chat != chatOf("C1", ""):
			t.Errorf("%s: %+v", name, msg)
		}
	}
}

// What was said in a thread before the bot was called there is not for it, also where Slack gives it again
// afterwards because its confirmation was late.
func TestAMessageToOthersThatComesAgainIsNotForTheBot(t *testing.T) {
	r := offline(t)
	r.threads.Put(chatOf("C1", "1.000001"), thread{opener: "U2", lookedUp: true}, absentAge)
	say := func(text, ts string) bool {
		event := `{"type":"message","channel_type":"channel","channel":"C1","user":"U1","text":"` + text + `","thread_ts":"1.000001","ts":"` + ts + `"}`
		got, err := me.decode(kindEvent, wrap(t, []byte(event)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := r.convert(t.Context(), got.event)
		if err != nil {
			t.Fatal(err)
		}
		return msg != nil
	}
	got := []bool{say("aside", "1.000002"), say("<@U0BOT> hello", "1.000003"), say("aside", "1.000002"), say("more", "1.000004")}
	if diff := cmp.Diff([]bool{false, true, false, true}, got); diff != "" {
		t.Error(diff)
	}
}

func TestBothEventsAreOne(t *testing.T) {
	r := offline(t)
	var got []*chats.Message
	for _, event := range []string{
		`{"type":"app_mention","user":"U1","text":"<@U0BOT> hi","ts":"1.000002","channel":"C1"}`,
		`{"type":"message","channel_type":"channel","user":"U1","text":"<@U0BOT> hi","ts":"1.000002","channel":"C1"}`,
	} {
		in, err := me.decode(kindEvent, wrap(t, []byte(event)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := r.convert(t.Context(), in.event)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, msg)
	}
	if diff := cmp.Diff(got[0], got[1]); diff != "" {
		t.Errorf("the two events of a mention differ:\n%s", diff)
	}
}

// A reply in a thread of the bot is for it without a mention; an edit that adds one must not get lost.
func TestAnEditThatAddsAMentionIsAnEditAsWell(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "<@U0BOT> hello", nil)
	reply := f.say(f.channel, "and in Rome", &emulator.SayOptions{Thread: root.TS})
	f.acked(root, reply)
	before := len(f.in.all())
	edited, err := f.Edit(f.channel, reply.TS, "<@U0BOT> and in Paris")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(edited)
	var got []string
	for _, m := range f.in.all()[before:] {
		got = append(got, string(m.Kind)+" "+m.ID+" "+m.Text)
	}
	if diff := cmp.Diff([]string{"text " + reply.TS + " and in Paris", "edit " + reply.TS + " and in Paris"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

func TestForeignWorkspaces(t *testing.T) {
	event := json.RawMessage(`{"type":"message","channel_type":"im","channel":"D1","user":"U1","text":"x","ts":"1.000002"}`)
	tests := []struct {
		team, ours, enterprise string
		want                   bool
	}{
		{"T1", "T1", "", true},
		{"T2", "T1", "", false},
		{"", "T1", "", false},
		{"E1", "T1", "E1", true},
		{"E2", "T1", "E1", false},
	}
	for _, tt := range tests {
		payload, err := json.Marshal(map[string]any{"type": "event_callback", "team_id": tt.team, "event": event})
		if err != nil {
			t.Fatal(err)
		}
		in, err := identity{team: tt.ours, enterprise: tt.enterprise}.decode(kindEvent, payload)
		if err != nil {
			t.Fatal(err)
		}
		if got := in.event != nil; got != tt.want {
			t.Errorf("event of %q for %q/%q: %t", tt.team, tt.ours, tt.enterprise, got)
		}
	}
}

func TestThreadsAreLookedUp(t *testing.T) {
	f := start(t, quick(), nil)
	human := f.say(f.channel, "lunch?", nil)
	called := f.say(f.channel, "ask <@U0BOT> perhaps", nil)
	answered := f.say(f.channel, "hello", nil)
	f.acked(human, called, answered)
	f.in.wait(t, 2) // both events of the mention
	if _, err := f.send(chatOf(f.channel, answered.TS), chats.Part{Text: "here I am"}); err != nil {
		t.Fatal(err)
	}
	f.wait(func(s emulator.State) bool { return s.UnackedCount() == 0 }) // what is not acknowledged comes again
	f.stop()
	f.forget(nil)
	f.run()
	for i, tt := range []struct {
		root string
		want int
	}{{human.TS, 0}, {human.TS, 0}, {called.TS, 1}, {answered.TS, 1}} {
		before := len(f.in.all())
		f.acked(f.say(f.channel, "go on", &emulator.SayOptions{Thread: tt.root}))
		if got := len(f.in.all()) - before; got != tt.want {
			t.Errorf("reply %d: %d messages, want %d", i, got, tt.want)
		}
	}
	last := f.in.all()[len(f.in.all())-1]
	if last.Opener != f.user || last.Chat.Thread != answered.TS {
		t.Errorf("got %+v", last)
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount("conversations.replies"); n > 3 {
			t.Errorf("%d lookups: they are not remembered", n)
		}
	})
}

func TestThreadLookupFailsClosed(t *testing.T) {
	cfg := quick()
	cfg.Scopes = []string{"chat:write", "app_mentions:read", "channels:history"}
	f := start(t, cfg, nil)
	root := f.say(f.channel, "lunch?", nil)
	f.inject(emulator.Fault{Method: "conversations.replies", Effect: emulator.Refuse, Error: "missing_scope"})
	f.acked(f.say(f.channel, "go on", &emulator.SayOptions{Thread: root.TS}))
	if got := f.in.all(); len(got) != 0 {
		t.Errorf("answered where it is not known that the bot takes part: %+v", got)
	}
}

func TestThreadLookupIsTriedAgain(t *testing.T) {
	f := start(t, quick(), nil)
	root := f.say(f.channel, "hello", nil)
	if _, err := f.send(chatOf(f.channel, root.TS), chats.Part{Text: "here I am"}); err != nil {
		t.Fatal(err)
	}
	f.wait(func(s emulator.State) bool { return s.UnackedCount() == 0 }) // what is not acknowledged comes again
	f.stop()
	f.forget(nil)
	f.inject(emulator.Fault{Method: "conversations.replies", Times: 2, Effect: emulator.ServerError})
	f.run()
	sent := f.say(f.channel, "go on", &emulator.SayOptions{Thread: root.TS})
	for tried := range 2 {
		f.wait(func(s emulator.State) bool { return s.CallCount("conversations.replies") > tried })
		f.Redeliver()
	}
	f.acked(sent)
	if got := f.in.wait(t, 1); got[0].Text != "go on" {
		t.Errorf("got %+v", got)
	}
}

func FuzzEvent(f *testing.F) {
	archive, err := txtar.ParseFile("testdata/events.txtar")
	if err != nil {
		f.Fatal(err)
	}
	for _, file := range archive.Files {
		f.Add(kindEvent, string(wrap(f, file.Data)))
	}
	f.Add(kindCommand, `{"team_id":"T0ONECLAW","channel_id":"C1","channel_name":"general","user_id":"U1","text":"status","trigger_id":"1.2.a"}`)
	f.Add(kindInteractive, `{"type":"block_actions"}`)
	r := offline(f)
	r.api.timeout = 1 // nothing can be looked up
	f.Fuzz(func(t *testing.T, kind, payload string) {
		in, err := me.decode(kind, []byte(payload))
		if err != nil || in.event == nil && in.command == nil {
			return
		}
		_ = in.queueKey()
		if in.command != nil {
			r.convertCommand(t.Context(), in.command)
			return
		}
		msg, err := r.convert(t.Context(), in.event)
		if err != nil || msg == nil {
			return
		}
		if msg.ID == "" || msg.User == "" || msg.Chat.ID == "" || msg.User == me.user {
			t.Errorf("got %+v", msg)
		}
	})
}
