package turn

import (
	"context"
	"errors"
	"slices"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
)

// mendHistory makes records that were skipped in the conversation of a job dead letters. A turn that
// has begun is not continued then: its actions may be in the lost records.
func (t *Runner) mendHistory(ctx context.Context, j *queue.Run, h *conversation.History) (string, bool, error) {
	lost := false
	for _, d := range h.Damaged {
		now, err := t.cfg.Keeper.Mend(ctx, d, j.Message.Chat)
		if err != nil {
			return "", false, err
		}
		lost = lost || now
	}
	h.Damaged = nil
	if !lost || j.Unstarted {
		return "", false, nil
	}
	notes := agent.Stop(h.View(), agent.NoteGivenUp)
	for i := range notes {
		notes[i].Time = t.cfg.Now()
	}
	if err := t.append(ctx, j, h, notes...); err != nil {
		return "", false, err
	}
	return t.Failed(ctx, j, errors.New("a record of this turn does not decode")), true, nil
}

// awake returns nil if a job can continue: it does not wait for an approval, or has one.
func (t *Runner) awake(ctx context.Context, j *queue.Run) error {
	if j.State != receipts.Waiting {
		return nil
	}
	w := Of(j)
	due := slices.Clone(w.Approvals)
	decided, err := t.cfg.Gate.Note(ctx, j)
	switch {
	case err == nil && !decided:
		return agent.ErrSuspended
	case err == nil:
		// With the decisions, which must be on record before a call runs that they allow.
		j.State = receipts.Open
		err = t.cfg.Jobs.Save(ctx, j)
	}
	if err != nil {
		j.State, w.Approvals = receipts.Waiting, due
	}
	return err
}
