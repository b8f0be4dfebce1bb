package turn

import (
	"context"
	"errors"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
)

// maxUnstored bounds the messages that are kept in memory until the store works again. No model is asked
// until then, so there is at most one message for each running turn.
const maxUnstored = 256

// unstoredMessage is a message of a turn that could not be stored: a reply that was paid for, or the
// result of a tool that has run. It follows the position after in its log, and is written together with
// the staged messages.
type unstoredMessage struct {
	log     string
	after   storage.Position
	staged  []agent.Message
	message agent.Message
}

// saveOrHold is saveMessage, but keeps an unstored message in memory; see [Runner.storeHeld].
func (t *Runner) saveOrHold(ctx context.Context, j *queue.Run, h *conversation.History, m agent.Message) error {
	err := t.saveMessage(ctx, j, h, m)
	paid := m.Role == agent.RoleAssistant || m.Role == agent.RoleTool
	if err != nil && paid && !errors.Is(err, queue.ErrLost) && !errors.Is(err, storage.ErrInvalid) {
		t.unstored.Put(j.Key(), unstoredMessage{h.Log, h.Last, h.Staged, m}, 0)
	}
	return err
}

// storeHeld stores the message that an earlier attempt at a turn could not store. If the conversation
// has grown since, it drops the message, because the message was stored or another process has answered.
func (t *Runner) storeHeld(ctx context.Context, j *queue.Run, h *conversation.History) error {
	kept, ok := t.unstored.Get(j.Key())
	if ok && kept.log == h.Log && kept.after == h.Last {
		j.Unstarted, h.Staged = false, kept.staged
		if err := t.saveOrHold(context.WithoutCancel(ctx), j, h, kept.message); err != nil {
			return err
		}
	} else if err := t.checkWritable(ctx, j); err != nil {
		return err
	}
	t.unstored.Forget(j.Key())
	return nil
}

// checkWritable writes a job if the last write to the store failed, and returns the error of this write.
// So no model is asked for a reply that cannot be stored.
func (t *Runner) checkWritable(ctx context.Context, j *queue.Run) error {
	if !t.cfg.StoreMonitor.Failing() {
		return nil
	}
	return t.cfg.Jobs.Save(ctx, j)
}
