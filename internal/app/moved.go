package app

import (
	"context"
	"errors"
	"log/slog"

	"oneclaw/bridge/chats"
	"oneclaw/internal/budget"
	"oneclaw/internal/settings"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups/memory"
	"oneclaw/toolgroups/schedule"
)

// movedFolder is where the files of a chat are put if the chat that continues it has files already. If that
// name is taken, a number is behind it.
const movedFolder = "before-the-move"

// mover returns a function that moves the data of a chat to the chat that continues it. Telegram gives a
// group another id when it becomes a supergroup. Each step is idempotent. Errors that would recur on
// every attempt are logged, so that they do not block the steps that follow.
func mover(dir string, kept *storedFiles, m *memory.Memory, s *schedule.Schedule, choices *settings.Settings, ledger *budget.Ledger, log *slog.Logger) func(ctx context.Context, from, to chats.Chat) error {
	return func(ctx context.Context, from, to chats.Chat) error {
		before, after := chats.Message{Chat: from}.Owner(), chats.Message{Chat: to}.Owner()
		err := m.Move(ctx, before, after)
		if errors.Is(err, memory.ErrFull) {
			log.Warn("cannot move the memory of a chat: the new chat's memory is full", "from", before, "to", after)
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
		move := func() error {
			return workspace.MoveFolder(workspace.OwnerDir(dir, before), workspace.OwnerDir(dir, after), movedFolder)
		}
		if kept != nil {
			move = func() error { return kept.Move(ctx, before, after, movedFolder) }
		}
		if err := move(); err != nil {
			log.Error("cannot move the files of a chat", "from", before, "to", after, "err", err)
		}
		return nil
	}
}
