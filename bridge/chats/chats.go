// Package chats is what the platforms and the bridge say to each other: chats, messages, the
// parts of answers, and the interfaces that a platform implements.
package chats

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"oneclaw/toolgroups"
)

// Chat is a place where people talk to the bot, and the address of an answer. It is
// a value kept with each job, never looked up later, and comparable.
type Chat struct {
	// Platform is the name of the platform: telegram, slack.
	Platform string `json:"platform"`
	// ID is the platform's id of the chat or channel, without colons or slashes.
	ID string `json:"id"`
	// Thread is the topic or thread inside it; empty for none.
	Thread string `json:"thread,omitempty"`
}

// String returns platform:id or platform:id:thread.
func (c Chat) String() string {
	if c.Thread == "" {
		return c.Platform + ":" + c.ID
	}
	return c.Platform + ":" + c.ID + ":" + c.Thread
}

// Whole is the chat without its thread.
func (c Chat) Whole() Chat { return Chat{Platform: c.Platform, ID: c.ID} }

// ParseChat is the inverse of [Chat.String].
func ParseChat(s string) (Chat, error) {
	platform, rest, ok := strings.Cut(s, ":")
	id, thread, threaded := strings.Cut(rest, ":")
	if !ok || platform == "" || id == "" || (threaded && thread == "") || strings.ContainsAny(s, "/ \n") {
		return Chat{}, fmt.Errorf("chat %q: want platform:id or platform:id:thread, such as telegram:123", s)
	}
	return Chat{Platform: platform, ID: id, Thread: thread}, nil
}

// Kind says what happened on the platform.
type Kind string

// The kinds of events that platforms deliver.
const (
	// KindText is a new message, with or without files. Commands are texts that
	// begin with a slash.
	KindText Kind = "text"
	// KindEdit is a new text for an earlier message with the same ID.
	KindEdit Kind = "edit"
	// KindPress is the press of a button under one of the bot's messages.
	KindPress Kind = "press"
	// KindAmbient is a message, or its new text, that is not for the bot, in a chat where a
	// [AmbientInbox] wants it all the same. It gets no answer.
	KindAmbient Kind = "heard"
	// KindFeedback is what a user thinks of a message of the bot; see [NewFeedback]. It is
	// not answered.
	KindFeedback Kind = "feedback"
)

// Message is what a platform delivers: something that a person did, for the bot.
// Platforms drop what is not for the bot, strip the mention of it and decode
// entities before they hand a message over.
type Message struct {
	Chat Chat `json:"chat"`
	// ID is the platform's id of the message, unique within Chat.Platform and
	// Chat.ID. Chat, ID and Kind together identify the event: a second delivery of
	// the same one is dropped.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// User is who sent it: the platform's id without colons or slashes, and a name
	// to show. The id of a user who is not of the bot's own workspace, where the platform
	// has such, is followed by "@" and that of theirs.
	User     string `json:"user"`
	UserName string `json:"user_name,omitempty"`
	// Direct is true in a chat with this user alone.
	Direct bool `json:"direct,omitempty"`
	// Opener is the user who began the thread, where the platform knows: that user
	// may clear it.
	Opener string `json:"opener,omitempty"`
	// Text is what was written; of a press, the [Button.Data] that the platform sent
	// back, which any user can forge.
	Text string `json:"text,omitempty"`
	// On is the platform's id of the message whose button was pressed; of a text that a button
	// sends, that of the message it is about.
	On string `json:"on,omitempty"`
	// Files came with the message; they are fetched when the turn begins.
	Files []Attachment `json:"files,omitempty"`
	// Skipped says, in words for the user, what of the message could not be read
	// (a voice note, a sticker, a file that is too large).
	Skipped []string `json:"skipped,omitempty"`
	// Quoted is what the message points at. Text holds nothing of it.
	Quoted []Quoted `json:"quoted,omitempty"`
	// Inside is true of a message in a thread that others began, and Called where it calls
	// the bot by its name: what was said there before can be asked of an [ThreadReader].
	Inside bool `json:"inside,omitempty"`
	Called bool `json:"called,omitempty"`
	// Group, where it is not empty, is the same for all messages that the sender sent at once
	// as one: the pictures of an album.
	Group string `json:"group,omitempty"`
	// Cut says that the sender's client may have cut the text off here, and sends the rest as
	// the next message.
	Cut Cut `json:"cut,omitempty"`
	// Time is when the platform says it was sent.
	Time time.Time `json:"time"`
}

// Cut says whether a text that is too long for one message may go on in the next.
type Cut string

// The cuts.
const (
	// CutNowhere: the text is whole.
	CutNowhere Cut = ""
	// CutBetween: if it was cut, then between two words.
	CutBetween Cut = "between"
	// CutWithin: it is as long as a message can be, so it was cut where that was full.
	CutWithin Cut = "within"
)

// Attachment is a file of a message that can be fetched from the platform.
type Attachment struct {
	// Ref is what the platform needs to fetch it.
	Ref string `json:"ref"`
	// Name is the file name as the sender gave it; it may be empty or hostile.
	Name string `json:"name,omitempty"`
	// Size in bytes as announced; 0 if unknown.
	Size int64  `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
	// Sound says what there is to hear in it.
	Sound Sound `json:"sound,omitzero"`
}

// Inbox takes what platforms receive. The bridge implements it.
type Inbox interface {
	// Accept returns nil once every message is on disk (or was known already, or is
	// not to be answered): only then may the platform confirm them. Messages of one
	// chat are answered in the order given. After an error none of them may be
	// confirmed; giving them again is harmless.
	Accept(ctx context.Context, messages ...Message) error
	// Moved says that a chat has a new id, with all its threads (a Telegram group
	// that became a supergroup). It returns nil once that is on disk; it is carried out
	// when no turn runs there.
	Moved(ctx context.Context, from, to Chat) error
}

// Platform is a chat service. Optional abilities are the small interfaces below,
// found by type assertion.
type Platform interface {
	// Name is the Chat.Platform of its chats.
	Name() string
	// Run receives messages and gives them to in until ctx ends; then it returns nil
	// once everything it started has ended. It survives outages by itself; it
	// returns an error only where going on is of no use (a wrong token).
	Run(ctx context.Context, in Inbox) error
	// Render turns an answer in Markdown into the parts to send, each within the
	// platform's limits with room left for [RepeatNotice].
	Render(markdown string) []Part
	// Send sends one part and returns the platform's id of the new message. Errors are
	// *[SendError].
	Send(ctx context.Context, to Address, part Part) (string, error)
}

// Address says where a part goes.
type Address struct {
	Chat Chat
	// ReplyTo is the message that is answered, where the answer should show it;
	// empty in direct chats.
	ReplyTo string
}

// Part is a piece of an answer, rendered for its platform. The texts of an answer come
// first, the files that tools made for it behind them, in the order of their results.
type Part struct {
	// Text is in the platform's own format.
	Text string `json:"text"`
	// Plain is the same without formatting, for when the platform refuses Text.
	Plain string `json:"plain,omitempty"`
	// Layout, where a platform has one, is Text as it is laid out there, for what a text cannot
	// show. Render makes it, and only the platform reads it.
	Layout json.RawMessage `json:"layout,omitempty"`
	// Repeat asks the platform to show [RepeatNotice] with the part.
	Repeat bool `json:"repeat,omitempty"`
	// Note is a line that stands under the text: plain, at most 80 characters.
	Note string `json:"note,omitempty"`
	// FeedbackButtons asks the platform to show buttons with which people say what they think of the
	// answer that ends here, where it has some of its own: they come back as [NewFeedback].
	FeedbackButtons bool `json:"judge,omitempty"`
	// Buttons stand under the text, in rows. Only platforms that are an [Editor] show
	// them; they are given to no other.
	Buttons [][]Button `json:"buttons,omitempty"`
	// File, where not nil, is a file of the workspace that is the part instead of a
	// text. It is sent with [FileSender], never given to [Platform.Send].
	File *toolgroups.File `json:"file,omitempty"`
}

// Button is a choice that a person has under a message.
type Button struct {
	// Label is what the button says: plain text of at most 40 characters.
	Label string `json:"label"`
	// Data comes back with a press: 1 to 64 bytes of a-z, A-Z, 0-9, ":", "-" and "_"
	// (64 is Telegram's limit of callback_data).
	Data string `json:"data"`
	// Style is how the button looks, where the platform has styles.
	Style ButtonStyle `json:"style,omitempty"`
	// URL, unless empty, is an https address that the button opens. Whether that is a press as
	// well is the platform's.
	URL string `json:"url,omitempty"`
}

// ButtonStyle is how a button looks.
type ButtonStyle string

// The styles of buttons.
const (
	StylePlain   ButtonStyle = ""
	StylePrimary ButtonStyle = "primary"
	StyleDanger  ButtonStyle = "danger"
)

// RepeatNotice is shown with a part that may have been delivered before: the
// platform's answer to the first try was lost. Plain text, at most 80 characters.
const RepeatNotice = "↻ Possible repeat: the connection broke while this was being sent."

// OutFile is a file on its way to a chat.
type OutFile struct {
	// Name is a plain file name.
	Name string
	// Caption is plain text of any length; it may be empty.
	Caption string
	// Size in bytes; never 0, and at most what [FileSender] takes.
	Size int64
	// Content holds Size bytes. It is open only until SendFile returns.
	Content io.ReaderAt
	// Repeat asks the platform to show [RepeatNotice] with the file.
	Repeat bool
}

// ErrTooLarge is returned by [FileFetcher.Fetch].
var ErrTooLarge = errors.New("chats: the file is larger than the platform hands out")

// CommandInfo is a command as platforms list it.
type CommandInfo struct {
	// Name is without the slash.
	Name string
	// Description is one short line.
	Description string
	// Admin says that it is for administrators: others are not shown it.
	Admin bool
	// OfThread says that it is about one conversation: where these are threads, it has to be
	// given in the thread that is meant.
	OfThread bool
}

// Outcome is what became of a send that failed.
type Outcome int

// The outcomes of a failed send.
const (
	// Unknown: it may have arrived. The answer was lost, or the platform had an error of
	// its own and does not say what it had done by then.
	Unknown Outcome = iota
	// Later: it has not arrived and can be tried again, not before RetryAfter.
	Later
	// Refused: it has not arrived and never will (blocked, chat gone).
	Refused
)

// SendError is what [Platform.Send] returns.
type SendError struct {
	Outcome Outcome
	// RetryAfter is what the platform asks for; 0 leaves it to the caller.
	RetryAfter time.Duration
	// Outage is true where the platform is out of order or out of reach, so that no other
	// send would fare better. An Unknown outcome always counts as one.
	Outage bool
	// Stands is true where what was to be changed stands there as it was, and may not be
	// changed any more (with Refused).
	Stands bool
	// MovedTo is the new id of the chat where the platform says it moved (with Later).
	MovedTo string
	// Err is the cause, without secrets.
	Err error
}

// Error returns the text for the log.
func (e *SendError) Error() string {
	if e.Err == nil {
		return "send: no cause was given"
	}
	return "send: " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *SendError) Unwrap() error { return e.Err }

// By is who wrote a message, as platform:id.
func (m Message) By() string { return m.Chat.Platform + ":" + m.User }

// Shown is the platform's id of the message in the chat that an answer stands under.
func (m Message) Shown() string { return cmp.Or(m.On, m.ID) }

// Owner is whose memory, files and history a message may reach: the user's in a
// direct chat, the chat's (all its threads) in a shared one.
func (m Message) Owner() string {
	if m.Direct {
		return m.By()
	}
	return Chat{Platform: m.Chat.Platform, ID: m.Chat.ID}.String()
}

// MaxFile bounds a file that is taken from a chat (Telegram hands out 20 MB, Slack more).
const MaxFile = 100 << 20
