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
	// watchEvery is the polling interval.
	watchEvery = 50 * time.Millisecond
	// countPause is the pause between two counts of a workspace's files: as a multiple of the time
	// that a count takes, and at least so many polls.
	countPause = 5
	// growth bounds how much a full workspace may grow while a command runs: names take space, and
	// other tools write as well.
	growth = 1 << 20
)

// exceeded is the reason for killing a command.
type exceeded string

func (e exceeded) Error() string { return string(e) }

// poll polls at until it returns an error; it returns nil when ctx ends.
func poll(ctx context.Context, at func() error) error {
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

// watchProcesses waits until a command has too many processes. The kernel's limit does not apply
// to root, which a bot in a container may be.
func (c ExecConfig) watchProcesses(ctx context.Context, pid int) error {
	limit := cmp.Or(c.MaxProcesses, defaultProcesses)
	return poll(ctx, func() error {
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

// watch waits until a command has written more than there is room for. It checks the disk each
// time, the files less often if there are many.
func (p *execPlace) watch(ctx context.Context, _ int) error {
	most := int64(0) // bound of a full workspace
	if p.full != nil {
		used, err := p.files.Used()
		if err != nil {
			return nil //nolint:nilerr // files that cannot be counted can still be deleted
		}
		most = used + growth
	}
	next := time.Now()
	return poll(ctx, func() error {
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

// count returns why a command must end, or nil.
func (p *execPlace) count(most int64) error {
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
