package turn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// PieceGap bounds the time between two pieces, except the pictures of an album, by the platform's
// clock.
const PieceGap = 3 * time.Second

// isNextPiece reports whether a message is the next piece after another. Pieces are the pictures of an
// album, the parts of a text that a client has split, and a comment with the messages it forwards.
func isNextPiece(before, j *queue.Run) bool {
	a, b := &before.Message, &j.Message
	if a.User != b.User || b.Kind != chats.KindText || before.PieceCount > 0 || !j.Unstarted || WorkOf(j).Parts != nil || WorkOf(j).Notice != "" {
		return false
	}
	isNear := b.Time.Sub(a.Time).Abs() <= PieceGap
	switch {
	case a.Group != "" && a.Group == b.Group:
		return true
	case a.IsForward() || b.IsForward():
		return isNear && a.Kind == chats.KindText && before.Unstarted && WorkOf(before).Parts == nil && WorkOf(before).Notice == ""
	}
	return a.Group == "" && a.Cut != chats.CutNowhere && b.Group == "" && len(b.Files) == 0 && isNear
}

// maxPieces bounds the pieces that are joined into one message.
const maxPieces = 32

// CountPieces returns how many of some messages are pieces of the first one. A message with more
// forwarded messages than [chats.MaxQuoted] is split, and a second comment begins another message.
func CountPieces(some []*queue.Run) (n int) {
	forwards, hasWords := 0, false
	for ; n < min(len(some), maxPieces) && (n == 0 || isNextPiece(some[n-1], some[n])); n++ {
		switch {
		case some[n].Message.IsForward():
			if forwards++; forwards > chats.MaxQuoted {
				return n
			}
		case hasWords && some[n-1].Message.IsForward():
			return n
		default:
			hasWords = true
		}
	}
	return n
}

// MergePieces returns a message joined with its further pieces. A caption of a further file in an album names that
// file; that of the first is usually about all.
func MergePieces(m chats.Message, pieces []*queue.Run) chats.Message {
	var text strings.Builder
	text.WriteString(m.Text)
	m.Files, m.Skipped = slices.Clone(m.Files), slices.Clone(m.Skipped)
	for _, p := range pieces {
		if text.Len() > 0 && p.Message.Text != "" && m.Cut != chats.CutWithin {
			text.WriteString("\n")
		}
		isCommand := strings.HasPrefix(p.Message.Text, "/") || strings.HasPrefix(p.Message.Text, "!")
		if p.Message.Group != "" && p.Message.Text != "" && len(p.Message.Files) > 0 && !isCommand {
			fmt.Fprintf(&text, "[to file %d] ", len(m.Files)+1)
		}
		text.WriteString(p.Message.Text)
		m.Cut = p.Message.Cut
		m.Foreign = m.Foreign || p.Message.Foreign
		m.Files, m.Skipped = append(m.Files, p.Message.Files...), append(m.Skipped, p.Message.Skipped...)
		m.Quoted = chats.MergeQuotes(m.Quoted, p.Message.Quoted)
	}
	m.Text = text.String()
	return m
}

// KindEdited is the edit of a message that is being answered. The edit joins the message's turn. If the
// turn is over, the sender gets a notice. Message.TargetID is the key of the message's job.
const KindEdited chats.Kind = "amend"

// CanJoin reports whether the message of o can join the running turn of j. It must have the same sender,
// for whom the tools of the turn run, and an edit must belong to a message of the turn. A message for
// the strong model has its own turn, and so does a result that another conversation asked for. A turn
// that has asked for a decision accepts no messages.
func CanJoin(j, o *queue.Run) bool {
	if len(WorkOf(j).Approvals) > 0 || o.Message.User != j.Message.User || o.From != j.From || !o.Unstarted || WorkOf(o).Delay > 0 || WorkOf(o).Deep || WorkOf(o).Parts != nil {
		return false
	}
	if result, ok := o.Args.(*receipts.Result); ok && result.Generation != WorkOf(j).Generation {
		return false // a /clear came between
	}
	amended := o.Message.TargetID
	return o.Message.Kind != KindEdited || amended == j.Key() || slices.Contains(j.Joined, amended)
}
