package chats

import (
	"slices"
	"time"

	"oneclaw/internal/wording"
)

// Pointing is how a message refers to an earlier one.
type Pointing string

// Values of [Pointing].
const (
	// PointReply: the message replies to it.
	PointReply Pointing = "reply"
	// PointForward: the sender forwards it, with or without words of their own.
	PointForward Pointing = "forward"
	// PointLink: the message links to it, and the platform shows it.
	PointLink Pointing = "link"
	// PointThread: it precedes the message in its thread.
	PointThread Pointing = "thread"
	// PointHeard: it was said in the chat before the message, not addressed to the bot.
	PointHeard Pointing = "heard"
)

// Quoted is a message that another one refers to. Its author may be a user who may not talk to the bot:
// it is never a command, and requests nothing.
type Quoted struct {
	How Pointing `json:"how"`
	// ID is the platform's id of it, if it is a message of the same chat.
	ID string `json:"id,omitempty"`
	// By is the name of its author, if the platform gives it, From the name of the chat that it comes
	// from, if that is another one. Users can choose any name.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	// Own says that the bot wrote it.
	Own bool `json:"own,omitempty"`
	// Addressed says that a [ThreadReader] returned a message that the bot receives on its own as well.
	Addressed bool `json:"-"`
	// Part says that Text is a passage of it that the sender selected.
	Part bool   `json:"part,omitempty"`
	Text string `json:"text,omitempty"`
	// Files and Skipped are as in [Message].
	Files   []Attachment `json:"files,omitempty"`
	Skipped []string     `json:"skipped,omitempty"`
	// Time is when it was written; zero if the platform does not say.
	Time time.Time `json:"time,omitzero"`
}

// Bounds of what is kept of quoted messages.
const (
	// MaxQuoted bounds their number, MaxQuotedFiles the files of all.
	MaxQuoted      = 10
	MaxQuotedFiles = 10
	// MaxQuotedText bounds the text of one, and its names, in characters.
	MaxQuotedText = 4096
	maxQuotedName = 256
)

// Bound returns the quoted messages within the bounds: platforms call it before they deliver.
func Bound(list []Quoted) []Quoted {
	list = list[:min(len(list), MaxQuoted)]
	files := 0
	for i := range list {
		q := &list[i]
		q.Text = wording.Clip(q.Text, MaxQuotedText)
		q.By, q.From = wording.Clip(q.By, maxQuotedName), wording.Clip(q.From, maxQuotedName)
		q.Files = q.Files[:min(len(q.Files), MaxQuotedFiles-files)]
		q.Skipped = q.Skipped[:min(len(q.Skipped), MaxQuotedFiles)]
		files += len(q.Files)
		if y := q.Time.Year(); y < 1 || y > 9999 {
			q.Time = time.Time{} // JSON cannot encode such years
		}
	}
	return list
}

// Join merges the quotes of two pieces of one message: each picture of an album repeats the message
// that the album replies to.
func Join(list, more []Quoted) []Quoted {
	list = slices.Clone(list)
	for _, q := range more {
		if q.ID == "" || !slices.ContainsFunc(list, func(known Quoted) bool { return known.How == q.How && known.ID == q.ID }) {
			list = append(list, q)
		}
	}
	return Bound(list)
}

// Forwards reports whether a message only forwards, without words of its own.
func (m *Message) Forwards() bool {
	isForward := func(q Quoted) bool { return q.How == PointForward }
	return m.Kind == KindText && m.Text == "" && len(m.Files) == 0 && slices.ContainsFunc(m.Quoted, isForward)
}

// Empty reports whether there is nothing to quote.
func (q *Quoted) Empty() bool { return q.Text == "" && len(q.Files) == 0 && len(q.Skipped) == 0 }
