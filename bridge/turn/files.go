package turn

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
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
	// fetchTries bounds the attempts to fetch a file. The pauses are between them.
	fetchTries    = 3
	minFetchPause = 500 * time.Millisecond
	maxFetchPause = 2 * time.Second
)

// fetchFiles saves the files of a message in the workspace. It adds a note about each file that could
// not be saved to the message's text; the message is answered in any case.
func (t *Runner) fetchFiles(ctx context.Context, j *queue.Run, files []chats.Attachment, scope toolgroups.Scope, message *agent.Message) error {
	fetcher, ok := t.cfg.Platforms[j.Message.Chat.Platform].(chats.FileFetcher)
	full := queue.CheckOut(ctx, t.cfg.Files, j)
	if full != nil && !workspace.IsFull(full) {
		return full
	}
	for i, a := range files {
		name := wording.SafeFileName(a.Name, i)
		if !ok {
			message.Text += notReceivedNote(name + ": files cannot be read here")
			continue
		}
		saved, sum, err := "", "", full
		if err == nil {
			saved, sum, err = t.fetchFile(ctx, fetcher, a, scope, name)
		}
		if err != nil {
			t.cfg.Log.Warn("file not fetched", "job", j.Key(), "err", err)
		} else {
			if a.FromBot {
				sum = "" // the model may have written it
			}
			message.Files = append(message.Files, toolgroups.File{Path: saved, Sum: sum})
		}
		if a.Sound.Kind != "" {
			heard, lost := t.addTranscript(ctx, j, scope, a, saved, err)
			if lost != nil {
				return lost
			}
			message.Text += transcriptText(heard, name)
		} else if err != nil {
			message.Text += notReceivedNote(fileNote(name, err))
		}
	}
	t.measurePictures(j, scope.Workspace, message.Files)
	if full == nil && len(message.Files) > 0 {
		if full = t.cfg.Jobs.KeepFiles(ctx, t.cfg.Files, recordOwner(j)); full != nil && !workspace.IsFull(full) {
			return full
		} else if full != nil {
			message.Text += "\n" + notKeptNote(full)
		}
	}
	message.Text = strings.TrimSpace(message.Text)
	return nil
}

func notReceivedNote(note string) string { return "\n[not received: " + note + "]" }

// errFiles wraps an error from loading or storing the files of a turn. The turn is retried.
var errFiles = errors.New("turn: load or keep files")

// checkout loads the files of a turn to the local disk when the first of them is needed.
type checkout struct {
	*Runner
	job      *queue.Run
	dir      string
	isLoaded bool
}

func (c *checkout) load(ctx context.Context) error {
	if c.isLoaded {
		return nil
	}
	err := queue.CheckOut(ctx, c.cfg.Files, c.job)
	if c.isLoaded = err == nil; c.isLoaded || workspace.IsFull(err) {
		return err
	}
	return fmt.Errorf("%w: %w", errFiles, err)
}

// readFile reads a file for the model.
func (c *checkout) readFile(ctx context.Context, name string, limit int64) (data []byte, err error) {
	if err := c.load(ctx); err != nil {
		return nil, err
	}
	root, err := workspace.Open(c.dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return root.ReadFile(name, limit)
}

// storeFiles measures the pictures in the result of a call, and stores the changed files, before the
// result is recorded. If there is no room for the files, it adds a note to the result.
func (c *checkout) storeFiles(ctx context.Context, result *agent.Message) error {
	t, j := c.Runner, c.job
	if len(result.Files) > 0 {
		result.Files = slices.Clone(result.Files)
		t.measurePictures(j, c.dir, result.Files)
	}
	err := t.cfg.Jobs.KeepFiles(ctx, t.cfg.Files, j)
	if workspace.IsFull(err) {
		t.cfg.Log.Warn("changed files of a tool cannot be stored", "job", j.Key(), "tool", result.Tool, "err", err)
		result.Text += "\n\n" + notKeptNote(err)
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errFiles, err)
	}
	return nil
}

func notKeptNote(err error) string {
	return notKeptPrefix + ", and what was changed may be lost: " + err.Error() + "]"
}

// notKeptPrefix begins the note about files that are not stored.
const notKeptPrefix = "[the files are not kept as they are now"

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

// fetchFile saves a file under a free name and returns its path in the workspace, and its SHA-256. An identical
// file is not saved twice.
func (t *Runner) fetchFile(ctx context.Context, f chats.FileFetcher, a chats.Attachment, scope toolgroups.Scope, name string) (saved, sum string, err error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTimeout)
	defer cancel()
	root, err := os.OpenRoot(scope.Workspace)
	if err != nil {
		return "", "", fmt.Errorf("open workspace: %w", err)
	}
	defer func() { _ = root.Close() }()
	if err := root.MkdirAll(Inbox, 0o700); err != nil {
		return "", "", fmt.Errorf("make inbox: %w", err)
	}
	limited, err := workspace.OpenWithin(scope.Workspace, scope.Quota, scope.Reserve)
	if err != nil {
		return "", "", err
	}
	defer func() { _ = limited.Close() }()
	if err := limited.Sweep(Inbox); err != nil {
		return "", "", fmt.Errorf("remove partial files: %w", err)
	}
	part, temp, err := limited.CreatePart(Inbox)
	if err != nil {
		return "", "", fmt.Errorf("create file: %w", err)
	}
	defer func() { _ = errors.Join(root.Remove(temp), part.Close()) }()
	for tries, pauses := fetchTries, retry.New(minFetchPause, maxFetchPause); ; {
		sum, err = download(ctx, f, a, limited, part)
		if err == nil {
			break
		}
		tries--
		if tries == 0 || errors.Is(err, chats.ErrTooLarge) || workspace.IsFull(err) || retry.Wait(ctx, pauses.Next(0)) != nil {
			return "", "", err
		}
	}
	for n := 1; ; n++ {
		target := path.Join(Inbox, numberedName(name, n))
		switch same, err := sameFile(root, temp, target); {
		case errors.Is(err, os.ErrNotExist):
			if err := root.Rename(temp, target); err != nil {
				return "", "", fmt.Errorf("save file: %w", err)
			}
			return target, sum, nil
		case err != nil:
			return "", "", err
		case same:
			return target, sum, nil
		}
	}
}

// download replaces the content of the open file part by the content of an attachment. It returns the SHA-256 of what
// the platform sent: a command can write to the file meanwhile.
func download(ctx context.Context, f chats.FileFetcher, a chats.Attachment, files *workspace.Root, part *os.File) (sum string, err error) {
	if err := part.Truncate(0); err != nil {
		return "", fmt.Errorf("empty file: %w", err)
	}
	if _, err := part.Seek(0, io.SeekStart); err != nil {
		return "", fmt.Errorf("empty file: %w", err)
	}
	received := sha256.New()
	err = f.FetchFile(ctx, a, &limitWriter{w: io.MultiWriter(received, files.BoundedWriter(part)), left: chats.MaxFile})
	return hex.EncodeToString(received.Sum(nil)), err
}

// limitWriter returns an error for writes beyond a number of bytes.
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

// sameFile reports whether two files have the same content. A missing second file is an error.
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

// numberedName returns the n-th variant of a file name: report.pdf, report-2.pdf, report-3.pdf.
func numberedName(name string, n int) string {
	if n == 1 {
		return name
	}
	ext := path.Ext(name)
	return fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
}

// createdFiles returns the files in the results of a turn's tools, in order and without duplicates. It
// reads the results from the log, so that those from before a crash are included.
func (t *Runner) createdFiles(ctx context.Context, j *queue.Run, h *conversation.History) []toolgroups.File {
	turn, err := h.Turn(ctx, j.Key())
	if err != nil {
		t.cfg.Log.Error("files of a turn cannot be found and are not sent", "job", j.Key(), "err", err)
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
