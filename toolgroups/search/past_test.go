package search

import (
	"strings"
	"testing"

	"oneclaw/toolgroups"
)

// turn runs searches one after another, as a model would, each with the past of
// those before it.
func turn(t testing.TB, queries ...string) (past []toolgroups.PastCall, last string, refused bool) {
	t.Helper()
	for _, q := range queries {
		b := testBridge(t, func(c *bridgeConfig) { c.pastCalls = past })
		text, fault := use(t, b, toolgroups.ToolSearch, `{"query":"`+q+`"}`)
		p := toolgroups.PastCall{Tool: toolgroups.ToolSearch, Arguments: `{"query":"` + q + `"}`, Result: text, OK: fault == nil}
		if fault != nil {
			wantCode(t, fault, toolgroups.CodeSearchExhausted)
			p.Result = fault.Message
		}
		past, last, refused = append(past, p), p.Result, fault != nil
	}
	return past, last, refused
}

func TestFruitlessSearchesAreToldToStop(t *testing.T) {
	_, second, _ := turn(t, "zzz", "yyy")
	if strings.Contains(second, "Stop searching") {
		t.Errorf("told to stop after two: %s", second)
	}
	past, third, _ := turn(t, "zzz", "yyy", "xxx")
	if !strings.Contains(third, "Stop searching") || fruitlessStreak(past) != 3 {
		t.Errorf("not told to stop after three: %s", third)
	}
	_, seventh, refused := turn(t, "zzz", "yyy", "xxx", "www", "vvv", "uuu", "ttt")
	if !refused || !strings.Contains(seventh, "tell the user") {
		t.Errorf("the seventh search in vain was run: %s", seventh)
	}
}

func TestFruitlessCountBeginsAnew(t *testing.T) {
	past, _, _ := turn(t, "zzz", "yyy", "github", "xxx")
	if n := fruitlessStreak(past); n != 1 {
		t.Errorf("after a hit and a miss the count is %d", n)
	}
	past = append(past, toolgroups.PastCall{Tool: toolgroups.ToolCall, OK: true})
	if n := fruitlessStreak(past); n != 0 {
		t.Errorf("after a call the count is %d", n)
	}
	past = append(past, toolgroups.PastCall{Tool: toolgroups.ToolSearch, Result: "Too many", OK: false})
	if n := fruitlessStreak(past); n != 0 {
		t.Errorf("an error counts: %d", n)
	}
}

func TestSameSearchIsStopped(t *testing.T) {
	_, text, refused := turn(t, "github", "github", "github")
	if refused {
		t.Errorf("the third is refused: %s", text)
	}
	_, text, refused = turn(t, "github", "github", "github", "github")
	if !refused || !strings.Contains(text, "same words 3 times") {
		t.Errorf("the fourth is run: %s", text)
	}
}

func TestFruitlessBatch(t *testing.T) {
	b := testBridge(t)
	var past []toolgroups.PastCall
	for _, args := range []string{`{"queries":["zzz","yyy"]}`, `{"queries":["zzz","github"]}`} {
		text, fault := use(t, b, toolgroups.ToolSearch, args)
		past = append(past, toolgroups.PastCall{Tool: toolgroups.ToolSearch, Arguments: args, Result: text, OK: fault == nil})
	}
	if fruitlessStreak(past[:1]) != 1 || fruitlessStreak(past) != 0 {
		t.Errorf("counted %d, then %d", fruitlessStreak(past[:1]), fruitlessStreak(past))
	}
}
