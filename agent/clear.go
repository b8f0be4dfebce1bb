package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// clearedBytes is the least length of a result that is cleared.
	clearedBytes = 400
	// clearedTokens is the least that a clearing must save to be worth a record.
	clearedTokens = 1000
	// clearedHead is how much of the beginning of a cleared result stays.
	clearedHead = 80
)

// clear records that the results of former turns are cleared, if the next request misses the model's
// cache anyway. Results that the present turn, the previous one or an open approval needs stay, and so
// do those about tools. It is called at the beginning of a turn, never within it.
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

// withoutCleared shortens the results that RoleCleared records cover, and leaves out the records.
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

// clearResults shortens the results of all turns but the last two.
func clearResults(messages []Message) {
	present := turnStart(messages)
	before := present - 1
	for before >= 0 && !messages[before].BeginsTurn() {
		before--
	}
	for i := range messages[:max(before, 0)] {
		if m := &messages[i]; m.Clearable() {
			m.Text = clearedText(m)
		}
	}
}

// Clearable reports whether the message is a result that may be cleared while the model's cache is cold.
func (m *Message) Clearable() bool {
	return m.Role == RoleTool && m.Status == StatusOK && len(m.Text) > clearedBytes && !m.Erased && !tellsOfTools(m.Tool) && m.Tool != loadSkill
}

// loadSkill returns instructions that hold for the rest of a conversation.
const loadSkill = "load_skill"

// savedFile matches the file that holds a result which was too long.
var savedFile = regexp.MustCompile(`tool-output/[\w.-]+`)

// clearedText returns the text of a cleared result: its beginning, and how to get the rest.
func clearedText(m *Message) string {
	back := "search_history finds it by its words"
	if file := savedFile.FindString(m.Text); file != "" {
		back = "it is in the file " + file
	}
	return fmt.Sprintf("%s… [left out to keep requests short: %s, or call %s again]",
		strings.ToValidUTF8(m.Text[:clearedHead], ""), back, m.Tool)
}
