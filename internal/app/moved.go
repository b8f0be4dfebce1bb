package app

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"oneclaw/bridge/chats"
	"oneclaw/internal/budget"
	"oneclaw/internal/settings"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
)

// movedFolder gets the files of a chat that has moved to one with files of its own.
const movedFolder = "before-the-move"

// mover gives what belongs to a chat to the chat as which it goes on: Telegram gives a
// group another id when it becomes a supergroup. Each step does nothing where it was
// done before. What would fail each time is logged: it must not hold up what follows.
func mover(dir string, kept *keptFiles, m *memory.Memory, s *schedule.Schedule, choices *settings.Settings, ledger *budget.Ledger, log *slog.Logger) func(ctx context.Context, from, to chats.Chat) error {
	return func(ctx context.Context, from, to chats.Chat) error {
		before, after := chats.Message{Chat: from}.Owner(), chats.Message{Chat: to}.Owner()
		err := m.Move(ctx, before, after)
		if errors.Is(err, memory.ErrFull) {
			log.Warn("the memory of a chat that moved stays behind: there is no room for it", "from", before, "to", after)
		} else if err != nil {
			return err
		}
		if err := s.Move(ctx, before, after, to.String()); err != nil {
			return err
		}
		if err := choices.Chats.Move(ctx, from.String(), before, to.String(), after); err != nil {
			return err
		}
		if err := ledger.Move(ctx, from.String(), to.String()); err != nil {
			return err
		}
		move := func() error { return moveFiles(workspace.Folder(dir, before), workspace.Folder(dir, after)) }
		if kept != nil {
			move = func() error { return kept.Move(ctx, before, after, movedFolder) }
		}
		if err := move(); err != nil {
			log.Error("the files of a chat that moved stay behind", "from", before, "to", after, "err", err)
		}
		return nil
	}
}

// moveFiles renames a workspace, or puts it into an existing one.
func moveFiles(from, to string) error {
	if _, err := os.Stat(from); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	// Remove an empty folder, which need not keep the files apart.
	_ = os.Remove(to)
	if _, err := os.Stat(to); err == nil {
		to = filepath.Join(to, movedFolder)
	}
	if err := os.Rename(from, to); err != nil {
		return fmt.Errorf("move workspace: %w", err)
	}
	return nil
}
