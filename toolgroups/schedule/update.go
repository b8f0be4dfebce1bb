package schedule

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"oneclaw/toolgroups"
)

type updateInput struct {
	TaskID    string  `json:"task_id"`
	Name      *string `json:"name"`
	Prompt    *string `json:"prompt"`
	Kind      *Kind   `json:"schedule_type"`
	Hour      *int    `json:"hour"`
	Minute    *int    `json:"minute"`
	DayOfWeek *string `json:"day_of_week"`
	Date      *string `json:"date"`
	Enabled   *bool   `json:"enabled"`
}

// disables reports whether an update does nothing but turn the task off.
func (in updateInput) disables() bool {
	off := in.Enabled != nil && !*in.Enabled
	in.TaskID, in.Enabled = "", nil
	return off && in == updateInput{}
}

func (s *Schedule) update(ctx context.Context, call toolgroups.Call, in updateInput) (toolgroups.Result, error) {
	if !in.disables() {
		if err := attended(call); err != nil {
			return toolgroups.Result{}, err
		}
	}
	var changed []string
	now, zone := s.cfg.Now(), s.cfg.Location()
	t, err := s.find(ctx, call, in.TaskID, CodeNotFound, func(t *Task) error {
		before := *t
		in.apply(t)
		if changed = differences(before, *t); len(changed) == 0 {
			return errUnchanged
		}
		if err := t.Plan.Check(); err != nil {
			return toolgroups.Errorf(toolgroups.CodeInvalid, "%s.", err)
		}
		if err := t.checkTexts(CodeUpdateFailed); err != nil {
			return err
		}
		if t.Prompt != before.Prompt {
			// What a run may do is what the author of its prompt may do.
			t.User = cmp.Or(call.User, t.User)
		}
		return t.replan(before, now, zone)
	})
	if err != nil {
		return toolgroups.Result{}, err
	}
	if len(changed) == 0 {
		return toolgroups.Text("Nothing to change: '%s' (id %s) is like that already: %s. %s", t.Name, t.ID, t.Plan, t.next(zone))
	}
	return toolgroups.Text("Updated '%s' (id %s): %s. Schedule: %s. %s", t.Name, t.ID, strings.Join(changed, ", "), t.Plan, t.next(zone))
}

func (in updateInput) apply(t *Task) {
	toolgroups.Assign(&t.Plan.Kind, in.Kind)
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

// differences names the fields that an update has changed.
func differences(before, after Task) []string {
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
	value("enabled", before.Enabled, after.Enabled)
	return names
}

// replan sets the next run of a task after an update.
func (t *Task) replan(before Task, now time.Time, zone *time.Location) error {
	if t.Plan != before.Plan {
		t.LastDay = "" // another plan may run once more today
	} else if t.Enabled == before.Enabled {
		return nil
	}
	next := t.Plan.Next(now, zone, t.LastDay)
	if next.IsZero() && t.Plan.Kind == OneTime && (t.Enabled || t.Plan != before.Plan) {
		return toolgroups.Errorf(CodeUpdateFailed, "%s Give a 'date' and time ahead.", past(t.Plan, now, zone))
	}
	t.Due = time.Time{}
	if t.Enabled {
		t.Due = next
	}
	return nil
}
