package memory

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode"
)

// Bounds of what is recalled for one message.
const (
	// MaxRecalled is how many notes are recalled.
	MaxRecalled = 5
	// minShared is how many words a note has to share with a message. Words of up to
	// three letters do not count: most of them stand in every sentence.
	minShared = 2
	minWord   = 4
)

// Recall returns the notes of an owner that a message is about and that the snapshot of
// a conversation that began at that time does not show: older ones that found no room,
// and newer ones. Those that share the most words come first, of equal ones the newest.
func (m *Memory) Recall(ctx context.Context, owner, message string, began time.Time) ([]Note, error) {
	asked := words(message)
	if len(asked) < minShared {
		return nil, nil
	}
	notes, err := m.Notes(ctx, owner)
	if err != nil {
		return nil, err
	}
	shown := fit(slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.Saved.After(began) }))
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

// words are the longer words of a text, folded.
func words(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len([]rune(word)) >= minWord {
			all[word] = true
		}
	}
	return all
}
