package bridge_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/bridge/chats"
)

// outcomes fails the sends with the given numbers, counted from 1: an Unknown after
// the platform took the message, all others before.
func outcomes(failures map[int]*chats.SendError) func(int, bool) error {
	return func(n int, arrived bool) error {
		f := failures[n]
		if f == nil || arrived != (f.Outcome == chats.Unknown) {
			return nil
		}
		return f
	}
}

func TestDeliveryStates(t *testing.T) {
	t.Parallel()
	broken := errors.New("broken")
	cases := []struct {
		name   string
		answer string
		fail   map[int]*chats.SendError
		want   []string
	}{
		{"plain", "one", nil, []string{"one"}},
		{"parts in order", "one\ftwo\fthree", nil, []string{"one", "two", "three"}},
		{"later is tried again without a mark", "one\ftwo", map[int]*chats.SendError{1: {Outcome: chats.Later, Err: broken}, 3: {Outcome: chats.Later, RetryAfter: 7e9, Err: broken}}, []string{"one", "two"}},
		{"unknown is sent once more with a mark", "one\ftwo", map[int]*chats.SendError{1: {Outcome: chats.Unknown, Err: broken}}, []string{"one", "one (repeat)", "two"}},
		{"refused ends that part alone", "one\ftwo", map[int]*chats.SendError{1: {Outcome: chats.Refused, Err: broken}}, []string{"two"}},
		{"refused for its content is sent as it can be", "one\ftwo", map[int]*chats.SendError{1: {Outcome: chats.Refused, ContentRefused: true, Err: broken}}, []string{"one", "two"}},
		{"unknown, then later, stays marked", "one", map[int]*chats.SendError{1: {Outcome: chats.Unknown, Err: broken}, 2: {Outcome: chats.Later, Err: broken}}, []string{"one", "one (repeat)"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				r := newHarness(t, answering(c.answer))
				r.platform.fail = outcomes(c.fail)
				r.accept(direct("1", "x"))
				var got []string
				for _, s := range r.platform.wait(t, len(c.want)) {
					got = append(got, shown(s))
				}
				if fmt.Sprint(got) != fmt.Sprint(c.want) {
					t.Errorf("shown %q, want %q", got, c.want)
				}
				r.stop()
			})
		})
	}
}

func shown(s sent) string {
	if s.repeat {
		return s.text + " (repeat)"
	}
	return s.text
}

func TestAFloodInOneChatDoesNotStopAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.platform.fail = outcomes(map[int]*chats.SendError{1: {Outcome: chats.Later, RetryAfter: 3600e9, Err: errors.New("flood")}})
		r.accept(direct("1", "flooded"))
		synctest.Wait()
		r.accept(group("2", "5", "other"))
		if got := r.platform.wait(t, 1); got[0].text != "re: other" {
			t.Errorf("first answer is %q", got[0].text)
		}
		r.stop()
	})
}

func TestAMovedChatGetsItsAnswerThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.platform.fail = outcomes(map[int]*chats.SendError{1: {Outcome: chats.Later, MovedTo: "s", Err: errors.New("moved")}})
		r.accept(group("1", "5", "x"))
		if got := r.platform.wait(t, 1)[0]; got.to.Chat.ID != "s" || got.to.ReplyTo != "" {
			t.Errorf("sent to %v", got.to)
		}
		r.stop()
	})
}

// An answer that cannot be rendered goes out plain.
func TestARendererThatFailsLosesNothing(t *testing.T) {
	r := newHarness(t, answering("plain *text*"))
	r.cfg.Platforms = []chats.Platform{unrenderable{r.platform}}
	r.restart()
	r.accept(direct("1", "x"))
	if got := r.platform.wait(t, 1)[0]; got.text != "" && !strings.Contains(got.text, "plain *text*") {
		t.Errorf("shown %q", got.text)
	}
}

type unrenderable struct{ *platform }

func (unrenderable) Render(string) []chats.Part { panic("renderer") }

// Typing shows before the model has answered.
func TestTypingIsShownBeforeTheAnswerAndClearedAfter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSlow()
		r := newHarness(t, s.think)
		r.accept(direct("1", "slow"))
		<-s.asked
		synctest.Wait()
		pass(t, 9)
		close(s.free)
		r.platform.wait(t, 1)
		r.stop()
		if got := fmt.Sprint(r.platform.typing); got != "[fake:1 true fake:1 true fake:1 true fake:1 false]" {
			t.Errorf("typing: %s", got)
		}
	})
}
