package receipts

import (
	"slices"
	"time"
)

// Feedback says whether a user thinks so of an answer. A user has two at most: a platform may show
// both thumbs, and the one that was given last counts.
type Feedback struct {
	// By is whose it is, as platform:id.
	By   string `json:"by"`
	Good bool   `json:"good,omitempty"`
	// Given is false where it was taken back, which is kept because events may overtake each
	// other.
	Given bool      `json:"given,omitempty"`
	At    time.Time `json:"at"`
}

// maxFeedback bounds what is kept of one answer.
const maxFeedback = 200

// Note takes feedback over unless it is older than what is known. It reports whether there is
// anything to be written, and whether that says something else than before.
func (t *Turn) Note(o Feedback) (write, changed bool) {
	i := slices.IndexFunc(t.Feedback, func(known Feedback) bool { return known.By == o.By && known.Good == o.Good })
	switch {
	case i < 0 && len(t.Feedback) >= maxFeedback, i >= 0 && o.At.Before(t.Feedback[i].At), i >= 0 && o == t.Feedback[i]:
		return false, false
	case i < 0:
		changed = o.Given
	default:
		changed = o.Given != t.Feedback[i].Given
		t.Feedback = slices.Delete(slices.Clone(t.Feedback), i, i+1)
	}
	t.Feedback = append(t.Feedback, o) // of two at the same time the last counts
	return true, changed
}

// FeedbackCounts counts the users who think well of an answer, and those who do not.
func FeedbackCounts(all []Feedback) (good, bad int) {
	counts := make(map[string]Feedback)
	for _, o := range all {
		if o.Given && !o.At.Before(counts[o.By].At) {
			counts[o.By] = o
		}
	}
	for _, o := range counts {
		if o.Good {
			good++
		} else {
			bad++
		}
	}
	return good, bad
}
