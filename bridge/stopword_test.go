package bridge_test

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/bridge/chats"
)

// A message that is only a word such as "stop" does what /stop does while the bot answers its sender.
func TestALoneStopEndsTheAnswerToItsSender(t *testing.T) {
	for _, word := range []string{"stop", "Halt!", "CANCEL", " wait... "} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				r := newHarness(t, s.think)
				r.accept(direct("1", "slow"))
				soon(t, s.asked)
				r.accept(direct("2", "behind it"), direct("3", word))
				pass(t, 5)
				r.stop()
				if got := r.platform.texts(); !slices.Equal(got, []string{"Stopped. One waiting message was dropped."}) {
					t.Errorf("the chat shows %q", got)
				}
			})
		})
	}
}

// The word reaches the model when nothing is being answered, when it is part of more, and when somebody
// else's question is being answered.
func TestAStopThatIsNotForTheRunningAnswerReachesTheModel(t *testing.T) {
	for name, say := range map[string]struct {
		running, word chats.Message
		behind        []chats.Message
	}{
		"nothing runs":      {word: direct("2", "stop")},
		"in a longer text":  {running: direct("1", "slow"), word: direct("2", "stop by the bakery")},
		"with a sticker":    {running: direct("1", "slow"), word: withSticker(direct("2", "stop"))},
		"written by others": {running: direct("1", "slow"), word: byOthers(direct("2", "stop"))},
		"to somebody else":  {running: group("1", "1", "slow"), word: group("2", "2", "wait")},
		"while others wait": {running: group("1", "1", "slow"), behind: []chats.Message{group("2", "2", "two")}, word: group("3", "1", "wait")},
		"in another chat":   {running: in("5", "1", "slow"), word: direct("2", "cancel")},
		"as another form":   {running: direct("1", "slow"), word: direct("2", "stopped")},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSlow()
				r := newHarness(t, s.think)
				want := []string{"re: " + say.word.Text}
				if say.running.ID != "" {
					r.accept(say.running)
					soon(t, s.asked)
					want = append(want, "re: slow")
				}
				for _, m := range say.behind {
					r.accept(m)
					want = append(want, "re: "+m.Text)
				}
				r.accept(say.word)
				pass(t, 5)
				close(s.free)
				pass(t, 5)
				r.stop()
				got := r.platform.texts()
				for i := range got {
					got[i], _, _ = strings.Cut(got[i], "\n") // the sticker is named below
				}
				slices.Sort(got)
				slices.Sort(want)
				if !slices.Equal(got, want) {
					t.Errorf("the chat shows %q, want %q", got, want)
				}
			})
		})
	}
}

func withSticker(m chats.Message) chats.Message {
	m.Skipped = []string{"a sticker"}
	return m
}

// byOthers returns a message whose sender did not write its text, such as one with nothing but an attachment on Slack.
func byOthers(m chats.Message) chats.Message {
	m.Foreign = true
	return m
}
