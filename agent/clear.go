package agent

import (
	"fmt"
	"regexp"
	"strings"
	"unicode/utf8"
)

const (
	// minClearedBytes is the minimum length of a result that is cleared.
	minClearedBytes = 400
	// minClearedTokens is the minimum saving for which results are cleared: a clearing is a record in the log.
	minClearedTokens = 300
	// clearedHeadBytes is the length of the beginning of a cleared result that is kept.
	clearedHeadBytes = 80
)

// clearOldResults records that the results of earlier turns are cleared, if the next request misses the
// model's cache anyway. If a small context cannot hold the next request, it records that all long texts of
// earlier turns are cleared. It keeps those of this turn and the previous one, and results that describe
// tools or hold a skill. It does nothing after the first request of a turn.
func (r *run) clearOldResults() error {
	if rounds, _, _ := r.countReplies(); rounds > 0 {
		return nil
	}
	texts := isSmallContext(r.contextSize()) && EstimateTokens(r.history) > r.budget()
	if !texts && !r.isCacheCold() {
		return nil
	}
	history, saved := CompactedHistory(r.history), 0
	for _, m := range oldTurns(history) { // one is copied at a time: a long conversation is large
		saved += messageSize(&m)
		clearText(&m, texts)
		saved -= messageSize(&m)
	}
	if saved < minClearedTokens && (!texts || saved < r.budget()/8) {
		return nil
	}
	r.agent.log.Info("old texts cleared from requests", "session", r.turn.Scope.Session, "tokens", saved, "questions_and_answers", texts)
	return r.emit(Message{Role: RoleCleared, ClearsTexts: texts})
}

// clearTurns shortens the results of all turns except the last two, and optionally their other texts.
func clearTurns(messages []Message, texts bool) {
	old := oldTurns(messages)
	for i := range old {
		clearText(&old[i], texts)
	}
}

// oldTurns returns the messages before the last two turns.
func oldTurns(messages []Message) []Message {
	before := turnStart(messages) - 1
	for before >= 0 && !messages[before].BeginsTurn() {
		before--
	}
	return messages[:max(before, 0)]
}

// clearText shortens a result, or optionally another text.
func clearText(m *Message, texts bool) {
	switch {
	case m.Clearable():
		m.Text = clearedText(m)
	case texts && (m.Role == RoleUser || m.Role == RoleAssistant):
		m.Text, m.Recalled, m.Reasoning = shortenText(m.Text), "", ""
		m.Quoted = clipLines(m.Quoted, 2*shrunkBytes)
	}
}

// shortenText shortens a long question or answer to its beginning.
func shortenText(text string) string {
	if len(text) <= 2*shrunkBytes {
		return text
	}
	head := strings.ToValidUTF8(text[:shrunkBytes], "")
	return fmt.Sprintf("%s… [%d more characters are left out to fit the model's context; search_history finds them by their words]",
		head, utf8.RuneCountInString(text)-utf8.RuneCountInString(head))
}

// Clearable reports whether the message is a result that may be cleared while the model's cache is cold.
func (m *Message) Clearable() bool {
	return m.Role == RoleTool && m.Status == StatusOK && len(m.Text) > minClearedBytes && !m.Erased && !isAboutTools(m.Tool) && m.Tool != loadSkill
}

// loadSkill is the tool whose results, a skill's instructions, apply to the rest of the conversation.
const loadSkill = "load_skill"

// cutNote begins the note of a tool about what it left out of a long result. savedFile matches, in this
// note, the path of the file with the whole.
const cutNote = "[cut: "

var savedFile = regexp.MustCompile(`tool-output/[\w.-]+`)

// clearedText returns the text of a cleared result: its beginning, and how to get the rest.
func clearedText(m *Message) string {
	back := "search_history finds the rest"
	// The notes of a tool are the last lines. Other paths in the text are not this call's.
	for rest := m.Text; ; {
		at := strings.LastIndexByte(rest, '\n')
		line := rest[at+1:]
		if at < 0 || line != "" && line[0] != '[' {
			break
		}
		if file := savedFile.FindString(line); file != "" && strings.HasPrefix(line, cutNote) {
			back = "the rest is in the file " + file
		}
		rest = rest[:at]
	}
	return fmt.Sprintf("%s… [shortened: %s, or call %s again]",
		strings.ToValidUTF8(m.Text[:clearedHeadBytes], ""), back, m.Tool)
}
