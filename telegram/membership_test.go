package telegram

import (
	"context"
	"errors"
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

// The inbox is told where the bot is blocked or removed, and a send there says that the chat takes nothing.
func TestTheInboxLearnsWhereTheBotIsBlocked(t *testing.T) {
	s := newStage(t)
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
