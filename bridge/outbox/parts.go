package outbox

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"time"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

const (
	// answersFolder is the folder of a workspace for answers that were too long for a chat.
	answersFolder = "answers"
	// partBytes bounds the Markdown of one message. It serves to render only the shown part of an
	// extremely long answer.
	partBytes = 16 << 10
	// captionAnswer is the caption of the file of a long answer.
	captionAnswer = "My answer is too long for this chat. This file holds all of it."
)

func newNotice(format string, args ...any) receipts.Part {
	return receipts.Part{Part: chats.Part{Plain: fmt.Sprintf(format, args...)}, State: receipts.PartPending}
}

// Render returns the parts of a text whose secrets are masked. If the platform's renderer panics, the
// text is sent unformatted (B-04).
func (s *Sender) Render(j *queue.Run, masked string) (parts []receipts.Part) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.Error("answer cannot be rendered and is sent as plain text", "job", j.Key(), "panic", r)
			parts = []receipts.Part{newNotice("%s", masked)}
		}
	}()
	parts = []receipts.Part{}
	for _, p := range s.cfg.Platforms[j.Message.Chat.Platform].Render(masked) {
		parts = append(parts, receipts.Part{Part: p, State: receipts.PartPending})
	}
	return parts
}

// Prepare makes the parts of an answer and of the job's files, with secrets masked. If recorded is set,
// the caller writes the job next. If the platform works, that record marks the first part as being sent,
// so that [Sender.Deliver] begins with the request.
func (s *Sender) Prepare(j *queue.Run, answer string, recorded bool) {
	d := DeliveryOf(j)
	d.spoken = s.spokenText(j, answer)
	answer = WithHeading(j, answer)
	var parts []receipts.Part
	if len(answer) <= s.cfg.MaxParts*partBytes {
		parts = s.Render(j, s.cfg.Redact(answer))
	}
	if parts == nil || len(parts) > s.cfg.MaxParts {
		parts = s.longParts(j, answer)
	}
	if recorded && len(parts) > 0 {
		parts[len(parts)-1].FeedbackButtons = true
	}
	if len(d.Files) > 0 {
		parts = append(parts, s.fileParts(j)...)
	}
	d.firstRecorded = false
	if d.Preview != nil {
		parts = s.ReplacePreview(j, parts)
	}
	if recorded && len(parts) > 0 && parts[0].ReplacesID == "" && !s.breakers[j.Message.Chat.Platform].isTripped.Load() {
		parts[0].State, d.firstRecorded = receipts.PartSending, true
	}
	d.Parts = parts
	j.RecordProgress()
}

// delayText returns the notice about the delay of a message; empty if it was not delayed.
func delayText(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "_I was away: this waited for " + wording.RoughDuration(d) + "._"
}

// longParts returns the parts of an answer that needs more than [AnswerLimits].MaxParts: the first
// messages, and a file with the whole answer.
func (s *Sender) longParts(j *queue.Run, answer string) []receipts.Part {
	file, err := s.saveAnswer(j, answer)
	if err != nil {
		s.cfg.Log.Warn("a long answer cannot be sent as a file and is sent in messages", "job", j.Key(), "err", err)
		return s.Render(j, s.cfg.Redact(answer))
	}
	parts := s.Render(j, cutText(s.cfg.Redact(answer), s.cfg.MaxParts*partBytes)) // half a secret would not be masked
	return append(parts[:min(len(parts), s.cfg.MaxParts)], receipts.Part{Part: chats.Part{File: &file}, State: receipts.PartPending})
}

// cutText cuts a text to a maximum number of bytes. It cuts at the end of a line if one is in the second
// half.
func cutText(text string, most int) string {
	if len(text) <= most {
		return text
	}
	for most > 0 && !utf8.RuneStart(text[most]) {
		most--
	}
	if end := strings.LastIndexByte(text[:most], '\n'); end > most/2 {
		most = end
	}
	return text[:most]
}

// saveAnswer writes an answer into a file in the workspace. When it returns, the file is on disk. For
// the same job it always writes the same file.
func (s *Sender) saveAnswer(j *queue.Run, answer string) (file toolgroups.File, err error) {
	content := []byte(s.cfg.Redact(answer))
	uploader, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.FileSender)
	switch {
	case !ok:
		return file, errNoUploader
	case int64(len(content)) > uploader.MaxFile():
		return file, errFileBig
	}
	ctx, cancel := context.WithTimeout(context.Background(), queue.WriteTimeout)
	defer cancel()
	if err := queue.CheckOut(ctx, s.cfg.Files, j); err != nil {
		return file, err
	}
	dir := workspace.OwnerDir(s.cfg.DataDir, j.FilesOwner())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return file, fmt.Errorf("make workspace: %w", err)
	}
	root, err := workspace.Open(dir)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name := fmt.Sprintf("answer-%s-%s.md", j.Accepted.UTC().Format("20060102-150405"), queue.Hash(j.Key())[:6])
	file = toolgroups.File{Path: path.Join(answersFolder, name), Caption: captionAnswer}
	if err := root.WriteFile(file.Path, content, false); err != nil {
		return file, err
	}
	f, err := root.Open(file.Path)
	if err != nil {
		return file, err
	}
	if err := errors.Join(f.Sync(), f.Close()); err != nil {
		return file, err
	}
	return file, s.cfg.Jobs.KeepFiles(ctx, s.cfg.Files, j)
}

// fileParts returns the parts after the text of an answer: its files, and a notice about files that are
// not sent.
func (s *Sender) fileParts(j *queue.Run) []receipts.Part {
	files := DeliveryOf(j).Files
	if _, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.FileSender); !ok {
		return []receipts.Part{newNotice("I cannot send files here. They are in my workspace: %s", s.cfg.Redact(fileNames(files)))}
	}
	var parts []receipts.Part
	for _, f := range files[:min(len(files), maxOutFiles)] {
		parts = append(parts, receipts.Part{Part: chats.Part{File: &f}, State: receipts.PartPending})
	}
	if len(files) > maxOutFiles {
		parts = append(parts, newNotice("I send at most %d files at once. These are in my workspace: %s", maxOutFiles, s.cfg.Redact(fileNames(files[maxOutFiles:]))))
	}
	return parts
}
