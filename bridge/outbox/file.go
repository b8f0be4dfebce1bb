package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

const (
	// maxOutFiles bounds the files that are sent with one answer.
	maxOutFiles = 10
	// maxFileTries bounds the attempts to send a file that the platform does not accept yet. With the
	// growing pauses they take about ten minutes. The file stays in the workspace.
	maxFileTries = 20
	// maxFileUnknown bounds the attempts to send a file that have an unknown outcome, although the
	// platform answers other requests: the file itself may make each upload fail. With the growing
	// pauses they take about a minute and a half.
	maxFileUnknown = 8
	// maxShownName bounds a file name in a notice, in characters.
	maxShownName = 60
)

// Reasons why a file from the workspace cannot be sent, in addition to the errors from opening it.
var (
	errEmptyFile  = errors.New("outbox: the file is empty")
	errFileBig    = errors.New("outbox: the file is larger than the platform takes")
	errNoUploader = errors.New("outbox: the platform takes no files")
)

func fileNames(files []toolgroups.File) string {
	var list []string
	for _, f := range files[:min(len(files), maxOutFiles)] {
		list = append(list, shownName(f))
	}
	if more := len(files) - len(list); more > 0 {
		list = append(list, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(list, ", ")
}

func shownName(f toolgroups.File) string {
	return wording.Clip(wording.SafeFileName(f.Path, 0), maxShownName)
}

func (s *Sender) sendFile(ctx context.Context, j *queue.Run, to chats.Address, p chats.Part) (id string, err error) {
	uploader, ok := s.cfg.Platforms[to.Chat.Platform].(chats.FileSender)
	if !ok {
		return "", &chats.SendError{Outcome: chats.Refused, Err: errNoUploader}
	}
	if err := queue.CheckOut(ctx, s.cfg.Files, j); err != nil {
		return "", newReadError(err)
	}
	root, err := workspace.Open(workspace.OwnerDir(s.cfg.DataDir, j.FilesOwner()))
	if err != nil {
		return "", newReadError(err)
	}
	defer func() { _ = root.Close() }()
	f, err := root.Open(p.File.Path)
	if err != nil {
		return "", newReadError(err)
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	switch {
	case err != nil:
		return "", newReadError(err)
	case info.Size() == 0:
		return "", &chats.SendError{Outcome: chats.Refused, Err: errEmptyFile}
	case info.Size() > uploader.MaxFile():
		return "", &chats.SendError{Outcome: chats.Refused, Err: errFileBig}
	}
	ctx, cancel := context.WithTimeout(ctx, fileTimeout)
	defer cancel()
	return uploader.SendFile(ctx, to, chats.OutFile{
		Name: wording.SafeFileName(p.File.Path, 0), Caption: p.File.Caption, Size: info.Size(), Content: f, Repeat: p.Repeat,
	})
}

// newReadError returns the error for a file that cannot be read, permanently or for now.
func newReadError(err error) *chats.SendError {
	for _, lasting := range []error{
		fs.ErrNotExist, fs.ErrPermission, workspace.ErrOutside, workspace.ErrNotFile, workspace.ErrEmptyPath,
	} {
		if errors.Is(err, lasting) {
			return &chats.SendError{Outcome: chats.Refused, Err: err}
		}
	}
	return &chats.SendError{Outcome: chats.Later, Err: err}
}

// replaceByNotice replaces a file that cannot be sent by a line of text that says why.
func (s *Sender) replaceByNotice(j *queue.Run, p *receipts.Part, err error) {
	s.cfg.Log.Warn("file not sent", "job", j.Key(), "file", p.File.Path, "err", err)
	could := "could not be sent"
	if p.Repeat || p.State == receipts.PartUnknown {
		could = "may not have arrived"
	}
	*p = receipts.Part{
		Part:  chats.Part{Plain: fmt.Sprintf("[%s %s: %s]", s.cfg.Redact(shownName(*p.File)), could, s.failureReason(j, err))},
		State: receipts.PartPending, Error: cmp.Or(p.Error, s.cfg.Redact(err.Error())),
	}
}

// failureReason returns, in words for the user, why a file could not be sent.
func (s *Sender) failureReason(j *queue.Run, err error) string {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "the file is gone"
	case errors.Is(err, errEmptyFile):
		return "the file is empty"
	case errors.Is(err, errFileBig), errors.Is(err, chats.ErrTooLarge):
		if uploader, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.FileSender); ok {
			return fmt.Sprintf("it is larger than the %d MB that I can send here", uploader.MaxFile()>>20)
		}
	case errors.Is(err, workspace.ErrOutside), errors.Is(err, workspace.ErrNotFile), errors.Is(err, fs.ErrPermission):
		return "it is no file of my workspace"
	}
	return "sending it failed; it is in my workspace"
}
