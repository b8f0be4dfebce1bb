package bridge_test

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/toolgroups"
)

// indicating is a platform that shows whether a turn waits for a user.
type indicating struct {
	*platform
	calls chan string
}

func (p indicating) SetWaiting(_ context.Context, chat chats.Chat, on bool) {
	if on {
		p.calls <- "+" + chat.ID
	} else {
		p.calls <- "-" + chat.ID
	}
}

// That a turn waits is shown until the wait ends, whatever ends it. No card that was closed before a restart
// shows anything again.
func TestAPlatformShowsThatATurnWaits(t *testing.T) {
	for _, end := range []string{"a decision", "/stop", "a restart", "time"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := make(chan string, 100)
				r := (&execTools{}).guarded(t, func(c *bridge.Config) {
					p, _ := c.Platforms[0].(*platform)
					c.Platforms = []chats.Platform{indicating{p, calls}}
					c.Sharing = queue.Sharing{Enabled: true} // a replica reads all cards when it begins
				})
				pass(t, 60)
				check := func(when string, want ...string) {
					t.Helper()
					pass(t, 5)
					var got []string
					for len(calls) > 0 {
						got = append(got, <-calls)
					}
					if !slices.Equal(got, want) {
						t.Errorf("%s it shows %q, want %q", when, got, want)
					}
				}
				r.accept(direct("1", "run a"))
				card := r.platform.one(t, "May I run")
				check("at first", "+1")
				switch end {
				case "a decision":
					press(r, card, "p", "1", "Allow")
				case "/stop":
					r.accept(direct("2", "/stop"))
				case "a restart":
					r.restart()
					pass(t, 60)
					check("after a restart", "-1", "+1")
					press(r, card, "p", "1", "Allow")
				case "time":
					pass(t, int((15 * time.Minute).Seconds()))
				}
				check("then", "-1")
				r.restart()
				pass(t, 60)
				check("in the end")
			})
		})
	}
}

// The wait for an answer to a tool's question is shown likewise.
func TestAPlatformShowsThatAQuestionWaits(t *testing.T) {
	for _, end := range []string{"an answer", "/stop", "/clear", "a restart", "a failure"} {
		t.Run(end, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				calls := make(chan string, 100)
				fetched := make(chan struct{})
				c := &curious{asks: form(yesOrNo), effect: toolgroups.Consequential, fetch: func(context.Context, toolgroups.Call) (toolgroups.Result, error) {
					<-fetched
					return toolgroups.TextResult("the page")
				}}
				r := c.rig(t, func(cfg *bridge.Config) {
					if end == "a failure" { // of the attempt, as a result cannot be stored
						cfg.Store = brittle{cfg.Store, &saboteur{step: "store: append the page", way: failsOnce}}
					}
					p, _ := cfg.Platforms[0].(*platform)
					cfg.Platforms = []chats.Platform{indicating{p, calls}}
				})
				r.accept(direct("1", "run x\nfetch {}"))
				card := r.platform.one(t, "Are you sure?")
				pass(t, 5)
				close(fetched)
				pass(t, 5)
				switch end {
				case "an answer":
					press(r, card, "p", "1", "Yes")
				case "a restart":
					r.restart() // which cuts off the call
				case "/stop", "/clear":
					r.accept(direct("2", end))
				}
				pass(t, 60)
				var got []string
				for len(calls) > 0 {
					got = append(got, <-calls)
				}
				if !slices.Equal(got, []string{"+1", "-1"}) {
					t.Errorf("it shows %q", got)
				}
			})
		})
	}
}
