package slack

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/slack/manifest"
)

func TestPeopleOfOtherWorkspacesAreNamedAsSuch(t *testing.T) {
	f := start(t, quick(), nil)
	guest := f.AddUser(emulator.User{ID: "U9", Name: "gil", RealName: "Gil", Team: "T0OTHER", Admin: true}).ID
	shared := f.make(emulator.ChannelSpec{ID: "C5", Members: []string{f.user, guest}})
	mine := f.say(shared, "<@U0BOT> mine", nil)
	f.acked(mine)
	theirs, err := f.Say(shared, guest, "<@U0BOT> theirs", nil)
	if err != nil {
		t.Fatal(err)
	}
	f.acked(theirs)
	card, err := f.send(chatOf(shared, mine.TS), question())
	if err != nil {
		t.Fatal(err)
	}
	if sent, err := f.Press(shared, card, guest, "tok:0", false); err != nil {
		t.Fatal(err)
	} else {
		f.acked(sent)
	}
	edited, err := f.Edit(shared, theirs.TS, "<@U0BOT> theirs, changed")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(edited)
	for _, payload := range []string{ // shared, and nobody says whose
		`{"type":"app_mention","user":"U1","text":"<@U0BOT> whose?","ts":"1.000002","channel":"C5"}`,
	} {
		in, err := me.decode(kindEvent, []byte(strings.Replace(string(wrap(t, []byte(payload))), `"type":"event_callback"`, `"type":"event_callback","is_ext_shared_channel":true`, 1)))
		if err != nil {
			t.Fatal(err)
		}
		msg, err := offline(t).convert(t.Context(), in.event)
		if err != nil || msg.User != "U1@unknown" {
			t.Errorf("got %+v, %v", msg, err)
		}
	}
	users := map[string]string{}
	for _, m := range f.in.all() {
		users[string(m.Kind)+" "+m.Text] = m.User + " " + m.UserName
	}
	want := map[string]string{
		"text mine": "U1 Ann Lee", "text theirs": "U9@T0OTHER Gil", "press tok:0": "U9@T0OTHER Gil", "edit theirs, changed": "U9@T0OTHER Gil",
	}
	if diff := cmp.Diff(want, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
	for _, id := range []string{"U9@T0OTHER", "U9"} {
		if admin, err := f.p.IsAdmin(t.Context(), chatOf(shared, ""), id); admin || err != nil {
			t.Errorf("%s is an administrator: %t, %v", id, admin, err)
		}
	}
	press := chats.Message{Chat: chatOf(shared, mine.TS), ID: "1", Kind: chats.KindPress, User: "U9@T0OTHER"}
	if err := f.p.AnswerPress(t.Context(), press, "No."); err != nil {
		t.Error(err)
	}
}

// An event of a reaction does not name the workspace of its user.
func TestRatingsInASharedChannelAreOfTheUsersOwnWorkspace(t *testing.T) {
	f := start(t, quick(), nil)
	guest := f.AddUser(emulator.User{ID: "U9", Name: "gil", RealName: "Gil", Team: "T0OTHER"}).ID
	stranger := f.AddUser(emulator.User{ID: "U8", Name: "sue", RealName: "Sue", Team: "T0OTHER"}).ID
	shared := f.make(emulator.ChannelSpec{ID: "C5", Members: []string{f.user, guest, stranger}})
	asked := f.say(shared, "<@U0BOT> hello", nil)
	f.acked(asked)
	answer, err := f.send(chatOf(shared, asked.TS), chats.Part{Text: "hello"})
	if err != nil {
		t.Fatal(err)
	}
	react := func(user string) {
		t.Helper()
		sent, err := f.React(shared, answer, user, "+1", false)
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
	}
	react(f.user)
	react(guest)
	f.inject(emulator.Fault{Method: "users.info", Effect: emulator.ServerError})
	react(stranger)
	var users []string
	for _, m := range f.in.all() {
		if m.Kind == chats.KindFeedback {
			users = append(users, m.User)
		}
	}
	if diff := cmp.Diff([]string{"U1", "U9@T0OTHER", "U8@unknown"}, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
}

// An event of a message with files does not name the workspace of its sender.
func TestFilesInASharedChannelAreOfTheUsersOwnWorkspace(t *testing.T) {
	f := start(t, quick(), nil)
	guest := f.AddUser(emulator.User{ID: "U9", Name: "gil", RealName: "Gil", Team: "T0OTHER"}).ID
	stranger := f.AddUser(emulator.User{ID: "U8", Name: "sue", RealName: "Sue", Team: "T0OTHER"}).ID
	shared := f.make(emulator.ChannelSpec{ID: "C5", Members: []string{f.user, guest, stranger}})
	show := func(user string) {
		t.Helper()
		sent, err := f.Say(shared, user, "<@U0BOT> what is this?", &emulator.SayOptions{Files: []emulator.Attachment{{Name: "a.txt", MIME: "text/plain", Data: []byte("a")}}})
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
	}
	show(f.user)
	show(guest)
	f.inject(emulator.Fault{Method: "users.info", Effect: emulator.ServerError})
	show(stranger)
	var users []string
	for _, m := range f.in.all() {
		if !slices.Contains(users, m.User) { // a mention comes as two events
			users = append(users, m.User)
		}
	}
	if diff := cmp.Diff([]string{"U1", "U9@T0OTHER", "U8@unknown"}, users); diff != "" {
		t.Errorf("users (-want +got):\n%s", diff)
	}
}

// An event of the stop button does not name the workspace of its user.
func TestTheStopButtonIsPressedByAUserOfAnotherWorkspace(t *testing.T) {
	f := setup(t, quick(), nil)
	if err := f.Install(manifest.YAML()); err != nil {
		t.Fatal(err)
	}
	guest := f.AddUser(emulator.User{ID: "U9", Name: "gil", RealName: "Gil", Team: "T0OTHER"}).ID
	dm := f.make(emulator.ChannelSpec{ID: "D9", Kind: emulator.DM, Members: []string{guest}})
	f.run()
	asked, err := f.Say(dm, guest, "tell", nil)
	if err != nil {
		t.Fatal(err)
	}
	f.in.wait(t, 1)
	if _, err := f.p.Begin(t.Context(), chats.Address{Chat: chatOf(dm, asked.TS)}, growing("one ")); err != nil {
		t.Fatal(err)
	}
	if _, err := f.StopSession(dm, asked.TS, guest); err != nil {
		t.Fatal(err)
	}
	for _, m := range f.in.wait(t, 2) {
		if m.User != "U9@T0OTHER" {
			t.Errorf("got %+v", m)
		}
	}
}

func TestLimitedToChannels(t *testing.T) {
	f := setup(t, quick(), func(c *config) { c.Channels = []string{" C5 ", ""} })
	allowed := f.make(emulator.ChannelSpec{ID: "C5", Members: []string{f.user}})
	card, err := f.send(chatOf(f.channel, ""), question())
	if err != nil {
		t.Fatal(err)
	}
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	outside := f.say(f.channel, "<@U0BOT> outside", nil)
	edited, err := f.Edit(f.channel, outside.TS, "<@U0BOT> outside still")
	if err != nil {
		t.Fatal(err)
	}
	command, err := f.Command(f.channel, f.user, "/oneclaw", "status")
	if err != nil {
		t.Fatal(err)
	}
	f.acked(outside, edited, command, f.press(f.channel, card, "tok:0"))
	f.acked(f.say(allowed, "<@U0BOT> inside", nil))
	f.acked(f.say(f.dm, "direct", nil))
	if command, err = f.Command(f.dm, f.user, "/oneclaw", "status"); err != nil {
		t.Fatal(err)
	}
	f.acked(command)
	var got []string
	for _, m := range f.in.all() {
		if len(got) == 0 || got[len(got)-1] != m.Text { // a mention comes as two events
			got = append(got, m.Text)
		}
	}
	if diff := cmp.Diff([]string{"inside", "direct", "/status"}, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	all := f.Messages(f.channel)
	if last := all[len(all)-1]; last.Ephemeral != f.user || !strings.HasPrefix(last.Text, "I do not work in this channel") {
		t.Errorf("got %+v", last)
	}
	if _, err := newPlatform(config{Settings: Settings{BotToken: "xoxb-1", AppToken: "xapp-1", Channels: []string{"#general"}}}); err == nil || !strings.Contains(err.Error(), "SLACK_CHANNELS") {
		t.Errorf("got %v", err)
	}
}
