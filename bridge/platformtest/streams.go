package platformtest

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

// wordsPerAnswer is the number of words of each answer of [MeasureStreams]; the agent sends one every
// fifth of a second.
const wordsPerAnswer = 40

// MeasureStreams makes the given number of answers grow at the same time; it skips the test if number is
// not a number. It logs the delay from the model's first words until users see some, and from its last
// words until they see all. edits returns how many edits the service was asked for.
func MeasureStreams(t *testing.T, harness Harness, number string, edits func() int) {
	streamed, err := strconv.Atoi(number)
	if err != nil {
		t.Skip("it measures, and runs where TEST_ONECLAW_STREAMS says how many answers grow")
	}
	w := newWorld(t, harness)
	defer w.close()
	if _, ok := w.harness.Adapter().(chats.Previewer); !ok {
		t.Skip("the platform shows no answers that grow")
	}
	var model stopwatch
	w.stream = model.speak
	w.cfg.Turns.RedactPartial = func(text string) string { return text[:strings.LastIndexByte(text, ' ')+1] }
	w.cfg.Limits.MaxWaitingMember = 2 * streamed
	w.start()
	for i := range streamed {
		w.say(w.open(Shared, w.harness.Member), fmt.Sprintf("n%d", i))
	}
	first, whole := map[string]time.Time{}, map[string]time.Time{}
	ctx, cancel := context.WithTimeout(t.Context(), 6*patience)
	defer cancel()
	err = harness.Await(ctx, func(v View) bool {
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
	t.Logf("first words after the model's first: %s", delaySummary(&model.begun, first))
	t.Logf("whole answer after the model's last: %s", delaySummary(&model.ended, whole))
	t.Logf("%d changes, %.1f for each answer", edits(), float64(edits())/float64(streamed))
}

// stopwatch is an agent that records when each answer began and ended.
type stopwatch struct{ begun, ended sync.Map }

func (s *stopwatch) speak(ctx context.Context, said []string, show func(string)) string {
	asked := said[len(said)-1]
	answer := strings.Repeat(asked+"word ", wordsPerAnswer) + "done."
	tick := time.NewTicker(time.Second / 5)
	defer tick.Stop()
	for piece := range strings.SplitAfterSeq(answer, " ") {
		show(piece)
		s.begun.LoadOrStore(asked, time.Now())
		select {
		case <-tick.C:
		case <-ctx.Done():
		}
	}
	s.ended.Store(asked, time.Now())
	return answer
}

// delaySummary returns the median, the 90th percentile and the maximum of the delays.
func delaySummary(from *sync.Map, to map[string]time.Time) string {
	var all []time.Duration
	for key, at := range to {
		if before, known := from.Load(key); known {
			all = append(all, at.Sub(before.(time.Time)).Round(time.Millisecond))
		}
	}
	slices.Sort(all)
	return fmt.Sprintf("p50 %v, p90 %v, max %v", all[len(all)/2], all[len(all)*9/10], all[len(all)-1])
}
