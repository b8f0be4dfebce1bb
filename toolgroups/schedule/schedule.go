package schedule

import (
	"cmp"
	"context"
	"embed"
	"encoding/json"
	"errors"
	"log/slog"
	"strings"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
)

//go:embed scheduled_tasks.json
var manifests embed.FS

// Config configures a [Schedule].
type Config struct {
	// Store stores the tasks.
	Store storage.Store
	// Submit submits a run to be answered in its chat. It returns nil once the run is stored; a run
	// with a known key is not stored again. The outcome is reported to [Schedule.RecordOutcome].
	// After an error that wraps [ErrRefused], or a repeated panic, the run is given up. After any other
	// error, it is submitted again for up to 24 hours.
	Submit func(ctx context.Context, run Run) error
	// Location returns the time zone of plans, which may change. Nil means the host's.
	Location func() *time.Location
	// ZoneOf returns the IANA name of a user's time zone, which their new plans get; "" if it is unknown. Nil means
	// that it is.
	ZoneOf func(ctx context.Context, scope toolgroups.Scope) string
	// NameOf returns the name of a user, platform:id, for people; nil or "" means that it has none.
	NameOf func(user string) string
	// Identify reports whether a tool or a group has a name, and returns what tells its server from others that take the
	// same name later; empty for those of no server. Nil means that any may have, and none is of a server.
	Identify func(name string) (server string, known bool)
	// Hosts returns the hosts of the addresses in a prompt, which a run may open and then say nothing. Nil
	// means that it shows none.
	Hosts func(prompt string) []string
	// MaxTasks bounds the tasks of an owner; a new task replaces a one-time task that has run. 0 means 50.
	MaxTasks int
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
}

// Schedule holds the tools, and the loop [Schedule.Run].
type Schedule struct {
	cfg   Config
	group toolgroups.Group
}

// New makes the tools and starts nothing.
func New(cfg Config) (*Schedule, error) {
	if cfg.Store == nil || cfg.Submit == nil || cfg.Now == nil {
		return nil, errors.New("schedule: Store, Submit and Now are required")
	}
	if cfg.MaxTasks < 0 {
		return nil, errors.New("schedule: MaxTasks is negative")
	}
	cfg.MaxTasks = cmp.Or(cfg.MaxTasks, 50)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Location == nil {
		cfg.Location = func() *time.Location { return time.Local }
	}
	if cfg.ZoneOf == nil {
		cfg.ZoneOf = func(context.Context, toolgroups.Scope) string { return "" }
	}
	if cfg.Hosts == nil {
		cfg.Hosts = func(string) []string { return nil }
	}
	s := &Schedule{cfg: cfg}
	var err error
	s.group, err = toolgroups.ReadGroup(manifests, "scheduled_tasks", map[string]toolgroups.Handler{
		"schedule_task":         toolgroups.TypedHandler(s.create),
		"list_scheduled_tasks":  toolgroups.TypedHandler(s.list),
		runTool:                 toolgroups.TypedHandler(s.runNow),
		"update_scheduled_task": toolgroups.TypedHandler(s.update),
		"delete_scheduled_task": toolgroups.TypedHandler(s.remove),
	})
	for i := range s.group.Tools {
		s.group.Tools[i].Undo, s.group.Tools[i].Describe = s.undo, s.describe
		if name := s.group.Tools[i].Name; name == "schedule_task" || name == "update_scheduled_task" || name == runTool {
			s.group.Tools[i].NeedsApproval = s.exceedsLine
		}
	}
	return s, err
}

// runTool is the tool that runs a task at once.
const runTool = "run_scheduled_task"

// Group returns the five tools.
func (s *Schedule) Group() toolgroups.Group { return s.group }

// Run is one run of a task, to be answered in its chat.
type Run struct {
	// Key identifies the run: the id of the task, a dot, and a suffix. It consists of letters,
	// digits, dots and hyphens.
	Key string `json:"key"`
	// Title heads the answer: the name of the task, and when it was due if it is late.
	Title string `json:"title"`
	// Prompt is the request to the agent.
	Prompt string `json:"prompt"`
	// Outside is that of the [Task].
	Outside bool `json:"outside,omitempty"`
	// Version is that of the task: a run whose task has another one does not begin, see [Schedule.Stands].
	Version string `json:"version,omitempty"`
	// Plan describes when the task runs. It is empty if a user asked for this run and waits for
	// the answer.
	Plan string `json:"plan,omitempty"`
	// Quiet says that the run may end without an answer, if it used nothing but the tools and groups in Uses and
	// addresses at Hosts. The line about the task shows them.
	Quiet bool     `json:"quiet,omitempty"`
	Uses  []string `json:"uses,omitempty"`
	Hosts []string `json:"hosts,omitempty"`
	// Owner, Chat, User and Direct are as in [toolgroups.Scope] of the task's message.
	Owner  string `json:"owner"`
	Chat   string `json:"chat"`
	User   string `json:"user"`
	Direct bool   `json:"direct,omitempty"`
}

// StopTool is the tool whose undo, with [Run.StopData], removes the task of a run.
const StopTool = "schedule_task"

// StopData returns the data with which the undo of [StopTool] removes the run's task.
func (r Run) StopData() json.RawMessage {
	id, _, _ := strings.Cut(r.Key, ".")
	return toolgroups.UndoData(undoData{ID: id})
}

// Outcome is the outcome of a run.
type Outcome struct {
	// Owner and Key identify the [Run].
	Owner, Key string
	// Session names the log of its conversation.
	Session string
	// MessageID is the platform's id of the message with the answer, or with the notice that there
	// is none. Empty if nothing was delivered.
	MessageID string
	// Fault says briefly why there is no answer; empty if there is one.
	Fault string
	// Silent is true if the run ended without an answer because there was nothing to report.
	Silent bool
}
