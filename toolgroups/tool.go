package toolgroups

import (
	"context"
	"encoding/json"
	"fmt"
	"time"
)

// Effect says what running a tool may change outside the conversation. The agent
// records the start of every call whose tool is not ReadOnly before it runs, so
// that a crash never repeats it unseen.
type Effect int

// The effects, the careful one first: a tool that says nothing has effects.
const (
	// Changes is a tool that changes something the user can mend: a file, a setting.
	Changes Effect = iota
	// ReadOnly is a tool that can be run again after a crash without harm.
	ReadOnly
	// Consequential is a tool whose effect reaches other people or cannot be taken
	// back: send, delete, share, invite, run a command.
	Consequential
)

// Role is what the sender of a message may do. A higher role includes the lower.
type Role int

// The roles, from nothing to everything.
const (
	RoleStranger Role = iota
	RoleUser
	RoleAdmin
	RoleOwner
)

// Tool is a function that the model can call, with what it is told about it.
type Tool struct {
	// Name is unique in a registry and matches ^[a-z][a-z0-9_]*$ (built-in tools).
	Name string
	// Description is one or two sentences for the model.
	Description string
	// Parameters is a JSON Schema of type object, which goes over the wire as it stands.
	Parameters json.RawMessage
	// Timeout bounds one run. 0 means [DefaultTimeout].
	Timeout time.Duration
	// Wait is how much longer a run may take because it waits until it may begin.
	Wait time.Duration
	// Effect says what a run may change.
	Effect Effect
	// Asks says of the arguments of a call whether a person approves it first, where no rule
	// does. Nil asks for each call of a Consequential tool; a ReadOnly tool does not ask.
	Asks func(arguments json.RawMessage) bool
	// Ready returns why a call cannot succeed, as far as that is known without asking others:
	// no account is connected, a permission is missing. No person is asked to approve such a
	// call. It has no effects. Nil knows of nothing.
	Ready func(ctx context.Context, call Call) error
	// Personal says that the tool acts in the name of an account of the user who asks for it:
	// nobody else approves its calls, where no rule of the operator says who does.
	Personal bool
	// Doing says what a call does while it runs, in words for people: "reading {path}", where
	// the names of arguments stand for their values. Empty leaves that to [Doing].
	Doing string
	// Names are the arguments that say what a call is about and are no texts: the audit has
	// them of calls that only administrators may make.
	Names []string
	// Role is the least role of the sender of the message being answered.
	// The zero value asks for nothing beyond being allowed to talk to the bot.
	Role Role
	// OwnArguments says that Run wants the arguments as the model wrote them and
	// checks them itself. Otherwise [Run] repairs and validates them first.
	OwnArguments bool
	// OwnText says that Run bounds the text of its results itself, so that [Run] does not cut
	// it in the middle of an entry.
	OwnText bool
	// Run does the work. It returns an *[Error] for what the model should be told;
	// any other error is reported to the model as execution_error with its text.
	// It must end soon after ctx does. It may be called concurrently.
	Run Handler
	// Function is what its manifest calls the function behind it; empty without a manifest.
	Function string
	// Group is the group that it is in, empty for the core. A registry notes it.
	Group string
	// Deferred says that the model is not shown the tool before it has looked for it, with
	// the search of its provider or by loading the group. A [Router] says so, and only where
	// the model can do that ([Facts].Native).
	Deferred bool
	// wire is how it stands in a tools array and size how many characters that are. A
	// registry notes them: of a tool that it holds, the fields above must not be changed.
	wire []byte
	size int
	// normal are its parameters where they are known to be as they go over the wire, and shown is
	// what wire was made of: the next registry makes only anew what was changed.
	normal json.RawMessage
	shown  shown
}

// shown is what a tool shows the model; parameters are never changed in place.
type shown struct {
	name, description string
	parameters        *byte
}

// Handler is the function behind a tool.
type Handler func(ctx context.Context, call Call) (Result, error)

// DefaultTimeout bounds a run of a tool that names no timeout (spec: 30 s).
const DefaultTimeout = 30 * time.Second

// Call is one call of a tool with the facts about who asks. All are plain values,
// so that a tool family needs to know no other package.
type Call struct {
	// ID is the model's id of the call, unique only within one reply.
	ID string
	// Name and Arguments are those of the tool that runs (unwrapped).
	Name      string
	Arguments json.RawMessage
	Scope
}

// Scope says on whose behalf and where a call runs.
type Scope struct {
	// User is who sent the message being answered, as platform:id.
	User string
	// Role is what that user may do.
	Role Role
	// Chat is where the answer goes, as platform:id[:thread].
	Chat string
	// Direct is true in a chat with one user alone.
	Direct bool
	// Owner is whose data may be touched: the user in a direct chat, the chat in a
	// shared one (memory, tasks, history, workspace).
	Owner string
	// Session is the log of this conversation.
	Session string
	// Workspace is the folder of the owner's files. It exists.
	Workspace string
	// Quota is how many bytes the workspace may hold, and Reserve how many bytes of the
	// disk stay free. 0 means the defaults of internal/workspace.
	Quota, Reserve int64
	// Scheduled is true where no person waits for the answer.
	Scheduled bool
}

// Hides reports whether the model is not shown a tool of a group because the sender may not use
// it. In a shared chat it is shown all the same, and the call refused: the next message may be an
// administrator's, and an array that follows the senders would miss the model's cache each time.
func (s Scope) Hides(t Tool) bool { return s.Direct && s.Role < t.Role }

// Result is what a call gives back.
type Result struct {
	// Text goes to the model.
	Text string
	// Files are for the chat: pictures, documents.
	Files []File
	// Sources are the pages that Text tells of. Those that an answer draws on stand under it.
	Sources []Source
}

// Source is a page of the web.
type Source struct {
	// Title is one line of plain text, URL an http or https address.
	Title string `json:"title"`
	URL   string `json:"url"`
}

// File is a file of the workspace that a tool wants delivered to the chat.
type File struct {
	// Path is relative to the workspace.
	Path string
	// Caption is optional plain text.
	Caption string
	// Picture says what is known of a file that models may be shown; nil for others.
	Picture *Picture `json:",omitempty"`
}

// Picture is what is known of a picture. Its bytes are those of the file.
type Picture struct {
	// Width and Height are in pixels; 0 if unknown.
	Width, Height int `json:",omitempty"`
	// Size is that of the file in bytes.
	Size int64
	// Sum is the SHA-256 of its bytes in hexadecimal digits: a file that has changed since is
	// another picture. Empty if unknown.
	Sum string `json:",omitempty"`
	// Gone says that it is not shown any more. No record has it: see agent.RolePictures.
	Gone bool `json:"-"`
}

// Text is a result of text alone.
func Text(format string, args ...any) (Result, error) {
	if len(args) == 0 {
		return Result{Text: format}, nil
	}
	return Result{Text: fmt.Sprintf(format, args...)}, nil
}

// Codes of errors that the dispatch itself makes (spec tools.json engine_errors).
const (
	CodeNotFound     = "tool_not_found"
	CodeNotAvailable = "tool_not_available"
	CodeDisabled     = "tool_globally_disabled"
	CodeInvalid      = "validation_error"
	CodeTimeout      = "timeout"
	CodeExecution    = "execution_error"
	CodeDenied       = "permission_denied"
	// CodeCancelled is a call that ended because its turn was stopped.
	CodeCancelled = "cancelled"
	// CodeBridge is a call of a tool through another one that cannot be made in this
	// way: the tool is to be called directly.
	CodeBridge = "bridge_misuse"
	// CodeFruitless is a search that is not run because too many found nothing.
	CodeFruitless = "search_exhausted"
)

// IsRefusal reports whether a code means that the tool was never run: the call can be made again
// once what stands in its way is gone.
func IsRefusal(code string) bool {
	switch code {
	case CodeNotFound, CodeNotAvailable, CodeDisabled, CodeDenied, CodeBridge:
		return true
	}
	return false
}

// Error is a failure of a call that the model is told about: a code for programs
// and a sentence that says what to do next. It never holds secrets.
type Error struct {
	Code    string
	Message string
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an [Error].
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}
