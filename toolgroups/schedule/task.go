package schedule

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/storage"
)

// Task is a prompt with the times at which the agent runs it.
type Task struct {
	ID string `json:"id"`
	// Owner owns the task. Chat gets its answers. User created it or last changed its prompt; a run
	// has that user's role.
	Owner  string `json:"owner"`
	Chat   string `json:"chat"`
	User   string `json:"user"`
	Direct bool   `json:"direct,omitempty"`

	Name   string `json:"name"`
	Prompt string `json:"prompt"`
	// Uses are the tools and groups that a run may use and then say nothing, besides the addresses in
	// Prompt; a line shows them.
	Uses []string `json:"uses,omitempty"`
	// UsesOf tells the servers of those that were of a server when they were named: nobody was shown another one.
	UsesOf map[string]string `json:"uses_of,omitempty"`
	// Outside says that the name or the prompt may hold words of others than the user: it was given in a conversation
	// that held some, or by another person.
	Outside bool `json:"outside,omitempty"`
	Plan    Plan `json:"plan"`
	Enabled bool `json:"enabled"`
	// Version identifies what a change by a user has left; the undo of the change restores it, too. It is
	// empty in tasks from before versions were recorded.
	Version string    `json:"version,omitempty"`
	Created time.Time `json:"created"`
	// Due is the next run, or the zero time.
	Due time.Time `json:"due,omitzero"`
	// LastDay is the local day of the last run of a plan with an hour and a minute. For other plans,
	// RanAt is when the last run was due or, before the first run, when the plan was made.
	LastDay string    `json:"last_day,omitempty"`
	RanAt   time.Time `json:"ran,omitzero"`
	// Claimed is a run that has not been submitted yet.
	Claimed *Claim `json:"claimed,omitempty"`
	// History has the latest runs, oldest first.
	History []Entry `json:"history,omitempty"`
}

// Claim is a run that a process has claimed.
type Claim struct {
	Run
	// At is the time of the claim, Index the time under which the task was due.
	At    time.Time `json:"at"`
	Index time.Time `json:"index"`
}

// State is the state of a run.
type State string

// The states of runs.
const (
	// queued means that the run is submitted, or about to be.
	queued State = "queued"
	// delivered means that the platform has confirmed the message with the answer.
	delivered State = "delivered"
	// Failed means that there was no answer, or that it could not be delivered.
	Failed State = "failed"
	// silent means that the run ended without an answer because there was nothing to report.
	silent State = "silent"
	// skipped means that the run was missed and not made up for.
	skipped State = "skipped"
)

// Entry is a run in the history of a task.
type Entry struct {
	Key    string `json:"key,omitempty"`
	State  State  `json:"state"`
	Manual bool   `json:"manual,omitempty"`
	// Due is when the run should have begun, Began when it did.
	Due   time.Time `json:"due"`
	Began time.Time `json:"began,omitzero"`
	Ended time.Time `json:"ended,omitzero"`
	// Session, MessageID and Fault are as in the [Outcome].
	Session   string `json:"session,omitempty"`
	MessageID string `json:"message_id,omitempty"`
	Fault     string `json:"fault,omitempty"`
}

// Bounds of the history of a task.
const (
	maxHistory = 50
	historyAge = 90 * 24 * time.Hour
)

// trimHistory drops old entries from the history.
func (t *Task) trimHistory(now time.Time) {
	t.History = slices.DeleteFunc(t.History, func(e Entry) bool { return now.Sub(e.Due) > historyAge })
	if excess := len(t.History) - maxHistory; excess > 0 {
		t.History = slices.Delete(t.History, 0, excess)
	}
}

// findEntry finds a run in the history; nil if it is not there.
func (t *Task) findEntry(key string) *Entry {
	for i := range t.History {
		if t.History[i].Key == key {
			return &t.History[i]
		}
	}
	return nil
}

// lastEntry returns the newest run that was not skipped.
func (t *Task) lastEntry() *Entry {
	for i := range slices.Backward(t.History) {
		if t.History[i].State != skipped {
			return &t.History[i]
		}
	}
	return nil
}

// Keys. Neither an owner nor an id contains a slash.
const (
	taskPrefix = "schedule/task/"
	duePrefix  = "schedule/due/"
	// dueFormat sorts by time.
	dueFormat = "20060102T150405Z"
)

func taskKey(owner, id string) string { return taskPrefix + owner + "/" + id }

func dueKey(due time.Time, owner, id string) string {
	return duePrefix + due.UTC().Format(dueFormat) + "/" + owner + "/" + id
}

func parseDueKey(key string) (due time.Time, owner, id string, err error) {
	parts := strings.Split(strings.TrimPrefix(key, duePrefix), "/")
	if len(parts) != 3 {
		return time.Time{}, "", "", fmt.Errorf("due key %q: want time, owner and id", key)
	}
	due, err = time.Parse(dueFormat, parts[0])
	if err != nil {
		return time.Time{}, "", "", fmt.Errorf("due key: %w", err)
	}
	return due, parts[1], parts[2], nil
}

// errRemoved tells modifyTask to delete the task.
var errRemoved = errors.New("schedule: removed")

// modifyTask reads a task, changes it with f and writes it. After a conflict with another writer it
// tries again.
func (s *Schedule) modifyTask(ctx context.Context, owner, id string, f func(t *Task) error) (t Task, err error) {
	err = storage.Retry(ctx, func() (err error) {
		var rev storage.Revision
		if t, rev, err = s.readTask(ctx, owner, id); err != nil {
			return err
		}
		before := t.Due
		switch err = f(&t); {
		case err == nil:
			return s.writeTask(ctx, t, rev, before)
		case errors.Is(err, errRemoved):
			return s.commit(ctx, id, deleteOps(t, rev))
		}
		return err
	})
	return t, err
}

func (s *Schedule) readTask(ctx context.Context, owner, id string) (Task, storage.Revision, error) {
	t, rev, err := storage.Load[Task](ctx, s.cfg.Store, taskKey(owner, id))
	if err == nil && rev == storage.Absent {
		err = fmt.Errorf("read task %s: %w", id, storage.ErrNotFound)
	}
	return t, rev, err
}

// writeTask stores a task that was due at before, with its index entries.
func (s *Schedule) writeTask(ctx context.Context, t Task, rev storage.Revision, before time.Time) error {
	ops, err := s.putOps(t, rev, before)
	if err != nil {
		return err
	}
	return s.commit(ctx, t.ID, ops)
}

// putOps returns the operations of writeTask. The index changes together with the task, so its
// entries need no revision: the process that wrote the task last has written both.
func (s *Schedule) putOps(t Task, rev storage.Revision, before time.Time) ([]storage.Op, error) {
	t.trimHistory(s.cfg.Now())
	data, err := json.Marshal(t)
	if err != nil {
		return nil, fmt.Errorf("encode task %s: %w", t.ID, err)
	}
	ops := []storage.Op{storage.Put(taskKey(t.Owner, t.ID), data, rev)}
	now, old := dueKey(t.Due, t.Owner, t.ID), dueKey(before, t.Owner, t.ID)
	if now == old {
		return ops, nil
	}
	if !t.Due.IsZero() {
		ops = append(ops, storage.Put(now, nil, storage.Any))
	}
	if !before.IsZero() && (t.Claimed == nil || !t.Claimed.Index.Equal(before)) {
		ops = append(ops, storage.Delete(old, storage.Any))
	}
	return ops, nil
}

// deleteOps returns the operations that delete a task and its index entries.
func deleteOps(t Task, rev storage.Revision) []storage.Op {
	ops := []storage.Op{storage.Delete(taskKey(t.Owner, t.ID), rev)}
	if !t.Due.IsZero() {
		ops = append(ops, storage.Delete(dueKey(t.Due, t.Owner, t.ID), storage.Any))
	}
	return ops
}

func (s *Schedule) commit(ctx context.Context, id string, ops []storage.Op) error {
	if _, err := s.cfg.Store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("store task %s: %w", id, err)
	}
	return nil
}

// tasks yields the tasks whose keys begin with prefix.
func (s *Schedule) tasks(ctx context.Context, prefix string) iter.Seq2[Task, error] {
	return func(yield func(Task, error) bool) {
		for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
			var t Task
			if err != nil {
				yield(t, fmt.Errorf("list tasks: %w", err))
				return
			}
			if err := json.Unmarshal(entry.Value, &t); err != nil {
				s.cfg.Logger.Error("skipping a task that cannot be decoded", "key", entry.Key, "err", err)
			} else if !yield(t, nil) {
				return
			}
		}
	}
}

// Tasks returns the tasks of an owner, oldest first.
func (s *Schedule) Tasks(ctx context.Context, owner string) ([]Task, error) {
	var all []Task
	for t, err := range s.tasks(ctx, taskKey(owner, "")) {
		if err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	slices.SortStableFunc(all, func(a, b Task) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Stands reports whether a run of an owner that has not begun may begin: its task has not been removed since, nor changed,
// as by switching it off or by undoing a change. A run without a version is from before they were recorded. The claim of a
// run that may begin is released, because a change of the task must not make it due again.
func (s *Schedule) Stands(ctx context.Context, owner, key, version string) (stands bool, err error) {
	id, _, _ := strings.Cut(key, ".")
	_, err = s.modifyTask(ctx, owner, id, func(t *Task) error {
		if stands = version == "" || version == t.Version; !stands || t.Claimed == nil || t.Claimed.Key != key {
			return storage.ErrUnchanged
		}
		t.Claimed = nil
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil && stands, err
}

// dropClaim drops a run that has not been submitted, because its task has changed.
func (t *Task) dropClaim(now time.Time) {
	if t.Claimed == nil {
		return
	}
	if e := t.findEntry(t.Claimed.Key); e != nil {
		e.State, e.Ended, e.Fault = Failed, now, "the schedule was changed before it began"
	}
	t.Claimed = nil
}

// unclaimOnlyRun makes a one-time task due again if its run is claimed and has not begun, so that the run is as the change
// leaves the task. The key of a run has the version of its task: one that is being submitted meanwhile is another run, which
// does not stand any more.
func (t *Task) unclaimOnlyRun() {
	if t.Claimed == nil || t.Plan.Kind != OneTime {
		return
	}
	t.History = slices.DeleteFunc(t.History, func(e Entry) bool { return e.Key == t.Claimed.Key })
	t.Enabled, t.Due, t.Claimed = true, t.Claimed.Index, nil
}

// mayHaveRunThatWaits reports whether a run has not been submitted, or has not ended and may not have begun. The bridge
// begins none of a task that has changed; see [Schedule.Stands].
func (t *Task) mayHaveRunThatWaits() bool {
	return t.Claimed != nil || slices.ContainsFunc(t.History, func(e Entry) bool { return e.State == queued })
}

// RecordOutcome records the outcome of a run unless the task is gone. It may be called repeatedly.
func (s *Schedule) RecordOutcome(ctx context.Context, o Outcome) error {
	id, _, _ := strings.Cut(o.Key, ".")
	_, err := s.modifyTask(ctx, o.Owner, id, func(t *Task) error {
		e := t.findEntry(o.Key)
		if e == nil {
			return storage.ErrUnchanged // older than the history
		}
		e.State, e.Ended = delivered, s.cfg.Now()
		e.Session, e.MessageID, e.Fault = o.Session, o.MessageID, o.Fault
		switch {
		case o.Silent:
			e.State = silent
		case o.MessageID == "" || o.Fault != "":
			e.State = Failed
		}
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}
