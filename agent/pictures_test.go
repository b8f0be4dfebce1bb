package agent_test

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"oneclaw/agent"
	"oneclaw/toolgroups"
)

// paths are those of the pictures that a model is shown.
func paths(history []agent.Message) (list []string) {
	shown := agent.Arrange(history)
	for _, s := range agent.ShownPictures(shown) {
		list = append(list, shown[s.Message].Files[s.File].Path)
	}
	return list
}

// TestPicturesStayUntilARecordTakesThemOut has people send pictures, and the records written
// that the budget asks for: between two of them no picture leaves, what stays are the newest,
// and the log as it is stored never changes.
func TestPicturesStayUntilARecordTakesThemOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		budget := rapid.IntRange(-1, 9000).Draw(t, "budget")
		var history []agent.Message
		var sent, before []string
		for turn := range rapid.IntRange(1, 8).Draw(t, "turns") {
			m := agent.Message{Role: agent.RoleUser, Text: "look"}
			for k := range rapid.IntRange(0, 3).Draw(t, "pictures") {
				name := fmt.Sprintf("%d-%d.png", turn, k)
				side := rapid.IntRange(0, 3000).Draw(t, "side")
				m.Files = append(m.Files, toolgroups.File{Path: name, Picture: &toolgroups.Picture{Width: side, Height: side, Size: 1 << 18}})
				sent = append(sent, name)
			}
			history = append(history, m)
			now := paths(history)
			if !slices.Equal(now[:len(before)], before) {
				t.Fatalf("%q were shown, now %q", before, now)
			}
			history = append(history, agent.Message{Role: agent.RoleAssistant, Text: "seen", Final: true})
			if fewer, needed := agent.TrimPictures(history, budget); needed {
				history = append(history, fewer)
				if again, twice := agent.TrimPictures(history, budget); twice {
					t.Fatalf("after %+v it takes %+v", fewer, again)
				}
			}
			before = paths(history)
			if !slices.Equal(before, sent[len(sent)-len(before):]) || agent.EstimateTokens(agent.Arrange(history)) > max(budget, 0)+len(history)*20 {
				t.Fatalf("%q stay of %q", before, sent)
			}
		}
		for _, m := range history {
			for _, f := range m.Files {
				if f.Picture.Gone {
					t.Fatal("a record was changed")
				}
			}
		}
	})
}

func TestARequestIsBounded(t *testing.T) {
	var history []agent.Message
	for i := range 60 {
		history = append(history, agent.Message{Role: agent.RoleUser, Files: []toolgroups.File{{Path: fmt.Sprint(i), Picture: &toolgroups.Picture{Size: 1}}}})
		if n := len(agent.ShownPictures(history)); n > agent.MaxPictures || n < min(i, agent.MaxPictures/2) {
			t.Errorf("%d of %d are shown", n, i+1)
		}
	}
	large := agent.Message{Role: agent.RoleTool, Files: []toolgroups.File{{Path: "large", Picture: &toolgroups.Picture{Size: agent.MaxPictureBytes}}}}
	if got := agent.ShownPictures(append(history, large)); len(got) != 1 {
		t.Errorf("%d are shown beside a large one", len(got)-1)
	}
}

// BenchmarkKeptPictures says what pictures cost in a conversation of 20 turns of which the
// first few bring photos of 1280 by 960 pixels, in tokens beyond the same words: all of them,
// and as they are billed where what was sent before costs a tenth.
func BenchmarkKeptPictures(b *testing.B) {
	for _, photos := range []int{1, 10, 20} {
		for _, budget := range []int{-1, 16_000} {
			b.Run(fmt.Sprintf("photos=%d/budget=%d", photos, budget), func(b *testing.B) {
				var all, billed float64
				for b.Loop() {
					all, billed = keptPictures(photos, budget)
				}
				b.ReportMetric(all, "tokens")
				b.ReportMetric(billed, "billed")
			})
		}
	}
}

// keptPictures plays a conversation whose turns bring five photos each until all are there.
func keptPictures(photos, budget int) (all, billed float64) {
	var history []agent.Message
	var before []string
	for turn := range 20 {
		m := agent.Message{Role: agent.RoleUser, Text: "look"}
		for k := turn * 5; k < min(photos, turn*5+5); k++ {
			m.Files = append(m.Files, toolgroups.File{Path: fmt.Sprint(k), Picture: &toolgroups.Picture{Width: 1280, Height: 960, Size: 1 << 17}})
		}
		history = append(history, m)
		now := paths(history)
		cost := float64(agent.PictureTokens(&toolgroups.Picture{Width: 1280, Height: 960}))
		for i := range now {
			all += cost
			if i < len(before) && before[i] == now[i] {
				billed += cost / 10
			} else {
				billed += cost
			}
		}
		before = now
		history = append(history, agent.Message{Role: agent.RoleAssistant, Text: "seen", Final: true})
		if fewer, needed := agent.TrimPictures(history, budget); needed {
			history = append(history, fewer)
			before = nil // the cache misses what follows the first that left
		}
	}
	return all, billed
}
