package schedule

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"oneclaw/internal/rescue"
	"oneclaw/storage"
)

const (
	// maxWait bounds one sleep, and therefore how late a jump of the clock is noticed.
	maxWait = 30 * time.Second
	// checkInterval is how often all tasks are compared with the index.
	checkInterval = time.Hour
	// lateAfter is the delay from which a run says that it is late.
	lateAfter = 5 * time.Minute
	// missedAfter is the delay from which a run of a repeated task is skipped.
	missedAfter = 24 * time.Hour
	// claimGrace is how long a run that another process has claimed is left to that process.
	claimGrace = time.Minute
	// giveUpAfter bounds how long submitting a run is retried.
	giveUpAfter = 24 * time.Hour
)

// ErrRefused is returned by [Config.Submit] for a run that it will never accept.
var ErrRefused = errors.New("schedule: the run is refused")

// ErrPaused is returned by [Config.Submit] for a run that it will accept later, of which it has told the
// user.
var ErrPaused = errors.New("schedule: the run is paused")

// Run submits runs when they are due until ctx ends. It retries errors of the store.
func (s *Schedule) Run(ctx context.Context) error {
	watching, stop := context.WithCancel(ctx)
	wake := make(chan struct{}, 1)
	var watcher sync.WaitGroup
	defer watcher.Wait()
	defer stop()
	changes := s.cfg.Store.Watch(watching, duePrefix)
	watcher.Go(func() {
		rescue.Go(s.cfg.Logger, "watching tasks", func() {
			for {
				for _, err := range changes {
					if err != nil {
						s.cfg.Logger.Warn("cannot watch the tasks for changes, polling instead", "err", err)
						break
					}
					select {
					case wake <- struct{}{}:
					default:
					}
				}
				if !sleep(watching, maxWait, nil) {
					return
				}
				changes = s.cfg.Store.Watch(watching, duePrefix)
			}
		})
	})
	return rescue.Loop(ctx, s.cfg.Logger, "tasks", func(ctx context.Context) error {
		for c := (&scheduler{s: s}); sleep(ctx, c.runDue(ctx), wake); {
		}
		return nil
	})
}

// sleep waits for d, for wake or for the end of ctx. It returns false if ctx has ended.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
	}
	return ctx.Err() == nil
}

// scheduler records when all tasks were last compared with the index, so that the comparison is
// repeated if the clock or the time zone has changed.
type scheduler struct {
	s       *Schedule
	checked time.Time
	lastNow time.Time
	zone    string
}

// runDue submits the due runs and returns the time until the next task is due.
func (c *scheduler) runDue(ctx context.Context) time.Duration {
	now, zone := c.s.cfg.Now().Round(0), c.s.cfg.Location().String()
	if c.checked.IsZero() || now.Before(c.lastNow) || now.Sub(c.checked) >= checkInterval || zone != c.zone {
		if err := c.s.repairIndex(ctx); err != nil {
			c.logError(ctx, err)
		} else {
			c.checked, c.zone = now, zone
		}
	}
	c.lastNow = now
	next, err := c.s.submitDue(ctx)
	if err != nil {
		c.logError(ctx, err)
	}
	if next.IsZero() {
		return maxWait
	}
	return max(0, min(maxWait, next.Sub(c.s.cfg.Now())))
}

func (c *scheduler) logError(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.s.cfg.Logger.Error("cannot read the tasks, trying again", "err", err)
	}
}

// submitDue submits the due runs and returns when the next task is due, or the zero time.
func (s *Schedule) submitDue(ctx context.Context) (time.Time, error) {
	for entry, err := range s.cfg.Store.List(ctx, storage.Range{Prefix: duePrefix}) {
		if err != nil {
			return time.Time{}, fmt.Errorf("list due tasks: %w", err)
		}
		due, owner, id, err := parseDueKey(entry.Key)
		if err == nil && due.After(s.cfg.Now()) {
			return due, nil
		}
		if err == nil {
			err = rescue.Do(func() error { return s.claimAndSubmit(ctx, entry, due, owner, id) })
		}
		if ctx.Err() != nil {
			return time.Time{}, nil
		}
		if errors.Is(err, ErrPaused) {
			s.cfg.Logger.Debug("a run is paused", "key", entry.Key)
		} else if err != nil {
			s.cfg.Logger.Error("cannot run the task now, trying again", "key", entry.Key, "err", err)
		}
	}
	return time.Time{}, nil
}

// claimAndSubmit claims the run of an index entry and submits it.
func (s *Schedule) claimAndSubmit(ctx context.Context, entry storage.Entry, due time.Time, owner, id string) error {
	var claim *Claim
	_, err := s.modifyTask(ctx, owner, id, func(t *Task) (err error) {
		claim, err = t.claim(due, s.cfg.Now(), s.cfg.Location())
		if err == nil && claim != nil {
			claim.Quiet = t.Plan.Kind != OneTime
			claim.Uses, claim.Hosts = s.silentUses(t)
		}
		return err
	})
	switch {
	case errors.Is(err, errClaimed):
		return nil
	case err != nil && !errors.Is(err, storage.ErrNotFound):
		return err
	}
	if err == nil && claim != nil {
		fault := ""
		submit := func() error { return s.cfg.Submit(ctx, claim.Run) }
		err := rescue.Do(submit)
		if isPanic(err) {
			err = rescue.Do(submit)
		}
		if err != nil {
			if !errors.Is(err, ErrRefused) && !isPanic(err) && s.cfg.Now().Sub(claim.At) < giveUpAfter {
				return fmt.Errorf("submit: %w", err)
			}
			s.cfg.Logger.Error("giving up on a run that cannot be submitted", "run", claim.Key, "err", err)
			fault = "it could not be started"
		}
		if err := s.releaseClaim(ctx, owner, id, claim.Key, fault); err != nil {
			return err
		}
	}
	// If another process has written the entry meanwhile, it is still needed.
	err = s.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return fmt.Errorf("remove from the index: %w", err)
	}
	return nil
}

func isPanic(err error) bool {
	_, is := errors.AsType[*rescue.PanicError](err)
	return is
}

// releaseClaim deletes the claim of a run. If fault is not empty, it records the run as failed.
func (s *Schedule) releaseClaim(ctx context.Context, owner, id, key, fault string) error {
	_, err := s.modifyTask(ctx, owner, id, func(t *Task) error {
		if t.Claimed == nil || t.Claimed.Key != key {
			return storage.ErrUnchanged
		}
		t.Claimed = nil
		if e := t.findEntry(key); e != nil && fault != "" {
			e.State, e.Ended, e.Fault = Failed, s.cfg.Now(), fault
		}
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) {
		return nil
	}
	return err
}

var (
	// errEarlierRun means that an earlier run has to be submitted first.
	errEarlierRun = errors.New("schedule: an earlier run has not been submitted yet")
	// errClaimed means that another process is about to submit the run.
	errClaimed = errors.New("schedule: another process has just claimed the run")
)

// claim claims the run for which the task is in the index, and sets the next run. It returns that
// claim, an expired claim of another process, or nil if there is nothing to run.
func (t *Task) claim(index, now time.Time, zone *time.Location) (*Claim, error) {
	switch {
	case t.Claimed != nil && t.Claimed.Index.Equal(index):
		if rest := now.Sub(t.Claimed.At); rest >= 0 && rest < claimGrace {
			return nil, errClaimed
		}
		return t.Claimed, storage.ErrUnchanged
	case !t.Enabled || !t.Due.Equal(index):
		return nil, storage.ErrUnchanged
	case t.Claimed != nil:
		return nil, errEarlierRun
	}
	due, run := t.advance(index, now, zone)
	if !run {
		return nil, nil
	}
	shown := due.In(t.Plan.zoneOr(zone))
	name := shown.Format("20060102T1504")
	if !t.Plan.Kind.hasTimeOfDay() || t.findEntry(t.ID+"."+name) != nil {
		name = due.UTC().Format(dueFormat) // a local clock, or that of another time zone, may show it twice
	}
	if t.Plan.Kind == OneTime && t.Version != "" {
		name += "-" + t.Version // a change may make it due again, see unclaimOnlyRun
	}
	r := t.newRun(name)
	r.Plan = t.Plan.String()
	if now.Sub(due) > lateAfter {
		note := "was due " + shown.Format(timeFormat)
		r.Title += " (" + note + ")"
		r.Prompt += "\n\n[This run is late: it " + note + ".]"
	}
	t.History = append(t.History, Entry{Key: r.Key, State: queued, Due: due, Began: now})
	t.Claimed = &Claim{Run: r, At: now, Index: index}
	return t.Claimed, nil
}

// advance sets the next run of a task. It returns when its current run was due, and whether it runs.
func (t *Task) advance(index, now time.Time, zone *time.Location) (due time.Time, run bool) {
	if t.Plan.Kind == OneTime {
		t.Enabled, t.Due = false, time.Time{}
		return index, true
	}
	due = index
	if last := t.Plan.Last(now, zone); last.After(due) {
		due = last
	}
	day := due.In(t.Plan.zoneOr(zone)).Format(dayFormat)
	run = now.Sub(due) < missedAfter && day != t.LastDay && !t.isBehind(due)
	if !run || due.After(index) {
		t.History = append(t.History, Entry{State: skipped, Due: index})
	}
	switch {
	case run && t.Plan.Kind.hasTimeOfDay():
		t.LastDay = day
	case run:
		t.RanAt = due
	}
	t.Due = t.next(now, zone)
	return due, run
}

// maxClockError is the clock error from which the times recorded by that clock are ignored.
const maxClockError = 48 * time.Hour

// startPlan keeps a new plan from running at moments before it was made if another clock is slow.
func (t *Task) startPlan(now time.Time) {
	t.RanAt = time.Time{}
	if !t.Plan.Kind.hasTimeOfDay() {
		t.RanAt = now.Round(0)
	}
}

// isBehind reports whether a moment is not after the last run, because the clock has been put back
// since then or another process's clock is slow.
func (t *Task) isBehind(at time.Time) bool {
	return !t.RanAt.IsZero() && !at.After(t.RanAt) && t.RanAt.Sub(at) < maxClockError
}

// next returns when an enabled task runs next, or the zero time.
func (t *Task) next(now time.Time, zone *time.Location) time.Time {
	if t.isBehind(now) {
		now = t.RanAt
	}
	return t.Plan.Next(now, zone, t.LastDay)
}

// newRun makes a run of a task.
func (t *Task) newRun(suffix string) Run {
	return Run{
		Key: t.ID + "." + suffix, Title: t.Name, Prompt: t.Prompt, Outside: t.Outside, Version: t.Version,
		Owner: t.Owner, Chat: t.Chat, User: t.User, Direct: t.Direct,
	}
}

// repairIndex ensures that every task is in the index at the time of its plan, because the clock, the
// time zone or its rules may have changed.
func (s *Schedule) repairIndex(ctx context.Context) error {
	for t, err := range s.tasks(ctx, taskPrefix) {
		if err != nil {
			return err
		}
		err := rescue.Do(func() error { return s.repairTaskIndex(ctx, t) })
		if isPanic(err) {
			s.cfg.Logger.Error("cannot plan a task", "task", t.ID, "owner", t.Owner, "err", err)
		} else if err != nil {
			return fmt.Errorf("check task %s: %w", t.ID, err)
		}
	}
	return nil
}

func (s *Schedule) repairTaskIndex(ctx context.Context, t Task) error {
	if !t.expectedDue(s.cfg.Now(), s.cfg.Location()).Equal(t.Due) {
		_, err := s.modifyTask(ctx, t.Owner, t.ID, func(t *Task) error {
			due := t.expectedDue(s.cfg.Now(), s.cfg.Location())
			if due.Equal(t.Due) {
				return storage.ErrUnchanged
			}
			t.Due = due
			return nil
		})
		if errors.Is(err, storage.ErrNotFound) {
			return nil
		}
		return err
	}
	return s.index(ctx, t)
}

// index ensures that a task is in the index at its due time and the time of its claim.
func (s *Schedule) index(ctx context.Context, t Task) error {
	times := []time.Time{t.Due}
	if t.Claimed != nil {
		times = append(times, t.Claimed.Index)
	}
	for _, at := range times {
		if at.IsZero() {
			continue
		}
		_, err := s.cfg.Store.Put(ctx, dueKey(at, t.Owner, t.ID), nil, storage.Absent)
		if err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict it is there
			return fmt.Errorf("add to the index: %w", err)
		}
	}
	return nil
}

// expectedDue returns when a task should be due; a task that is already due stays due.
func (t *Task) expectedDue(now time.Time, zone *time.Location) time.Time {
	switch {
	case !t.Enabled, !t.Due.IsZero() && !t.Due.After(now):
		return t.Due
	case t.Plan.Kind == OneTime:
		if at := t.Plan.oneTimeMoment(t.Plan.zoneOr(zone)); !at.IsZero() {
			return at
		}
		return t.Due
	}
	return t.next(now, zone)
}
