package bridge

import (
	"errors"
	"fmt"
	"os"
	"path"
	"strings"
	"unicode/utf8"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

const (
	// answersFolder is the folder of a workspace with answers that were too long for a chat.
	answersFolder = "answers"
	// partBytes is more than the Markdown of one message takes, so that of an enormous
	// answer only what is shown has to be rendered.
	partBytes = 16 << 10
	// captionAnswer stands with the file of a long answer.
	captionAnswer = "My answer is too long for this chat. This file holds all of it."
)

// answerParts are the messages of an answer. Of one with more than [Config.MaxParts] the
// first are sent, and a file that holds all of it.
func (b *Bridge) answerParts(j *jobs.Job, answer string) []jobs.SentPart {
	most := b.cfg.Limits.MaxParts
	if most < 0 {
		return b.render(j, answer)
	}
	shown := beginning(answer, most*partBytes)
	parts := b.render(j, shown)
	if len(shown) == len(answer) && len(parts) <= most {
		return parts
	}
	file, err := b.keepAnswer(j, answer)
	if err != nil {
		b.log.Warn("a long answer cannot go as a file and is sent in messages", "job", j.Key(), "err", err)
		return b.render(j, answer)
	}
	return append(parts[:min(len(parts), most)], jobs.SentPart{Part: chats.Part{File: &file}, State: jobs.PartPending})
}

// beginning returns at most so many bytes of a text, up to the end of a line where there is
// one in the second half.
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

// keepAnswer writes an answer into the workspace, on disk when it returns: its part goes
// on record with the first one that is sent. The same job writes the same file again.
func (b *Bridge) keepAnswer(j *jobs.Job, answer string) (file toolgroups.File, err error) {
	content := []byte(b.cfg.Redact(answer))
	uploader, ok := b.platforms[j.Message.Chat.Platform].(chats.Uploader)
	switch {
	case !ok:
		return file, errNoUploader
	case int64(len(content)) > uploader.MaxFile():
		return file, errFileBig
	}
	dir := workspace.Folder(b.cfg.DataDir, j.Message.Owner())
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return file, fmt.Errorf("make workspace: %w", err)
	}
	root, err := workspace.Open(dir)
	if err != nil {
		return file, err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	name := fmt.Sprintf("answer-%s-%s.md", j.Accepted.UTC().Format("20060102-150405"), jobs.Hash(j.Key())[:6])
	file = toolgroups.File{Path: path.Join(answersFolder, name), Caption: captionAnswer}
	if err := root.WriteFile(file.Path, content, false); err != nil {
		return file, err
	}
	f, err := root.Open(file.Path)
	if err != nil {
		return file, err
	}
	return file, errors.Join(f.Sync(), f.Close())
}
