package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

// streamed is how many chats are answered at the same time by [Streams], words how many words
// each answer has, one of which is said each fifth of a second.
const (
	streamed = 50
	words    = 40
)

// Streams has fifty answers grow at the same time and logs how long after the model's first
// words people see some, and after its last all. Edits tells how often the service was asked
// to change a message.
func Streams(t *testing.T, town Town, edits func() int) {
	w := newWorld(t, town)
	defer w.close()
	if _, ok := w.town.Adapter().(chats.Previewer); !ok {
		t.Skip("the platform shows no answers that grow")
	}
	var mu sync.Mutex
	begun, ended := map[string]time.Time{}, map[string]time.Time{}
	note := func(at map[string]time.Time, asked string) {
		mu.Lock()
		defer mu.Unlock()
		at[asked] = time.Now()
	}
	w.speak = func(ctx context.Context, said []string, show func(string)) string {
		asked := said[len(said)-1]
		answer := strings.Repeat(asked+"word ", words) + "done."
		tick := time.NewTicker(time.Second / 5)
		defer tick.Stop()
		for i, piece := range strings.SplitAfter(answer, " ") {
			show(piece)
			if i == 0 {
				note(begun, asked)
			}
			select {
			case <-tick.C:
			case <-ctx.Done():
			}
		}
		note(ended, asked)
		return answer
	}
	w.cfg.Turns.Growing = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.cfg.Limits.MaxWaitingMember = 2 * streamed
	w.start()
	for i := range streamed {
		w.say(w.open(Shared, w.town.Member), fmt.Sprintf("n%d", i))
	}
	first, whole := map[string]time.Time{}, map[string]time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	err := town.Await(ctx, func(v View) bool {
		now := time.Now()
		for _, s := range v.Messages {
			asked, _, _ := strings.Cut(s.Text, "word")
			if _, seen := first[asked]; !seen {
				first[asked] = now
			}
			if _, seen := whole[asked]; !seen && strings.HasSuffix(s.Text, "done.") && len(s.Buttons) == 0 {
				whole[asked] = now
			}
		}
		return len(whole) == streamed
	})
	if err != nil {
		t.Fatalf("%d of %d answers: %v", len(whole), streamed, err)
	}
	mu.Lock()
	defer mu.Unlock()
	t.Logf("first words after the model's first: %s", spread(begun, first))
	t.Logf("whole answer after the model's last: %s", spread(ended, whole))
	t.Logf("%d changes, %.1f for each answer", edits(), float64(edits())/streamed)
}

// spread is how much later something was, as a rule and at most.
func spread(from, to map[string]time.Time) string {
	var all []time.Duration
	for key, at := range to {
		all = append(all, at.Sub(from[key]).Round(time.Millisecond))
	}
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, p90 %v, max %v", all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
}
