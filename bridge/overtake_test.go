package bridge_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// A command that fails, or that goes on for long, does not keep what comes after it from being
// answered: /stop and /clear end it, and say so (A2).
func TestStopAndClearEndCommandsThatStandInTheirWay(t *testing.T) {
	for name, hangs := range map[string]bool{"fails": false, "hangs": true} {
		for _, order := range []string{"/stop", "/clear"} {
			t.Run(name+" "+order, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					r := newHarness(t, echo, func(c *bridge.Config) {
						c.Commands = append(c.Commands, bridge.Command{
							CommandInfo: chats.CommandInfo{Name: "usage", Description: "Usage"}, Run: func(ctx context.Context, _ bridge.CommandCall) (string, error) {
								if hangs {
									<-ctx.Done()
								}
								return "", errors.New("damaged")
							},
						})
					})
					r.accept(direct("1", "/usage"), direct("2", "/usage"), direct("3", "hello"), direct("4", order), direct("5", "anew"))
					pass(t, 4)
					// The message behind them may be answered before a /clear has its turn.
					all := strings.Join(r.platform.texts(), "\n")
					for _, want := range []string{map[string]string{"/stop": "Stopped. 2 waiting messages were dropped.", "/clear": "I stopped what I was doing. One waiting message was dropped."}[order], "re: anew"} {
						if !strings.Contains(all, want) {
							t.Errorf("no %q in %q", want, all)
						}
					}
					r.stop()
				})
			})
		}
	}
}

// Commands before a /stop or /clear that end by themselves are answered.
func TestStopAndClearLetOtherCommandsBeAnswered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newHarness(t, echo)
		r.accept(direct("1", "/help"), direct("2", "/status"), direct("3", "/clear"), direct("4", "/undo"), direct("5", "/stop"), direct("6", "on"))
		pass(t, 5)
		got := r.platform.texts()
		if len(got) != 6 || !slices.ContainsFunc(got, func(text string) bool { return text == "re: on" }) {
			t.Errorf("answers: %q", got)
		}
		r.stop()
	})
}
