package agent

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/toolgroups"
)

const (
	// BytesPerToken is the usual rule of thumb. It counts bytes instead of characters because other
	// scripts need more tokens per character.
	BytesPerToken = 4
	// messageTokens is the overhead of a message in tokens.
	messageTokens = 4
	// windowSteps is the number of steps in which the beginning of a full window advances. It advances
	// rarely and by a lot, so that a provider's prompt cache remains valid in between.
	windowSteps = 4
	// shrunkBytes is the length to which large results are shortened.
	shrunkBytes = 400
	// resultShare is the share of a small context that one result may take, in percent, so that several
	// pieces of a document fit beside the conversation.
	resultShare = 20
)

// EstimateTokens estimates the tokens of messages, without a tokenizer.
func EstimateTokens(messages []Message) int {
	n := 0
	for i := range messages {
		n += messageSize(&messages[i])
	}
	return n
}

// EstimateTextTokens is [EstimateTokens] without the pictures, whose bytes are not in a log.
func EstimateTextTokens(messages []Message) int {
	n := 0
	for i := range messages {
		n += messageTextSize(&messages[i])
	}
	return n
}

func messageSize(m *Message) int { return messageTextSize(m) + messagePictureTokens(m) }

func messageTextSize(m *Message) int {
	n := len(m.Text) + len(m.LoadedGroups) + len(m.QuotedText()) + len(m.Recalled) + len(m.Sender)
	if !strings.HasPrefix(m.Reasoning, thoughtPrefix) {
		n += len(m.Reasoning)
	}
	for i := range m.Calls {
		n += len(m.Calls[i].Name) + len(m.Calls[i].Arguments)
	}
	for i := range m.Files {
		n += len(m.Files[i].Path)
	}
	return n/BytesPerToken + messageTokens
}

// Window returns the part of a history that is sent to a model, arranged by [Arrange], of at most about
// maxTokens; 0 means no bound. It begins with the summary, if there is one, and a question, and contains
// the last question and everything after it. Earlier turns are left out as a whole, the oldest first. If
// the last turn alone is too large, its large results are shortened, the oldest first. left is the
// number of messages that did not fit.
func Window(history []Message, maxTokens int) (shown []Message, left int) {
	whole := Arrange(history)
	head := 0 // how many summaries come first
	if len(whole) > 0 && whole[0].Role == RoleSummary {
		head = 1
	}
	summary, messages := whole[:head:head], whole[head:]
	from := firstQuestion(messages, head == 1)
	if maxTokens > 0 {
		maxTokens -= EstimateTokens(summary)
		if excess := EstimateTokens(messages[from:]) - maxTokens; excess > 0 {
			left = windowStart(messages[from:], excess, maxTokens)
			from += left
			if excess = EstimateTokens(messages[from:]) - maxTokens; excess > 0 {
				return append(summary, shrinkResults(slices.Clone(messages[from:]), excess)...), left
			}
		}
	}
	switch {
	case from == 0:
		return whole, left
	case head == 0:
		return messages[from:], left
	}
	return append(summary, messages[from:]...), left
}

// firstQuestion returns the index of the first message that begins a turn. Behind a summary, a message that
// joined a turn counts as well: stored summaries may end in front of one.
func firstQuestion(messages []Message, summarized bool) int {
	return max(0, slices.IndexFunc(messages, func(m Message) bool { return m.BeginsTurn() || summarized && m.Role == RoleUser }))
}

// windowStart returns the index of the question at which the window begins. The messages before it have at
// least need tokens, rounded up to whole steps if possible; if there is no such question, it is the last.
func windowStart(messages []Message, need, maxTokens int) int {
	step := max(1, maxTokens/windowSteps)
	wanted := (need + step - 1) / step * step
	passed, enough, last := 0, -1, 0
	for i := range messages {
		if messages[i].BeginsTurn() {
			if passed >= wanted {
				return i
			}
			if passed >= need && enough < 0 {
				enough = i
			}
			last = i
		}
		passed += messageSize(&messages[i])
	}
	if enough >= 0 {
		return enough
	}
	return last
}

// shrinkResults shortens large results, the oldest first, until excess tokens are saved.
func shrinkResults(messages []Message, excess int) []Message {
	for i := 0; i < len(messages) && excess > 0; i++ {
		m := &messages[i]
		if m.Role != RoleTool || len(m.Text) <= 2*shrunkBytes {
			continue
		}
		before := messageSize(m)
		if m.Tool == toolgroups.LoadToolGroup {
			// Keep the tools' names, so that the group need not be loaded again.
			m.Text = toolgroups.ShortLoadText(m.Text)
			excess -= before - messageSize(m)
			continue
		}
		head := strings.ToValidUTF8(m.Text[:shrunkBytes], "")
		m.Text = fmt.Sprintf("%s\n[shortened to fit the model's context: %d more characters. Call the tool again if you need them.]",
			head, utf8.RuneCountInString(m.Text)-utf8.RuneCountInString(head))
		excess -= before - messageSize(m)
	}
	return messages
}
