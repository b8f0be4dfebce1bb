package queue

import (
	"context"

	"oneclaw/storage"
)

// Files keeps the workspaces if several processes share a store.
type Files interface {
	// Prepare updates the local folder of an owner from the store.
	Prepare(ctx context.Context, owner string) error
	// Keep stores the changes in the folder since. If one of the conditions does not hold, or another
	// process has stored something else, it stores nothing and returns [storage.ErrConflict].
	Keep(ctx context.Context, owner string, conditions ...storage.Op) error
	// Sweep deletes parts of files that no folder contains any more, and returns their number.
	Sweep(ctx context.Context) (int, error)
}

// CheckOut updates the files of a job's owner on the local disk.
func CheckOut(ctx context.Context, files Files, j *Run) error {
	if files == nil {
		return nil
	}
	return files.Prepare(ctx, j.Message.Owner())
}

// KeepFiles stores the changed files of a job's owner, if the job is still this process's. It does not
// end with ctx.
func (s Store) KeepFiles(ctx context.Context, files Files, j *Run) error {
	if files == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return s.WriteFenced(ctx, j, func() error {
		return files.Keep(ctx, j.Message.Owner(), storage.Check(OpenPrefix+j.Key(), j.Rev))
	})
}
