package chats

import (
	"context"
	"io"
	"time"
)

// What a platform can do beside [Platform] is found by type assertion. This file has all of it.

// Editor is a platform whose messages can have buttons and be changed after they were
// sent. It delivers presses as messages of [KindPress]: Message.ID is the platform's id
// of the press, Message.User who pressed, Message.On the message with the button.
type Editor interface {
	// Edit replaces the text and the buttons of the bot's message with this id; a part
	// without buttons takes them away. Doing it again, or a message that already looks
	// like that, is no error. Errors are *[SendError].
	Edit(ctx context.Context, to Address, id string, part Part) error
	// AnswerPress ends the press that the platform shows as going on, and shows text,
	// unless it is empty, only to the user who pressed. Plain text, at most
	// 200 characters. It is best effort: presses are answered once and in seconds.
	AnswerPress(ctx context.Context, press Message, text string) error
}

// ThreadReplier is a platform whose messages do not say which message they answer: people answer in
// the thread of it.
type ThreadReplier interface {
	// RepliesInThreads says so.
	RepliesInThreads()
}

// EphemeralSender is a platform that can show a message in a shared chat to one person alone.
type EphemeralSender interface {
	// SendEphemeral is [Platform.Send] for one person. No caller can look afterwards whether it
	// arrived.
	SendEphemeral(ctx context.Context, to Address, user string, part Part) (string, error)
}

// Previewer is a platform that shows an answer while it is made, in a message that grows and
// becomes the first of the answer in the end. Errors are *[SendError]. No caller waits for a
// preview: what is answered with Later is left out, and shown with the next one.
type Previewer interface {
	// Room returns 0 where a preview may be shown in a chat now, or the message with this id
	// changed, and keeps the room for that. Otherwise it returns after what time to ask
	// again. It keeps room for the answers that the previews become, and never waits.
	Room(to Address, id string) time.Duration
	// Begin shows the first of a preview and returns the platform's id of its message.
	Begin(ctx context.Context, to Address, show Preview) (string, error)
	// Update has the message show more.
	Update(ctx context.Context, to Address, id string, show Preview) error
	// Finish has the message be a part of an answer like any other. Doing it again does no
	// harm. It is refused where the message is gone.
	Finish(ctx context.Context, to Address, id string, part Part) error
}

// Acknowledger is a platform on which the bot can show with a sign on a message of a user that it
// has seen it.
type Acknowledger interface {
	// Acknowledge puts the sign on a message, or takes it away; where that is so already nothing
	// happens. Errors are *[SendError]. No caller waits for it: where it would take the room of
	// an answer, it ends with Later at once, and has done nothing.
	Acknowledge(ctx context.Context, chat Chat, id string, on bool) error
}

// TypingIndicator is a platform that can show that the bot is at work.
type TypingIndicator interface {
	// SetTyping shows (and refreshes, every few seconds) or clears the sign.
	SetTyping(ctx context.Context, to Address, on bool) error
}

// WaitIndicator is a platform that can show that a turn waits for the decision of a person.
type WaitIndicator interface {
	// SetWaiting shows that in a chat, or that it is over. It is best effort and holds no caller up.
	SetWaiting(ctx context.Context, chat Chat, on bool)
}

// FileFetcher is a platform whose messages can carry files.
type FileFetcher interface {
	// FetchFile writes the file to w. It ends with [ErrTooLarge] where the platform does
	// not hand out files of this size.
	FetchFile(ctx context.Context, a Attachment, w io.Writer) error
}

// FileSender is a platform that can send files. On others a line says that there are some.
type FileSender interface {
	// MaxFile is the size in bytes of the largest file that can be sent.
	MaxFile() int64
	// SendFile sends a file as a message of its own and returns the platform's id of
	// it. Errors are as with [Platform.Send]. A file that is refused is not tried again;
	// a line in its place says so.
	SendFile(ctx context.Context, to Address, file OutFile) (string, error)
}

// ThreadReader is a platform that can tell what was said in a thread.
type ThreadReader interface {
	// ReadThread returns what was said in the thread of a message before it, and behind the message
	// with the id after unless that is empty: the last limit messages, the oldest first.
	ReadThread(ctx context.Context, m Message, after string, limit int) ([]Quoted, error)
}

// UserNamer is a platform that can tell the names of people later than their messages.
type UserNamer interface {
	// UserName returns the name of a user, or the id where that is not to be had soon.
	UserName(ctx context.Context, user string) string
}

// UserIDChecker is a platform on which the ids of users have a form of their own.
type UserIDChecker interface {
	// IsUserID reports whether a user can have this id, as [Message.User] brings it.
	IsUserID(id string) bool
}

// AdminChecker is a platform that knows who administers a chat or workspace.
type AdminChecker interface {
	// IsAdmin reports whether the user administers the chat. It fails closed: on an
	// error the user counts as no administrator.
	IsAdmin(ctx context.Context, chat Chat, user string) (bool, error)
}

// CommandLister is a platform that shows a list of the bot's commands.
type CommandLister interface {
	// ListCommands shows these commands, in this order, instead of what was shown before.
	// Those for administrators are shown to them alone: admins are their ids.
	ListCommands(ctx context.Context, commands []CommandInfo, admins []string) error
}

// CommandPrefixer is a platform on which commands are not written with a slash.
type CommandPrefixer interface {
	// CommandPrefix is what people write there in front of a command.
	CommandPrefix() string
}

// ExclusiveReceiver is a platform of which one process at a time may receive, because its service
// hands out what arrives to one. On the others every process calls [Platform.Run].
type ExclusiveReceiver interface {
	// ReceivesExclusively reports whether one process alone may call [Platform.Run] at a time. It is
	// the same for as long as the platform lives.
	ReceivesExclusively() bool
}

// Pinger is a platform with a call that changes nothing and shows whether the platform is
// in order. Without one, a send has to find out.
type Pinger interface {
	// Ping returns nil where the platform has answered as it should.
	Ping(ctx context.Context) error
}

// HealthReporter is a platform that can tell whether it receives.
type HealthReporter interface {
	// Health returns nil, or what is wrong in words for the operator.
	Health() error
}

// AmbientInbox is an [Inbox] that may want what is said in a chat and not to the bot.
type AmbientInbox interface {
	// WantsAmbient reports whether messages of [KindAmbient] are wanted from a chat.
	WantsAmbient(chat Chat) bool
}

// CommandInbox is an [Inbox] that knows its commands, for platforms on which they have no slash.
type CommandInbox interface {
	// Command returns the command of a name, hidden ones included; false where there is none
	// that people type themselves.
	Command(name string) (CommandInfo, bool)
}

// Welcomer is an [Inbox] that says what it can do for a person before they ask.
type Welcomer interface {
	// Welcome returns what is shown to who opens their chat with the bot: the user and the
	// chat of a message that is not there.
	Welcome(ctx context.Context, m Message) (Welcome, error)
}
