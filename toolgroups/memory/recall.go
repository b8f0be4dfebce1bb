package memory

import (
	"cmp"
	"context"
	"regexp"
	"slices"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/toolgroups/search"
)

// Bounds of recalling notes for a message.
const (
	// maxRecalled and maxRecalledTokens bound the notes recalled for a message.
	maxRecalled       = 5
	maxRecalledTokens = 600
	// minRoom is the least number of tokens in which the beginning of a long note is shown.
	minRoom = 60
)

// Least scores of a recalled note, in the measure of [search.Match].
const (
	minPersonal = 0.1  // if the message speaks of its sender
	minOther    = 0.8  // for any other message
	minShare    = 0.75 // as a share of the best note's score
)

// personal matches messages that speak of their sender, in English, and those in scripts in which that is
// not known.
var personal = regexp.MustCompile(`(?i)\b(i|me|my|mine|myself|we|us|our|ours)\b|[^\P{L}\p{Latin}]`)

// Recall returns the notes of an owner that match a message by their words or meaning and are not in
// the snapshot of the conversation, which began at the given time: older notes that did not fit, and
// newer ones. The best come first. Long notes are cut, so that all fit into [maxRecalledTokens].
func (m *Memory) Recall(ctx context.Context, owner, message string, began time.Time) ([]Note, error) {
	notes, err := m.Notes(ctx, owner)
	if err != nil {
		return nil, err
	}
	shown := newestThatFit(savedBy(notes, began))
	if len(shown) == len(notes) {
		return nil, nil
	}
	least := minOther
	if message = m.dictionary().translate(message); personal.MatchString(message) {
		least = minPersonal
	}
	found := slices.DeleteFunc(m.match(notes, message, least), func(n Note) bool { return slices.Contains(shown, n) })
	return m.fitTokens(found), nil
}

// match returns at most maxRecalled notes that match a translated text, the best first. Notes with equal
// scores keep their order.
func (m *Memory) match(notes []Note, text string, least float64) (found []Note) {
	texts := make([]string, len(notes))
	for i, n := range notes {
		texts[i] = m.dictionary().translate(n.Text)
	}
	scores := search.Match(texts, text)
	order := make([]int, len(notes))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(scores[b], scores[a]) })
	for _, i := range order[:min(len(order), maxRecalled)] {
		if scores[i] >= max(least, minShare*scores[order[0]]) {
			found = append(found, notes[i])
		}
	}
	return found
}

// fitTokens returns the notes that fit into maxRecalledTokens with their dates. It cuts a note that does
// not fit, or leaves it and the later ones out if less than minRoom tokens are left.
func (m *Memory) fitTokens(notes []Note) []Note {
	room := 4 * maxRecalledTokens
	for i := range notes {
		for room < quarterTokens(m.Line(notes[i])) {
			if room < 4*minRoom {
				return notes[:i]
			}
			notes[i].Text = wording.Clip(notes[i].Text, len([]rune(notes[i].Text))*3/4)
		}
		room -= quarterTokens(m.Line(notes[i]))
	}
	return notes
}

// Line returns a note as a list item with the day on which it was saved.
func (m *Memory) Line(n Note) string { return listItem(n.Text) + " (saved " + m.Day(n) + ")" }

// Day returns the day on which a note was saved, in the configured zone.
func (m *Memory) Day(n Note) string { return n.SavedAt.In(m.cfg.Zone()).Format("2 Jan 2006") }
