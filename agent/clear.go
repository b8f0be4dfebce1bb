package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// clearedBytes is how long a result is at least that leaves.
	clearedBytes = 400
	// clearedTokens is what leaves at least: less is not worth a record.
	clearedTokens = 1000
	// clearedHead is how much of the beginning of a result stays.
	clearedHead = 80
)

// clear puts on record that the results of former turns leave, where the next request misses the
// model's cache whatever it says. What the present turn, the one before it and an open approval need
// stays, and so does what tells of tools. It is done at the beginning of a turn, never in it.
func (r *run) clear() error {
	if !r.round.Cold() || r.rounds() > 0 {
		return nil
	}
	messages, saved := slices.Clone(Compacted(r.history)), 0
	for i := range messages {
		saved += messageSize(&messages[i])
	}
	clearResults(messages)
	if saved -= EstimateTokens(messages); saved < clearedTokens {
		return nil
	}
	r.agent.log.Info("old results left out because the model's cache is cold", "session", r.turn.Scope.Session, "tokens", saved)
	return r.emit(Message{Role: RoleCleared})
}

// withoutCleared shortens the results that records of RoleCleared take out, and leaves out the
// records.
func withoutCleared(history []Message) []Message {
	out := make([]Message, 0, len(history))
	for i := range history {
		if history[i].Role == RoleCleared {
			clearResults(out)
		} else {
			out = append(out, history[i])
		}
	}
	return out
}

// clearResults shortens the results in front of the turn before the present one.
func clearResults(messages []Message) {
	present := turnStart(messages)
	before := present - 1
	for before >= 0 && !messages[before].Asks() {
		before--
	}
	for i := range messages[:max(before, 0)] {
		if m := &messages[i]; m.Clears() {
			m.Text = clearedText(m)
		}
	}
}

// Clears reports whether the message is a result that may leave when the model's cache is cold.
func (m *Message) Clears() bool {
	return m.Role == RoleTool && m.Status == StatusOK && len(m.Text) > clearedBytes && !m.Erased && !tellsOfTools(m.Tool) && m.Tool != loadSkill
}

// loadSkill gives instructions that hold for the rest of a conversation.
const loadSkill = "load_skill"

// savedFile is where a result that was too long lies.
var savedFile = regexp.MustCompile(`tool-output/[\w.-]+`)

// clearedText stands for a result: how it began, and what brings it back.
func clearedText(m *Message) string {
	back := "search_history finds it by its words"
	if file := savedFile.FindString(m.Text); file != "" {
		back = "it is in the file " + file
	}
	return fmt.Sprintf("%s… [left out to keep requests short: %s, or call %s again]",
		strings.ToValidUTF8(m.Text[:clearedHead], ""), back, m.Tool)
}
