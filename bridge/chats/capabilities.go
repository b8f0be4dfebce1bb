package chats

import (
	"context"
	"io"
	"time"
)

// The optional interfaces of a [Platform], found by type assertion, are all in this file.

// Editor is a platform whose messages can have buttons and can be edited. It delivers presses as
// messages of [KindPress]: Message.ID is the platform's id of the press, Message.User the user who
// pressed, and Message.TargetID the message with the button.
type Editor interface {
	// Edit replaces the text and the buttons of the bot's message with this id; a part without buttons
	// removes them. An edit that is repeated, or that changes nothing, is no error. Errors are
	// *[SendError].
	Edit(ctx context.Context, to Address, id string, part Part) error
	// AnswerPress confirms a press, which the platform shows as pending. Unless text is empty, it shows
	// text, at most 200 characters of plain text, only to the user who pressed. It is best effort: the
	// bridge answers each press once, within seconds.
	AnswerPress(ctx context.Context, press Message, text string) error
}

// ThreadReplier is a platform whose messages do not say which message they answer: users reply to a
// message in its thread. In a thread in which the bot takes part, every message is for it, and messages
// of other threads do not reach the bridge.
type ThreadReplier interface {
	// RepliesInThreads marks the platform. It does nothing.
	RepliesInThreads()
}

// EphemeralSender is a platform that can show a message in a shared chat to one user alone.
type EphemeralSender interface {
	// SendEphemeral is [Platform.Send] for one user. There is no way to check afterwards whether the
	// message arrived.
	SendEphemeral(ctx context.Context, to Address, user string, part Part) (string, error)
}

// Previewer is a platform that shows an answer while it is being generated, in a message that grows and
// finally becomes the first message of the answer. Errors are *[SendError]. No caller waits for a
// preview: after the outcome Later it is skipped, and the text is shown with the next one.
type Previewer interface {
	// Room returns 0 if a preview may be shown in a chat now, or the message with this id may be edited,
	// and reserves the rate for it. Otherwise it returns how long to wait before asking again. It keeps
	// enough rate in reserve for the answers that the previews become, and never blocks.
	Room(to Address, id string) time.Duration
	// Begin shows the first state of a preview and returns the platform's id of its message.
	Begin(ctx context.Context, to Address, show Preview) (string, error)
	// Update replaces the message's content.
	Update(ctx context.Context, to Address, id string, show Preview) error
	// Finish turns the message into a part of an answer. It is idempotent. The outcome is Refused if the
	// message is gone.
	Finish(ctx context.Context, to Address, id string, part Part) error
}

// Acknowledger is a platform on which the bot can react to a user's message to show that it has seen
// it.
type Acknowledger interface {
	// Acknowledge adds the reaction to a message, or removes it; it is idempotent. Errors are
	// *[SendError]. No caller waits for it: if it would use the rate that an answer needs, it returns
	// the outcome Later at once and does nothing.
	Acknowledge(ctx context.Context, chat Chat, id string, on bool) error
}

// TypingIndicator is a platform that can show that the bot is working.
type TypingIndicator interface {
	// SetTyping shows or clears the indicator. While it is to be seen, the caller shows it again every
	// few seconds.
	SetTyping(ctx context.Context, to Address, on bool) error
}

// WaitIndicator is a platform that can show that a turn waits for a user's decision.
type WaitIndicator interface {
	// SetWaiting shows in a chat that a turn waits, or stops showing it. It is best effort and does not
	// block.
	SetWaiting(ctx context.Context, chat Chat, on bool)
}

// FileFetcher is a platform whose messages can carry files.
type FileFetcher interface {
	// FetchFile writes the file to w. It returns [ErrTooLarge] if the platform does not serve files of
	// this size.
	FetchFile(ctx context.Context, a Attachment, w io.Writer) error
}

// FileEditor is a platform whose messages of [KindEdit] carry the files of the message as they are now. On other
// platforms an edit leaves the files as they were.
type FileEditor interface {
	// EditsFiles marks the platform. It does nothing.
	EditsFiles()
}

// FileSender is a platform that can send files. On other platforms a line of the answer names the files.
type FileSender interface {
	// MaxFile returns the size limit of a file, in bytes.
	MaxFile() int64
	// SendFile sends a file as a message of its own and returns the platform's id of the message. Errors
	// are as for [Platform.Send]. A refused file is not retried; a line replaces it.
	SendFile(ctx context.Context, to Address, file OutFile) (string, error)
}

// The formats of recordings.
const (
	// VoiceOpus is Opus in an Ogg container.
	VoiceOpus = "opus"
	VoiceMP3  = "mp3"
)

// VoiceSender is a platform that can send recordings. On other platforms answers are not spoken.
type VoiceSender interface {
	// VoiceFormat returns the format of recordings that the platform plays in the chat.
	VoiceFormat() string
	// SendVoice is [FileSender.SendFile] for a recording in that format.
	SendVoice(ctx context.Context, to Address, file OutFile) (string, error)
}

// ThreadReader is a platform that can read a thread.
type ThreadReader interface {
	// ReadThread returns the messages of m's thread before m: the last limit messages, the oldest first.
	// Unless after is empty, it returns only messages after the one with that id.
	ReadThread(ctx context.Context, m Message, after string, limit int) ([]Quoted, error)
}

// ReactionReporter is a platform on which users may react to the bot's messages. On other platforms, and where
// it reports none, no text promises that a reaction does anything.
type ReactionReporter interface {
	// ReportsReactions reports whether the platform delivers the reactions in a chat, as [NewFeedback]. It
	// returns false if that is not known soon.
	ReportsReactions(ctx context.Context, chat Chat) bool
}

// UserNamer is a platform that can look up the names of users.
type UserNamer interface {
	// UserName returns the name of a user, or the id if the name is not available soon.
	UserName(ctx context.Context, user string) string
}

// ChatNamer is a platform that can look up the names of shared chats.
type ChatNamer interface {
	// ChatName returns the name of a chat, or "" if the name is not available before ctx ends.
	ChatName(ctx context.Context, chat Chat) string
}

// UserZoner is a platform that knows in which time zone users live.
type UserZoner interface {
	// UserZone returns the IANA name of a user's time zone, or "" if it is not available soon.
	UserZone(ctx context.Context, user string) string
}

// UserIDChecker is a platform whose user ids have a recognizable form.
type UserIDChecker interface {
	// IsUserID reports whether id has the form of [Message.User].
	IsUserID(id string) bool
}

// ChatSender is a platform on which users can write in the name of a chat, for which no user can press a button.
type ChatSender interface {
	// IsChat reports whether a [Message.User] is a chat.
	IsChat(user string) bool
}

// AdminChecker is a platform that knows the administrators of a chat or workspace.
type AdminChecker interface {
	// IsAdmin reports whether the user administers the chat. It fails closed: after an error the user
	// does not count as an administrator.
	IsAdmin(ctx context.Context, chat Chat, user string) (bool, error)
}

// CommandLister is a platform that shows a list of the bot's commands.
type CommandLister interface {
	// ListCommands shows these commands, in this order, in place of those shown before. Commands for
	// administrators are shown only to the users whose ids are in admins.
	ListCommands(ctx context.Context, commands []CommandInfo, admins []string) error
}

// CommandPrefixer is a platform whose commands are not written with a slash.
type CommandPrefixer interface {
	// CommandPrefix returns what users write in front of a command.
	CommandPrefix() string
}

// ExclusiveReceiver is a platform from which only one process at a time may receive, because its service
// delivers each update only once. On other platforms every process calls [Platform.Run].
type ExclusiveReceiver interface {
	// ReceivesExclusively reports whether only one process at a time may call [Platform.Run]. The result
	// does not change.
	ReceivesExclusively() bool
}

// Pinger is a platform with a harmless call that shows whether the platform works. On other platforms
// only a send shows it.
type Pinger interface {
	// Ping returns nil if the platform works.
	Ping(ctx context.Context) error
}

// HealthReporter is a platform that reports whether it receives messages.
type HealthReporter interface {
	// Health returns nil if the platform receives, or an error with a description for the operator.
	Health() error
}

// AmbientInbox is an [Inbox] that may accept messages that are not addressed to the bot.
type AmbientInbox interface {
	// WantsAmbient reports whether messages of [KindAmbient] are wanted from a chat.
	WantsAmbient(chat Chat) bool
}

// MembershipInbox is an [Inbox] that is told where the bot is blocked or removed.
type MembershipInbox interface {
	// SetMember reports whether a chat takes messages from the bot. After an error it is called again.
	SetMember(ctx context.Context, chat Chat, member bool) error
}

// AddedInbox is an [Inbox] that introduces the bot in shared chats.
type AddedInbox interface {
	// Added tells that the bot was added to a shared chat where it may write. It may be called again, also
	// after an error.
	Added(ctx context.Context, chat Chat) error
}

// CommandInbox is an [Inbox] that knows its commands, for platforms without slash commands.
type CommandInbox interface {
	// Command returns the command with the given name, including hidden ones; false if there is none that users
	// can type.
	Command(name string) (CommandInfo, bool)
}

// Welcomer is an [Inbox] that introduces the bot before a user asks.
type Welcomer interface {
	// Welcome returns what a user sees on opening the chat with the bot. Only the user and the chat of m
	// are set.
	Welcome(ctx context.Context, m Message) (Welcome, error)
}
