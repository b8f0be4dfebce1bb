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

// errSteer wraps a failure to add messages to a turn, which is retried.
var errSteer = errors.New("turn: read steering messages")

// steer adds the messages that were written since a turn began, and returns them. One write puts them
// into the conversation, closes their jobs, and names these in the turn's job: so each is answered by
// this turn or by its own, and by no other.
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
		t.cfg.Log.Warn("what was written meanwhile is too large for this turn, and waits for its own", "job", j.Key(), "err", err)
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errSteer, err)
	}
	return messages, nil
}

// joinAll makes that write.
func (t *Runner) joinAll(ctx context.Context, j *queue.Run, h *conversation.History, others []*queue.Run, messages []agent.Message) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), queue.WriteTimeout)
	defer cancel()
	ops, err := t.cfg.Jobs.Joining(j, others, t.cfg.Now())
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

// toMessages returns messages as the conversation stores them, with their files in the workspace. Pieces
// become one.
func (t *Runner) toMessages(ctx context.Context, j *queue.Run, h *conversation.History, others []*queue.Run, scope toolgroups.Scope) ([]agent.Message, error) {
	var messages []agent.Message
	after := lastAsked(h.View(), j)
	for n := 0; n < len(others); {
		end := n + Pieces(others[n:])
		one := *others[n]
		one.Message, n = MergePieces(one.Message, others[n+1:end]), end
		message := t.question(&one, h)
		message.Joined, message.Ref = message.Ref, ""
		if one.Message.Kind == KindEdited {
			message.Text = editNote + message.Text
		}
		if m := &one.Message; len(m.Files)+len(m.Quoted) > 0 || !m.Direct || m.Inside {
			if err := t.gather(ctx, withMessage(j, m), h, scope, after, &message); err != nil {
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
			message.Recalled = t.recall(ctx, &one, scope)
		}
		messages = append(messages, message)
	}
	return messages, nil
}

// editNote precedes the new text of a message that was edited while its turn ran.
const editNote = "[I have edited my message from before. It now reads:]\n"
