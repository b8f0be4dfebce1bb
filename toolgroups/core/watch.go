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
	// countPause is the pause between two counts of a workspace's files, as a multiple of the time
	// that a count takes, and at least of the polling interval.
	countPause = 5
	// maxGrowth is how many bytes a full workspace may grow while a command runs: names take space,
	// and other tools write as well.
	maxGrowth = 1 << 20
)

// limitError says which limit a command has exceeded, so that it is killed.
type limitError string

func (e limitError) Error() string { return string(e) }

// poll calls a function at each tick until it returns an error. It returns nil when ctx ends.
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

// watchProcesses waits until a command has too many processes, and returns a limitError. It returns nil
// when ctx ends. The kernel's limit does not apply to root, and a bot in a container may run as root.
func (c ExecConfig) watchProcesses(ctx context.Context, pid int) error {
	limit := cmp.Or(c.MaxProcesses, defaultProcesses)
	return poll(ctx, func() error {
		if countDescendants(pid, limit) > limit {
			return limitError("it started too many processes")
		}
		return nil
	})
}

// watchMemory is like watchProcesses, for the memory that the processes of a command take together.
func (c ExecConfig) watchMemory(ctx context.Context, pid int) error {
	limit := cmp.Or(c.MaxTotalMemory, DefaultMaxTotalMemory)
	if err := sandbox.WatchMemory(ctx, pid, uint64(limit)); err != nil {
		return limitError(fmt.Sprintf("its processes took more than the limit of %d MiB of memory", limit>>20))
	}
	return nil
}

// watchDisk is like watchProcesses, for a command that has written more than the disk or the workspace
// permits. It checks the disk at each poll, and the workspace less often if it has many files.
func (p *execPlace) watchDisk(ctx context.Context, _ int) error {
	most := int64(0) // limit of a full workspace, in bytes
	if p.fullErr != nil {
		used, err := p.root.UsedBytes()
		if err != nil {
			return nil //nolint:nilerr // files that cannot be counted can still be deleted
		}
		most = used + maxGrowth
	}
	next := time.Now()
	return poll(ctx, func() error {
		if spare, err := p.root.SpareBytes(); p.fullErr == nil && (err != nil || spare <= 0) {
			return limitError(workspace.ErrDiskFull.Error())
		}
		begun := time.Now()
		if begun.Before(next) {
			return nil
		}
		err := p.checkUsage(most)
		next = time.Now().Add(countPause * max(time.Since(begun), watchEvery))
		return err
	})
}

// checkUsage returns an error if a command has filled the workspace and must end.
func (p *execPlace) checkUsage(most int64) error {
	if p.fullErr == nil {
		if _, err := p.root.FreeBytes(); err != nil {
			return limitError(err.Error())
		}
		return nil
	}
	if used, err := p.root.UsedBytes(); err == nil && used > most {
		return limitError(p.fullErr.Error())
	}
	return nil
}
