package turn

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/retry"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// Inbox is the folder of a workspace for files from the chat.
const Inbox = "inbox"

// fetchTimeout bounds the fetching of one file.
const fetchTimeout = 2 * time.Minute

const (
	// fetchTries bounds the attempts at a file, with these pauses.
	fetchTries    = 3
	minFetchPause = 500 * time.Millisecond
	maxFetchPause = 2 * time.Second
)

// fetchFiles saves the files of a message in the workspace. The text names those that failed, in words
// for the user; the message is answered all the same.
func (t *Runner) fetchFiles(ctx context.Context, j *queue.Run, files []chats.Attachment, scope toolgroups.Scope, message *agent.Message) error {
	fetcher, ok := t.cfg.Platforms[j.Message.Chat.Platform].(chats.FileFetcher)
	full := queue.CheckOut(ctx, t.cfg.Files, j)
	if full != nil && !workspace.NoRoom(full) {
		return full
	}
	for i, a := range files {
		name := wording.FileName(a.Name, i)
		if !ok {
			message.Text += notReceived(name + ": files cannot be read here")
			continue
		}
		saved, err := "", full
		if err == nil {
			saved, err = t.fetchFile(ctx, fetcher, a, scope, name)
		}
		if err != nil {
			t.cfg.Log.Warn("file not fetched", "job", j.Key(), "err", err)
		} else {
			message.Files = append(message.Files, toolgroups.File{Path: saved})
		}
		if a.Sound.Kind != "" {
			heard, lost := t.addTranscript(ctx, j, scope, a, saved, err)
			if lost != nil {
				return lost
			}
			message.Text += transcriptText(heard, name)
		} else if err != nil {
			message.Text += notReceived(fileNote(name, err))
		}
	}
	t.pictures(j, scope.Workspace, message.Files)
	if full == nil && len(message.Files) > 0 {
		if full = t.cfg.Jobs.KeepFiles(ctx, t.cfg.Files, recordOwner(j)); full != nil && !workspace.NoRoom(full) {
			return full
		} else if full != nil {
			message.Text += "\n" + notKept(full)
		}
	}
	message.Text = strings.TrimSpace(message.Text)
	return nil
}

func notReceived(note string) string { return "\n[not received: " + note + "]" }

// errFiles wraps a failure to load or store the files of a turn, which is retried.
var errFiles = errors.New("turn: load or keep files")

// checkout loads the files of a turn to the local disk when the first is needed.
type checkout struct {
	*Runner
	job  *queue.Run
	dir  string
	done bool
}

func (c *checkout) here(ctx context.Context) error {
	if c.done {
		return nil
	}
	err := queue.CheckOut(ctx, c.cfg.Files, c.job)
	if c.done = err == nil; c.done || workspace.NoRoom(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errFiles, err)
}

// read reads a file for the model.
func (c *checkout) read(ctx context.Context, name string, limit int64) (data []byte, err error) {
	if err := c.here(ctx); err != nil {
		return nil, err
	}
	root, err := workspace.Open(c.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.ReadFile(name, limit)
}

// settle measures pictures that a call has made, and stores its files, before the result is recorded.
// If some cannot be stored, the result says so.
func (c *checkout) settle(ctx context.Context, result *agent.Message) error {
	t, j := c.Runner, c.job
	if len(result.Files) > 0 {
		result.Files = slices.Clone(result.Files)
		t.pictures(j, c.dir, result.Files)
	}
	err := t.cfg.Jobs.KeepFiles(ctx, t.cfg.Files, j)
	if workspace.NoRoom(err) {
		t.cfg.Log.Warn("files that a tool has changed are not stored", "job", j.Key(), "tool", result.Tool, "err", err)
		result.Text += "\n\n" + notKept(err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errFiles, err)
	}
	return nil
}

func notKept(err error) string {
	return unkept + ", and what was changed may be lost: " + err.Error() + "]"
}

// unkept begins the note about files that are not stored.
const unkept = "[the files are not kept as they are now"

func fileNote(name string, err error) string {
	switch {
	case errors.Is(err, chats.ErrTooLarge):
		return name + ": the file is too large for me"
	case errors.Is(err, workspace.ErrFull), errors.Is(err, workspace.ErrUncounted), errors.Is(err, workspace.ErrTooMany):
		return name + ": there is no room for it among your files; some have to be deleted first"
	case errors.Is(err, workspace.ErrDiskFull):
		return name + ": my disk is nearly full, so I could not save it"
	}
	return name + ": the file could not be fetched"
}

// fetchFile saves a file under a free name and returns its path in the workspace. An identical file is
// not saved twice.
func (t *Runner) fetchFile(ctx context.Context, f chats.FileFetcher, a chats.Attachment, scope toolgroups.Scope, name string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	root, err := os.OpenRoot(scope.Workspace)
	if err != nil {
		return "", fmt.Errorf("open workspace: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(Inbox, 0o700); err != nil {
		return "", fmt.Errorf("make inbox: %w", err)
	}
	limited, err := workspace.OpenWithin(scope.Workspace, scope.Quota, scope.Reserve)
	if err != nil {
		return "", err
	}
	defer func() { _ = limited.Close() }()
	if err := limited.Sweep(Inbox); err != nil {
		return "", fmt.Errorf("remove what was not fetched to its end: %w", err)
	}
	part, temp, err := limited.Part(Inbox)
	if err != nil {
		return "", fmt.Errorf("create file: %w", err)
	}
	defer func() { _ = errors.Join(root.Remove(temp), part.Close()) }()
	for tries, pauses := fetchTries, retry.New(minFetchPause, maxFetchPause); ; {
		err := download(ctx, f, a, limited, part)
		if err == nil {
			break
		}
		tries--
		if tries == 0 || errors.Is(err, chats.ErrTooLarge) || workspace.NoRoom(err) || retry.Wait(ctx, pauses.Next(0)) != nil {
			return "", err
		}
	}
	for n := 1; ; n++ {
		target := path.Join(Inbox, numbered(name, n))
		switch same, err := sameFile(root, temp, target); {
		case errors.Is(err, os.ErrNotExist):
			if err := root.Rename(temp, target); err != nil {
				return "", fmt.Errorf("save file: %w", err)
			}
			return target, nil
		case err != nil:
			return "", err
		case same:
			return target, nil
		}
	}
}

// download fetches a file into an open one, from its beginning.
func download(ctx context.Context, f chats.FileFetcher, a chats.Attachment, files *workspace.Root, part *os.File) error {
	if err := part.Truncate(0); err != nil {
		return fmt.Errorf("empty file: %w", err)
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("empty file: %w", err)
	}
	return f.FetchFile(ctx, a, &limitWriter{w: files.Bound(part), left: chats.MaxFile})
}

// limitWriter fails once too much is written.
type limitWriter struct {
	w    io.Writer
	left int64
}

// Write implements io.Writer.
func (l *limitWriter) Write(p []byte) (int, error) {
	if int64(len(p)) > l.left {
		return 0, chats.ErrTooLarge
	}
	l.left -= int64(len(p))
	return l.w.Write(p)
}

// sameFile reports whether two files have the same bytes; fs.ErrNotExist if the second does not exist.
func sameFile(root *os.Root, a, b string) (bool, error) {
	infoB, err := root.Stat(b)
	if err != nil {
		return false, err
	}
	infoA, err := root.Stat(a)
	if err != nil || !infoB.Mode().IsRegular() || infoA.Size() != infoB.Size() {
		return false, err
	}
	dataA, err := root.ReadFile(a)
	if err != nil {
		return false, err
	}
	dataB, err := root.ReadFile(b)
	return bytes.Equal(dataA, dataB), err
}

// numbered returns report.pdf, report-2.pdf, report-3.pdf.
func numbered(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}

// createdFiles returns the files that the tools of a turn deliver, in the order of their results, each once.
// They are read from the log, so that a turn that continued after a crash has the earlier ones too.
func (t *Runner) createdFiles(ctx context.Context, h *conversation.History, ref string) []toolgroups.File {
	turn, err := h.Turn(ctx, ref)
	if err != nil {
		t.cfg.Log.Error("files of a turn cannot be found and are not sent", "job", ref, "err", err)
		return nil
	}
	var files []toolgroups.File
	known := make(map[string]bool)
	for _, m := range turn {
		if m.Role != agent.RoleTool || m.Status != agent.StatusOK {
			continue
		}
		for _, f := range m.Files {
			if name := path.Clean(f.Path); !known[name] {
				known[name] = true
				files = append(files, f)
			}
		}
	}
	return files
}
