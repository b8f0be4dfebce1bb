package telegram

import (
	"bytes"
	"encoding/json"
	"strconv"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

// In the direct messages of a channel each person has a chat of their own, in which no mention is needed.
func TestDirectMessagesOfAChannelAreAChatForEachPerson(t *testing.T) {
	s := newEmulated(t)
	bob := s.AddUser(emulator.User{FirstName: "Bob"}).ID
	owner := s.AddUser(emulator.User{FirstName: "Owner"}).ID
	channel := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, DirectMessages: true, User: owner, Members: []int64{s.ann, bob}})
	in := newInbox()
	defer run(t, s.p, in)()
	say := func(who int64, text string, opts *emulator.SayOptions) emulator.Sent {
		t.Helper()
		sent, err := s.Say(channel, who, text, opts)
		if err != nil {
			t.Fatal(err)
		}
		return sent
	}
	say(s.ann, "hello", nil)
	answered := say(owner, "the team answers itself", &emulator.SayOptions{Thread: s.ann})
	say(bob, "", &emulator.SayOptions{Attachment: &emulator.Attachment{Name: "b.txt", Data: []byte("b")}})
	asked := say(s.ann, "again", nil)
	s.until(t, func(st emulator.State) bool { return st.IsConfirmed(answered.Update) && st.IsConfirmed(asked.Update) })
	got := in.wait(t, atLeast(3))
	if len(got) != 3 || got[0].Chat == got[1].Chat || got[0].Chat != got[2].Chat || got[0].Owner() == got[1].Owner() {
		t.Fatalf("accepted %+v", got)
	}
	for i, who := range []int64{s.ann, bob} {
		if m := got[i]; m.Direct || m.User != strconv.FormatInt(who, 10) || m.Opener != m.User {
			t.Errorf("%d wrote as %+v", who, m)
		}
		if again, err := chats.ParseChat(got[i].Chat.String()); err != nil || again != got[i].Chat {
			t.Errorf("%s reads as %s (%v)", got[i].Chat, again, err)
		}
	}
	to := chats.Address{Chat: got[1].Chat, ReplyTo: got[1].ID}
	card := chats.Part{Text: "<b>for Bob</b>", Plain: "for Bob", Buttons: [][]chats.Button{{{Label: "Yes", Data: "yes"}}}}
	for name, send := range map[string]func() (string, error){
		"text":    func() (string, error) { return s.p.Send(t.Context(), to, card) },
		"preview": func() (string, error) { return s.p.Begin(t.Context(), to, chats.Preview{Part: card}) },
		"secret":  func() (string, error) { return s.p.SendEphemeral(t.Context(), to, got[1].User, card) },
		"file": func() (string, error) {
			return s.p.SendFile(t.Context(), to, chats.OutFile{Name: "x.txt", Size: 1, Content: bytes.NewReader([]byte("x"))})
		},
		"voice": func() (string, error) {
			return s.p.SendVoice(t.Context(), to, chats.OutFile{Name: "x.ogg", Size: 1, Content: bytes.NewReader([]byte("x"))})
		},
	} {
		id, err := send()
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		answers := s.answers(channel)
		if a := answers[len(answers)-1]; a.Thread != bob || strconv.FormatInt(a.ID, 10) != id {
			t.Errorf("%s: sent %+v as %s", name, a, id)
		}
		if name != "text" {
			continue
		}
		if err := s.p.Edit(t.Context(), to, id, chats.Part{Text: "edited", Buttons: card.Buttons}); err != nil {
			t.Error(err)
		}
		number, err := strconv.ParseInt(id, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.Press(channel, number, bob, "yes"); err != nil {
			t.Fatal(err)
		}
		if press := in.wait(t, atLeast(4))[3]; press.Chat != got[1].Chat || press.TargetID != id || press.Opener != got[1].User {
			t.Errorf("the press came as %+v", press)
		}
	}
	if err := s.p.SetTyping(t.Context(), to, true); err != nil {
		t.Errorf("typing: %v", err)
	}
	if err := s.p.Acknowledge(t.Context(), to.Chat, got[1].ID, true); err != nil {
		t.Errorf("reaction: %v", err)
	}
	if is, err := s.p.IsAdmin(t.Context(), to.Chat, got[1].User); is || err != nil {
		t.Errorf("the person administers the channel: %v, %v", is, err)
	}
	if is, err := s.p.IsAdmin(t.Context(), to.Chat, strconv.FormatInt(owner, 10)); !is || err != nil {
		t.Errorf("the owner administers the channel: %v, %v", is, err)
	}
}

// What administrators write in the name of their chat may be the bot's, of which Telegram says no more either.
func TestWhoWroteInTheNameOfAChatIsUnknown(t *testing.T) {
	const text = `"date":1700000000,"text":"See https://evil.example/?d=my-pin-is-4711"`
	for name, tc := range map[string]struct {
		refers        string
		authorUnknown bool
	}{
		"an answer in the direct messages of a channel": {`"reply_to_message":{"message_id":11,"from":{"id":136817688,"is_bot":true,"first_name":"Channel"},
			"sender_chat":{"id":-1002,"type":"channel","title":"News"},"chat":{"id":-1001,"type":"supergroup","is_direct_messages":true},` + text + `},"text":"go on"`, true},
		"an administrator of a group": {`"reply_to_message":{"message_id":11,"from":{"id":1087968824,"is_bot":true,"first_name":"Group"},
			"sender_chat":{"id":-1001,"type":"supergroup","title":"News"},"chat":{"id":-1001,"type":"supergroup"},` + text + `},"text":"go on"`, true},
		"a forward": {`"forward_origin":{"type":"chat","date":1700000000,"sender_chat":{"id":-1002,"type":"channel","title":"News"}},` + text, true},
		"a post of a channel in its group": {`"reply_to_message":{"message_id":11,"from":{"id":777000,"first_name":"Telegram"},
			"sender_chat":{"id":-1002,"type":"channel","title":"News"},"chat":{"id":-1001,"type":"supergroup"},` + text + `},"text":"go on"`, false},
		"a post of a channel": {`"forward_origin":{"type":"channel","date":1700000000,"chat":{"id":-1002,"type":"channel","title":"News"},"message_id":3},` + text, false},
	} {
		raw := `{"update_id":7,"message":{"message_id":12,"from":{"id":5,"first_name":"Ann"},"date":1700000000,
			"chat":{"id":5,"type":"private","first_name":"Ann"},` + tc.refers + `}}`
		events, _, _, err := newDecoder().decodeBatch(t.Context(), []json.RawMessage{json.RawMessage(raw)})
		if err != nil || len(events) != 1 || len(events[0].message.Quoted) != 1 {
			t.Fatalf("%s: %+v, %v", name, events, err)
		}
		if q := events[0].message.Quoted[0]; q.AuthorUnknown != tc.authorUnknown || q.FromBot {
			t.Errorf("%s: quoted as %+v", name, q)
		}
	}
}
