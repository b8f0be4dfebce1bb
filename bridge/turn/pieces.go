package turn

import (
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// pieceGap bounds the time between two pieces of a text, by the platform's clock.
const pieceGap = 3 * time.Second

// IsNextPiece reports whether a message is the next piece of the one before it: of an album, of a text
// that a client cut, or of a forwarded message and the comment on it, which clients send first.
func IsNextPiece(before, j *queue.Run) bool {
	a, b := &before.Message, &j.Message
	if a.User != b.User || b.Kind != chats.KindText || before.PieceCount > 0 || !j.Unstarted || Of(j).Parts != nil || Of(j).Notice != "" {
		return false
	}
	isNear := b.Time.Sub(a.Time).Abs() <= pieceGap
	switch {
	case a.Group != "" && a.Group == b.Group:
		return true
	case a.Forwards() || b.Forwards():
		return isNear && a.Kind == chats.KindText && before.Unstarted && Of(before).Parts == nil && Of(before).Notice == ""
	}
	return a.Group == "" && a.Cut != chats.CutNowhere && b.Group == "" && len(b.Files) == 0 && isNear
}

// maxPieces bounds how many pieces are joined.
const maxPieces = 32

// Pieces returns how many of some messages make up the first one: all that continue it, up to the
// number of quotes that a message holds, and up to the end of the comment on them.
func Pieces(some []*queue.Run) (n int) {
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

// MergePieces returns a message joined with the pieces that continue it.
func MergePieces(m chats.Message, pieces []*queue.Run) chats.Message {
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

// KindEdited is the edit of a message that is being answered. It joins that turn, or is answered with a
// line if the turn is over. Message.On is the key of the message.
const KindEdited chats.Kind = "amend"

// CanJoin reports whether another message can join a running turn: one of the same sender, on whose
// behalf its tools run, or an edit of a message in it. One for the strong model has a turn of its own.
// A turn that waited for a decision accepts none: the senders were told that they are next.
func CanJoin(j, o *queue.Run) bool {
	if len(Of(j).Approvals) > 0 || o.Message.User != j.Message.User || o.From != j.From || !o.Unstarted || Of(o).Delay > 0 || Of(o).Deep || Of(o).Parts != nil {
		return false
	}
	amended := o.Message.On
	return o.Message.Kind != KindEdited || amended == j.Key() || slices.Contains(j.Joined, amended)
}
