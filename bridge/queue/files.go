package queue

import (
	"context"

	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// FileStore keeps the files of workspaces in the store, if several processes share it.
type FileStore interface {
	// Prepare updates the local folder of an owner from the store.
	Prepare(ctx context.Context, owner string) error
	// Keep stores the changes in the folder since Prepare. If one of the conditions does not hold, or
	// another process has stored changes, it stores nothing and returns [storage.ErrConflict].
	Keep(ctx context.Context, owner string, conditions ...storage.Op) error
}

// FilesOwner returns the owner of the workspace of a job. A webhook's runs have one of their own: what the owner of
// the chat keeps, and has tools put into it, would be open to whoever words a delivery.
func (j *Run) FilesOwner() string {
	if task, ok := j.Args.(*receipts.Task); ok && task.FilesOwner != "" {
		return task.FilesOwner
	}
	return j.Message.Owner()
}

// CheckOut updates the local workspace of a job from the store.
func CheckOut(ctx context.Context, files FileStore, j *Run) error {
	if files == nil {
		return nil
	}
	return files.Prepare(ctx, j.FilesOwner())
}

// KeepFiles stores the changed files of a job, if the job still belongs to this process. It
// continues after ctx has ended.
func (s Store) KeepFiles(ctx context.Context, files FileStore, j *Run) error {
	if files == nil {
		return nil
	}
	ctx = context.WithoutCancel(ctx)
	return s.WriteFenced(ctx, j, func() error {
		return files.Keep(ctx, j.FilesOwner(), storage.Check(OpenPrefix+j.Key(), j.Rev))
	})
}
