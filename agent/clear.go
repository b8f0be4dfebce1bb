package agent

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

const (
	// minClearedBytes is the minimum length of a result that is cleared.
	minClearedBytes = 400
	// minClearedTokens is the minimum saving for which results are cleared.
	minClearedTokens = 1000
	// clearedHeadBytes is the length of the beginning of a cleared result that is kept.
	clearedHeadBytes = 80
)

// clearOldResults records that the results of earlier turns are cleared, if the next request misses the
// model's cache anyway. It keeps the results of this turn and the previous one, and results that
// describe tools. It does nothing after the first request of a turn.
func (r *run) clearOldResults() error {
	if !r.round.ColdCache() || r.rounds() > 0 {
		return nil
	}
	messages, saved := slices.Clone(CompactedHistory(r.history)), 0
	for i := range messages {
		saved += messageSize(&messages[i])
	}
	clearResults(messages)
	if saved -= EstimateTokens(messages); saved < minClearedTokens {
		return nil
	}
	r.agent.log.Info("old tool results cleared because the prompt cache is cold", "session", r.turn.Scope.Session, "tokens", saved)
	return r.emit(Message{Role: RoleCleared})
}

// withoutCleared shortens the results covered by RoleCleared records, and drops those records.
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

// clearResults shortens the results of all turns except the last two.
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
	return m.Role == RoleTool && m.Status == StatusOK && len(m.Text) > minClearedBytes && !m.Erased && !isAboutTools(m.Tool) && m.Tool != loadSkill
}

// loadSkill is the tool whose results, a skill's instructions, apply to the rest of the conversation.
const loadSkill = "load_skill"

// savedFile matches the path of the file to which a long result was saved.
var savedFile = regexp.MustCompile(`tool-output/[\w.-]+`)

// clearedText returns the text of a cleared result: its beginning, and how to get the rest.
func clearedText(m *Message) string {
	back := "search_history finds it by its words"
	if file := savedFile.FindString(m.Text); file != "" {
		back = "it is in the file " + file
	}
	return fmt.Sprintf("%s… [left out to keep requests short: %s, or call %s again]",
		strings.ToValidUTF8(m.Text[:clearedHeadBytes], ""), back, m.Tool)
}
