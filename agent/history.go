package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"strings"
)

// Error codes of results that the agent itself makes, in addition to those of toolgroups.
const (
	// CodeInterrupted: the call was started, and its outcome is unknown.
	CodeInterrupted = "interrupted"
	// CodeCrashed: the program ended twice while the call ran, so it is not run again.
	CodeCrashed = "crashed"
	// CodeStopped: the turn was stopped before the call had a result.
	CodeStopped = "stopped"
	// CodeGated: the gate said no.
	CodeGated = "denied"
	// CodeLoop: the call was not run, because it failed the same way too often.
	CodeLoop = "loop"
	// CodeTooMany: one reply asked for more calls than are run at once.
	CodeTooMany = "too_many_calls"
	// CodeTruncated: the model's output limit cut the arguments off.
	CodeTruncated = "truncated"
)

// Texts of messages in place of something that did not happen.
const (
	// TextInterrupted is the result of a call that was started and has no result.
	TextInterrupted = "This call was interrupted: it had begun, and it is unknown whether it took effect. " +
		"Check the present state before you repeat it, and tell the user if it cannot be checked."
	// TextCrashed is the result of a reading call that was cut off twice.
	TextCrashed = "This call was cut off twice: the program ended while it ran, and the call may be the cause, " +
		"so it is not run again. Do not repeat it. Go on without it, or tell the user that it could not be done."
	// TextStopped is the result of a call in a turn that was stopped.
	TextStopped = "The turn was stopped before this call had a result. If it had begun, it may have taken effect. " +
		"Do not repeat it unless the user asks for it."
	// NoteStopped replaces the answer of a turn that the user stopped, NoteGivenUp that of a turn that
	// could not be completed.
	NoteStopped = "[This turn was stopped by the user. What was asked before is not to be continued unless the user asks for it again.]"
	NoteGivenUp = "[This turn failed and was given up; the user was told so. What was asked before is not to be continued unless the user asks for it again.]"
)

// exchange is an assistant message with the positions of its calls' records. Both slices run parallel
// to the calls.
type exchange struct {
	results []int // index of the result, or -1
	started []bool
}

// pair finds the results and starts of the calls of history[at], an assistant message. They may come in
// any order, and user messages may lie between, but none follows the next assistant message.
func pair(history []Message, at int) exchange {
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

// Arrange returns the messages as a model must see them, however the turns ended: each result follows
// the message that called for it, in the order of the calls; each call has exactly one result, a
// made-up one (interrupted) if it had none; records that are not for a model, or answer no call, are
// left out. Messages that the newest summary covers are left out too ([Compacted]).
//
// The result shares the memory of the history if nothing needs to change, which keeps long histories
// cheap.
func Arrange(history []Message) []Message {
	history = Compacted(history)
	n := arranged(history)
	if n == len(history) {
		return slices.Clip(history)
	}
	out := append(make([]Message, 0, len(history)+1), history[:n]...)
	for i := n; i < len(history); i++ {
		m := &history[i]
		switch {
		case m.Heard():
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

// arranged returns how many messages at the beginning are in order already, up to the first exchange
// that is not.
func arranged(history []Message) int {
	for i := 0; i < len(history); {
		m := &history[i]
		switch {
		case m.Heard():
			i++
		case m.Role == RoleAssistant && len(m.Calls) > 0 && answered(history[i:]):
			i += 1 + len(m.Calls)
		case m.Role == RoleAssistant && len(m.Calls) == 0 && strings.TrimSpace(m.Text) != "":
			i++
		default:
			return i
		}
	}
	return len(history)
}

// answered reports whether the results of the first message's calls follow it in order.
func answered(history []Message) bool {
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
	x := pair(history, at)
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
	return Message{Role: RoleTool, CallID: call.ID, Tool: call.Runs(), Status: StatusError, Code: code, Text: text}
}

// Stop returns what must be appended to the history of a stopped turn to end it: a result for each open
// call, and the note as a final message, which tells the model not to continue. It returns nothing if
// no turn is open.
func Stop(history []Message, note string) []Message {
	at := lastSpoken(history)
	if at < 0 || ends(&history[at]) {
		return nil
	}
	var out []Message
	if history[at].Role == RoleAssistant {
		x := pair(history, at)
		for n, call := range history[at].Calls {
			if x.results[n] < 0 {
				out = append(out, failure(call, CodeStopped, TextStopped))
			}
		}
	}
	return append(out, Message{Role: RoleAssistant, Text: note, Final: true})
}

// ends reports whether nothing has to be done after the message.
func ends(m *Message) bool {
	return m.Role == RoleSummary || m.Role == RoleAssistant && (m.Final || len(m.Calls) == 0)
}

// lastSpoken returns the index of the last message that is neither a result nor a start, or -1. It
// decides what has to be done next.
func lastSpoken(history []Message) int {
	for i, h := range slices.Backward(history) {
		if r := h.Role; r == RoleUser || r == RoleAssistant || r == RoleSummary {
			return i
		}
	}
	return -1
}

// turnStart returns the index of the message that precedes the present turn.
func turnStart(history []Message) int {
	for i := len(history) - 1; i >= 0; i-- {
		m := &history[i]
		if m.BeginsTurn() || m.Role == RoleSummary || m.Role == RoleAssistant && m.Final {
			return i
		}
	}
	return -1
}

// Hash identifies a call by its tool and arguments. It is stored in [Message.Hash], and an approval
// should be bound to it.
func Hash(tool, arguments string) string {
	h := sha256.New()
	h.Write([]byte(tool))
	h.Write([]byte{0})
	h.Write([]byte(arguments))
	return hex.EncodeToString(h.Sum(nil))
}
