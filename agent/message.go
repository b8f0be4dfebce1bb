package agent

import (
	"cmp"
	"time"

	"oneclaw/toolgroups"
)

// Role says what a message of a conversation is.
type Role string

// The roles. Only the first four and RoleNote are ever shown to a model.
const (
	// RoleUser is what a person wrote.
	RoleUser Role = "user"
	// RoleAssistant is a reply of the model: text, calls, or both.
	RoleAssistant Role = "assistant"
	// RoleTool is the result of one call of the assistant message before it.
	RoleTool Role = "tool"
	// RoleSummary stands for all messages before it but the last few ([Message.Kept]):
	// it is what a compaction kept of them.
	RoleSummary Role = "summary"
	// RoleRefused ends an exchange that a model refused: what it counts in front of it
	// ([Message.Left]) stays on record and is never shown to a model again.
	RoleRefused Role = "refused"
	// RolePictures takes pictures in front of it out of what models are shown, but for the
	// newest ([Message.Pictures]). Their messages stay.
	RolePictures Role = "pictures"
	// RoleCleared takes the long results of the turns in front of the one before it out of what models
	// are shown. The results stay on record.
	RoleCleared Role = "cleared"
	// RoleNote is what the agent itself tells the model between the messages: what it can reach
	// of loaded groups since tools go another way. It is shown in a user's place.
	RoleNote Role = "note"
	// RoleStarted records that a call with effects is about to run, or that one that only
	// reads is about to run again because it was cut off. A started call without a result
	// is never run again by itself.
	RoleStarted Role = "started"
)

// Status is the outcome of a call.
type Status string

// The outcomes of a call.
const (
	StatusOK    Status = "ok"
	StatusError Status = "error"
)

// Message is one entry of a conversation: what the log stores, one record each.
// Files are references to the workspace, never bytes.
type Message struct {
	Role Role      `json:"role"`
	Time time.Time `json:"time,omitzero"`
	Text string    `json:"text,omitempty"`

	// Sender names the author of a user message in a shared chat.
	Sender string `json:"sender,omitempty"`
	// By is the caller's key for the author of a user message in a shared chat. The agent
	// carries it and does not look at it.
	By string `json:"by,omitempty"`
	// Files are workspace paths of what came with a user message, or of what a
	// result wants delivered to the chat.
	Files []toolgroups.File `json:"files,omitempty"`
	// Sources are the pages that a result tells of.
	Sources []toolgroups.Source `json:"sources,omitempty"`
	// Quoted is what a user message points at: the words of others, each line marked as
	// such by the caller. It stands in front of the text.
	Quoted string `json:"quoted,omitempty"`
	// Overheard, if not empty, is what a model is shown in the place of Quoted while it answers the
	// message: Quoted, and in front of it what others said nearby and not to the bot. It is never
	// stored and in no summary, so that it goes with what it was taken from.
	Overheard string `json:"-"`
	// Recalled is what was found in the memory for a user message. It is stored with the
	// message, so that what a model was shown stays the same.
	Recalled string `json:"recalled,omitempty"`
	// Ref is the caller's key for a user message (the bridge's job). The agent
	// carries it and does not look at it.
	Ref string `json:"ref,omitempty"`
	// Joined is the caller's key in the place of Ref where the message came while the turn
	// was answered, and is answered by that.
	Joined string `json:"joined,omitempty"`

	// Calls are the tool calls of an assistant message, in the model's order.
	Calls []Call `json:"calls,omitempty"`
	// Reasoning is what some models must be given back with their own reply.
	Reasoning string `json:"reasoning,omitempty"`
	// Final marks the assistant message that ends a turn: the answer.
	Final bool `json:"final,omitempty"`
	// Truncated marks a reply that the model's output limit cut off.
	Truncated bool `json:"truncated,omitempty"`
	// Usage is what the reply cost; Model who gave it.
	Usage *Usage `json:"usage,omitempty"`
	Model string `json:"model,omitempty"`
	// CacheFor is how long the provider was asked to keep the prompt; 0 where it was not.
	CacheFor time.Duration `json:"cache_for,omitempty"`
	// Routing is what the router of the turn wants kept: how tools reach the model in
	// this conversation, where its beginning has decided that. Summaries carry it on.
	Routing string `json:"routing,omitempty"`

	// Reach says behind a summary which groups are loaded, and which of their tools the model
	// runs through others. It is stored with the summary, so that what a model was shown stays.
	Reach string `json:"reach,omitempty"`

	// Kept is how many records in front of a summary it does not stand for: they stay.
	// Records are only ever added, so a count is as good as a position.
	Kept int `json:"kept,omitempty"`

	// Left is how many records in front of a RoleRefused it takes out of what models are
	// shown.
	Left int `json:"left,omitempty"`

	// Pictures is how many of the pictures in front of a RolePictures stay.
	Pictures int `json:"pictures,omitempty"`

	// CallID, Tool and Status belong to RoleTool and RoleStarted. Tool is the tool
	// that ran (unwrapped); Code is the error code where Status is StatusError.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Status Status `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	// Hash of the tool and its arguments, for RoleStarted and for approvals.
	Hash string `json:"hash,omitempty"`
	// Approved is who allowed a RoleStarted call, as platform:id, where an approver was asked.
	Approved string `json:"approved,omitempty"`

	// Erased marks what is left of a message whose texts are gone, so that groups stay loaded:
	// it is read by [RestoreGroups] alone.
	Erased bool `json:"erased,omitempty"`
}

// Asks reports whether a turn begins with the message.
func (m *Message) Asks() bool { return m.Role == RoleUser && m.Joined == "" }

// Heard reports whether the message is shown to a model in a user's place.
func (m *Message) Heard() bool {
	return m.Role == RoleUser || m.Role == RoleSummary || m.Role == RoleNote
}

// Call is a tool call as the model emitted it, for replay, and unwrapped for all else.
type Call struct {
	// ID is unique only within one assistant message: some servers number the calls
	// of every reply from zero.
	ID string `json:"id"`
	// Name is the function that the model called.
	Name string `json:"name"`
	// Arguments are the model's own, byte for byte.
	Arguments string `json:"arguments"`
	// Tool is what really runs, where that differs (a bridge call).
	Tool string `json:"tool,omitempty"`
	// Input is what Tool is given.
	Input string `json:"input,omitempty"`
}

// Usage is what one model call cost in tokens, as the provider reported it.
type Usage struct {
	// Input counts all input tokens, the cached ones included.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	// Written are those of Input that the provider wrote to its cache, where it says so.
	Written int `json:"written,omitempty"`
	// Hour are those of Written that are kept for an hour.
	Hour   int `json:"hour,omitempty"`
	Output int `json:"output"`
	// Tools is our own estimate of the part of Input that the tools array takes.
	Tools int `json:"tools,omitempty"`
}

// LabelLoad is the label of calls of load_tool_group and of their results.
const LabelLoad = "load"

// LabelSummary is the label of summaries, so that the newest is found at once.
const LabelSummary = "summary"

// LabelRefused is the label of records that take an exchange out.
const LabelRefused = "refused"

// Pointed returns the words of others that a model is shown with the message.
func (m *Message) Pointed() string { return cmp.Or(m.Overheard, m.Quoted) }
