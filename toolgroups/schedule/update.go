package schedule

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
)

type updateInput struct {
	TaskID       string    `json:"task_id"`
	Name         *string   `json:"name"`
	Prompt       *string   `json:"prompt"`
	Kind         *Kind     `json:"schedule_type"`
	Hour         *int      `json:"hour"`
	Minute       *int      `json:"minute"`
	DayOfWeek    *string   `json:"day_of_week"`
	Date         *string   `json:"date"`
	Cron         *string   `json:"cron"`
	EveryMinutes *int      `json:"every_minutes"`
	Zone         *string   `json:"time_zone"`
	Enabled      *bool     `json:"enabled"`
	Uses         *[]string `json:"uses"`
}

// onlyDisables reports whether an update only disables the task.
func (in updateInput) onlyDisables() bool {
	off := in.Enabled != nil && !*in.Enabled
	in.TaskID, in.Enabled = "", nil
	return off && in == updateInput{}
}

func (s *Schedule) update(ctx context.Context, call toolgroups.Call, in updateInput) (toolgroups.Result, error) {
	if !in.onlyDisables() {
		if err := refuseUnasked(call); err != nil {
			return toolgroups.Result{}, err
		}
	}
	var uses []string
	var usesOf map[string]string
	if in.Uses != nil {
		var err error
		if uses, usesOf, err = s.checkUses(*in.Uses); err != nil {
			return toolgroups.Result{}, err
		}
	}
	var changed []string
	var was Task
	now, zone := s.cfg.Now(), s.cfg.Location()
	dropped := ""
	t, err := s.modifyOwnTask(ctx, call.Scope, in.TaskID, codeNotFound, func(t *Task) error {
		t.unclaimOnlyRun()
		before := *t
		was = before
		if in.apply(t); in.Uses != nil {
			t.Uses, t.UsesOf = uses, usesOf
		}
		if t.Plan.Kind == Interval && t.Plan.EveryMinutes != before.Plan.EveryMinutes {
			t.Plan.From = anchor(now)
		}
		if changed = changedFields(before, *t); len(changed) == 0 {
			return in.checkUnused(t.Plan.Kind)
		}
		err := t.Plan.Check()
		if err == nil && !before.Plan.Kind.hasTimeOfDay() {
			err = checkTimeOfDay(t.Plan.Kind, in.Hour, in.Minute)
		}
		if err != nil {
			return toolgroups.Errorf(toolgroups.CodeInvalid, "%s.", err)
		}
		if err := t.checkTexts(codeUpdateFailed); err != nil {
			return err
		}
		t.setAuthor(before, call)
		t.Version = newID()
		if dropped = ""; t.mayHaveRunThatWaits() {
			dropped = " A run that was due is dropped unless it has begun."
		}
		return t.replan(before, now, zone)
	})
	if err != nil {
		return toolgroups.Result{}, err
	}
	if len(changed) == 0 {
		return toolgroups.TextResult("Nothing to change: '%s' (id %s) is like that already: %s. %s", t.Name, t.ID, t.Plan, t.describeNextRun(zone))
	}
	return toolgroups.Result{
		Text:      fmt.Sprintf("Updated '%s' (id %s): %s. Schedule: %s. %s", t.Name, t.ID, strings.Join(changed, ", "), t.Plan, t.describeNextRun(zone)) + dropped,
		Announced: []toolgroups.Announcement{announceChange(was, t.Version, s.describeChange(call.Scope, was, t, changed)+dropped)},
	}, nil
}

// setAuthor records who has worded the texts of a task that a call has changed.
func (t *Task) setAuthor(before Task, call toolgroups.Call) {
	if t.Prompt != before.Prompt {
		t.User = cmp.Or(call.User, t.User) // a run has the role of its prompt's author
	}
	if t.Prompt != before.Prompt || t.Name != before.Name {
		// What the change leaves of the texts was worded as it was before, and in a shared chat maybe by another.
		left := t.Prompt == before.Prompt || t.Name == before.Name
		t.Outside = call.HoldsOthers || left && (t.Outside || !call.Direct && call.User != before.User)
	}
}

func (in updateInput) apply(t *Task) {
	switch { // a field of only one kind implies the kind
	case in.Kind != nil:
		t.Plan.Kind = *in.Kind
	case in.Cron != nil && *in.Cron != "":
		t.Plan.Kind = Cron
	case in.EveryMinutes != nil && *in.EveryMinutes != 0:
		t.Plan.Kind = Interval
	}
	toolgroups.Assign(&t.Plan.EveryMinutes, in.EveryMinutes)
	if in.Cron != nil {
		t.Plan.Expression = oneLine(*in.Cron)
	}
	if in.Zone != nil {
		t.Plan.Zone = strings.TrimSpace(*in.Zone)
	}
	toolgroups.Assign(&t.Plan.Hour, in.Hour)
	toolgroups.Assign(&t.Plan.Minute, in.Minute)
	toolgroups.Assign(&t.Plan.Weekday, in.DayOfWeek)
	toolgroups.Assign(&t.Plan.Date, in.Date)
	toolgroups.Assign(&t.Enabled, in.Enabled)
	t.Plan = t.Plan.tidy()
	if in.Name != nil {
		t.Name = oneLine(*in.Name)
	}
	if in.Prompt != nil {
		t.Prompt = strings.TrimSpace(*in.Prompt)
	}
}

// checkUnused returns an error for an update that changes nothing because its fields are not those of a
// task of this kind, and storage.ErrUnchanged for any other.
func (in updateInput) checkUnused(kind Kind) error {
	field := ""
	switch {
	case in.Date != nil && *in.Date != "" && kind != OneTime:
		field = "date"
	case in.DayOfWeek != nil && *in.DayOfWeek != "" && kind != Weekly:
		field = "day_of_week"
	case in.Hour != nil && !kind.hasTimeOfDay():
		field = "hour"
	case in.Minute != nil && !kind.hasTimeOfDay():
		field = "minute"
	default:
		return storage.ErrUnchanged
	}
	return toolgroups.Errorf(codeUpdateFailed, "Nothing was changed: a task of the schedule_type %s has no '%s'. For another kind of schedule, give 'schedule_type' with all that it needs.", kind, field)
}

// changedFields returns the names of the fields that an update has changed.
func changedFields(before, after Task) []string {
	var names []string
	text := func(name string, differ bool) {
		if differ {
			names = append(names, name)
		}
	}
	value := func(name string, old, now any) {
		if old != now {
			names = append(names, fmt.Sprintf("%s %v -> %v", name, old, now))
		}
	}
	text("name", before.Name != after.Name)
	text("prompt", before.Prompt != after.Prompt)
	text("schedule_type", before.Plan.Kind != after.Plan.Kind)
	value("hour", before.Plan.Hour, after.Plan.Hour)
	value("minute", before.Plan.Minute, after.Plan.Minute)
	text("day_of_week", before.Plan.Weekday != after.Plan.Weekday)
	text("date", before.Plan.Date != after.Plan.Date)
	text("cron", before.Plan.Expression != after.Plan.Expression)
	value("every_minutes", before.Plan.EveryMinutes, after.Plan.EveryMinutes)
	text("time_zone", before.Plan.Zone != after.Plan.Zone)
	value("enabled", before.Enabled, after.Enabled)
	text("uses", !slices.Equal(before.Uses, after.Uses) || !maps.Equal(before.UsesOf, after.UsesOf))
	return names
}

// replan drops what was to run before an update of a task, and sets its next run.
func (t *Task) replan(before Task, now time.Time, zone *time.Location) error {
	t.dropClaim(now)
	if t.Plan != before.Plan {
		t.LastDay = "" // another plan may run once more today
		t.startPlan(now)
	} else if t.Enabled == before.Enabled {
		return nil
	}
	next := t.next(now, zone)
	if next.IsZero() && t.Plan.Kind == OneTime && (t.Enabled || t.Plan != before.Plan) {
		return toolgroups.Errorf(codeUpdateFailed, "%s Give a 'date' and time ahead.", pastMessage(t.Plan, now, zone))
	}
	t.Due = time.Time{}
	if t.Enabled {
		t.Due = next
	}
	return nil
}
