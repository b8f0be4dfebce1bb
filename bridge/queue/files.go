package queue

import (
	"context"

	"oneclaw/storage"
)

// Files keeps the workspaces where several processes share a store.
type Files interface {
	// Prepare makes the folder of an owner hold what is stored.
	Prepare(ctx context.Context, owner string) error
	// Keep stores what has changed in it since. Where one of the conditions does not hold, or
	// another process has stored something else, it stores nothing and returns
	// [storage.ErrConflict].
	Keep(ctx context.Context, owner string, conditions ...storage.Op) error
	// Sweep removes what no folder holds any more, and returns how many parts of files that
	// were.
	Sweep(ctx context.Context) (int, error)
}

// CheckOut has the files of a job's owner on the local disk.
func CheckOut(ctx context.Context, files Files, j *Run) error {
	if files == nil {
		return nil
	}
	return files.Prepare(ctx, j.Message.Owner())
}

// KeepFiles stores what was changed in the files of a job's owner, as long as the job is this
// process's. It does not end with ctx.
func (s Store) KeepFiles(ctx context.Context, files Files, j *Run) error {
	if files == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return s.WriteFenced(ctx, j, func() error {
		return files.Keep(ctx, j.Message.Owner(), storage.Check(OpenPrefix+j.Key(), j.Rev))
	})
}
