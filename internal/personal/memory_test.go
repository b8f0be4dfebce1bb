package personal_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/interact"
	"oneclaw/internal/personal"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/memory"
)

// unsteady is a store that loses its answer to a write, which happened all the same.
type unsteady struct {
	storage.Store
	lose bool
}

func (u *unsteady) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	rev, err := u.Store.Put(ctx, key, value, rev)
	if u.lose {
		u.lose = false
		return 0, errors.New("the answer is lost")
	}
	return rev, err
}

// panel is the card of /memory as a person sees it.
type panel struct {
	t     *testing.T
	of    personal.MemoryPanel
	scope toolgroups.Scope
	text  string
	rows  [][]interact.Choice
}

func openPanel(t *testing.T, store storage.KV, scope toolgroups.Scope, notes int) *panel {
	t.Helper()
	at := time.Date(2026, 5, 1, 8, 0, 0, 0, time.UTC)
	m, err := memory.New(memory.Config{Store: store, Now: func() time.Time { at = at.Add(time.Minute); return at }})
	if err != nil {
		t.Fatal(err)
	}
	for i := range notes {
		if _, _, err := m.Save(t.Context(), scope, "", fmt.Sprintf("likes thing *%d*", i+1), ""); err != nil {
			t.Fatal(err)
		}
	}
	p := &panel{t: t, of: personal.MemoryPanel{Memory: m}, scope: scope}
	card, err := p.of.Commands()[0].RunCard(t.Context(), bridge.CommandCall{Scope: scope})
	if err != nil {
		t.Fatal(err)
	}
	p.text, p.rows = card.Text, card.Choices
	return p
}

func (p *panel) labels() (all []string) {
	for _, c := range slices.Concat(p.rows...) {
		all = append(all, c.Label)
	}
	return all
}

func (p *panel) value(label string) string {
	for _, c := range slices.Concat(p.rows...) {
		if c.Label == label {
			return c.Value
		}
	}
	p.t.Fatalf("there is no %q, but %q", label, p.labels())
	return ""
}

func (p *panel) press(value string) (string, error) {
	result, err := p.of.HandlePress(p.t.Context(), interact.Press{Scope: p.scope, Choice: value})
	if err == nil && result.Text != "" {
		p.text, p.rows = result.Text, result.Choices
	}
	return result.Toast, err
}

// A long memory has pages, and a press leaves the page as it is.
func TestTheMemoryHasPages(t *testing.T) {
	p := openPanel(t, newStore(t), ann(t), 10)
	if !strings.HasPrefix(p.text, "**What I remember about you** (10)\n\n1\\. “likes thing \\*10\\*” – 1 May 2026\n\n2\\. ") {
		t.Errorf("shown is %q", p.text)
	}
	if got, want := p.labels(), []string{"✕ 1", "✕ 2", "✕ 3", "✕ 4", "✕ 5", "✕ 6", "✕ 7", "✕ 8", "More ›"}; !slices.Equal(got, want) {
		t.Errorf("buttons %q", got)
	}
	if _, err := p.press(p.value("More ›")); err != nil {
		t.Fatal(err)
	}
	if got, want := p.labels(), []string{"✕ 9", "✕ 10", "‹ Back"}; !slices.Equal(got, want) {
		t.Errorf("buttons %q", got)
	}
	for _, want := range []string{"Forgotten.", "Forgotten."} {
		if got, err := p.press(p.value("✕ 9")); got != want || err != nil {
			t.Errorf("told %q, %v", got, err)
		}
	}
	if !strings.HasPrefix(p.text, "**What I remember about you** (8)") || !slices.Equal(p.labels()[8:], []string{"↩ Undo"}) {
		t.Errorf("shown is %q with %q", p.text, p.labels())
	}
}

// A press whose effect is on disk and whose answer was lost is repeated, and acts once.
func TestARepeatedPressActsOnce(t *testing.T) {
	store := &unsteady{Store: newStore(t)}
	p := openPanel(t, store, ann(t), 2)
	for _, c := range []struct{ label, text string }{{"✕ 2", "(1)"}, {"↩ Undo", "(2)"}} {
		value := p.value(c.label)
		store.lose = true
		if _, err := p.press(value); err == nil {
			t.Fatal("the answer was not lost")
		}
		for range 2 {
			if _, err := p.press(value); err != nil || !strings.Contains(p.text, c.text) {
				t.Errorf("%s: %v, %q", c.label, err, p.text)
			}
		}
	}
}

// A fact does not come back beside what has taken its place since the card was shown.
func TestAFactThatWasReplacedAgainDoesNotComeBack(t *testing.T) {
	p := openPanel(t, newStore(t), ann(t), 1)
	replace := func(old, text string) {
		t.Helper()
		if _, _, err := p.of.Memory.Update(t.Context(), p.scope, old, "", text, ""); err != nil {
			t.Fatal(err)
		}
		if _, err := p.press("page - 0"); err != nil {
			t.Fatal(err)
		}
	}
	replace("likes thing *1*", "likes tea")
	undo := p.value("↩ Undo")
	replace("likes tea", "likes rum")
	if got, err := p.press(undo); got != "That has just changed. Please look again." || err != nil || !strings.Contains(p.text, "(1)") || !strings.Contains(p.text, "likes rum") {
		t.Errorf("told %q, %v, %q", got, err, p.text)
	}
}

// Buttons of facts that are gone, or were somebody else's, change nothing.
func TestPressesOfOthersChangeNothing(t *testing.T) {
	store := newStore(t)
	p := openPanel(t, store, ann(t), 1)
	forget := p.value("✕ 1")
	other := &panel{t: t, of: p.of, scope: toolgroups.Scope{User: "fake:2", Owner: "fake:2", Direct: true}}
	if got, err := other.press(forget); got != "That has just changed. Please look again." || err != nil || !strings.HasPrefix(other.text, "I remember nothing about you yet.") {
		t.Errorf("told %q, %v, %q", got, err, other.text)
	}
	if _, err := p.press("page - 0"); err != nil || !strings.Contains(p.text, "(1)") {
		t.Errorf("%v, %q", err, p.text)
	}
	if _, err := p.press("nonsense"); err == nil {
		t.Error("nonsense was accepted")
	}
}
