package telegram

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"slices"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
)

// memberInbox keeps where the bot is blocked or removed.
type memberInbox struct {
	*inbox
	heard []string
}

func (in *memberInbox) SetMember(_ context.Context, chat chats.Chat, member bool) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	word := " no"
	if member {
		word = " yes"
	}
	in.heard = append(in.heard, chat.ID+word)
	in.ring()
	return nil
}

// A chat that takes no text from the bot at all says so in many words. One that only takes no picture, or not this
// message, can be reached.
func TestAChatThatTakesNothingCannotBeReached(t *testing.T) {
	for words, want := range map[string]bool{
		"not enough rights to send text messages to the chat": true, "have no rights to send a message": true, "CHAT_WRITE_FORBIDDEN": true, "CHAT_RESTRICTED": true,
		"group chat was deactivated": true, "CHAT_SEND_PLAIN_FORBIDDEN": true,
		"not enough rights to send photos to the chat": false, "CHAT_SEND_PHOTOS_FORBIDDEN": false, "TOPIC_CLOSED": false, "MESSAGE_TOO_LONG": false,
	} {
		p, _ := newFake(t, func(context.Context, string, url.Values) (int, string, error) {
			return refusal(400, "Bad Request: "+words)
		})
		_, err := p.Send(t.Context(), private, chats.Part{Text: "hi", Plain: "hi"})
		if failure, is := errors.AsType[*chats.SendError](err); !is || failure.Outcome != chats.Refused || failure.Unreachable != want {
			t.Errorf("%s: %+v", words, failure)
		}
	}
	for member, want := range map[string]string{
		`{"status":"restricted","is_member":true,"can_send_messages":false}`: "-7 no", `{"status":"restricted","is_member":false,"can_send_messages":true}`: "-7 no",
		`{"status":"restricted","is_member":true,"can_send_messages":true}`: "-7 yes", `{"status":"administrator"}`: "-7 yes", `{"status":"left"}`: "-7 no",
	} {
		in := &memberInbox{inbox: newInbox()}
		r := &receiver{in: in}
		if err := r.acceptMemberships(t.Context(), []json.RawMessage{json.RawMessage(`{"my_chat_member":{"chat":{"id":-7,"type":"supergroup"},"new_chat_member":` + member + `}}`)}); err != nil || !slices.Equal(in.heard, []string{want}) {
			t.Errorf("%s: %q, %v", member, in.heard, err)
		}
	}
}

// The inbox is told where the bot is blocked or removed, and a send there says that the chat takes nothing.
func TestTheInboxLearnsWhereTheBotIsBlocked(t *testing.T) {
	s := newEmulated(t)
	group := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Title: "G", User: s.ann})
	in := &memberInbox{inbox: newInbox()}
	defer run(t, s.p, in)()
	send := func(chat int64) bool {
		_, err := s.p.Send(t.Context(), to(chat, 0, 0), chats.Part{Text: "hi"})
		var failure *chats.SendError
		return errors.As(err, &failure) && failure.Outcome == chats.Refused && failure.Unreachable
	}
	for _, gone := range []bool{true, false} {
		status := emulator.Member
		if gone {
			status = emulator.Kicked
		}
		if _, err := s.SetBlocked(s.ann, gone); err != nil {
			t.Fatal(err)
		}
		if _, err := s.SetBotStatus(group, s.ann, status); err != nil {
			t.Fatal(err)
		}
		for _, chat := range []int64{s.ann, group} {
			if send(chat) != gone {
				t.Errorf("gone from %d: %t", chat, !gone)
			}
		}
	}
	in.wait(t, func(*inbox) bool { return len(in.heard) == 4 })
	ann, g := chatOf(s.ann).ID, chatOf(group).ID
	if want := []string{ann + " no", g + " no", ann + " yes", g + " yes"}; !slices.Equal(in.heard, want) {
		t.Errorf("told %q, want %q", in.heard, want)
	}
}
