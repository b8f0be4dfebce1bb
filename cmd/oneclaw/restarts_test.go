package main

import (
	"context"
	"maps"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
)

// deadly is a model that tells which program asks about what is poisoned, and gives no reply
// to that.
type deadly struct {
	program int
	asked   chan<- int
}

func (m deadly) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1].Content
	if !strings.Contains(last, "poison") {
		return openai.Reply{Text: "re: " + last}, nil
	}
	select {
	case m.asked <- m.program:
	case <-ctx.Done():
	}
	<-ctx.Done()
	return openai.Reply{}, ctx.Err()
}

// TestAMessageThatEndsTheProgramEachTimeIsGivenUp kills whichever program has taken up the same
// message, each time one has. After some restarts there is a line with an incident in its place;
// what waits behind it and other chats are answered (A3).
func TestAMessageThatEndsTheProgramEachTimeIsGivenUp(t *testing.T) {
	for name, replicas := range map[string]int{"one program": 1, "two replicas": 2} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			asked := make(chan int)
			w := newHarness(t, deadly{0, asked})
			ann, bob := w.person("Ann"), w.person("Bob")
			clock := newOffClock(t, w)
			if replicas > 1 {
				w.onServer(t)
				w.env[ttlVariable] = "2s"
			}
			var programs []*process
			launch := func(n int) *process {
				env := maps.Clone(w.env)
				if n > 0 {
					_, env["OPENAI_BASE_URL"] = startModel(t, openai.Config{Responder: deadly{n, asked}, Key: "sk-emulated", MaxTools: 200})
					env["ONECLAW_DATA_DIR"] = t.TempDir()
				}
				return start(t, env, "run")
			}
			for n := range replicas {
				programs = append(programs, launch(n))
				programs[n].out.await(t, startedLine)
			}
			w.say(ann, "poison", nil)
			w.say(ann, "next", nil)
			w.say(bob, "other", nil)
			over := make(chan error, 1)
			waiting, cancel := context.WithCancel(t.Context())
			defer cancel()
			go func() {
				over <- w.telegram.WaitFor(waiting, func(s telegram.State) bool {
					return s.CountAnswers(ann) >= 2 && s.CountAnswers(bob) >= 1 // a kill may have it sent again
				})
			}()
			for lives := 0; ; lives++ {
				select {
				case n := <-asked:
					programs[n].kill(syscall.SIGKILL)
					clock.jump(time.Duration(lives) * 20 * time.Second)
					programs[n] = launch(n)
					continue
				case err := <-over:
					// Of two replicas, one that stands still for long loses its chats to the other.
					if err != nil || lives < 5 || lives > 7 && replicas == 1 {
						t.Fatalf("%v after %d lives, with the answers %q and %q", err, lives, w.answers(ann), w.answers(bob))
					}
				case <-time.After(patience):
					t.Fatalf("nobody has asked, and life %d ends with the answers %q and %q", lives, w.answers(ann), w.answers(bob))
				}
				break
			}
			answers := w.answers(ann)
			wantIn(t, answers[0], "Incident ")
			wantIn(t, answers[1], "re: next")
			wantIn(t, w.answers(bob)[0], "re: other")
		})
	}
}
