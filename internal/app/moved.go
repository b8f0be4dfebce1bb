package app

import (
	"context"
	"errors"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups/memory"
)

// movedFolder is where the files of a chat are put if the chat that continues it has files already. If that
// name is taken, a number is behind it.
const movedFolder = "before-the-move"

// moveMemory moves the memory of a chat. What has no room in that of the new chat stays.
func (b *Bot) moveMemory(ctx context.Context, from, to string) error {
	err := b.tools.memory.Move(ctx, from, to)
	if errors.Is(err, memory.ErrFull) {
		b.log.Warn("cannot move the memory of a chat: the new chat's memory is full", "from", from, "to", to)
		return nil
	}
	return err
}

// moveFiles moves the files of a chat. An error would recur on every attempt, so it is logged.
func (b *Bot) moveFiles(ctx context.Context, dir, from, to string) error {
	var err error
	if b.files != nil {
		err = b.files.Move(ctx, from, to, movedFolder)
	} else {
		err = workspace.MoveFolder(workspace.OwnerDir(dir, from), workspace.OwnerDir(dir, to), movedFolder)
	}
	if err != nil {
		b.log.Error("cannot move the files of a chat", "from", from, "to", to, "err", err)
	}
	return nil
}
