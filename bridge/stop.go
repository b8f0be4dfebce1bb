package bridge

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"oneclaw/bridge/jobs"
	"oneclaw/bridge/lanes"
	"oneclaw/bridge/sessions"
	"oneclaw/storage"
)

const stopName = "stop"

// stop says what a /stop has ended. It ends what is older once more: the first time may
// have failed, or been in a former life.
func stop(ctx context.Context, b *Bridge, j *jobs.Job, _ string) (string, error) {
	session, err := b.endOlder(ctx, j)
	if err != nil {
		return "", err
	}
	if !j.Cut && j.Dropped == 0 && session.StoppedAt < j.Seq {
		return "There is nothing to stop.", nil
	}
	return strings.TrimSpace("Stopped." + ended(false, j.Dropped)), nil
}

func (b *Bridge) isStop(j *jobs.Job) bool {
	c, _, is := b.commandOf(j)
	return is && c.Name == stopName
}

// stopNow makes a /stop take effect that is on disk and not queued yet: its reply may have
// to wait behind those to other commands.
func (b *Bridge) stopNow(j *jobs.Job) {
	if !b.isStop(j) {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(b.lanes.Work()), jobs.StoreTimeout)
	defer cancel()
	if _, err := b.endOlder(ctx, j); err != nil {
		b.log.Error("a /stop has no effect before its turn", "job", j.Key(), "err", err)
	}
}

// endOlder ends what was accepted before a /stop, and keeps in it what that was.
func (b *Bridge) endOlder(ctx context.Context, j *jobs.Job) (sessions.Session, error) {
	l := b.laneOf(j)
	defer b.lanes.Leave(l)
	// First on disk: a tool may hang on, and a restart must not go on with its turn.
	var session sessions.Session
	for {
		var err error
		if session, err = sessions.Current(ctx, b.store, j.Message.Chat); err != nil {
			return session, err
		}
		if !l.Busy(j.Seq) {
			break
		}
		if session, err = session.Stop(ctx, b.store, j.Seq); err == nil {
			break
		}
		// A /clear may have changed the session meanwhile.
		if !errors.Is(err, storage.ErrConflict) {
			return session, err
		}
	}
	running, waiting := b.lanes.Interrupt(l, j.Seq, sessions.ErrStopped)
	j.Cut, j.Dropped = j.Cut || running, j.Dropped+len(waiting)
	b.settleSoon(l, waiting, jobs.StateStopped)
	return session, nil
}

// settleSoon closes jobs that were taken out of their queue, while the caller goes on.
func (b *Bridge) settleSoon(l *lanes.Lane, jobs []*jobs.Job, state jobs.State) {
	if len(jobs) == 0 {
		return
	}
	if !b.lanes.GoIn(l, func() { b.settleAll(jobs, state) }) {
		b.settleAll(jobs, state)
	}
}

// stopFound makes each /stop take effect that a former run left open, before anything
// else runs: its job was on disk, and what it stops must not begin again.
func (b *Bridge) stopFound(ctx context.Context, open []*jobs.Job) error {
	for _, j := range open {
		if !b.isStop(j) {
			continue
		}
		for _, older := range open {
			if older.Seq >= j.Seq || b.place(older).Lane != b.place(j).Lane || b.kind(older).lasting {
				continue
			}
			session, err := sessions.Current(ctx, b.store, j.Message.Chat)
			if err == nil {
				_, err = session.Stop(ctx, b.store, j.Seq)
			}
			if err != nil {
				return fmt.Errorf("stop what was accepted before %s: %w", j.Key(), err)
			}
			break
		}
	}
	return nil
}
