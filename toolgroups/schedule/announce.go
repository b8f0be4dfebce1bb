package schedule

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// maxUses bounds the tools that a task names.
const maxUses = 20

// maxShownUses bounds those that a line shows.
const maxShownUses = 8

// maxShownPrompt bounds what a line shows of a prompt, in characters.
const maxShownPrompt = 120

// cancelTime is how long the line about a new task can cancel it.
const cancelTime = 7 * 24 * time.Hour

// undoData is the data by which an announcement is undone.
type undoData struct {
	ID string `json:"id"`
	// Before is the task before the change; nil undoes its creation. Removed says that the change removed it.
	Before  *Task `json:"before,omitempty"`
	Removed bool  `json:"removed,omitempty"`
}

// checkUses returns the names of tools and groups in the form in which they are stored.
func (s *Schedule) checkUses(names []string) ([]string, error) {
	var uses []string
	for _, name := range names {
		name = oneLine(name)
		if name == "" || slices.Contains(uses, name) {
			continue
		}
		if s.cfg.IsTool != nil && !s.cfg.IsTool(name) {
			return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'uses' names '%s', which is neither a tool nor a group.", wording.OneLine(name, maxName))
		}
		uses = append(uses, name)
	}
	if len(uses) > maxUses {
		return nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'uses' has %d names, at most %d. Name groups instead of their tools.", len(uses), maxUses)
	}
	return uses, nil
}

// silentUses returns what a run may use and then say nothing: hosts, tools and groups.
func (s *Schedule) silentUses(t *Task) []string {
	return slices.Concat(s.cfg.Hosts(t.Prompt), t.Uses)
}

// announceNew announces a new task.
func (s *Schedule) announceNew(t *Task) toolgroups.Announcement {
	return toolgroups.Announcement{
		Text: fmt.Sprintf("Scheduled “%s”: %s%s.%s", t.Name, t.Plan, s.describeUses(t), t.describePrompt()),
		Undo: toolgroups.UndoData(undoData{ID: t.ID}), Label: toolgroups.LabelCancel, For: cancelTime,
	}
}

// describePrompt returns a sentence with the beginning of the prompt, which others than the person may have worded.
func (t *Task) describePrompt() string {
	return " It says: “" + wording.OneLine(t.Prompt, maxShownPrompt) + "”"
}

// describeUses returns the end of a sentence that says what a run may use and then say nothing.
func (s *Schedule) describeUses(t *Task) string {
	uses := s.silentUses(t)
	if len(uses) == 0 || t.Plan.Kind == OneTime {
		return ""
	}
	shown := strings.Join(uses[:min(len(uses), maxShownUses)], ", ")
	if more := len(uses) - maxShownUses; more > 0 {
		shown += fmt.Sprintf(" and %d more", more)
	}
	return "; it may use " + shown + " without telling"
}

// announceChange announces a change of a task.
func announceChange(before Task, text string) toolgroups.Announcement {
	before.History, before.Claimed = nil, nil
	return toolgroups.Announcement{Text: text, Undo: toolgroups.UndoData(undoData{ID: before.ID, Before: &before}), Quotes: []string{before.User}}
}

// announceRemoval announces the removal of a task.
func announceRemoval(t Task) toolgroups.Announcement {
	t.History, t.Claimed = nil, nil
	return toolgroups.Announcement{
		Text: fmt.Sprintf("I removed the schedule “%s” (%s).", t.Name, t.Plan), Undo: toolgroups.UndoData(undoData{ID: t.ID, Before: &t, Removed: true}), Quotes: []string{t.User},
	}
}

// describeChange describes an update for users.
func (s *Schedule) describeChange(before, after Task, changed []string) string {
	if len(changed) == 1 && before.Enabled != after.Enabled {
		if after.Enabled {
			return fmt.Sprintf("I switched the schedule “%s” on: %s%s.", after.Name, after.Plan, s.describeUses(&after))
		}
		return fmt.Sprintf("I switched the schedule “%s” off.", after.Name)
	}
	text := fmt.Sprintf("I changed the schedule “%s” (%s). Now: %s%s.", before.Name, strings.Join(changed, ", "), after.Plan, s.describeUses(&after))
	if before.Prompt != after.Prompt {
		text += after.describePrompt()
	}
	return text
}

// checkMayChange refuses a user who has not made a task and is no administrator, in a shared chat.
func (s *Schedule) checkMayChange(scope toolgroups.Scope, t *Task) error {
	if scope.Direct || scope.User == t.User || scope.Role >= toolgroups.RoleAdmin {
		return nil
	}
	return toolgroups.Errorf(toolgroups.CodeDenied, "“%s” is a schedule of %s: only they or an administrator can change, run or remove it.",
		wording.OneLine(t.Name, maxName/2), s.nameOf(t.User))
}

// nameOf returns the name of a user for people.
func (s *Schedule) nameOf(user string) string {
	if s.cfg.NameOf != nil {
		if name := s.cfg.NameOf(user); name != "" {
			return name
		}
	}
	return cmp.Or(user, "another person")
}

// undo undoes what an announcement says: it removes a task, or puts it back as it was.
func (s *Schedule) undo(ctx context.Context, scope toolgroups.Scope, data json.RawMessage) error {
	var u undoData
	if err := json.Unmarshal(data, &u); err != nil {
		return fmt.Errorf("undo a change of a task: %w", err)
	}
	now, zone := s.cfg.Now(), s.cfg.Location()
	_, err := s.modifyTask(ctx, scope.Owner, u.ID, func(t *Task) error {
		if err := s.checkMayChange(scope, t); err != nil {
			return err
		}
		if u.Before == nil {
			return errRemoved
		}
		changed := *t
		t.Name, t.Prompt, t.Uses, t.Outside, t.User = u.Before.Name, u.Before.Prompt, u.Before.Uses, u.Before.Outside, u.Before.User
		t.Plan, t.Enabled = u.Before.Plan, u.Before.Enabled
		return t.replan(changed, now, zone)
	})
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	switch {
	case u.Before == nil:
		return nil
	case !u.Removed:
		return toolgroups.Errorf(codeNotFound, "This schedule is gone.")
	}
	return s.putBack(ctx, scope, *u.Before)
}

// putBack stores a removed task again.
func (s *Schedule) putBack(ctx context.Context, scope toolgroups.Scope, t Task) error {
	if err := s.checkMayChange(scope, &t); err != nil {
		return err
	}
	tasks, err := s.Tasks(ctx, scope.Owner)
	if err != nil {
		return err
	}
	if len(tasks) >= s.cfg.MaxTasks {
		return toolgroups.Errorf(codeCreationFailed, "There are %d schedules already, which is the limit. Remove another one first.", len(tasks))
	}
	if t.Owner != scope.Owner { // the chat has moved
		t.Owner, t.Chat = scope.Owner, scope.Chat
	}
	t.Due = time.Time{}
	if t.Enabled {
		t.Due = t.next(s.cfg.Now(), s.cfg.Location())
	}
	if err := s.writeTask(ctx, t, storage.Absent, time.Time{}); !errors.Is(err, storage.ErrConflict) {
		return err
	}
	return nil // another press has put it back
}
