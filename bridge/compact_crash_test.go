package bridge_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/platformtest"
)

// A crash at any step around a summary loses no message and none of what was said, and
// gives no answer twice.
func TestACrashAroundASummaryLosesNothing(t *testing.T) {
	t.Parallel()
	steps := crashed(t, 0)
	if steps < 40 { // an answer and the record of its sending are one write, and so is a close
		t.Fatalf("only %d steps: the test does not see the writes", steps)
	}
	// The summary is written after the fourth answer.
	for dies := range platformtest.Steps(t, steps/2, steps) {
		t.Run(fmt.Sprint("step ", dies), func(t *testing.T) { crashed(t, dies) })
	}
}

func crashed(t *testing.T, dies int) int {
	t.Helper()
	life := &mortal{dies: dies, dead: make(chan struct{})}
	s := &scribe{}
	r, _ := newLong(t, s, func(c *bridge.Config) {
		c.Turns.WindowTokens, c.Turns.SeparateTurns, c.Limits.DrainTimeout = 700, true, -1
	})
	r.stop()
	store, shown := r.cfg.Store, r.platform
	r.cfg.Store, r.cfg.Platforms = mortalStore{store, life}, []chats.Platform{mortalPlatform{shown, life}}
	r.start()
	var want []string
	for n := range 5 {
		_ = r.bridge.Accept(t.Context(), direct(fmt.Sprint(n), question(n)))
		want = append(want, fmt.Sprintf("re: #%d#", n))
	}
	if dies == 0 {
		shown.wait(t, 5)
	} else {
		waitDead(t, life, shown)
	}
	r.stop()
	if dies == 0 && s.summaries() == 0 {
		t.Fatal("nothing was summed up")
	}
	r.cfg.Store, r.cfg.Platforms = store, []chats.Platform{shown}
	r.start()
	for n := range 6 {
		r.accept(direct(fmt.Sprint(n), question(n)))
	}
	waitAnswered(t, shown, append(want, "re: #5#")...)
	r.stop()
	if diff := cmp.Diff(allMarks(6), marked(s.last().Messages)); diff != "" {
		t.Errorf("the last question was answered without all before it: %s", diff)
	}
	noneTwiceUnmarked(t, shown.sent)
	return life.steps
}
