// Package chats is the interface between platforms and the bridge: chats, messages, the parts of
// answers, and the interfaces that a platform implements.
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

// Chat is a place where users talk to the bot, and the address of an answer. It is a comparable value
// that is stored with each job and never looked up later.
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

// WithoutThread returns the chat without its thread.
func (c Chat) WithoutThread() Chat { return Chat{Platform: c.Platform, ID: c.ID} }

// ParseChat is the inverse of [Chat.String].
func ParseChat(s string) (Chat, error) {
	platform, rest, ok := strings.Cut(s, ":")
	id, thread, threaded := strings.Cut(rest, ":")
	if !ok || platform == "" || id == "" || (threaded && thread == "") || strings.ContainsAny(s, "/ \n") {
		return Chat{}, fmt.Errorf("chat %q: want platform:id or platform:id:thread, such as telegram:123", s)
	}
	return Chat{Platform: platform, ID: id, Thread: thread}, nil
}

// Kind is the kind of an event on a platform.
type Kind string

// The kinds of events that platforms deliver.
const (
	// KindText is a new message, with or without files. Commands are texts that
	// begin with a slash.
	KindText Kind = "text"
	// KindEdit is a new text for an earlier message with the same ID.
	KindEdit Kind = "edit"
	// KindDelete is the deletion of an earlier message with the same ID. A turn of the message that is not over
	// ends without an answer.
	KindDelete Kind = "delete"
	// KindPress is the press of a button under one of the bot's messages.
	KindPress Kind = "press"
	// KindAmbient is a message, or an edit of one, that is not addressed to the bot, in a chat where an
	// [AmbientInbox] wants it. It gets no answer.
	KindAmbient Kind = "heard"
	// KindFeedback is a user's reaction to one of the bot's messages, or a rating given in another way; see
	// [NewFeedback].
	KindFeedback Kind = "feedback"
)

// Message is an event that a platform delivers: an action of a user that is addressed to the bot.
// Platforms drop everything else, strip the mention of the bot, and decode entities.
type Message struct {
	Chat Chat `json:"chat"`
	// ID is the platform's id of the message, unique within Chat.Platform and
	// Chat.ID. Chat, ID and Kind together identify the event: a second delivery of
	// the same one is dropped.
	ID   string `json:"id"`
	Kind Kind   `json:"kind"`
	// User is the platform's id of the sender, without colons or slashes, and UserName a display name.
	// The id of a user from another workspace, on platforms that have them, is followed by "@" and the
	// id of that workspace.
	User     string `json:"user"`
	UserName string `json:"user_name,omitempty"`
	// Direct is true in a chat with this user alone.
	Direct bool `json:"direct,omitempty"`
	// Alone is set in a shared chat if nobody but the sender and the bot sees the message.
	Alone bool `json:"alone,omitempty"`
	// Opener is the user who began the thread, if the platform knows. That user may clear it.
	Opener string `json:"opener,omitempty"`
	// Text is the text of the message. For a press it is the [Button.Data] that the platform sent back,
	// which any user can forge.
	Text string `json:"text,omitempty"`
	// Emoji is the reaction of a user; empty for feedback that was given in another way.
	Emoji string `json:"emoji,omitempty"`
	// TargetID is the platform's id of the message whose button was pressed. For a text that a button
	// sends, it is the message that the text is about; for feedback, the rated message.
	TargetID string `json:"on,omitempty"`
	// Files came with the message; they are fetched when the turn begins.
	Files []Attachment `json:"files,omitempty"`
	// Skipped says, in words for the user, which parts of the message could not be read (a voice note,
	// a sticker, a file that is too large).
	Skipped []string `json:"skipped,omitempty"`
	// Foreign is set if Text holds anything that the sender did not write, such as the name of somebody who is
	// mentioned, or a contact. Each such part is one line.
	Foreign bool `json:"foreign,omitempty"`
	// Quoted are the messages that this one refers to. Text does not repeat them.
	Quoted []Quoted `json:"quoted,omitempty"`
	// InThread is set if the message is in a thread that others began, MentionsBot if it mentions the
	// bot. A [ThreadReader] can then read the earlier messages.
	InThread    bool `json:"inside,omitempty"`
	MentionsBot bool `json:"called,omitempty"`
	// Group, if not empty, is the same for all messages that the sender sent as one, such as the
	// pictures of an album.
	Group string `json:"group,omitempty"`
	// Cut says whether the sender's client may have split the text at its end, and sends the rest as the
	// next message.
	Cut Cut `json:"cut,omitempty"`
	// Continues is set by the bridge if the text may be such a rest: whatever it looks like, it is no command.
	Continues bool `json:"continues,omitempty"`
	// Time is when it was sent, by the platform's clock.
	Time time.Time `json:"time"`
}

// Cut says whether a text that is too long for one message may continue in the next.
type Cut string

// Values of [Cut].
const (
	// CutNowhere: the text is complete.
	CutNowhere Cut = ""
	// CutBetween: if the text was cut, it was cut between two words.
	CutBetween Cut = "between"
	// CutWithin: the text has the maximum length of a message, so it was probably cut, perhaps within a
	// word.
	CutWithin Cut = "within"
)

// Attachment is a file in a message that can be fetched from the platform.
type Attachment struct {
	// Ref is the platform's reference for fetching it.
	Ref string `json:"ref"`
	// Name is the file name as the sender gave it; it may be empty or hostile.
	Name string `json:"name,omitempty"`
	// Size is the announced size in bytes; 0 if unknown.
	Size int64  `json:"size,omitempty"`
	Type string `json:"type,omitempty"`
	// Sound describes audio in it.
	Sound Sound `json:"sound,omitzero"`
	// FromBot is set if the bot made it, and somebody shares it.
	FromBot bool `json:"own,omitempty"`
}

// Inbox takes the events that platforms receive. The bridge implements it.
type Inbox interface {
	// Accept returns nil once every message is on disk, was known already, or needs no answer. Only then
	// may the platform confirm the messages. Messages of one chat are answered in the order given. After
	// an error none of them may be confirmed; delivering them again is harmless.
	Accept(ctx context.Context, messages ...Message) error
	// Moved reports that a chat and all its threads have a new id, such as a Telegram group that became
	// a supergroup. It returns nil once the move is on disk. The move takes effect when no turn runs
	// there.
	Moved(ctx context.Context, from, to Chat) error
}

// Platform is a chat service. Its optional abilities are small interfaces, found by type assertion.
type Platform interface {
	// Name returns the Chat.Platform of its chats.
	Name() string
	// Run receives messages and passes them to in until ctx ends. It returns nil once everything that it
	// started has ended. It recovers from outages; it returns an error only if retrying is useless, for
	// example because a token is wrong.
	Run(ctx context.Context, in Inbox) error
	// Render turns an answer in Markdown into the parts to send, each within the platform's limits and
	// with room for [RepeatNotice].
	Render(markdown string) []Part
	// Send sends one part and returns the platform's id of the new message. Errors are *[SendError]. It sends
	// nothing if the precondition of ctx fails; see [WithPrecondition].
	Send(ctx context.Context, to Address, part Part) (string, error)
}

// Address is the destination of a part.
type Address struct {
	Chat Chat
	// ReplyTo is the message to which the part is shown as a reply; empty in direct chats.
	ReplyTo string
}

// Part is a piece of an answer, rendered for its platform. The texts of an answer come first, then the
// files that tools made for it, in the order of the tools' results.
type Part struct {
	// Text is in the platform's own format.
	Text string `json:"text"`
	// Plain is the same text without formatting, for when the platform refuses Text.
	Plain string `json:"plain,omitempty"`
	// Layout, on platforms that have layouts, holds Text with formatting that a plain text cannot show.
	// Render sets it, and only the platform reads it.
	Layout json.RawMessage `json:"layout,omitempty"`
	// Repeat asks the platform to show [RepeatNotice] with the part.
	Repeat bool `json:"repeat,omitempty"`
	// Note is a line below the text: plain, at most 80 characters.
	Note string `json:"note,omitempty"`
	// FeedbackButtons asks a platform that has its own feedback buttons to show them below this part,
	// the end of the answer. Presses come back as [NewFeedback].
	FeedbackButtons bool `json:"judge,omitempty"`
	// Buttons are below the text, in rows. Only an [Editor] gets parts with buttons.
	Buttons [][]Button `json:"buttons,omitempty"`
	// File, if not nil, is a file of the workspace that is sent instead of a text. It is sent with
	// [FileSender], never given to [Platform.Send].
	File *toolgroups.File `json:"file,omitempty"`
}

// Button is a choice below a message.
type Button struct {
	// Label is the button's plain text of at most 40 characters.
	Label string `json:"label"`
	// Data comes back with a press: 1 to 64 bytes of a-z, A-Z, 0-9, ":", "-" and "_"
	// (64 is Telegram's limit of callback_data).
	Data string `json:"data"`
	// Style is the look of the button, if the platform has styles.
	Style ButtonStyle `json:"style,omitempty"`
	// URL, unless empty, is an https address that the button opens. Whether opening it also counts as a
	// press depends on the platform.
	URL string `json:"url,omitempty"`
}

// ButtonStyle is the look of a button.
type ButtonStyle string

// The styles of buttons.
const (
	stylePlain   ButtonStyle = ""
	StylePrimary ButtonStyle = "primary"
	StyleDanger  ButtonStyle = "danger"
)

// RepeatNotice marks a part that may have been delivered before, because the platform's response to the
// first attempt was lost. It is plain text of at most 80 characters.
const RepeatNotice = "↻ Possible repeat: the connection broke while this was being sent."

// OutFile is a file on its way to a chat.
type OutFile struct {
	// Name is a plain file name.
	Name string
	// Caption is plain text of any length; it may be empty.
	Caption string
	// Size is in bytes; never 0, and at most [FileSender.MaxFile].
	Size int64
	// Content holds Size bytes. It is open only until SendFile returns.
	Content io.ReaderAt
	// Repeat asks the platform to show [RepeatNotice] with the file.
	Repeat bool
}

// ErrTooLarge is returned by [FileFetcher.FetchFile], and the cause of a refusal of [FileSender.SendFile].
var ErrTooLarge = errors.New("chats: the file is larger than the platform serves")

// CommandInfo describes a command for the platform's list.
type CommandInfo struct {
	// Name has no slash.
	Name string
	// Description is one short line.
	Description string
	// Admin is set if only administrators see the command.
	Admin bool
	// NeedsThread is set if the command is about one conversation. Where conversations are threads, it
	// has to be given in the thread.
	NeedsThread bool
	// Personal is set if the command changes nothing that belongs to others in its chat: it may be given where they do not
	// see it.
	Personal bool
}

// Outcome is the outcome of a failed send.
type Outcome int

// The outcomes of a failed send.
const (
	// Unknown: the message may have arrived. The response was lost, or the platform had an internal
	// error and does not say whether it sent the message.
	Unknown Outcome = iota
	// Later: the message has not arrived. The send can be retried, but not before RetryAfter.
	Later
	// Refused: the message has not arrived and never will, for example because the bot is blocked or the
	// chat is gone.
	Refused
)

// SendError is the error of [Platform.Send], and of the optional methods that send, edit and react.
type SendError struct {
	Outcome Outcome
	// RetryAfter is the pause that the platform asks for; 0 leaves it to the caller.
	RetryAfter time.Duration
	// Outage is set if the platform is down or unreachable, so that no other send would succeed. An
	// Unknown outcome always counts as an outage.
	Outage bool
	// ContentRefused is set, with Refused, if the platform refused what was sent, such as its formatting, its
	// length or its buttons: another form of the message may be accepted.
	ContentRefused bool
	// Unreachable is set, with Refused, if the chat takes no message from the bot: the bot is blocked there, or was
	// removed.
	Unreachable bool
	// MessageRemains is set, with Refused, if the message to be edited still exists unchanged but can no
	// longer be edited.
	MessageRemains bool
	// MovedTo is the new id of the chat if the platform reports that it has moved (with Later).
	MovedTo string
	// Err is the cause. It contains no secrets.
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

// SenderID returns the sender of a message, as platform:id.
func (m Message) SenderID() string { return m.Chat.Platform + ":" + m.User }

// ReplyTarget returns the platform's id of the message that an answer replies to.
func (m Message) ReplyTarget() string { return cmp.Or(m.TargetID, m.ID) }

// Owner returns the owner of the memory, files and history that a message can access: the user in a
// direct chat, the chat with all its threads in a shared one.
func (m Message) Owner() string {
	if m.Direct {
		return m.SenderID()
	}
	return Chat{Platform: m.Chat.Platform, ID: m.Chat.ID}.String()
}

// MaxFile bounds the size, in bytes, of a file that is fetched from a chat. Telegram serves at most 20 MB,
// its self-hosted server and Slack more.
const MaxFile = 100 << 20
