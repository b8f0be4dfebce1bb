package turn

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// errSteer wraps an error from adding messages to a turn. The turn is retried.
var errSteer = errors.New("turn: add steering messages")

// steer adds the messages that came since a turn began to the turn, and returns them. One write adds
// them to the conversation, closes their jobs, and records the keys of those jobs in the turn's job. So
// each message is answered exactly once, by this turn or its own.
func (t *Runner) steer(ctx context.Context, j *queue.Run, h *conversation.History, scope toolgroups.Scope) (messages []agent.Message, err error) {
	err = t.cfg.Queue.Join(ctx, j, func(some []*queue.Run) (joined, gone []*queue.Run, err error) {
		return t.cfg.Jobs.Join(ctx, j, some, func(others []*queue.Run) error {
			if messages, err = t.toMessages(ctx, j, h, others, scope); err != nil || len(others) == 0 {
				return err
			}
			return t.joinAll(ctx, j, h, others, messages)
		})
	})
	switch {
	case errors.Is(err, storage.ErrInvalid):
		t.cfg.Log.Warn("new messages are too large for the running turn and wait for their own", "job", j.Key(), "err", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errSteer, err)
	}
	return messages, nil
}

// joinAll makes the write that adds the messages of other jobs to a turn; see steer.
func (t *Runner) joinAll(ctx context.Context, j *queue.Run, h *conversation.History, others []*queue.Run, messages []agent.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	ops, err := t.cfg.Jobs.JoinOps(j, others, t.cfg.Now())
	if err != nil {
		return err
	}
	rev, err := h.Append(ctx, ops, messages...)
	if err != nil {
		return err
	}
	j.Rev = rev
	for _, o := range others {
		j.Joined = append(j.Joined, o.Key())
	}
	return nil
}

// toMessages returns the messages of other jobs as the conversation stores them, and saves their files
// in the workspace. Pieces are joined.
func (t *Runner) toMessages(ctx context.Context, j *queue.Run, h *conversation.History, others []*queue.Run, scope toolgroups.Scope) ([]agent.Message, error) {
	var messages []agent.Message
	after := lastAsked(h.View(), j)
	for n := 0; n < len(others); {
		end := n + CountPieces(others[n:])
		one := *others[n]
		one.Message, n = MergePieces(one.Message, others[n+1:end]), end
		message := t.newQuestion(&one, h)
		w, joins := WorkOf(j), WorkOf(&one)
		w.HeldOthers, w.ReadOthers = w.HeldOthers || joins.HeldOthers, w.ReadOthers || joins.ReadOthers
		message.JoinedRef, message.Ref = message.Ref, ""
		if one.Message.Kind == KindEdited {
			message.Text = editNote + message.Text
		}
		if m := &one.Message; len(m.Files)+len(m.Quoted) > 0 || !m.Direct || m.InThread {
			if err := t.gatherContext(ctx, withMessage(j, m), h, scope, after, &message); err != nil {
				return nil, err
			}
			if m.Kind == chats.KindText {
				after = m.ID
			}
		}
		if err := context.Cause(ctx); err != nil {
			return nil, err
		}
		if t.cfg.Recall != nil {
			t.recall(ctx, &one, scope, &message)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// editNote precedes the new text of a message that was edited while its turn ran.
const editNote = "[I have edited my message from before. It now reads:]\n"
