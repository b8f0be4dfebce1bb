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
	// MaxRecalled bounds the notes recalled for a message.
	MaxRecalled = 5
	// minShared is the number of words that a note must share with a message. Words of up to three
	// letters do not count, because they are in nearly every sentence.
	minShared     = 2
	minWordLength = 4
)

// Recall returns the notes of an owner that match a message and are not in the snapshot of the
// conversation, which began at the given time: older notes that did not fit, and newer ones. Notes
// that share the most words come first, and newer notes before older ones.
func (m *Memory) Recall(ctx context.Context, owner, message string, began time.Time) ([]Note, error) {
	asked := longWords(message)
	if len(asked) < minShared {
		return nil, nil
	}
	notes, err := m.Notes(ctx, owner)
	if err != nil {
		return nil, err
	}
	shown := newestThatFit(slices.DeleteFunc(slices.Clone(notes), func(n Note) bool { return n.SavedAt.After(began) }))
	score := func(n Note) int {
		shared := 0
		for word := range longWords(n.Text) {
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

// longWords returns the words of a text that have at least minWordLength letters, in lower case.
func longWords(text string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) }) {
		if len([]rune(word)) >= minWordLength {
			all[word] = true
		}
	}
	return all
}
