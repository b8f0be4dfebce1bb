package turn

import (
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
)

// pieceGap is how far apart a client sends two pieces of a text, by the time of the platform.
const pieceGap = 3 * time.Second

// IsNextPiece reports whether a message is the next piece of the one before it: of an album, of a
// text that a client cut, or of something that is passed on and the words about it, which clients
// send as a message before it.
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

// maxPieces bounds those that become one message.
const maxPieces = 32

// Pieces returns how many of some messages are the first one: all that continue it, as far as one
// message holds what they pass on, and to the end of the words about that.
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

// MergePieces is a message with the pieces that continue it.
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

// KindEdited is the edit of a message that is being answered. It is given to that turn, or answered
// with a line when it is over. Message.On is the key of the message.
const KindEdited chats.Kind = "amend"

// CanJoin reports whether another message can become part of one that is being answered:
// that of the same sender, on whose behalf its tools run, or an edit of what is in it. A turn
// that had a decision to wait for takes none: who wrote meanwhile was told to be next.
func CanJoin(j, o *queue.Run) bool {
	if len(Of(j).Approvals) > 0 || o.Message.User != j.Message.User || o.From != j.From || !o.Unstarted || Of(o).Delay > 0 || Of(o).Parts != nil {
		return false
	}
	amended := o.Message.On
	return o.Message.Kind != KindEdited || amended == j.Key() || slices.Contains(j.Joined, amended)
}
