package schedule

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Error codes of these tools.
const (
	codeCreationFailed = "creation_failed"
	codeUpdateFailed   = "update_failed"
	codeRunFailed      = "run_failed"
	codeNotFound       = "not_found"
)

// Bounds of a task's texts, in characters.
const (
	maxName   = 100
	maxPrompt = 8000
)

// maxQueuedTime is how long a requested run keeps another one from being queued.
const maxQueuedTime = time.Hour

// timeFormat is the format of times in results.
const timeFormat = "2006-01-02 15:04"

type createInput struct {
	Name         string   `json:"name"`
	Prompt       string   `json:"prompt"`
	Kind         Kind     `json:"schedule_type"`
	Hour         *int     `json:"hour"`
	Minute       *int     `json:"minute"`
	DayOfWeek    string   `json:"day_of_week"`
	Date         string   `json:"date"`
	Cron         string   `json:"cron"`
	EveryMinutes int      `json:"every_minutes"`
	Zone         string   `json:"time_zone"`
	Uses         []string `json:"uses"`
}

// newPlan makes the plan that a call asks for.
func (in createInput) newPlan(now time.Time) (Plan, error) {
	p := Plan{
		Kind: in.Kind, Weekday: in.DayOfWeek, Date: in.Date,
		Expression: oneLine(in.Cron), EveryMinutes: in.EveryMinutes, From: anchor(now), Zone: strings.TrimSpace(in.Zone),
	}
	toolgroups.Assign(&p.Hour, in.Hour)
	toolgroups.Assign(&p.Minute, in.Minute)
	p = p.tidy()
	err := p.Check()
	if err == nil {
		err = checkTimeOfDay(p.Kind, in.Hour, in.Minute)
	}
	if err != nil {
		return p, toolgroups.OwnErrorf(toolgroups.CodeInvalid, "%s.", err)
	}
	return p, nil
}

// checkTimeOfDay refuses a plan that needs a time of day and has none.
func checkTimeOfDay(kind Kind, hour, minute *int) error {
	if kind.hasTimeOfDay() && (hour == nil || minute == nil) {
		return fmt.Errorf("a %s task needs 'hour' and 'minute'", kind)
	}
	return nil
}

// anchor returns the start of an interval that begins now, rounded down to a minute.
func anchor(now time.Time) int64 { return now.Truncate(time.Minute).Unix() }

func (s *Schedule) create(ctx context.Context, call toolgroups.Call, in createInput) (toolgroups.Result, error) {
	if err := refuseUnasked(call); err != nil {
		return toolgroups.Result{}, err
	}
	now, zone := s.cfg.Now(), s.cfg.Location()
	t := Task{
		ID: newID(), Owner: call.Owner, Chat: call.Chat, User: call.User, Direct: call.Direct,
		Name: oneLine(in.Name), Prompt: strings.TrimSpace(in.Prompt), Enabled: true, Version: newID(), Created: now, Outside: call.HoldsOthers,
	}
	var err error
	if t.Plan, err = in.newPlan(now); err != nil {
		return toolgroups.Result{}, err
	}
	personal := s.cfg.ZoneOf(ctx, call.Scope)
	if t.Plan.Zone == "" && personal != zone.String() && t.Plan.Kind != Interval {
		t.Plan.Zone = personal
	}
	t.startPlan(now)
	if err := t.checkTexts(codeCreationFailed); err != nil {
		return toolgroups.Result{}, err
	}
	if t.Uses, t.UsesOf, err = s.checkUses(in.Uses); err != nil {
		return toolgroups.Result{}, err
	}
	if t.Due = t.Plan.Next(now, zone, ""); t.Due.IsZero() {
		return toolgroups.Result{}, toolgroups.OwnErrorf(codeCreationFailed, "%s", pastMessage(t.Plan, now, zone))
	}
	tasks, err := s.Tasks(ctx, call.Owner)
	if err != nil {
		return toolgroups.Result{}, err
	}
	removed, err := s.makeRoom(ctx, call.Scope, tasks, zone)
	if err != nil {
		return toolgroups.Result{}, err
	}
	inZone := ""
	if t.Plan.Zone == "" && t.Plan.Kind != Interval && !slices.ContainsFunc(tasks, func(old Task) bool { return old.User == call.User }) {
		inZone = describeZone(zoneName(t.Due, zone), personal == "")
	}
	if err := s.writeTask(ctx, t, storage.Absent, time.Time{}); err != nil {
		return toolgroups.Result{}, err
	}
	res := toolgroups.Result{
		Text:      fmt.Sprintf("Scheduled '%s' (id %s): %s. %s", t.Name, t.ID, t.Plan, t.describeNextRun(zone)),
		Announced: []toolgroups.Announcement{s.announceNew(call.Scope, &t, inZone)},
	}
	if removed != nil {
		res.Text += fmt.Sprintf(" There were %d tasks, which is the limit, so the oldest one-time task that has run was deleted: '%s'.", s.cfg.MaxTasks, removed.Name)
		res.Announced = append([]toolgroups.Announcement{announceRemoval(call.Scope, *removed)}, res.Announced...)
		res.Origin = toolgroups.OriginComputed // it has the name that another call has given
	}
	return res, nil
}

// makeRoom ensures that the scope's owner can have another task beside those that they have. At the limit it deletes the
// oldest one-time task that has run and that the user may change, or else returns an error. It returns the deleted task,
// if any.
func (s *Schedule) makeRoom(ctx context.Context, scope toolgroups.Scope, tasks []Task, zone *time.Location) (*Task, error) {
	if len(tasks) < s.cfg.MaxTasks {
		return nil, nil
	}
	for _, old := range tasks {
		deleted := false
		removed, err := s.modifyTask(ctx, scope.Owner, old.ID, func(t *Task) error {
			if deleted = t.isOver(zone) && s.checkMayChange(scope, t) == nil; deleted {
				return errRemoved
			}
			return storage.ErrUnchanged
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return nil, err
		}
		if deleted {
			return &removed, nil
		}
	}
	return nil, toolgroups.Errorf(codeCreationFailed,
		"There are %d scheduled tasks already, which is the limit. Delete one that is not needed any more first.", len(tasks))
}

// isOver reports whether a one-time task has run at its moment, and does not run again as it is. One that
// was disabled before its moment has not, and may still get a new date.
func (t *Task) isOver(zone *time.Location) bool {
	e := t.onlyRun(zone)
	return !t.Enabled && t.Claimed == nil && e != nil && e.State != queued
}

// onlyRun returns the run of a one-time task at its moment; nil if there was none, or for other tasks.
func (t *Task) onlyRun(zone *time.Location) *Entry {
	moment := t.Plan.oneTimeMoment(t.Plan.zoneOr(zone))
	i := slices.IndexFunc(t.History, func(e Entry) bool { return e.Due.Equal(moment) })
	if t.Plan.Kind != OneTime || i < 0 {
		return nil
	}
	return &t.History[i]
}

func newID() string { return strings.ToLower(rand.Text()[:10]) }

// refuseUnasked refuses a call from a turn that no user has begun, so that tasks cannot create tasks.
func refuseUnasked(call toolgroups.Call) error {
	if !call.Unasked {
		return nil
	}
	return toolgroups.Errorf(toolgroups.CodeDenied,
		"Only a message of a user can create, start or change scheduled tasks; without one you can list, disable and delete them. Tell the user what you would have scheduled.")
}

func (t *Task) checkTexts(code string) error {
	for _, text := range []struct {
		name, value string
		limit       int
	}{{"name", t.Name, maxName}, {"prompt", t.Prompt, maxPrompt}} {
		if text.value == "" {
			return toolgroups.OwnErrorf(code, "'%s' is blank.", text.name)
		}
		if n := utf8.RuneCountInString(text.value); n > text.limit {
			return toolgroups.OwnErrorf(code, "'%s' has %d characters, at most %d.", text.name, n, text.limit)
		}
	}
	return nil
}

func pastMessage(p Plan, now time.Time, zone *time.Location) string {
	zone = p.zoneOr(zone)
	return fmt.Sprintf("%02d:%02d on %s is not in the future: it is %s (%s) now.",
		p.Hour, p.Minute, p.Date, now.In(zone).Format(timeFormat), zoneName(now, zone))
}

// describeNextRun says when a task runs next, for users and programs.
func (t *Task) describeNextRun(zone *time.Location) string {
	if t.Due.IsZero() {
		return "It is disabled and has no next run."
	}
	zone = t.Plan.zoneOr(zone)
	return fmt.Sprintf("Next run: %s (%s), epoch milliseconds %d.",
		t.Due.In(zone).Format(timeFormat), zoneName(t.Due, zone), t.Due.UnixMilli())
}

func zoneName(at time.Time, zone *time.Location) string {
	if zone == time.Local {
		return at.In(zone).Format("MST")
	}
	return zone.String()
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// tidy drops the fields that a plan of this kind does not use.
func (p Plan) tidy() Plan {
	if p.Kind != Weekly {
		p.Weekday = ""
	}
	if p.Kind != OneTime {
		p.Date = ""
	}
	if p.Kind != Cron {
		p.Expression = ""
	}
	if p.Kind != Interval {
		p.EveryMinutes, p.From = 0, 0
	}
	if !p.Kind.hasTimeOfDay() {
		p.Hour, p.Minute = 0, 0
	}
	return p
}

func (s *Schedule) list(ctx context.Context, call toolgroups.Call, _ struct{}) (toolgroups.Result, error) {
	tasks, err := s.Tasks(ctx, call.Owner)
	if err != nil {
		return toolgroups.Result{}, err
	}
	if len(tasks) == 0 {
		return toolgroups.TextResult("There are no scheduled tasks.")
	}
	now, zone := s.cfg.Now(), s.cfg.Location()
	var text strings.Builder
	fmt.Fprintf(&text, "Scheduled tasks: %d. Times are those of %s, where it is %s.\n", len(tasks), zoneName(now, zone), now.In(zone).Format(timeFormat))
	for n, t := range tasks {
		next, enabled := "None", "no"
		if t.Enabled {
			enabled = "yes"
		}
		if !t.Due.IsZero() {
			next = t.Due.In(t.Plan.zoneOr(zone)).Format(timeFormat)
		}
		fmt.Fprintf(&text, "%d. %s\n   id: %s\n   schedule: %s\n   enabled: %s\n   last run: %s\n   next run: %s\n",
			n+1, t.Name, t.ID, t.Plan, enabled, t.describeLastRun(zone), next)
		if names := s.namesOfSilentUses(&t); names != "" {
			fmt.Fprintf(&text, "   may use without telling: %s\n", names)
		}
		if !call.Direct {
			fmt.Fprintf(&text, "   made by: %s\n", s.nameOf(t.User))
		}
	}
	return toolgroups.Result{Text: text.String()}, nil
}

// describeLastRun says when a task ran last, with the outcome.
func (t *Task) describeLastRun(zone *time.Location) string {
	e := t.lastEntry()
	if e == nil {
		return "Never"
	}
	text := e.Began.In(t.Plan.zoneOr(zone)).Format(timeFormat) + " " + string(e.State)
	if e.Fault != "" {
		text += ": " + e.Fault
	}
	return text
}

type idInput struct {
	TaskID string `json:"task_id"`
}

// errQueued means that a requested run has not ended yet.
var errQueued = errors.New("schedule: queued already")

func (s *Schedule) runNow(ctx context.Context, call toolgroups.Call, in idInput) (toolgroups.Result, error) {
	if err := refuseUnasked(call); err != nil {
		return toolgroups.Result{}, err
	}
	var run Run
	t, err := s.modifyOwnTask(ctx, call.Scope, in.TaskID, codeRunFailed, func(t *Task) error {
		now := s.cfg.Now()
		for _, e := range t.History {
			if e.Manual && e.State == queued && now.Sub(e.Began) < maxQueuedTime {
				return errQueued
			}
		}
		run = t.newRun("now-" + newID())
		t.History = append(t.History, Entry{Key: run.Key, State: queued, Manual: true, Due: now, Began: now})
		return nil
	})
	if errors.Is(err, errQueued) {
		return toolgroups.TextResult("'%s' is queued or running already; its answer will come by itself.", t.Name)
	}
	if err != nil {
		return toolgroups.Result{}, err
	}
	if err := s.cfg.Submit(ctx, run); err != nil {
		s.cfg.Logger.Error("cannot submit a run", "run", run.Key, "err", err)
		undo := context.WithoutCancel(ctx)
		if err := s.RecordOutcome(undo, Outcome{Owner: t.Owner, Key: run.Key, Fault: "it could not be started"}); err != nil {
			s.cfg.Logger.Error("cannot record the outcome of a run", "run", run.Key, "err", err)
		}
		if errors.Is(err, ErrPaused) {
			return toolgroups.Result{}, toolgroups.Errorf(codeRunFailed, "'%s' was not started: the unattended runs of its maker are used up for today, and a card lets them go on.", t.Name)
		}
		return toolgroups.Result{}, toolgroups.Errorf(codeRunFailed, "'%s' could not be started. Try again in a minute.", t.Name)
	}
	return toolgroups.TextResult("'%s' is queued and runs in the background; its answer will come to the chat of the task. Its schedule is unchanged.", t.Name)
}

// modifyOwnTask changes a task of the scope's owner on behalf of its user.
func (s *Schedule) modifyOwnTask(ctx context.Context, scope toolgroups.Scope, id, code string, f func(*Task) error) (Task, error) {
	if err := checkID(id); err != nil {
		return Task{}, err
	}
	t, err := s.modifyTask(ctx, scope.Owner, id, func(t *Task) error {
		if err := s.checkMayChange(scope, t); err != nil {
			return err
		}
		return f(t)
	})
	if errors.Is(err, storage.ErrNotFound) {
		return t, toolgroups.Errorf(code, "There is no scheduled task with the id '%s'. list_scheduled_tasks shows the ids.", id)
	}
	return t, err
}

func checkID(id string) error {
	switch {
	case strings.TrimSpace(id) == "":
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'task_id' is blank. list_scheduled_tasks shows the ids.")
	case len(id) > maxName || strings.Contains(id, "/"):
		return toolgroups.Errorf(toolgroups.CodeInvalid, "'task_id' is no id of a task. list_scheduled_tasks shows the ids.")
	}
	return nil
}

func (s *Schedule) remove(ctx context.Context, call toolgroups.Call, in idInput) (toolgroups.Result, error) {
	t, err := s.modifyOwnTask(ctx, call.Scope, in.TaskID, codeNotFound, func(*Task) error { return errRemoved })
	if err != nil {
		return toolgroups.Result{}, err
	}
	return toolgroups.Result{
		Text:      fmt.Sprintf("Deleted '%s' (id %s). It will not run again.", t.Name, t.ID),
		Announced: []toolgroups.Announcement{announceRemoval(call.Scope, t)},
	}, nil
}
