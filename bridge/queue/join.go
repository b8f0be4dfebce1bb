package queue

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// Joining are the operations that make other messages part of a job: its record names them,
// and each of them is closed with a receipt that names it. Whoever does all of them in one
// write loses none of them in a crash, and has none answered twice.
func (s Store) Joining(j *Run, others []*Run, now time.Time) ([]storage.Op, error) {
	joined := *j
	joined.Joined = slices.Clone(j.Joined)
	ops := make([]storage.Op, 1, 1+2*len(others))
	for _, o := range others {
		joined.Joined = append(joined.Joined, o.Key())
		closed := *o
		closed.State, closed.JoinedTo, closed.Closed = StateJoined, j.Key(), now
		receipt, err := s.receipt(&closed, storage.Absent)
		if err != nil {
			return nil, err
		}
		ops = append(append(ops, receipt...), storage.Delete(OpenPrefix+o.Key(), o.Rev))
	}
	var err error
	ops[0], err = joined.Record()
	return ops, err
}

// Reload reads jobs that are in doubt, and returns those of all that are open still.
func (s Store) Reload(ctx context.Context, some []*Run) (open, gone []*Run, err error) {
	for i, j := range some {
		if !j.PossiblyJoined {
			open = append(open, j)
			continue
		}
		known, err := s.Load(ctx, j.Key())
		switch {
		case err != nil && !IsDamaged(err):
			return append(open, some[i:]...), gone, err
		case err != nil || known == nil || known.LeaseToken != j.LeaseToken:
			gone = append(gone, j)
			continue
		}
		j.become(known)
		open = append(open, j)
	}
	return open, gone, nil
}

// Resolve is Refresh for one job: where that is not this process's any more, the error is
// [ErrLost].
func (s Store) Resolve(ctx context.Context, j *Run) error {
	_, gone, err := s.Reload(ctx, []*Run{j})
	if len(gone) > 0 {
		return fmt.Errorf("%s: %w", j.Key(), ErrLost)
	}
	return err
}

// become takes over what the record says. The chat stays: it may have moved.
func (j *Run) become(known *Run) {
	m, k := &j.Message, known.Message
	m.Text, m.Files, m.Skipped, m.Quoted, m.Cut = k.Text, k.Files, k.Skipped, k.Quoted, k.Cut
	j.Rev, j.Joined, j.PossiblyJoined = known.Rev, known.Joined, false
	j.PieceCount, j.OwnLength = known.PieceCount, known.OwnLength
}

// pieceGap is how far apart a client sends two pieces of a text, by the time of the platform.
const pieceGap = 3 * time.Second

// IsNextPiece reports whether a message is the next piece of the one before it: of an album, of a
// text that a client cut, or of something that is passed on and the words about it, which clients
// send as a message before it.
func IsNextPiece(before, j *Run) bool {
	a, b := &before.Message, &j.Message
	if a.User != b.User || b.Kind != chats.KindText || before.PieceCount > 0 || !j.Unstarted || j.Parts != nil || j.Notice != "" {
		return false
	}
	isNear := b.Time.Sub(a.Time).Abs() <= pieceGap
	switch {
	case a.Group != "" && a.Group == b.Group:
		return true
	case a.Forwards() || b.Forwards():
		return isNear && a.Kind == chats.KindText && before.Unstarted && before.Parts == nil && before.Notice == ""
	}
	return a.Group == "" && a.Cut != chats.CutNowhere && b.Group == "" && len(b.Files) == 0 && isNear
}

// maxPieces bounds those that become one message.
const maxPieces = 32

// Pieces returns how many of some messages are the first one: all that continue it, as far as one
// message holds what they pass on, and to the end of the words about that.
func Pieces(some []*Run) (n int) {
	forwards, hasWords := 0, false
	for ; n < min(len(some), maxPieces) && (n == 0 || IsNextPiece(some[n-1], some[n])); n++ {
		switch {
		case some[n].Message.Forwards():
			if forwards++; forwards > chats.MaxQuoted {
				return n
			}
		case hasWords && some[n-1].Message.Forwards():
			return n
		default:
			hasWords = true
		}
	}
	return n
}

// MergePieces is a message with the pieces that continue it.
func MergePieces(m chats.Message, pieces []*Run) chats.Message {
	var text strings.Builder
	text.WriteString(m.Text)
	m.Files, m.Skipped = slices.Clone(m.Files), slices.Clone(m.Skipped)
	for _, p := range pieces {
		if text.Len() > 0 && p.Message.Text != "" && m.Cut != chats.CutWithin {
			text.WriteString("\n")
		}
		text.WriteString(p.Message.Text)
		m.Cut = p.Message.Cut
		m.Files, m.Skipped = append(m.Files, p.Message.Files...), append(m.Skipped, p.Message.Skipped...)
		m.Quoted = chats.Join(m.Quoted, p.Message.Quoted)
	}
	m.Text = text.String()
	return m
}

// OwnText is the text of a message itself, without those of the pieces that continue it.
func (j *Job) OwnText() string {
	if j.OwnLength > 0 && j.OwnLength <= len(j.Message.Text) {
		return j.Message.Text[:j.OwnLength]
	}
	return j.Message.Text
}

// CanJoin reports whether another message can become part of this one, which is being answered:
// that of the same sender, on whose behalf its tools run, or an edit of what is in it. A turn
// that had a decision to wait for takes none: who wrote meanwhile was told to be next.
func (j *Job) CanJoin(o *Job) bool {
	if len(j.Approvals) > 0 || o.Message.User != j.Message.User || o.From != j.From || !o.Unstarted || o.Delay > 0 || o.Parts != nil {
		return false
	}
	amended := o.Message.On
	return o.Message.Kind != KindAmend || amended == j.Key() || slices.Contains(j.Joined, amended)
}

// tries is how often a write is made that an edit got in the way of.
const tries = 3

// Join makes other messages part of a job, with a write that does more than that. It returns
// those that became part of it; what is gone belongs to nobody here any more. After an error
// the others are in doubt: they may have become part of it all the same.
func (s Store) Join(ctx context.Context, j *Run, others []*Run, write func(others []*Run) error) (joined, gone []*Run, err error) {
	for range tries {
		var lost []*Run
		if others, lost, err = s.Reload(ctx, others); err != nil {
			return nil, gone, err
		}
		gone = append(gone, lost...)
		err = write(others)
		if err == nil {
			return others, gone, nil
		}
		for _, o := range others {
			o.PossiblyJoined = true
		}
		if !errors.Is(err, storage.ErrConflict) {
			return nil, gone, err
		}
		if lost := s.Check(ctx, j); lost != nil {
			return nil, gone, lost
		}
	}
	return nil, gone, err
}
