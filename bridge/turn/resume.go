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

// readContinued returns the answer from the stored messages of a turn that an earlier attempt or run of
// the program began. done is false if there is no answer yet.
func readContinued(h *conversation.History, turn []agent.Message) (answer string, done bool) {
	for i, m := range turn {
		if i > 0 && m.Ref != "" {
			break // the rest answers another question
		}
		if m.Final {
			return m.Text, true
		}
	}
	h.EnsureQuestion(turn)
	return "", false
}

// deadLetterDamaged turns the damaged records of a job's conversation into dead letters. If the turn has
// begun, it is stopped, because its calls may be in the lost records.
func (t *Runner) deadLetterDamaged(ctx context.Context, j *queue.Run, h *conversation.History) (string, bool, error) {
	lost := false
	for _, d := range h.Damaged {
		now, err := t.cfg.StoreMonitor.DeadLetterRecord(ctx, d, j.Message.Chat)
		if err != nil {
			return "", false, err
		}
		lost = lost || now
	}
	h.Damaged = nil
	if !lost || j.Unstarted {
		return "", false, nil
	}
	notes := agent.StopMessages(h.View(), agent.NoteGivenUp)
	for i := range notes {
		notes[i].Time = t.cfg.Now()
	}
	if err := t.appendMessages(ctx, j, h, notes...); err != nil {
		return "", false, err
	}
	return t.ReportFailure(ctx, j, errors.New("a record of this turn does not decode")), true, nil
}

// applyDecisions stores the decisions that a job got. It returns [agent.ErrSuspended] if the job still
// waits.
func (t *Runner) applyDecisions(ctx context.Context, j *queue.Run) error {
	if j.State != receipts.Waiting {
		return nil
	}
	w := WorkOf(j)
	due := slices.Clone(w.Approvals)
	decided, err := t.cfg.Gate.ApplyDecisions(ctx, j)
	switch {
	case err == nil && !decided:
		return agent.ErrSuspended
	case err == nil:
		// The decisions must be stored before a call runs that they allow.
		j.State = receipts.Open
		err = t.cfg.Jobs.Save(ctx, j)
	}
	if err != nil {
		j.State, w.Approvals = receipts.Waiting, due
	}
	return err
}
