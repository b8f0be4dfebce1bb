package agent

import (
	"cmp"
	"time"

	"oneclaw/toolgroups"
)

// Role is the kind of a message of a conversation.
type Role string

// The roles. Only the first four and RoleNote are ever shown to a model.
const (
	// RoleUser is a message of a user.
	RoleUser Role = "user"
	// RoleAssistant is a reply of the model: text, calls, or both.
	RoleAssistant Role = "assistant"
	// RoleTool is the result of one call of the assistant message before it.
	RoleTool Role = "tool"
	// RoleSummary stands for all messages before it but the last few ([Message.Kept]).
	RoleSummary Role = "summary"
	// RoleRefused ends an exchange that a model refused: the messages before it that it counts
	// ([Message.Left]) stay on record and are never shown to a model again.
	RoleRefused Role = "refused"
	// RolePictures hides the pictures before it from models, except the newest ([Message.Pictures]).
	// Their messages stay.
	RolePictures Role = "pictures"
	// RoleCleared hides long results from models: those before the turn that precedes the last. The
	// results stay on record.
	RoleCleared Role = "cleared"
	// RoleNote is a note of the agent to the model: which tools of loaded groups it can reach after the
	// way to them changed. It is shown with the user's role.
	RoleNote Role = "note"
	// RoleStarted records that a call with effects is about to run, or that a call that only reads is
	// about to run again because it was cut off. A started call without a result is never run again
	// automatically.
	RoleStarted Role = "started"
)

// Status is the outcome of a call.
type Status string

// The outcomes of a call.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
)

// Message is one entry of a conversation, stored as one log record. Files are references to the
// workspace, never bytes.
type Message struct {
	Role Role      `json:"role"`
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text,omitempty"`

	// Sender names the author of a user message in a shared chat.
	Sender string `json:"sender,omitempty"`
	// By is the caller's key for the author of a user message in a shared chat. The agent does not
	// interpret it.
	By string `json:"by,omitempty"`
	// Files are workspace paths: attachments of a user message, or files that a result delivers to the
	// chat.
	Files []toolgroups.File `json:"files,omitempty"`
	// Sources are the web pages that a result describes.
	Sources []toolgroups.Source `json:"sources,omitempty"`
	// Quoted holds the words of others that a user message refers to, each line marked as a quote by
	// the caller. It comes in front of the text.
	Quoted string `json:"quoted,omitempty"`
	// Overheard, if not empty, replaces Quoted while the message is answered: Quoted, preceded by what
	// others said nearby and not to the bot. It is never stored and in no summary, so it is deleted
	// together with the transcript it was taken from.
	Overheard string `json:"-"`
	// Recalled is what the memory search found for a user message. It is stored, so that what a model
	// was shown stays the same.
	Recalled string `json:"recalled,omitempty"`
	// Ref is the caller's key for a user message (the bridge's job). The agent does not interpret it.
	Ref string `json:"ref,omitempty"`
	// Joined replaces Ref in a message that came during a turn and is answered by it.
	Joined string `json:"joined,omitempty"`

	// Calls are the tool calls of an assistant message, in the model's order.
	Calls []Call `json:"calls,omitempty"`
	// Reasoning is what some models require back with their own reply.
	Reasoning string `json:"reasoning,omitempty"`
	// Final marks the assistant message that ends a turn: the answer.
	Final bool `json:"final,omitempty"`
	// Truncated marks a reply that the model's output limit cut off.
	Truncated bool `json:"truncated,omitempty"`
	// Usage is the cost of the reply, Model the model that gave it.
	Usage *Usage `json:"usage,omitempty"`
	Model string `json:"model,omitempty"`
	// CacheFor is how long the provider was asked to keep the prompt; 0 if it was not asked.
	CacheFor time.Duration `json:"cache_for,omitempty"`
	// Routing records how tools reach the model in this conversation, if its beginning decided that.
	// Summaries repeat it.
	Routing string `json:"routing,omitempty"`

	// Reach, in a summary, lists the loaded groups and which of their tools the model runs through
	// others. It is stored, so that what a model was shown stays the same.
	Reach string `json:"reach,omitempty"`

	// Kept is how many records in front of a summary it does not cover. Records are only ever added, so
	// a count is as good as a position.
	Kept int `json:"kept,omitempty"`

	// Left is how many records in front of a RoleRefused it hides from models.
	Left int `json:"left,omitempty"`

	// Pictures is how many of the pictures in front of a RolePictures stay visible.
	Pictures int `json:"pictures,omitempty"`

	// CallID, Tool and Status belong to RoleTool and RoleStarted. Tool is the tool that ran
	// (unwrapped); Code is the error code if Status is StatusError.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Status Status `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	// Hash is the hash of the tool and its arguments, for RoleStarted and for approvals.
	Hash string `json:"hash,omitempty"`
	// Approved is who approved a RoleStarted call, as platform:id; empty if it needed no approval.
	Approved string `json:"approved,omitempty"`

	// Erased marks a message whose texts were deleted. It stays so that groups stay loaded: only
	// [RestoreGroups] reads it.
	Erased bool `json:"erased,omitempty"`
}

// BeginsTurn reports whether the message begins a turn.
func (m *Message) BeginsTurn() bool { return m.Role == RoleUser && m.Joined == "" }

// Heard reports whether the message is shown to a model with the user's role.
func (m *Message) Heard() bool {
	return m.Role == RoleUser || m.Role == RoleSummary || m.Role == RoleNote
}

// Call is a tool call: as the model sent it, for replay, and unwrapped for everything else.
type Call struct {
	// ID is unique only within one assistant message: some servers number the calls of every reply from
	// zero.
	ID string `json:"id"`
	// Name is the function that the model called.
	Name string `json:"name"`
	// Arguments are the model's own, byte for byte.
	Arguments string `json:"arguments"`
	// Tool is the tool that really runs, if it differs (a bridge call).
	Tool string `json:"tool,omitempty"`
	// Input is the input of Tool.
	Input string `json:"input,omitempty"`
}

// Usage is the cost of one model call in tokens, as the provider reported it.
type Usage struct {
	// Input counts all input tokens, the cached ones included.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	// Written counts the tokens of Input that the provider wrote to its cache, if it says so.
	Written int `json:"written,omitempty"`
	// Hour counts the tokens of Written that are kept for an hour.
	Hour   int `json:"hour,omitempty"`
	Output int `json:"output"`
	// Tools is our estimate of the tokens of Input that the tools array takes.
	Tools int `json:"tools,omitempty"`
}

// LabelLoad is the label of calls of load_tool_group and of their results.
const LabelLoad = "load"

// LabelSummary is the label of summaries, which finds the newest directly.
const LabelSummary = "summary"

// LabelRefused is the label of records that hide an exchange.
const LabelRefused = "refused"

// QuotedText returns the words of others that a model is shown with the message.
func (m *Message) QuotedText() string { return cmp.Or(m.Overheard, m.Quoted) }
