package schedule

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// ErrKnown is the reason why [Schedule.Import] leaves out a task whose id is taken.
var ErrKnown = errors.New("is there already")

// Import stores tasks from elsewhere, paused, under their ids. Pages may have worded them, so they count as words of
// others. For each task it returns nil, or the reason
// why the task was left out. If write is false, it stores nothing and only returns the reasons.
func (s *Schedule) Import(ctx context.Context, tasks []Task, write bool) (reasons []error, err error) {
	reasons = make([]error, len(tasks))
	now, counts := s.cfg.Now(), map[string]int{}
	for i, t := range tasks {
		present, err := s.Tasks(ctx, t.Owner)
		if err != nil {
			return nil, err
		}
		if reasons[i], err = s.importTask(ctx, t, now, len(present)+counts[t.Owner], write); err != nil {
			return nil, err
		}
		if reasons[i] == nil && !write {
			counts[t.Owner]++
		}
	}
	return reasons, nil
}

// importTask stores one task unless there is a reason against it.
func (s *Schedule) importTask(ctx context.Context, t Task, now time.Time, present int, write bool) (reason, err error) {
	t.Name, t.Prompt, t.Plan = clipName(oneLine(t.Name)), strings.TrimSpace(t.Prompt), t.Plan.tidy()
	t.Outside, t.Enabled, t.Created, t.Due, t.Claimed, t.History = true, false, now, time.Time{}, nil, nil
	if t.Plan.Kind == Interval {
		t.Plan.From = anchor(now)
	}
	t.startPlan(now)
	switch _, _, err := s.readTask(ctx, t.Owner, t.ID); {
	case err == nil:
		return ErrKnown, nil
	case !errors.Is(err, storage.ErrNotFound):
		return nil, err
	}
	if err := t.Plan.Check(); err != nil {
		return err, nil
	}
	if fault, ok := errors.AsType[*toolgroups.Error](t.checkTexts(codeCreationFailed)); ok {
		return errors.New(strings.TrimSuffix(fault.Message, ".")), nil
	}
	if t.Plan.Next(now, s.cfg.Location(), "").IsZero() {
		return errors.New("its time has passed"), nil
	}
	if present >= s.cfg.MaxTasks {
		return fmt.Errorf("there are %d tasks already, which is the limit", present), nil
	}
	if !write {
		return nil, nil
	}
	return nil, s.writeTask(ctx, t, storage.Absent, time.Time{})
}

// clipName shortens a name to the longest possible one.
func clipName(name string) string {
	if runes := []rune(name); len(runes) > maxName {
		return strings.TrimSpace(string(runes[:maxName-1])) + "…"
	}
	return name
}
