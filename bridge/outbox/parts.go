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
	// partBytes is more than the Markdown of one message takes, so that only the shown part of an
	// enormous answer is rendered.
	partBytes = 16 << 10
	// captionAnswer is the caption of the file of a long answer.
	captionAnswer = "My answer is too long for this chat. This file holds all of it."
)

func notice(format string, args ...any) receipts.Part {
	return receipts.Part{Part: chats.Part{Plain: fmt.Sprintf(format, args...)}, State: receipts.PartPending}
}

// Render returns the parts of a text that is masked already. If the platform's renderer fails, the text
// is sent unformatted (B-04).
func (s *Sender) Render(j *queue.Run, masked string) (parts []receipts.Part) {
	defer func() {
		if r := recover(); r != nil {
			s.cfg.Log.Error("answer cannot be rendered and goes out plain", "job", j.Key(), "panic", r)
			parts = []receipts.Part{notice("%s", masked)}
		}
	}()
	parts = []receipts.Part{}
	for _, p := range s.cfg.Platforms[j.Message.Chat.Platform].Render(masked) {
		parts = append(parts, receipts.Part{Part: p, State: receipts.PartPending})
	}
	return parts
}

// Prepare makes the parts of an answer and of the job's files, with secrets masked. If recorded, the
// caller writes the job next, and the record marks the first part as being sent, if its platform works:
// [Sender.Deliver] then begins with the request.
func (s *Sender) Prepare(j *queue.Run, answer string, recorded bool) {
	d := Of(j)
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
	d.ready = false
	if d.Preview != nil {
		parts = s.Adopt(j, parts)
	}
	if recorded && len(parts) > 0 && parts[0].Edit == "" && !s.breakers[j.Message.Chat.Platform].out.Load() {
		parts[0].State, d.ready = receipts.PartSending, true
	}
	d.Parts = parts
	j.Progressed()
	if !j.Trace.Turn.IsZero() {
		j.Trace.Answered = s.cfg.Now()
	}
}

// waited says how long a message was delayed; empty if that is not to be said.
func waited(d time.Duration) string {
	if d == 0 {
		return ""
	}
	return "_I was away: this waited for " + wording.Roughly(d) + "._"
}

// longParts returns the parts of an answer with more than [AnswerLimits].MaxParts: the first of them,
// and a file with all of it.
func (s *Sender) longParts(j *queue.Run, answer string) []receipts.Part {
	file, err := s.keepAnswer(j, answer)
	if err != nil {
		s.cfg.Log.Warn("a long answer cannot go as a file and is sent in messages", "job", j.Key(), "err", err)
		return s.Render(j, s.cfg.Redact(answer))
	}
	parts := s.Render(j, s.cfg.Redact(beginning(answer, s.cfg.MaxParts*partBytes)))
	return append(parts[:min(len(parts), s.cfg.MaxParts)], receipts.Part{Part: chats.Part{File: &file}, State: receipts.PartPending})
}

// beginning returns at most most bytes of a text, up to the end of a line if there is one in the second
// half.
func beginning(text string, most int) string {
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

// keepAnswer writes an answer into the workspace. When it returns, the file is on disk; it is recorded
// with the first part that is sent. The same job writes the same file again.
func (s *Sender) keepAnswer(j *queue.Run, answer string) (file toolgroups.File, err error) {
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
	dir := workspace.Folder(s.cfg.DataDir, j.Message.Owner())
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

// fileParts returns the parts after the text of an answer: its files, and notices for those that are
// not sent.
func (s *Sender) fileParts(j *queue.Run) []receipts.Part {
	files := Of(j).Files
	if _, ok := s.cfg.Platforms[j.Message.Chat.Platform].(chats.FileSender); !ok {
		return []receipts.Part{notice("I cannot send files here. They are in my workspace: %s", s.cfg.Redact(names(files)))}
	}
	var parts []receipts.Part
	for _, f := range files[:min(len(files), maxOutFiles)] {
		parts = append(parts, receipts.Part{Part: chats.Part{File: &f}, State: receipts.PartPending})
	}
	if len(files) > maxOutFiles {
		parts = append(parts, notice("I send at most %d files at once. These are in my workspace: %s", maxOutFiles, s.cfg.Redact(names(files[maxOutFiles:]))))
	}
	return parts
}
