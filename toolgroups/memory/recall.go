package memory

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Bounds of recalling notes for a message.
const (
	// MaxRecalled is how many notes are recalled.
	MaxRecalled = 5
	// minShared is how many words a note must share with a message. Words of up to three letters do
	// not count: they are in nearly every sentence.
	minShared = 2
	minWord   = 4
)

// Recall returns the notes of an owner that match a message and are not in the snapshot of a
// conversation that began at that time: older ones that did not fit, and newer ones. Those that
// share the most words come first; among equals the newest.
func (m *Memory) Recall(ctx context.Context, owner, message string, began time.Time) ([]Note, error) {
	asked := words(message)
	if len(asked) < minShared {
		return nil, nil
	}
	notes, err := m.Notes(ctx, owner)
	if err != nil {
		return nil, err
	}
	shown := newestThatFit(slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.Saved.After(began) }))
	score := func(n Note) int {
		shared := 0
		for word := range words(n.Text) {
			if asked[word] {
				shared++
			}
		}
		return shared
	}
	hits := slices.DeleteFunc(notes, func(n Note) bool {
		return score(n) < minShared || slices.ContainsFunc(shown, func(s Note) bool { return s.Text == n.Text && s.Section == n.Section })
	})
	slices.SortStableFunc(hits, func(a, b Note) int { return score(b) - score(a) })
	return hits[:min(len(hits), MaxRecalled)], nil
}

// words returns the longer words of a text in lower case.
func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len([]rune(word)) >= minWord {
			all[word] = true
		}
	}
	return all
}
