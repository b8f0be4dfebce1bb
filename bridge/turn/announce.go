package turn

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
)

// Announcement is an announcement with the name of its tool.
type Announcement struct {
	toolgroups.Announcement
	Tool string
}

// noteAnnounced records that the log may have announcements of a job's turn, so that the end of other turns need
// not read it.
func noteAnnounced(j *queue.Run, messages []agent.Message) {
	if slices.ContainsFunc(messages, func(m agent.Message) bool { return len(m.Announced) > 0 || m.IsUnknownOutcome() }) {
		WorkOf(j).announced = true
	}
}

// Announced returns the announcements of a job's turn, in the order of the calls' results, however far the
// turn has come. It reads them from the log, so that those from before a crash are included.
func (t *Runner) Announced(ctx context.Context, j *queue.Run) ([]Announcement, error) {
	if !WorkOf(j).announced && !j.Found { // a turn of an earlier run may have any
		return nil, nil
	}
	turn, err := t.storedTurn(ctx, j)
	if err != nil {
		return nil, err
	}
	var all []Announcement
	for i, m := range turn {
		for _, one := range m.Announced {
			all = append(all, Announcement{one, m.Tool})
		}
		if tool, _ := t.cfg.Tools().Tool(m.Tool); tool.Undo == nil || !m.IsUnknownOutcome() {
			continue
		}
		if call, begun := begunCall(turn[:i], m.CallID); begun {
			all = append(all, Announcement{toolgroups.Announcement{Text: fmt.Sprintf(
				"I was cut off while I used %s, and cannot tell whether it was done. It was called with %s.",
				wording.Quote(m.Tool, maxTool), wording.Quote(t.cfg.Redact(call.EffectiveArguments()), maxArguments))}, m.Tool})
		}
	}
	return all, nil
}

// Bounds of what a line about a call with an unknown outcome shows, in characters.
const (
	maxTool      = 100
	maxArguments = 1200
)

// begunCall returns the call with an id of the newest reply, and whether it has begun.
func begunCall(turn []agent.Message, id string) (call agent.Call, begun bool) {
	for _, m := range slices.Backward(turn) {
		begun = begun || m.Role == agent.RoleStarted && m.CallID == id
		if i := slices.IndexFunc(m.Calls, func(c agent.Call) bool { return c.ID == id }); i >= 0 {
			return m.Calls[i], begun
		}
	}
	return call, false
}

// maxClockSkew is how far the clocks of two processes may differ.
const maxClockSkew = time.Hour

// storedTurn returns the stored messages of a job's turn; none if it never began. Unlike
// [conversation.History.Turn], it finds a turn behind which others have begun.
func (t *Runner) storedTurn(ctx context.Context, j *queue.Run) ([]agent.Message, error) {
	session, err := conversation.SessionOf(ctx, t.cfg.Store, &j.Job)
	if err != nil && !errors.Is(err, conversation.ErrStopped) && !errors.Is(err, conversation.ErrCleared) {
		return nil, err
	}
	log := session.AtGeneration(WorkOf(j).Generation).Log()
	var turn []agent.Message
	for m, err := range conversation.RecentMessages(ctx, t.cfg.Store, log) {
		if queue.IsDamaged(err) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("read a turn in %s: %w", log, err)
		}
		switch turn = append(turn, m); {
		case m.Ref == j.Key():
			slices.Reverse(turn)
			return turn, nil
		case m.Ref != "":
			turn = turn[:0] // these belong to a later turn
			if m.Time.Before(j.Accepted.Add(-maxClockSkew)) {
				return nil, nil
			}
		}
	}
	return nil, nil
}
