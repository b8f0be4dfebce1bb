package bridge_test

import (
	"testing"
	"testing/synctest"

	"oneclaw/bridge/chats"
)

// A platform that does not know whether a message was for the bot gives it with its edit: it is
// answered where it is new, and not again where it was answered.
func TestAMessageThatComesWithItsEditIsAnsweredOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		both := func(text string) []chats.Message {
			m := group("1", "1", text)
			edit := m
			edit.Kind = chats.KindEdit
			return []chats.Message{m, edit}
		}
		r.accept(both("what is the time?")...)
		r.platform.wait(t, 1)
		pass(t, 5)
		r.accept(both("what is the time?")...)
		pass(t, 5)
		if got := texts(r.platform.wait(t, 1)); len(got) != 1 || got[0] != "re: what is the time?" {
			t.Errorf("answers: %q", got)
		}
		// What is new in it is told like any edit of what was answered.
		r.accept(both("what is the date?")...)
		pass(t, 5)
		if got := texts(r.platform.wait(t, 2)); len(got) != 2 || got[1] == "re: what is the date?" {
			t.Errorf("answers: %q", got)
		}
	})
}
