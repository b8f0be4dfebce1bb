package chats

import (
	"slices"
	"time"

	"oneclaw/internal/wording"
)

// Pointing says how a message points at something that was written before.
type Pointing string

// The ways of pointing.
const (
	// PointReply: the message answers it.
	PointReply Pointing = "reply"
	// PointForward: the sender passes it on, with or without words of their own.
	PointForward Pointing = "forward"
	// PointLink: the message links to it, and the platform shows it.
	PointLink Pointing = "link"
	// PointThread: it stands in the thread of the message, before it.
	PointThread Pointing = "thread"
	// PointHeard: it was said in the chat before the message, and not to the bot.
	PointHeard Pointing = "heard"
)

// Quoted is what a message points at. It was written by a person, perhaps by one who
// may not talk to the bot: it is never a command, and asks nothing.
type Quoted struct {
	How Pointing `json:"how"`
	// ID is the platform's id of it, where it is a message of the same chat.
	ID string `json:"id,omitempty"`
	// By is the name of who wrote it, as far as the platform tells, and From the name of the
	// place that it comes from, where that is another one. A person can call themselves
	// anything.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	// Own is true where the bot wrote it.
	Own bool `json:"own,omitempty"`
	// Addressed is true where an [ThreadReader] tells of a message that comes to the bot by itself.
	Addressed bool `json:"-"`
	// Part is true where Text is the part of it that the sender has chosen.
	Part bool   `json:"part,omitempty"`
	Text string `json:"text,omitempty"`
	// Files and Skipped are as with [Message].
	Files   []Attachment `json:"files,omitempty"`
	Skipped []string     `json:"skipped,omitempty"`
	// Time is when it was written; zero where the platform does not tell.
	Time time.Time `json:"time,omitzero"`
}

// What of the things that a message points at is kept with it.
const (
	// MaxQuoted bounds how many they are, and MaxQuotedFiles the files of all.
	MaxQuoted      = 10
	MaxQuotedFiles = 10
	// MaxQuotedText bounds the text of one, and of its names, in characters.
	MaxQuotedText = 4096
	maxQuotedName = 256
)

// Bound returns what is kept of quoted: platforms call it for what they hand over.
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
			q.Time = time.Time{} // JSON has no such years
		}
	}
	return list
}

// Join returns what two pieces of one message point at: each piece of an album says what the
// album answers.
func Join(list, more []Quoted) []Quoted {
	list = slices.Clone(list)
	for _, q := range more {
		if q.ID == "" || !slices.ContainsFunc(list, func(known Quoted) bool { return known.How == q.How && known.ID == q.ID }) {
			list = append(list, q)
		}
	}
	return Bound(list)
}

// Forwards reports whether a message passes something on without a word of its own.
func (m *Message) Forwards() bool {
	isForward := func(q Quoted) bool { return q.How == PointForward }
	return m.Kind == KindText && m.Text == "" && len(m.Files) == 0 && slices.ContainsFunc(m.Quoted, isForward)
}

// Empty reports whether there is nothing to be quoted.
func (q *Quoted) Empty() bool { return q.Text == "" && len(q.Files) == 0 && len(q.Skipped) == 0 }
