package slack

import (
	"encoding/json"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
)

// Slack writes channels and groups of people without their names where it sends a text.
func TestChannelsAndGroupsHaveNames(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	f.AddUserGroup("S1", "devs")
	closed := f.make(emulator.ChannelSpec{ID: "C2", Kind: emulator.Private, Name: "secret", WithoutBot: true})
	for range 2 {
		f.acked(f.say(f.dm, "ask <!subteam^S1> and <!subteam^S9> in <#C1|> or <#"+closed+">", nil))
	}
	for _, m := range f.in.all() {
		if want := "ask @devs and @S9 in #general or #C2"; m.Text != want {
			t.Errorf("got %q, want %q", m.Text, want)
		}
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount(channelsInfo) + s.CallCount(listGroups); n > 4 {
			t.Errorf("%d look-ups: they are not cached", n)
		}
	})
}

// The name of a channel is looked up once. A direct chat has none, and neither has a channel that the bot does not see.
func TestNamesOfChats(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	closed := f.make(emulator.ChannelSpec{ID: "C2", Kind: emulator.Private, Name: "secret", WithoutBot: true})
	for range 2 {
		for id, want := range map[string]string{f.channel: "#general", f.dm: "", closed: ""} {
			if got := f.p.ChatName(t.Context(), chats.Chat{Platform: platformName, ID: id}); got != want {
				t.Errorf("%s is named %q, want %q", id, got, want)
			}
		}
	}
	f.View(func(s emulator.State) {
		if n := s.CallCount(channelsInfo); n > 3 {
			t.Errorf("%d look-ups: they are not cached", n)
		}
	})
}

// With the agent view Slack tells what a person has open beside the chat: "this channel".
func TestWhatThePersonLooksAtComesWithTheMessage(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	plans := f.make(emulator.ChannelSpec{ID: "C3", Name: "plans", Topic: "Q4", Purpose: "for <@U1>", Members: []string{f.user}})
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	const general, described = "the channel #general", "the channel #plans\nTopic: Q4\nPurpose: for @Ann Lee"
	ask := func(want string, opts *emulator.SayOptions) string {
		t.Helper()
		before := len(f.in.all())
		sent := f.say(f.dm, "what is this channel about?", opts)
		f.acked(sent)
		m := f.in.wait(t, before+1)[before]
		got := ""
		for _, q := range m.Quoted {
			got += string(q.Kind) + ": " + q.Text
		}
		if got != want || m.Text != "what is this channel about?" {
			t.Errorf("%q comes with %q, want %q", m.Text, got, want)
		}
		return sent.TS
	}
	root := ask("", nil)
	ask("view: "+general, &emulator.SayOptions{Viewing: f.channel, Thread: root})
	ask("", &emulator.SayOptions{Viewing: f.channel, Thread: root}) // the model knows it from above
	f.acked(f.Look(f.user, plans))
	ask("view: "+described, &emulator.SayOptions{Thread: root})
	f.acked(f.Look(f.user, ""))
	ask("", &emulator.SayOptions{Thread: root})
}

// What a client says that a person looks at is read with the bot's own rights: of a private channel that the person is
// not in, the person learns nothing.
func TestAPersonLearnsNothingOfAChannelThatOnlyTheBotIsIn(t *testing.T) {
	t.Parallel()
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	other := f.AddUser(emulator.User{Name: "boss", RealName: "Boss"}).ID
	guest := f.AddUser(emulator.User{Name: "gil", RealName: "Gil", Team: "T0OTHER"}).ID
	guestDM := f.make(emulator.ChannelSpec{ID: "D9", Kind: emulator.DM, Members: []string{guest}})
	closed := f.make(emulator.ChannelSpec{ID: "C3", Kind: emulator.Private, Name: "layoffs", Topic: "Ann goes in May", Members: []string{other}})
	public := f.make(emulator.ChannelSpec{ID: "C5", Name: "prices", Members: []string{other, f.user}})
	common := f.make(emulator.ChannelSpec{ID: "C4", Kind: emulator.Private, Name: "team", Members: []string{other, f.user}})
	said, err := f.Say(closed, other, "Ann goes in May", nil)
	if err != nil {
		t.Fatal(err)
	}
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	channel := func(id string) string { return `{"type":"slack#/types/channel_id","value":"` + id + `"}` }
	message := `{"type":"slack#/types/message_context","value":{"channel_id":"` + closed + `","message_ts":"` + said.TS + `"}}`
	for n, tt := range []struct{ user, dm, seen, want string }{
		{f.user, f.dm, channel(closed), "a channel in Slack"},
		{f.user, f.dm, message, "a message in a channel in Slack"},
		{f.user, f.dm, channel(common), "the channel #team"},
		{f.user, f.dm, channel(public), "the channel #prices"},
		{guest, guestDM, channel(public), "a channel in Slack"}, // of another workspace
	} {
		f.acked(f.SendEvent("", json.RawMessage(`{"type":"app_context_changed","user":"`+tt.user+`","context":{"entities":[`+tt.seen+`]}}`)))
		said, err := f.Say(tt.dm, tt.user, "what is this about?", nil)
		if err != nil {
			t.Fatal(err)
		}
		f.acked(said)
		got := f.in.wait(t, n+1)[n].Quoted
		if len(got) != 1 || got[0].Text != tt.want {
			t.Errorf("the message comes with %+v, want %q", got, tt.want)
		}
	}
}
