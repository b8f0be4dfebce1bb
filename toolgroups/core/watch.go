package core

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/internal/workspace"
)

const (
	// watchEvery is how often a command is looked at.
	watchEvery = 50 * time.Millisecond
	// countPause is how long the files of a workspace are left alone between two counts,
	// as a multiple of the time that a count takes, and in looks at least.
	countPause = 5
	// growth is how many bytes a workspace may grow by while a command runs that has no
	// room: names take some, and other tools write as well.
	growth = 1 << 20
)

// exceeded is why a command was killed.
type exceeded string

func (e exceeded) Error() string { return string(e) }

// look looks at a command again and again, and returns why it has to end; nil when ctx ends.
func look(ctx context.Context, at func() error) error {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if err := at(); err != nil {
			return err
		}
	}
}

// watchProcesses waits until a command has too many processes. The kernel's own limit
// does not hold for root, which a container's bot may be.
func (c ExecConfig) watchProcesses(ctx context.Context, pid int) error {
	limit := cmp.Or(c.MaxProcesses, defaultProcesses)
	return look(ctx, func() error {
		if descendants(pid, limit) > limit {
			return exceeded("it started too many processes")
		}
		return nil
	})
}

// watchMemory waits until the processes of a command take too much memory together.
func (c ExecConfig) watchMemory(ctx context.Context, pid int) error {
	limit := cmp.Or(c.MaxTotalMemory, DefaultMaxTotalMemory)
	if err := sandbox.WatchMemory(ctx, pid, uint64(limit)); err != nil {
		return exceeded(fmt.Sprintf("its processes took more than the limit of %d MiB of memory", limit>>20))
	}
	return nil
}

// watch waits until a command has written more than there is room for. The disk is
// looked at each time, the files less often if there are many.
func (p *place) watch(ctx context.Context, _ int) error {
	most := int64(0) // that the workspace may hold, where it is full
	if p.full != nil {
		used, err := p.files.Used()
		if err != nil {
			return nil //nolint:nilerr // Files that cannot be counted can still be deleted.
		}
		most = used + growth
	}
	next := time.Now()
	return look(ctx, func() error {
		if spare, err := p.files.Spare(); p.full == nil && (err != nil || spare <= 0) {
			return exceeded(workspace.ErrDiskFull.Error())
		}
		begun := time.Now()
		if begun.Before(next) {
			return nil
		}
		err := p.count(most)
		next = time.Now().Add(countPause * max(time.Since(begun), watchEvery))
		return err
	})
}

// count returns why a command has to end.
func (p *place) count(most int64) error {
	if p.full == nil {
		if _, err := p.files.FreeBytes(); err != nil {
			return exceeded(err.Error())
		}
		return nil
	}
	if used, err := p.files.Used(); err == nil && used > most {
		return exceeded(p.full.Error())
	}
	return nil
}
