package slack

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// TestAStormLosesNothing has everything go wrong at once: limits, outages, answers
// that are lost after Slack accepted the call, events that come twice, sockets that break
// or fall silent. Every message is answered, and twice only where that is said.
func TestAStormLosesNothing(t *testing.T) {
	t.Parallel()
	const rounds = 3
	cfg := quick()
	cfg.Seed, cfg.AckTimeout = 1, time.Second
	f := setup(t, cfg, func(c *config) { c.pingTimeout = time.Second })
	f.bridged(echo{})
	for _, fault := range []emulator.Fault{
		{Method: postMessage, Probability: 0.3, Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 1},
		{Method: postMessage, Probability: 0.3, Times: 1, Effect: emulator.CutAfter},
		{Method: postMessage, Probability: 0.3, Times: 1, Effect: emulator.BadJSON},
		{Method: setStatus, Probability: 0.5, Effect: emulator.TooManyRequests, RetryAfter: 1},
		{Method: "users.info", Probability: 0.5, Effect: emulator.ServerError},
		{Method: "conversations.replies", Probability: 0.3, Times: 3, Effect: emulator.ServerError},
		{Method: "conversations.history", Probability: 0.3, Times: 3, Effect: emulator.CutBefore},
		{Method: "apps.connections.open", Probability: 0.5, Times: 2, Effect: emulator.ServerError},
		{Method: "socket", Probability: 0.5, Times: 2, Effect: emulator.CutBefore},
		{Method: "envelope", Probability: 0.3, Times: 6, Effect: emulator.Duplicate},
		{Method: "envelope", Probability: 0.1, Times: 2, Effect: emulator.CutAfter},
	} {
		f.inject(fault)
	}
	unavailable, err := f.Inject(emulator.Fault{Method: postMessage, Probability: 0.3, Times: 2, Effect: emulator.ServerError, Status: 503})
	if err != nil {
		t.Fatal(err)
	}
	root := f.say(f.channel, "<@U0BOT> message 0", nil)
	said := []string{"message 0"}
	for round := range rounds {
		for i, place := range []struct{ channel, thread string }{{f.dm, ""}, {f.channel, root.TS}} {
			text := fmt.Sprintf("message %d-%d", round, i)
			said = append(said, text)
			f.say(place.channel, "<@U0BOT> "+text, &emulator.SayOptions{Thread: place.thread})
		}
		switch round {
		case 1:
			f.Freeze()
		case 2:
			f.BreakSockets()
		}
	}
	f.wait(func(s emulator.State) bool { return s.CountAnswers("") >= len(said) })
	var got map[string]int
	var marks int
	f.wait(func(s emulator.State) bool {
		got, marks = map[string]int{}, 0
		for _, channel := range s.Channels() {
			for _, m := range s.Answers(channel) {
				// A second line says as well that the thread could not be read.
				text, _, _ := strings.Cut(m.Text, "\n")
				got[text]++
				if strings.Contains(m.Text, chats.RepeatNotice) {
					marks++
					got[text]--
				}
			}
		}
		return len(got) == len(said)
	})
	for _, text := range said {
		if n := got["re: "+text]; n > 1 {
			t.Errorf("%q was answered %d times without a mark", text, n)
		}
	}
	lost := f.Fired(unavailable)
	f.View(func(s emulator.State) { lost += s.DroppedResponses() })
	if marks > lost {
		t.Errorf("%d answers are marked as %q, but only %d answers of Slack were lost or errors", marks, chats.RepeatNotice, lost)
	}
}
