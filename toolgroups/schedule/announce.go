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
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

const (
	// maxUses bounds the tools and groups that a task names, which its line shows.
	maxUses = 8
	// maxHosts bounds the hosts that a line shows besides, maxHost each, in characters.
	maxHosts = 8
	maxHost  = 40
	// maxShownName, maxFormerName and maxShownPrompt bound what a line shows of a name, of one that is replaced, and of a
	// prompt, in characters.
	maxShownName   = maxName
	maxFormerName  = 25
	maxShownPrompt = 160
)

// cancelTime is how long the line about a new task can cancel it.
const cancelTime = 7 * 24 * time.Hour

// undoData is the data by which an announcement is undone.
type undoData struct {
	ID string `json:"id"`
	// Before is the task before the change; nil undoes its creation. Removed says that the change removed it.
	Before  *Task `json:"before,omitempty"`
	Removed bool  `json:"removed,omitempty"`
	// After is the version that the change has left, or removed. It is empty in [Run.StopData], and in
	// announcements of earlier versions, whose undo does not look for newer changes.
	After string `json:"after,omitempty"`
}

// checkUses returns the names of tools and groups in the form in which they are stored, and the servers of those that have
// one.
func (s *Schedule) checkUses(names []string) (uses []string, of map[string]string, err error) {
	of = map[string]string{}
	for _, name := range names {
		name = oneLine(name)
		if name == "" || slices.Contains(uses, name) {
			continue
		}
		server, known := s.identify(name)
		if !known {
			return nil, nil, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "'uses' names '%s', which is neither a tool nor a group.", wording.OneLine(name, maxName))
		}
		if uses = append(uses, name); server != "" {
			of[name] = server
		}
	}
	if len(uses) > maxUses {
		return nil, nil, toolgroups.Errorf(toolgroups.CodeInvalid, "'uses' has %d names, at most %d. Name groups instead of their tools.", len(uses), maxUses)
	}
	return uses, of, nil
}

func (s *Schedule) identify(name string) (server string, known bool) {
	if s.cfg.Identify == nil {
		return "", true
	}
	return s.cfg.Identify(name)
}

// silentUses returns what a run may use and then say nothing, which is what its line shows: tools and groups, and
// hosts of the addresses in its prompt. A name that another server has taken since is none. A one-time task always says something: somebody waits for it.
func (s *Schedule) silentUses(t *Task) (uses, hosts []string) {
	if t.Plan.Kind == OneTime {
		return nil, nil
	}
	for _, host := range s.cfg.Hosts(t.Prompt) {
		if utf8.RuneCountInString(wording.RevealHost(host)) <= maxHost && len(hosts) < maxHosts {
			hosts = append(hosts, host)
		}
	}
	for _, name := range t.Uses[:min(len(t.Uses), maxUses)] {
		of, named := t.UsesOf[name]
		if server, known := s.identify(name); !named || !known || server == of {
			uses = append(uses, name)
		}
	}
	return uses, hosts
}

// namesOfSilentUses returns what silentUses returns, for people.
func (s *Schedule) namesOfSilentUses(t *Task) string {
	uses, hosts := s.silentUses(t)
	names := slices.Clone(uses)
	for _, host := range hosts {
		names = append(names, wording.RevealHost(host))
	}
	return strings.Join(names, ", ")
}

// announceNew announces a new task. inZone is what describeZone returns, if people need to be told.
func (s *Schedule) announceNew(scope toolgroups.Scope, t *Task, inZone string) toolgroups.Announcement {
	shown := t.masked(scope)
	return toolgroups.Announcement{
		Text: fmt.Sprintf("Scheduled %s: %s%s%s.%s", quoteName(&shown), t.Plan, inZone, s.describeUses(t), shown.describePrompt()),
		Undo: toolgroups.UndoData(undoData{ID: t.ID, After: t.Version}), Label: toolgroups.LabelCancel, For: cancelTime,
	}
}

// describeZone returns what follows the plan of a user's first task, which has the bot's zone: assumed if the bot does
// not know where they live. Later tasks show only a zone that differs.
func describeZone(zone string, assumed bool) string {
	if assumed {
		return " (" + zone + "; if you live in another time zone, tell me your city)"
	}
	return " (" + zone + ")"
}

// masked returns a task for a line about it, which shows the beginnings of its texts. The hosts that a run may ask are those
// of its prompt as it is.
func (t *Task) masked(scope toolgroups.Scope) Task {
	out := *t
	out.Name, out.Prompt = scope.MaskedLine(t.Name), scope.MaskedLine(t.Prompt)
	return out
}

func quoteName(t *Task) string { return wording.Quote(t.Name, maxShownName) }

// describePrompt returns a sentence with the beginning of the prompt, which others than the person may have worded.
func (t *Task) describePrompt() string {
	return " It says: " + wording.Quote(t.Prompt, maxShownPrompt)
}

// switchesOn returns the id of the task that a call switches on, or runs; false for other calls. Arguments that the tool
// does not have are none to it either.
func switchesOn(call toolgroups.Call) (id string, ok bool) {
	var in struct {
		TaskID  string          `json:"task_id"`
		Enabled json.RawMessage `json:"enabled"`
	}
	ok = json.Unmarshal(call.Arguments, &in) == nil && checkID(in.TaskID) == nil && (call.Name == runTool || string(in.Enabled) == "true")
	return in.TaskID, ok
}

// exceedsLine reports whether a line would not show all of a prompt, or of the name, which heads each answer. A task that is
// switched on and may hold words of others, such as one from an import, is one that nobody may have been shown; a run of it
// has no line.
func (s *Schedule) exceedsLine(call toolgroups.Call) bool {
	if id, ok := switchesOn(call); ok {
		ctx, cancel := context.WithTimeout(context.Background(), toolgroups.DefaultTimeout)
		defer cancel()
		t, _, err := s.readTask(ctx, call.Owner, id)
		isHidden := call.Name == runTool || !wording.QuotesWhole(t.Prompt, maxShownPrompt)
		if err != nil && !errors.Is(err, storage.ErrNotFound) || err == nil && !t.Enabled && t.Outside && isHidden {
			return true // a task that cannot be read is asked about, too
		}
	}
	type args struct {
		Name   string `json:"name"`
		Prompt string `json:"prompt"`
	}
	return toolgroups.ExceedsLine(call, func(in args) bool {
		return wording.QuotesWhole(in.Prompt, maxShownPrompt) && wording.QuotesWhole(in.Name, maxShownName)
	})
}

// describe names the task of a call, whose arguments have its id alone.
func (s *Schedule) describe(ctx context.Context, call toolgroups.Call) (string, error) {
	var in idInput
	if json.Unmarshal(call.Arguments, &in) != nil || checkID(in.TaskID) != nil {
		return "", nil // a new task, or none
	}
	t, _, err := s.readTask(ctx, call.Owner, in.TaskID)
	if errors.Is(err, storage.ErrNotFound) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	by := ""
	if !call.Direct {
		by = ", made by " + s.nameOf(t.User)
	}
	says := t.describePrompt()
	if _, on := switchesOn(call); on && !t.Enabled {
		says = " It says: " + wording.Quote(t.Prompt, maxPrompt)
	}
	return fmt.Sprintf("The schedule: %s (%s%s).%s", quoteName(&t), t.Plan, by, says), nil
}

// describeUses returns the end of a sentence that says what a run may use and then say nothing.
func (s *Schedule) describeUses(t *Task) string {
	names := s.namesOfSilentUses(t)
	if names == "" {
		return ""
	}
	return "; it may use " + names + " without telling"
}

// announceChange announces a change of a task, with the version that it has left.
func announceChange(before Task, after, text string) toolgroups.Announcement {
	before.History, before.Claimed = nil, nil
	return toolgroups.Announcement{Text: text, Undo: toolgroups.UndoData(undoData{ID: before.ID, Before: &before, After: after}), Quotes: []string{before.User}}
}

// announceRemoval announces the removal of a task.
func announceRemoval(scope toolgroups.Scope, t Task) toolgroups.Announcement {
	t.History, t.Claimed = nil, nil
	shown := t.masked(scope)
	return toolgroups.Announcement{
		Text: fmt.Sprintf("I removed the schedule %s (%s).", quoteName(&shown), t.Plan), Undo: toolgroups.UndoData(undoData{ID: t.ID, Before: &t, Removed: true, After: t.Version}), Quotes: []string{t.User},
	}
}

// describeChange describes an update for users.
func (s *Schedule) describeChange(scope toolgroups.Scope, before, after Task, changed []string) string {
	uses := s.describeUses(&after)
	before, after = before.masked(scope), after.masked(scope)
	if len(changed) == 1 && before.Enabled != after.Enabled {
		if after.Enabled {
			return fmt.Sprintf("I switched the schedule %s on: %s%s.", quoteName(&after), after.Plan, uses) + after.describePrompt()
		}
		return fmt.Sprintf("I switched the schedule %s off.", quoteName(&after))
	}
	former, now := quoteName(&before), ""
	if before.Name != after.Name {
		former, now = wording.Quote(before.Name, maxFormerName), quoteName(&after)+", "
	}
	text := fmt.Sprintf("I changed the schedule %s (%s). Now: %s%s%s.", former, strings.Join(changed, ", "), now, after.Plan, uses)
	if before.Prompt != after.Prompt || after.Enabled && !before.Enabled {
		text += after.describePrompt()
	}
	return text
}

// checkMayChange refuses a user who has not made a task and is no administrator, in a shared chat.
func (s *Schedule) checkMayChange(scope toolgroups.Scope, t *Task) error {
	if scope.Direct || scope.User == t.User || scope.Role >= toolgroups.RoleAdmin {
		return nil
	}
	return toolgroups.Errorf(toolgroups.CodeDenied, "%s is a schedule of %s: only they or an administrator can change, run or remove it.",
		quoteName(t), s.nameOf(t.User))
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
		switch {
		case u.Before == nil:
			return errRemoved
		case u.After == "":
		case t.Version == u.Before.Version:
			return storage.ErrUnchanged // an earlier attempt has undone it
		case t.Version != u.After:
			return toolgroups.ErrChanged
		}
		t.unclaimOnlyRun()
		changed := *t
		t.Name, t.Prompt, t.Outside, t.User = u.Before.Name, u.Before.Prompt, u.Before.Outside, u.Before.User
		t.Uses, t.UsesOf = u.Before.Uses, u.Before.UsesOf
		t.Plan, t.Enabled, t.Version = u.Before.Plan, u.Before.Enabled, u.Before.Version
		if t.onlyRun(zone) != nil && !changed.Enabled {
			t.Enabled = false // it was its run that disabled it, not the change
		}
		return t.replan(changed, now, zone)
	})
	if !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	switch {
	case u.Before == nil && u.After == "":
		return nil
	case !u.Removed: // the undo of its removal would bring it back
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
