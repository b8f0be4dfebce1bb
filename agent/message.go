package agent

import (
	"cmp"
	"time"

	"oneclaw/toolgroups"
)

// Role is the kind of a message in a conversation.
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
	// RoleRefused ends an exchange that a model refused. The messages before it, as many as
	// [Message.Omitted] says, stay on record and are never sent to a model again.
	RoleRefused Role = "refused"
	// RolePictures drops the pictures before it from requests, except the newest ([Message.Pictures]).
	// Their messages stay.
	RolePictures Role = "pictures"
	// RoleCleared shortens long results in requests, except those of the last two turns before it, and
	// other long texts if [Message.ClearsTexts] is set. The full texts stay on record.
	RoleCleared Role = "cleared"
	// RoleNote is a note from the agent to the model. It lists the tools of loaded groups after the way
	// to call them has changed. It is sent with the user's role.
	RoleNote Role = "note"
	// RoleStarted records that a call is about to run: one that must not be repeated, or one that can be
	// ([toolgroups.Tool.RunsAgain]) and that an earlier run may have begun. A started call without a
	// result is never run again automatically.
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
	// AuthorKey is the caller's key for the author of a user message in a shared chat. The agent does
	// not interpret it.
	AuthorKey string `json:"by,omitempty"`
	// Seq is the caller's number of such a message. The agent does not interpret it.
	Seq int64 `json:"seq,omitempty"`
	// Files are workspace paths: attachments of a user message, or files that a result delivers to the
	// chat.
	Files []toolgroups.File `json:"files,omitempty"`
	// Sources are the web pages that a result describes.
	Sources []toolgroups.Source `json:"sources,omitempty"`
	// Read is [toolgroups.Result.Read] of a result, Spent what its call has spent; in a question, what the calls of
	// its turn have spent whose results were left out of the history.
	Read  string `json:"read,omitempty"`
	Spent Spent  `json:"spent,omitzero"`
	// Announced says what the call of a result has left behind for later. No model sees it.
	Announced []toolgroups.Announcement `json:"announced,omitempty"`
	// Quoted holds the messages that a user message quotes, each line marked as a quote by the caller.
	// It is sent in front of the text.
	Quoted string `json:"quoted,omitempty"`
	// QuotedOwn holds those of them that the bot wrote, or may have written. No model sees it.
	QuotedOwn string `json:"quoted_own,omitempty"`
	// Overheard, if not empty, replaces Quoted while the message is answered. It is Quoted preceded by
	// recent messages that were not addressed to the bot. It is never stored or summarized, so it
	// disappears together with the transcript from which it was taken.
	Overheard string `json:"-"`
	// Recalled holds the notes that the memory search found for a user message. It is stored, so that
	// later requests contain the same text.
	Recalled string `json:"recalled,omitempty"`
	// RecalledOwn says that these notes are the person's own. All others count as words of others, also those of
	// versions that did not tell them apart. They stay in the message when the memory has them no more. RecalledShown
	// says that the person was shown those of others when they were saved.
	RecalledOwn   bool `json:"recalled_own,omitempty"`
	RecalledShown bool `json:"recalled_shown,omitempty"`
	// Ref is the caller's key for a user message (the bridge's job). The agent does not interpret it.
	Ref string `json:"ref,omitempty"`
	// JoinedRef replaces Ref in a message that arrived during a turn and is answered by that turn.
	JoinedRef string `json:"joined,omitempty"`

	// Calls are the tool calls of an assistant message, in the model's order.
	Calls []Call `json:"calls,omitempty"`
	// Reasoning is opaque data that some models require back with their own reply.
	Reasoning string `json:"reasoning,omitempty"`
	// Final marks the assistant message that ends a turn: the answer.
	Final bool `json:"final,omitempty"`
	// Truncated marks a reply that was cut off, at the model's output limit or by the provider's filter.
	Truncated bool `json:"truncated,omitempty"`
	// Usage is the cost of the reply, Model the model that gave it.
	Usage *Usage `json:"usage,omitempty"`
	Model string `json:"model,omitempty"`
	// CacheFor is how long the provider was asked to cache the prompt; 0 means its default.
	CacheFor time.Duration `json:"cache_for,omitempty"`
	// Routing records how tools are offered to the model. Summaries repeat it.
	Routing string `json:"routing,omitempty"`

	// LoadedGroups, in a summary, lists the loaded groups and those of their tools that the model calls
	// through other tools. It is stored, so that later requests contain the same text.
	LoadedGroups string `json:"reach,omitempty"`

	// Kept is the number of records in front of a summary that the summary does not cover. Records are
	// only ever appended, so a count works like a position.
	Kept int `json:"kept,omitempty"`
	// Gated are, in a summary, the [GatedCalls] of what it covers.
	Gated []Call `json:"refused,omitempty"`

	// Omitted is the number of records in front of a RoleRefused that are dropped from requests.
	Omitted int `json:"left,omitempty"`

	// Pictures is the number of pictures in front of a RolePictures that stay in requests.
	Pictures int `json:"pictures,omitempty"`

	// ClearsTexts says that a RoleCleared also shortens questions and answers.
	ClearsTexts bool `json:"texts,omitempty"`

	// CallID, Tool and Status are set for RoleTool and RoleStarted. Tool is the tool that ran
	// (unwrapped). Code is the error code if Status is StatusError.
	CallID string `json:"call_id,omitempty"`
	Tool   string `json:"tool,omitempty"`
	Status Status `json:"status,omitempty"`
	Code   string `json:"code,omitempty"`
	// NotRun says that the call was refused before its tool saw it. A tool may give the same Code afterwards.
	NotRun bool `json:"not_run,omitempty"`
	// Hash is the hash of the tool and its arguments, for RoleStarted and for approvals.
	Hash string `json:"hash,omitempty"`
	// ApprovedBy is the user who approved a call, as platform:id; empty if none was needed. It is in the
	// RoleStarted, and in the RoleTool if the call has no such record.
	ApprovedBy string `json:"approved,omitempty"`

	// Origin says whose words a message of RoleTool holds. In one of RoleAssistant it is OriginComputed if
	// the model had been shown words of others. In a message of RoleUser it is empty, or
	// OriginQuoted if its text, files or quotes are not all its author's own, or OriginOwn if it quotes the
	// bot alone.
	Origin toolgroups.Origin `json:"origin,omitempty"`
	// ReadOthers says in a message of RoleAssistant that its turn had read words of others.
	ReadOthers bool `json:"read_others,omitempty"`

	// Erased marks a message whose texts were deleted. The message is kept so that groups stay loaded;
	// only [RestoreGroups] reads it.
	Erased bool `json:"erased,omitempty"`
}

// BeginsTurn reports whether the message begins a turn.
func (m *Message) BeginsTurn() bool { return m.Role == RoleUser && m.JoinedRef == "" }

// IsAnswer reports whether the message is the answer of a model, and no note in place of one.
func (m *Message) IsAnswer() bool { return m.Role == RoleAssistant && m.Final && m.Usage != nil }

// ShownAsUser reports whether the message is sent to a model with the user's role.
func (m *Message) ShownAsUser() bool {
	return m.Role == RoleUser || m.Role == RoleSummary || m.Role == RoleNote
}

// Call is a tool call, both as the model sent it, for later requests, and unwrapped, for all other uses.
type Call struct {
	// ID is unique only within one assistant message: some servers number the calls of every reply from
	// zero.
	ID string `json:"id"`
	// Name is the function that the model called.
	Name string `json:"name"`
	// Arguments are the arguments that the model sent, byte for byte.
	Arguments string `json:"arguments"`
	// Tool is the tool that runs if it is not Name: a call through tool_call.
	Tool string `json:"tool,omitempty"`
	// Input holds the arguments of Tool.
	Input string `json:"input,omitempty"`
}

// Usage is the cost of one model call in tokens, as the provider reported it.
type Usage struct {
	// Input counts all input tokens, the cached ones included.
	Input  int `json:"input"`
	Cached int `json:"cached,omitempty"`
	// CacheWritten counts the tokens of Input that the provider wrote to its cache, if reported.
	CacheWritten int `json:"written,omitempty"`
	// CacheWrittenHour counts the tokens of CacheWritten that are kept for an hour.
	CacheWrittenHour int `json:"hour,omitempty"`
	Output           int `json:"output"`
	// Tools is our estimate of the tokens of Input that the tools array takes.
	Tools int `json:"tools,omitempty"`
}

// OriginQuoted is the [Message.Origin] of a user's message with words of others outside of
// [Message.Quoted]: the result of a task, what a webhook received, an attached file.
const OriginQuoted toolgroups.Origin = "quoted"

// LabelLoad is the label of calls of load_tool_group and of their results.
const LabelLoad = "load"

// LabelSummary is the label of summaries, by which the newest is found directly.
const LabelSummary = "summary"

// LabelRefused is the label of RoleRefused records.
const LabelRefused = "refused"

// QuotedText returns the quoted messages that are sent to a model with the message.
func (m *Message) QuotedText() string { return cmp.Or(m.Overheard, m.Quoted) }
