package chats

import (
	"slices"
	"time"

	"oneclaw/internal/wording"
)

// ReferenceKind is how a message refers to an earlier one.
type ReferenceKind string

// Values of [ReferenceKind].
const (
	// RefReply: the message replies to the quoted one.
	RefReply ReferenceKind = "reply"
	// RefForward: the sender forwards it, with or without words of their own.
	RefForward ReferenceKind = "forward"
	// RefLink: the message links to it, and the platform shows it.
	RefLink ReferenceKind = "link"
	// RefThread: it precedes the message in its thread.
	RefThread ReferenceKind = "thread"
	// RefView: the sender looks at it while writing, such as at a channel beside the chat.
	RefView ReferenceKind = "view"
	// RefAmbient: it was written in the chat before the message and was not addressed to the bot.
	RefAmbient ReferenceKind = "heard"
)

// Quoted is a message to which another one refers. Its author may be a user who may not talk to the bot,
// so it is never treated as a command or a request.
type Quoted struct {
	Kind ReferenceKind `json:"how"`
	// ID is the platform's id of the quoted message, if that is in the same chat.
	ID string `json:"id,omitempty"`
	// By is the name of its author, if the platform provides it. From is the name of the chat that it
	// comes from, if that is another one. Users can choose any name.
	By   string `json:"by,omitempty"`
	From string `json:"from,omitempty"`
	// FromBot is set if the bot wrote it.
	FromBot bool `json:"own,omitempty"`
	// AuthorUnknown is set if the platform does not say who wrote it, such as what administrators write in the name of
	// their chat: that may have been the bot.
	AuthorUnknown bool `json:"unsigned,omitempty"`
	// Addressed is set if a [ThreadReader] returned a message that the bot also receives by itself.
	Addressed bool `json:"-"`
	// Partial is set if Text is only a passage that the sender selected.
	Partial bool `json:"part,omitempty"`
	// Item is the item inside Text that the message points at, such as a task of a list or an option of a poll;
	// empty for none.
	Item string `json:"item,omitempty"`
	Text string `json:"text,omitempty"`
	// Files and Skipped are as in [Message].
	Files   []Attachment `json:"files,omitempty"`
	Skipped []string     `json:"skipped,omitempty"`
	// Time is when it was written; zero if unknown.
	Time time.Time `json:"time,omitzero"`
}

// Bounds of quoted messages.
const (
	// MaxQuoted bounds the quoted messages of one message, maxQuotedFiles their files in total.
	MaxQuoted      = 10
	maxQuotedFiles = 10
	// MaxQuotedText bounds the text of a quoted message, in characters.
	MaxQuotedText = 4096
	maxQuotedName = 256
)

// MayBeOwn reports whether the bot wrote it, or may have.
func (q Quoted) MayBeOwn() bool { return q.FromBot || q.AuthorUnknown }

// LimitQuotes cuts quoted messages to the bounds, in place, and returns them. Platforms call it before
// they deliver a message.
func LimitQuotes(list []Quoted) []Quoted {
	list = list[:min(len(list), MaxQuoted)]
	files := 0
	for i := range list {
		q := &list[i]
		q.Text = wording.Clip(q.Text, MaxQuotedText)
		q.Item = wording.Clip(q.Item, maxQuotedName)
		q.By, q.From = wording.Clip(q.By, maxQuotedName), wording.Clip(q.From, maxQuotedName)
		q.Files = q.Files[:min(len(q.Files), maxQuotedFiles-files)]
		q.Skipped = q.Skipped[:min(len(q.Skipped), maxQuotedFiles)]
		files += len(q.Files)
		if y := q.Time.Year(); y < 1 || y > 9999 {
			q.Time = time.Time{} // JSON cannot encode such years
		}
	}
	return list
}

// MergeQuotes merges the quotes of two pieces of one message: each picture of an album repeats the
// message to which the album replies.
func MergeQuotes(list, more []Quoted) []Quoted {
	list = slices.Clone(list)
	for _, q := range more {
		if q.ID == "" || !slices.ContainsFunc(list, func(known Quoted) bool { return known.Kind == q.Kind && known.ID == q.ID }) {
			list = append(list, q)
		}
	}
	return LimitQuotes(list)
}

// IsForward reports whether a message only forwards others, without words of its own.
func (m *Message) IsForward() bool {
	isForward := func(q Quoted) bool { return q.Kind == RefForward }
	return m.Kind == KindText && m.Text == "" && len(m.Files) == 0 && slices.ContainsFunc(m.Quoted, isForward)
}

// Empty reports whether there is nothing to quote.
func (q *Quoted) Empty() bool { return q.Text == "" && len(q.Files) == 0 && len(q.Skipped) == 0 }
