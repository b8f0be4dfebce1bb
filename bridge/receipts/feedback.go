package receipts

import (
	"slices"
	"time"
)

// Feedback is a user's rating of an answer. A user has at most one good and one bad rating of an answer,
// because platforms may allow both. The latest one counts.
type Feedback struct {
	// By is the user, as platform:id.
	By   string `json:"by"`
	Good bool   `json:"good,omitempty"`
	// Given is false if the rating was withdrawn. It is kept, because events may arrive out of order.
	Given bool      `json:"given,omitempty"`
	At    time.Time `json:"at"`
}

// maxFeedback bounds the ratings of one answer.
const maxFeedback = 200

// AddFeedback records a rating unless a newer one is recorded. write reports whether the receipt has to
// be written, changed whether the rating changed.
func (t *Turn) AddFeedback(o Feedback) (write, changed bool) {
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
	t.Feedback = append(t.Feedback, o) // of two ratings with the same time, the later event counts
	return true, changed
}

// CountFeedback returns how many users rated an answer good, and how many rated it bad.
func CountFeedback(all []Feedback) (good, bad int) {
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
