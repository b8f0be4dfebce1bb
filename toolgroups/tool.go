package toolgroups

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"
)

// Effect says what running a tool may change outside the conversation. The agent records the start
// of each call that must not simply run again (see [Tool.RunsAgain]), so that after a crash no such
// call is repeated unnoticed.
type Effect int

// The effects. A tool that declares none has the zero value, Changes.
const (
	// Changes is the effect of a tool that changes something the user can repair, such as a file or
	// a setting.
	Changes Effect = iota
	// ReadOnly is the effect of a tool that changes nothing outside of the conversation, so that its calls
	// can be run again after a crash.
	ReadOnly
	// Consequential is the effect of a tool whose changes are visible to others or irreversible: send,
	// delete, share, invite, run a command.
	Consequential
)

// Role is the permission level of a message's sender. A higher role includes the lower ones.
type Role int

// The roles, lowest first.
const (
	RoleStranger Role = iota
	RoleUser
	RoleAdmin
	RoleOwner
)

// Tool is a function that the model can call, with its description.
type Tool struct {
	// Name is unique in a registry and matches ^[a-zA-Z0-9_-]{1,64}$.
	Name string
	// Description is one or two sentences for the model.
	Description string
	// Manual is a longer description that Description is the beginning of. It is shown once, with the load
	// of the group, and by tool_describe. Empty means Description.
	Manual string
	// Parameters is a JSON Schema of type object; empty means no parameters. [NewRegistry] replaces it
	// by the result of [NormalizeParameters], which is sent.
	Parameters json.RawMessage
	// Accepts is the schema that the arguments of calls are checked against. It may be one that no
	// provider would take. Empty means Parameters as they were given to [NewRegistry].
	Accepts json.RawMessage
	// Timeout bounds one run. 0 means [DefaultTimeout].
	Timeout time.Duration
	// Wait extends Timeout for tools that wait for a free slot before they begin.
	Wait time.Duration
	// Effect says what a run may change.
	Effect Effect
	// Paid is true if a run costs money at a service, so that a call that was cut off must not be
	// repeated without asking.
	Paid bool
	// Repeatable is true if a call that changes something can be run again after a crash nevertheless: the
	// second run finds what the first has done.
	Repeatable bool
	// Outlives is true if a call begins work that goes on after its turn, such as a schedule, or replaces or
	// removes what later turns know.
	Outlives bool
	// Shares is true if a call writes where others may read: into a document, a folder or a calendar that its
	// arguments name, into a form that everybody may open, or into a task that begins at once and that nobody
	// watches.
	Shares bool
	// Each is the parameter that lists the things that a call changes, if one call can change many.
	Each string
	// RunsLast is true if a call runs after the other calls of its reply, whose effects it needs.
	RunsLast bool
	// NeedsApproval reports whether a call needs approval if no rule decides. If nil, calls of Consequential
	// tools need it. Calls of ReadOnly tools never do.
	NeedsApproval func(call Call) bool
	// LastingApproval says that users may allow an exact call until they clear the conversation, although
	// the tool does not only read.
	LastingApproval bool
	// Like says which calls are alike, so that an approval of one can hold for the others until the
	// conversation is cleared. If nil, no two calls with different arguments are alike. It is for
	// ReadOnly tools.
	Like *Likeness
	// Version changes when the tool becomes another one although its name, description, parameters and
	// effect stay the same: another server, script or sandbox. Lasting approvals end with it.
	Version string
	// CheckReady returns an error for a call that is known locally to fail, because no account is
	// connected or a permission is missing. No approval is requested for such a call. CheckReady has
	// no side effects; if it is nil, calls are always ready.
	CheckReady func(ctx context.Context, call Call) error
	// Describe, if not nil, says in plain text what a call would do that its arguments hide, such as to whom a
	// reply goes, or which file an id stands for; it may say nothing. A card shows it, and an approval ends when
	// it changes. Its errors are as those of CheckReady.
	Describe func(ctx context.Context, call Call) (string, error)
	// Fetches says that the program asks for the addresses in a call's arguments before the tool fetches
	// them: an address that the model put together after it read words of others waits for approval.
	Fetches bool
	// External is true if a server of others runs the tool: it may look for addresses in any text among the
	// arguments, and its result need not be the page that an argument names.
	External bool
	// SaysItReads is true if such a server says that the tool only reads, whether or not Effect trusts it.
	SaysItReads bool
	// Origin says whose words the tool's results hold, unless a result says so itself.
	Origin Origin
	// Private is true if the tool reads or changes what the owner keeps beside the conversation: facts,
	// history, schedules, tasks. A run that an outsider began cannot use it.
	Private bool
	// Personal is true if the tool acts with the requester's own account. Only the requester can then
	// approve its calls, unless a rule of the operator decides.
	Personal bool
	// Activity describes a running call to users: in "reading {path}", the name of the argument stands
	// for its value. If empty, [DescribeCall] uses the name of the tool.
	Activity string
	// AuditedArguments are the names of the identifying arguments, which contain no free text. The
	// audit records their values for calls that only administrators may make.
	AuditedArguments []string
	// Role is the lowest role whose senders may call the tool. The zero value requires no role.
	Role Role
	// ChecksArguments is true if Run checks the arguments itself, as the model wrote them. Otherwise
	// [Run] repairs and validates them first.
	ChecksArguments bool
	// BoundsText is true if Run limits the length of its results itself, so that [Run] does not cut
	// them within an entry.
	BoundsText bool
	// Run does the work. It returns an *[Error] for the model; any other error reaches the model as
	// execution_error with its text. It must return soon after ctx ends and may be called
	// concurrently.
	Run Handler
	// Undo undoes what an [Announcement] of the tool says, on behalf of the user of the scope, who has
	// pressed its button; data is [Announcement.Undo]. It checks whether that user may: an *[Error] says to
	// the user why not, in at most 200 characters. It restores what was before only if the thing is as the
	// call has left it, and otherwise returns [ErrChanged]. It may be called again after it has succeeded,
	// and then succeeds or says that the thing is gone. It is nil if no announcement of the tool has a button.
	Undo func(ctx context.Context, scope Scope, data json.RawMessage) error
	// Function is the name of the function in the manifest; empty without a manifest.
	Function string
	// Group is the tool's group, empty for the core. A registry sets it.
	Group string
	// RuleGroup is the group whose rules hold for the tool although it stands in the core; empty means the core's.
	RuleGroup string
	// wire holds the JSON members of the tool in a tools array, and size is the length of the tool
	// in the array, in characters. A registry sets both. The fields above must not change afterwards.
	wire []byte
	size int
	// normalized are the parameters if they are known to be normalized, and wireInput is the input
	// of wire. With both, the next registry encodes only changed tools again.
	normalized json.RawMessage
	wireInput  wireInput
	// decoded returns the schema of the arguments decodedFrom, which a registry sets: every call is checked, and by some
	// those of the whole conversation.
	decoded     func() map[string]any
	decodedFrom json.RawMessage
}

// wireInput identifies what the model sees of a tool; parameters are never changed in place.
type wireInput struct {
	name, description string
	parameters        *byte
}

// Handler is the function behind a tool.
type Handler func(ctx context.Context, call Call) (Result, error)

// DefaultTimeout bounds a run of a tool without a timeout (spec: 30 s).
const DefaultTimeout = 30 * time.Second

// Call is one call of a tool, with its requester. All fields are plain values, so that packages of
// tools need no other package.
type Call struct {
	// ID is the model's id for the call, unique only within one reply.
	ID string
	// Name and Arguments are those of the tool that runs, not of a [ToolCall] around it.
	Name      string
	Arguments json.RawMessage
	Scope
}

// Scope says on whose behalf and where a call runs.
type Scope struct {
	// User is the sender of the message being answered, as platform:id.
	User string
	// Role is the role with which tools run for that user. In a turn that no message of a user has begun
	// it is at most RoleUser.
	Role Role
	// Approvable, if higher than Role, is the role up to which calls may run once an administrator has
	// approved them, one by one.
	Approvable Role
	// ReadOthers is true in a call if its turn has read words of others before, HoldsOthers if anything
	// that the model sees in the conversation holds such words.
	ReadOthers, HoldsOthers bool
	// Approved is true in a call that a person has allowed: who was shown all of its arguments, or by a lasting approval
	// that holds for it.
	Approved bool
	// ReadAccount is true in a call if a tool of its group has read the person's account in this turn. In a shared chat
	// the person, or a rule of the operator, has allowed that.
	ReadAccount bool
	// Chat is the chat that gets the answer, as platform:id[:thread].
	Chat string
	// Direct is true in a chat with a single user.
	Direct bool
	// Owner is the user (direct chat) or the chat (shared) that memory, tasks, history and
	// workspace belong to.
	Owner string
	// Session names the log of this conversation.
	Session string
	// Workspace is the existing folder with the owner's files.
	Workspace string
	// Quota bounds the bytes of the workspace, and Reserve is how many bytes of the disk stay free.
	// 0 means the defaults of internal/workspace.
	Quota, Reserve int64
	// Received are the SHA-256 in hex of the files that people have sent in this conversation. Only [Tool.Describe] is
	// told them.
	Received []string
	// Message identifies the message that is being answered.
	Message string
	// Unasked is true in a turn that no message of a user has begun or joined: a scheduled run, a
	// background task, or the answer to the result of one.
	Unasked bool
	// Scheduled is true in a scheduled run, for whose answer no user waits.
	Scheduled bool
	// Outsider is true in a run that somebody outside began, through a webhook. It has no part of what its
	// owner keeps, and Workspace is a folder of its own.
	Outsider bool
	// Background is true in a background task. Model names the model that was chosen for the task; empty
	// means the usual one.
	Background bool
	Model      string
	// TextLimit bounds the text of a result for a model with a small context, in characters; 0 means
	// [MaxText].
	TextLimit int
	// Redact and RedactLines, if not nil in a call, mask secrets; see [Scope.Masked] and [Scope.MaskedLine].
	Redact      func(text string) string `json:"-"`
	RedactLines func(text string) string `json:"-"`
}

// Masked returns a text with its secrets masked. All results are masked, but half a secret is none: a tool that searches a
// text for words, or that shows a part of it, masks it before.
func (s Scope) Masked(text string) string {
	if s.Redact == nil {
		return text
	}
	return s.Redact(text)
}

// MaskedLine is [Scope.Masked] for a text that an [Announcement] shows a part of. It hides known secrets alone: any author
// can give a text the shape of one, and a person has to see what was done.
func (s Scope) MaskedLine(text string) string {
	if s.RedactLines == nil {
		return text
	}
	return s.RedactLines(text)
}

// MaxText returns the most characters that the text of a result may have.
func (s Scope) MaxText() int { return cmp.Or(s.TextLimit, MaxText) }

// RunsAgain reports whether a call of the tool can be run again after a crash.
func (t *Tool) RunsAgain() bool { return t.Effect == ReadOnly || t.Repeatable }

// MaxAtOnce is how many things a call may change at once without asking, even if that can be undone.
const MaxAtOnce = 10

// CountChanged returns how many things a call changes at once, as far as its arguments list them; 0 for calls of
// tools that change nothing.
func (t *Tool) CountChanged(arguments json.RawMessage) int {
	var given map[string]json.RawMessage
	var each []json.RawMessage
	if t.Each == "" || t.Effect == ReadOnly || json.Unmarshal(arguments, &given) != nil || json.Unmarshal(given[t.Each], &each) != nil {
		return 0
	}
	return len(each)
}

// Hides reports whether a tool is hidden from the model because the sender may not use it. In a
// shared chat the tool is shown and its calls are refused, because a tools array that depended on
// the sender would invalidate the provider's cache.
func (s Scope) Hides(t Tool) bool { return s.Direct && s.reach() < t.Role }

// reach returns the role up to which tools are offered.
func (s Scope) reach() Role { return max(s.Role, s.Approvable) }

// Origin says whose words a text holds.
type Origin string

// The origins. The zero value of a result is originOthers, so that a tool that says nothing counts as one
// that reads what others wrote.
const (
	// originOthers: anybody may have written them.
	originOthers Origin = ""
	// OriginOwn: the program's, and those of the person and the model that this conversation has already.
	OriginOwn Origin = "own"
	// OriginMail: those of mails, whose links may hold one-time tokens.
	OriginMail Origin = "mail"
	// OriginComputed: those of others, and any that the model wants: the output of a command or a script, a
	// file, what it said in another conversation. An address in them may be its own.
	OriginComputed Origin = "computed"
)

// Result is the result of a call.
type Result struct {
	// Text is for the model.
	Text string
	// Files are delivered to the chat.
	Files []File
	// Sources are the pages that Text refers to. The answer lists those that it uses.
	Sources []Source
	// Origin, if not empty, says whose words Text holds, instead of [Tool.Origin].
	Origin Origin
	// Read is the [SumOf] the bytes that the tool has read, if it gives back the words of a file.
	Read string
	// Announced says what the call has left behind for later.
	Announced []Announcement
}

// Source is a web page.
type Source struct {
	// Title is plain text on one line, URL an http or https address.
	Title string `json:"title"`
	URL   string `json:"url"`
}

// File is a file in the workspace that a tool wants delivered to the chat.
type File struct {
	// Path is relative to the workspace.
	Path string
	// Caption is optional plain text.
	Caption string
	// Sum is the SHA-256 in hex of a file that somebody else than the bot has sent.
	Sum string `json:",omitempty"`
	// Picture describes a file that can be shown to models; nil for others.
	Picture *Picture `json:",omitempty"`
}

// SumOf returns the SHA-256 in hex of data. It takes no file, because that can be written between two readings: what
// else is made of the bytes has to be made of the same ones.
func SumOf(data []byte) string {
	sum := sha256.Sum256(data)
	return hex.EncodeToString(sum[:])
}

// Picture describes a picture; the bytes are in the file.
type Picture struct {
	// Width and Height are in pixels; 0 if unknown.
	Width, Height int `json:",omitempty"`
	// Size is the size of the file in bytes.
	Size int64
	// Sum is the SHA-256 of the file in hex, for detecting changes; empty if unknown.
	Sum string `json:",omitempty"`
	// Gone is true if models no longer see the picture. It is never stored: see agent.RolePictures.
	Gone bool `json:"-"`
}

// TextResult returns a result that has only text: format with args filled in, or format itself if
// there are no args. The error is always nil.
func TextResult(format string, args ...any) (Result, error) {
	if len(args) == 0 {
		return Result{Text: format}, nil
	}
	return Result{Text: fmt.Sprintf(format, args...)}, nil
}

// Error codes of [Run], [Round] and the tools that a [Router] adds.
const (
	CodeNotFound     = "tool_not_found"
	CodeNotAvailable = "tool_not_available"
	CodeDisabled     = "tool_globally_disabled"
	CodeInvalid      = "validation_error"
	CodeTimeout      = "timeout"
	CodeExecution    = "execution_error"
	CodeDenied       = "permission_denied"
	// CodeCancelled means that the call ended because its turn was stopped.
	CodeCancelled = "cancelled"
	// CodeBridge means that the tool cannot be called through another one; the model must call it
	// directly.
	CodeBridge = "bridge_misuse"
	// CodeSearchExhausted means that the search was not run, because too many earlier ones found
	// nothing or were the same.
	CodeSearchExhausted = "search_exhausted"
)

// IsRefusal reports whether a code means that the tool was never run, so that the call can be made
// again once the obstacle is removed.
func IsRefusal(code string) bool {
	switch code {
	case CodeNotFound, CodeNotAvailable, CodeDisabled, CodeDenied, CodeBridge:
		return true
	}
	return false
}

// Error is a failed call as the model sees it: a code for programs and a sentence that says what
// to do next. It never contains secrets.
type Error struct {
	Code    string
	Message string
	// Own says that Message repeats nothing but the program's own words, the call's, and those of the tool's
	// parameters. Any other error counts as words of others, as a result that says nothing of its origin.
	Own bool
}

// Error returns the message.
func (e *Error) Error() string { return e.Message }

// Errorf makes an [Error], which is Own if all its args are numbers.
func Errorf(code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...), Own: !slices.ContainsFunc(args, mayHoldWords)}
}

// OwnErrorf makes an [Error] that is Own, although its args are words: of the program or of the call.
func OwnErrorf(code, format string, args ...any) *Error {
	e := Errorf(code, format, args...)
	e.Own = true
	return e
}

func mayHoldWords(arg any) bool {
	switch v := reflect.ValueOf(arg); {
	case v.CanInt(), v.CanUint(), v.CanFloat():
		return false
	}
	return true
}
