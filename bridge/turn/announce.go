package turn

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
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
	// Unknown says that nobody can tell whether the call was done. Position is that of its result in the turn.
	Unknown  bool
	Position int
	// Again is set for such a call that a restart cut off, and that nothing has repeated: the message in which its
	// sender asks for it once more.
	Again string
	// Ambiguous is set if Again would not say which call is meant.
	Ambiguous bool
}

// runAgain ends the text of a call that a restart cut off.
const runAgain = " Run it again?"

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
			all = append(all, Announcement{Announcement: one, Tool: m.Tool})
		}
		if call, begun := begunCall(turn[:i], m.CallID); begun && m.IsUnknownOutcome() {
			if one, ok := t.announceUnknown(j, m, call, turn[i:]); ok {
				one.Unknown, one.Position = true, i
				all = append(all, one)
			}
		}
	}
	times := map[string]int{}
	for _, one := range all {
		times[one.Again]++
	}
	for i, one := range all {
		if all[i].Ambiguous = one.Again != "" && times[one.Again] > 1; all[i].Ambiguous {
			all[i].Text = strings.TrimSuffix(one.Text, runAgain)
		}
	}
	return all, nil
}

// announceUnknown says that nobody can tell whether a call was done. m stands for its result, and after is the
// rest of the turn. A message's turn can make a call again that a restart or a failed write cut off; the others tell
// it only of tools that leave something behind.
func (t *Runner) announceUnknown(j *queue.Run, m agent.Message, call agent.Call, after []agent.Message) (one Announcement, ok bool) {
	tool, _ := t.cfg.Tools().Tool(m.Tool)
	name, with := wording.Quote(m.Tool, maxTool), wording.Quote(t.cfg.RedactLines(onlyArgument(string(toolgroups.GivenTo(tool, json.RawMessage(call.EffectiveArguments()))))), maxArguments)
	one.Tool = m.Tool
	again := wasRepeated(call, after) // by the model itself
	switch {
	case again && tool.Undo == nil:
		return one, false
	case m.Code == agent.CodeInterrupted && TaskOf(j) == nil && !again:
		one.Again = fmt.Sprintf("Please make only the interrupted call of %s again.", name)
		one.Text = fmt.Sprintf("I was interrupted while I used %s with %s, and do not know whether it finished.", name, with)
		if tool.Paid {
			one.Text += " It may have cost money already."
		}
		one.Text += runAgain
	case tool.Undo != nil:
		one.Text = fmt.Sprintf("I was cut off while I used %s, and cannot tell whether it was done. It was called with %s.", name, with)
	default:
		return one, false
	}
	return one, true
}

// wasRepeated reports whether a call was made again in the rest of its turn, and is not known to have failed then.
func wasRepeated(call agent.Call, after []agent.Message) bool {
	for i, m := range after {
		for _, c := range m.Calls {
			failed := func(m agent.Message) bool {
				return m.Role == agent.RoleTool && m.CallID == c.ID && m.Status == agent.StatusError && !m.IsUnknownOutcome()
			}
			if c.IsSame(call) && !slices.ContainsFunc(after[i:], failed) {
				return true
			}
		}
	}
	return false
}

// onlyArgument returns the argument of a call that has one text as its only argument, such as a command, and all
// arguments of other calls.
func onlyArgument(arguments string) string {
	var texts map[string]string
	if json.Unmarshal([]byte(arguments), &texts) == nil && len(texts) == 1 {
		for _, text := range texts {
			return text
		}
	}
	return arguments
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

// LogOf returns the log of the conversation that a job's turn belongs to, also if it was stopped or cleared.
func (t *Runner) LogOf(ctx context.Context, j *queue.Run) (string, error) {
	session, err := conversation.SessionOf(ctx, t.cfg.Store, &j.Job)
	if err != nil && !errors.Is(err, conversation.ErrStopped) && !errors.Is(err, conversation.ErrCleared) {
		return "", err
	}
	return session.AtGeneration(WorkOf(j).Generation).Log(), nil
}

// storedTurn returns the stored messages of a job's turn; none if it never began. Unlike
// [conversation.History.Turn], it finds a turn behind which others have begun.
func (t *Runner) storedTurn(ctx context.Context, j *queue.Run) ([]agent.Message, error) {
	log, err := t.LogOf(ctx, j)
	if err != nil {
		return nil, err
	}
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
