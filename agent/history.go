package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"

	"oneclaw/toolgroups"
)

// Error codes of results that the agent itself creates, in addition to those of package toolgroups.
const (
	// CodeInterrupted: the call was started, and its outcome is unknown.
	CodeInterrupted = "interrupted"
	// CodeCrashed: the program ended twice while the call ran, so it is not run again.
	CodeCrashed = "crashed"
	// CodeStopped: the turn was stopped before the call had a result.
	CodeStopped = "stopped"
	// CodeGated: the turn's gate did not allow the call.
	CodeGated = "denied"
	// CodeLoop: the call was not run, because it had failed too often.
	CodeLoop = "loop"
	// CodeTooMany: one reply made more calls than are run for a reply.
	CodeTooMany = "too_many_calls"
	// CodeLastStep: the turn had used its rounds or tokens, so nothing could follow the call.
	CodeLastStep = "last_step"
	// CodeTruncated: the model's output limit cut the arguments off.
	CodeTruncated = "truncated"
)

// Texts that stand in for a missing result or answer.
const (
	// TextInterrupted is the result of a call that was started and has no result.
	TextInterrupted = "This call was interrupted: it had begun, and it is unknown whether it took effect. " +
		"Check the present state before you repeat it, and tell the user if it cannot be checked."
	// textInterruptedPaid is the result of a call of a paid tool that was started and has no result.
	textInterruptedPaid = "This call was interrupted: it had begun, its result is lost, and it may have been paid. " +
		"Do not repeat it by yourself: tell the user, and make the call again only if they ask for it."
	// TextCrashed is the result of a call that can be repeated and was cut off twice.
	TextCrashed = "This call was cut off twice: the program ended while it ran, and the call may be the cause, " +
		"so it is not run again. Do not repeat it. Go on without it, or tell the user that it could not be done."
	// TextStopped is the result of a call in a turn that was stopped.
	TextStopped = "The turn was stopped before this call had a result. If it had begun, it may have taken effect. " +
		"Do not repeat it unless the user asks for it."
	// NoteStopped replaces the answer of a turn that the user stopped, NoteGivenUp that of a turn that
	// could not be completed.
	NoteStopped = "[This turn was stopped by the user. What was asked before is not to be continued unless the user asks for it again.]"
	NoteGivenUp = "[This turn failed and was given up; the user was told so. What was asked before is not to be continued unless the user asks for it again.]"
	// textOmitted and noteOmitted stand for the question and the answer of a turn that is left out.
	textOmitted = "[A message of mine is left out here, because it could not be answered.]"
	noteOmitted = "[That turn is left out with what was said in it. Of its calls: %s. What was done stays done and is not to be repeated unless the user asks for it.]"
)

// exchange has what is recorded of an assistant message's calls. Both slices have one element per call.
type exchange struct {
	results []int  // index of the result, or -1
	started []bool // whether there is a start record
}

// pairCalls finds the results and start records of the calls of history[at], an assistant message. They
// may be in any order, with user messages between them, but all precede the next assistant message.
func pairCalls(history []Message, at int) exchange {
	calls := history[at].Calls
	x := exchange{results: slices.Repeat([]int{-1}, len(calls)), started: make([]bool, len(calls))}
	for i := at + 1; i < len(history) && history[i].Role != RoleAssistant; i++ {
		m := &history[i]
		for n := range calls {
			if calls[n].ID != m.CallID {
				continue
			}
			if m.Role == RoleTool && x.results[n] < 0 {
				x.results[n] = i
				break
			}
			if m.Role == RoleStarted && !x.started[n] {
				x.started[n] = true
				break
			}
		}
	}
	return x
}

// Arrange returns the messages in the form that models require, however the turns ended. Results follow
// the message with their calls, in the order of the calls, and each call has exactly one result; a
// missing result is replaced by one with [CodeInterrupted]. Records that are not for a model, results
// without a call, and messages that the newest summary covers ([CompactedHistory]) are left out.
//
// If nothing needs to change, the result shares the history's memory, so that long histories stay
// cheap.
func Arrange(history []Message) []Message {
	history = CompactedHistory(history)
	n := countArranged(history)
	if n == len(history) {
		return slices.Clip(history)
	}
	out := append(make([]Message, 0, len(history)+1), history[:n]...)
	for i := n; i < len(history); i++ {
		m := &history[i]
		switch {
		case m.ShownAsUser():
			out = append(out, *m)
		case m.Role == RoleAssistant && len(m.Calls) > 0:
			out = append(out, *m)
			out = appendResults(out, history, i)
		case m.Role == RoleAssistant && strings.TrimSpace(m.Text) != "":
			out = append(out, *m)
		}
	}
	return out
}

// countArranged returns how many messages at the beginning are already in the form that [Arrange]
// returns.
func countArranged(history []Message) int {
	for i := 0; i < len(history); {
		m := &history[i]
		switch {
		case m.ShownAsUser():
			i++
		case m.Role == RoleAssistant && len(m.Calls) > 0 && isAnswered(history[i:]):
			i += 1 + len(m.Calls)
		case m.Role == RoleAssistant && len(m.Calls) == 0 && strings.TrimSpace(m.Text) != "":
			i++
		default:
			return i
		}
	}
	return len(history)
}

// isAnswered reports whether the results of the first message's calls follow it in order.
func isAnswered(history []Message) bool {
	calls := history[0].Calls
	if len(history) <= len(calls) {
		return false
	}
	for n := range calls {
		if m := &history[1+n]; m.Role != RoleTool || m.CallID != calls[n].ID {
			return false
		}
	}
	return true
}

func appendResults(out, history []Message, at int) []Message {
	x := pairCalls(history, at)
	for n, call := range history[at].Calls {
		if i := x.results[n]; i >= 0 {
			out = append(out, history[i])
		} else {
			out = append(out, failure(call, CodeInterrupted, TextInterrupted))
		}
	}
	return out
}

// failure returns an error result of a call.
func failure(call Call, code, text string) Message {
	return Message{Role: RoleTool, CallID: call.ID, Tool: call.EffectiveTool(), Status: StatusError, Code: code, Text: text, Origin: toolgroups.OriginOwn}
}

// of returns the result of a call that failed with an error: it is in the program's own words only if the error is.
func (m Message) of(why *toolgroups.Error) Message {
	if m.Origin == toolgroups.OriginOwn && !why.Own {
		m.Origin = ""
	}
	return m
}

// StopMessages returns the messages that end a stopped turn when they are appended to its history: a
// result for each open call, and the note as the final message, which tells the model not to continue.
// It returns nil if no turn is open.
func StopMessages(history []Message, note string) []Message {
	at := lastMessage(history)
	if at < 0 || endsTurn(&history[at]) {
		return nil
	}
	var out []Message
	if history[at].Role == RoleAssistant {
		x := pairCalls(history, at)
		for n, call := range history[at].Calls {
			if x.results[n] < 0 {
				out = append(out, failure(call, CodeStopped, TextStopped))
			}
		}
	}
	return append(out, Message{Role: RoleAssistant, Text: note, Final: true})
}

// OmittedEffects returns the messages that stand for a turn that is left out of requests: they tell the
// model which calls with effects ran, so that it does not repeat them. tools says which tools have effects.
// done are the names of the tools that took effect, unsure those that may have. All are nil if no such call
// ran.
func OmittedEffects(turn []Message, tools *toolgroups.Registry) (stands []Message, done, unsure []string) {
	var ran []string
	times := map[string]int{}
	for i := range turn {
		if turn[i].Role != RoleAssistant {
			continue
		}
		x := pairCalls(turn, i)
		for n, call := range turn[i].Calls {
			tool, at, outcome := call.EffectiveTool(), x.results[n], " has an unknown outcome"
			known, _ := tools.Tool(tool)
			if known.Effect == toolgroups.ReadOnly || !x.started[n] && (!known.Repeatable || at < 0 || !hasRun(&turn[at])) {
				continue
			}
			switch {
			case at >= 0 && turn[at].Status == StatusOK:
				outcome = " succeeded"
				done = appendNew(done, tool)
			case at >= 0 && (turn[at].Code == toolgroups.CodeInvalid || toolgroups.IsRefusal(turn[at].Code)):
				outcome = " failed" // before it did anything
			default: // an error may come after the effect, such as a time-out
				unsure = appendNew(unsure, tool)
			}
			if times[tool+outcome]++; times[tool+outcome] == 1 {
				ran = append(ran, tool+outcome)
			}
		}
	}
	if len(ran) == 0 {
		return nil, nil, nil
	}
	for i, what := range ran {
		if n := times[what]; n > 1 {
			ran[i] = fmt.Sprintf("%s %d times", what, n)
		}
	}
	return []Message{
		{Role: RoleUser, Text: textOmitted, Sender: turn[0].Sender, AuthorKey: turn[0].AuthorKey},
		{Role: RoleAssistant, Text: fmt.Sprintf(noteOmitted, strings.Join(ran, ", ")), Final: true},
	}, done, unsure
}

// hasRun reports by the result of a call whether its tool ran. A repeatable call may have no start record.
func hasRun(m *Message) bool { return m.Code == "" || slices.Contains(codesBrokenOff, m.Code) }

// codesBrokenOff are the codes of tools that ran and broke off, so that they may have taken effect. A tool that refuses
// what it is asked has another code.
var codesBrokenOff = []string{toolgroups.CodeExecution, toolgroups.CodeTimeout, toolgroups.CodeCancelled}

// IsUnknownOutcome reports whether a message is the result of a call of which, if it had begun, nobody can tell whether
// it was done: the tool broke off, or the process was killed or the turn stopped before its result was recorded.
func (m *Message) IsUnknownOutcome() bool {
	return m.Role == RoleTool && slices.Contains(append([]string{CodeInterrupted, CodeCrashed, CodeStopped}, codesBrokenOff...), m.Code)
}

// appendNew appends a name unless the list has it.
func appendNew(names []string, name string) []string {
	if slices.Contains(names, name) {
		return names
	}
	return append(names, name)
}

// endsTurn reports whether the turn is complete with this message.
func endsTurn(m *Message) bool {
	return m.Role == RoleSummary || m.Role == RoleAssistant && (m.Final || len(m.Calls) == 0)
}

// lastMessage returns the index of the last user message, reply or summary, or -1. That message
// determines the next step of a turn.
func lastMessage(history []Message) int {
	for i, h := range slices.Backward(history) {
		if r := h.Role; r == RoleUser || r == RoleAssistant || r == RoleSummary {
			return i
		}
	}
	return -1
}

// turnStart returns the index of the message that precedes the replies of the current turn, or -1.
func turnStart(history []Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		m := &history[i]
		if m.BeginsTurn() || m.Role == RoleSummary || m.Role == RoleAssistant && m.Final {
			return i
		}
	}
	return -1
}

// Hash returns a hash of a call's tool and arguments. It is stored in [Message.Hash], and approvals
// should be bound to it.
func Hash(tool, arguments string) string {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write([]byte(arguments))
	return hex.EncodeToString(h.Sum(nil))
}
