package bridge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// AttachFolder is where commands keep the files that they send, in the workspace.
const AttachFolder = "exports"

// ErrNoFiles is returned where a platform takes no files.
var ErrNoFiles = errors.New("bridge: the platform takes no files")

// attach has a command write a file into the workspace of its owner, and sends it with the
// answer. It takes the place of what a former try, or the same command, has written.
func (r *rooms) attach(j *jobs.Job, scope toolgroups.Scope) func(ctx context.Context, name string, write func(io.Writer) error) error {
	return func(ctx context.Context, name string, write func(io.Writer) error) (err error) {
		if _, ok := r.platforms[j.Message.Chat.Platform].(chats.Uploader); !ok {
			return ErrNoFiles
		}
		if err := r.shared.CheckOut(ctx, j); err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		root, err := workspace.OpenWithin(scope.Workspace, scope.Quota, scope.Reserve)
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		defer func() { err = errors.Join(err, root.Close()) }()
		file := toolgroups.File{Path: path.Join(AttachFolder, name)}
		in, out := io.Pipe()
		written := make(chan struct{})
		go func() {
			defer close(written)
			out.CloseWithError(write(out))
		}()
		_, err = root.WriteFrom(file.Path, in)
		in.CloseWithError(err) // the writer does not wait for who is gone
		<-written
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		f, err := root.Open(file.Path)
		if err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		if err := errors.Join(f.Sync(), f.Close()); err != nil {
			return fmt.Errorf("attach %s: %w", name, err)
		}
		j.Files = []toolgroups.File{file}
		return r.shared.KeepFiles(ctx, r.jobs, j)
	}
}
