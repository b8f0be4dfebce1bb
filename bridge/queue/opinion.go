package queue

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// Feedback says whether somebody thinks so of an answer. A person has two at most: a platform
// may show both thumbs, and the one that was given last counts.
type Feedback struct {
	// By is whose it is, as platform:id.
	By   string `json:"by"`
	Good bool   `json:"good,omitempty"`
	// Given is false where it was taken back, which is kept because events may overtake each
	// other.
	Given bool      `json:"given,omitempty"`
	At    time.Time `json:"at"`
}

// maxOpinions bounds what is kept of one answer.
const maxOpinions = 200

// note takes an opinion over unless it is older than what is known. It reports whether there
// is anything to be written, and whether that says something else than before.
func (j *Job) note(o Feedback) (write, changed bool) {
	i := slices.IndexFunc(j.Feedback, func(known Feedback) bool { return known.By == o.By && known.Good == o.Good })
	switch {
	case i < 0 && len(j.Feedback) >= maxOpinions, i >= 0 && o.At.Before(j.Feedback[i].At), i >= 0 && o == j.Feedback[i]:
		return false, false
	case i < 0:
		changed = o.Given
	default:
		changed = o.Given != j.Feedback[i].Given
		j.Feedback = slices.Delete(slices.Clone(j.Feedback), i, i+1)
	}
	j.Feedback = append(j.Feedback, o) // of two at the same time the last counts
	return true, changed
}

// FeedbackCounts counts the people who think well of the answer, and those who do not.
func (j *Job) FeedbackCounts() (good, bad int) {
	counts := make(map[string]Feedback)
	for _, o := range j.Feedback {
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

// sent reports whether a message of the bot is part of the answer.
func (j *Job) sent(id string) bool {
	return j.Preview != nil && j.Preview.ID == id || slices.ContainsFunc(j.Parts, func(p SentPart) bool { return p.ID == id })
}

// SetFeedback keeps what somebody thinks of the answer that the message with an id is part of, with
// its receipt, or with the job while that is open: beside whoever works on it; see
// [Store.Check]. It reports whether that says something else than before: nothing where no
// job of the chat that passes has sent the message.
func (s Store) SetFeedback(ctx context.Context, chat chats.Chat, id string, o Feedback, passes func(*Job) bool) (changed bool, err error) {
	o.At = o.At.UTC().Round(0) // as it is read again
	for {
		key, j, err := s.answer(ctx, chat, id, passes)
		if j == nil || err != nil {
			return false, err
		}
		write, changed := j.note(o)
		if write {
			_, err = Write(ctx, s.Store, key, &j.Job, j.Rev)
		}
		if !errors.Is(err, storage.ErrConflict) {
			return changed && err == nil, err
		}
	}
}

// answer finds the job of a chat that passes and has sent the message with an id.
func (s Store) answer(ctx context.Context, chat chats.Chat, id string, passes func(*Job) bool) (key string, j *Run, err error) {
	quoted := []byte(`"` + id + `"`)
	// A job that is closed between the two is found by the second.
	for _, prefix := range []string{OpenPrefix, ReceiptPrefix} {
		for entry, err := range s.Store.List(ctx, storage.Range{Prefix: prefix + chat.Whole().String() + "/"}) {
			if err != nil {
				return "", nil, fmt.Errorf("find the answer %s in %s: %w", id, chat, err)
			}
			if !bytes.Contains(entry.Value, quoted) {
				continue
			}
			if j := (&Run{Rev: entry.Revision}); Decode(entry, &j.Job) == nil && j.sent(id) && passes(&j.Job) {
				return entry.Key, j, nil
			}
		}
	}
	return "", nil, nil
}
