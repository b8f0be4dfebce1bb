package turn

import (
	"context"
	"errors"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// maxUnstored bounds the messages that are kept until the store works. Until then no model is asked, so
// there are at most as many as turns that ran.
const maxUnstored = 256

// unstored is a message of a turn that could not be stored: a reply that was paid for, or the result of
// a tool that has run. It belongs after a position of a log, with a question that was to be written
// with it.
type unstored struct {
	log     string
	after   storage.Position
	staged  []agent.Message
	message agent.Message
}

// store is keep, and holds a message that could not be stored in memory: see [Runner.settle].
func (t *Runner) store(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	err := t.keep(ctx, j, h, m)
	paid := m.Role == agent.RoleAssistant || m.Role == agent.RoleTool
	if err != nil && paid && !errors.Is(err, queue.ErrLost) && !errors.Is(err, storage.ErrInvalid) {
		t.unstored.Put(j.Key(), unstored{h.Log, h.Last, h.Staged, m}, 0)
	}
	return err
}

// settle stores the message that an earlier attempt at a turn could not, unless the conversation has
// grown since: then it was stored, or another process has answered. See [Runner.writable], too.
func (t *Runner) settle(ctx context.Context, j *queue.Run, h *conversation.History) error {
	kept, ok := t.unstored.Get(j.Key())
	if ok && kept.log == h.Log && kept.after == h.Last {
		j.Unstarted, h.Staged = false, kept.staged
		if err := t.store(context.WithoutCancel(ctx), j, h, kept.message); err != nil {
			return err
		}
	} else if err := t.writable(ctx, j); err != nil {
		return err
	}
	t.unstored.Forget(j.Key())
	return nil
}

// writable writes a job if the last write failed, and returns its error: no model is asked for what
// could not be stored.
func (t *Runner) writable(ctx context.Context, j *queue.Run) error {
	if !t.cfg.Keeper.Failing() {
		return nil
	}
	return t.cfg.Jobs.Save(ctx, j)
}
