package agent

import (
	"fmt"

	"oneclaw/toolgroups"
)

// Bounds for a turn that loops. (In production, one turn made 61 refused calls of one tool.)
const (
	// maxSameFailures bounds how often the same call (tool, arguments and error) may fail.
	maxSameFailures = 3
	// maxToolFailures bounds how often one tool may fail in a row.
	maxToolFailures = 8
	// maxLoopRounds is the number of consecutive rounds with nothing but stopped calls that ends a turn.
	maxLoopRounds = 3
)

// failureCounts counts the failures of a turn from the history, so that the counts survive a restart.
type failureCounts struct {
	byCall      map[failureKey]int
	consecutive map[string]int // failures of a tool that ran, since its last success
	refused     map[string]int // calls of a tool that could not be run
	loopRounds  int            // consecutive rounds in which every call was stopped
}

type failureKey struct{ tool, arguments, code string }

// countFailures counts the failures in the last turn of a history.
func countFailures(history []Message) failureCounts {
	b := failureCounts{byCall: map[failureKey]int{}, consecutive: map[string]int{}, refused: map[string]int{}}
	for i := turnStart(history) + 1; i < len(history); i++ {
		if history[i].Role != RoleAssistant || len(history[i].Calls) == 0 {
			continue
		}
		looped := true
		x := pairCalls(history, i)
		for n, call := range history[i].Calls {
			if x.results[n] >= 0 {
				b.count(call, &history[x.results[n]])
				looped = looped && history[x.results[n]].Code == CodeLoop
			}
		}
		b.loopRounds++
		if !looped {
			b.loopRounds = 0
		}
	}
	return b
}

func (b *failureCounts) count(call Call, result *Message) {
	tool := call.EffectiveTool()
	switch {
	case result.Status == StatusOK:
		delete(b.consecutive, tool)
		delete(b.consecutive, call.Name)
		return
	case result.Code == CodeLoop, result.Code == CodeTooMany:
		return
	case toolgroups.IsRefusal(result.Code): // counted apart: the tool may have become runnable
		b.refused[tool]++
	default:
		b.consecutive[tool]++
	}
	b.byCall[failureKey{tool, call.EffectiveArguments(), result.Code}]++
}

// refuse returns the result of a call that cannot be run. A malformed call through tool_call counts as a
// failure of the tool that it names, or of tool_call if it names none.
func (b *failureCounts) refuse(call Call, why *toolgroups.Error) Message {
	tries, same := b.refused[call.EffectiveTool()]+b.consecutive[call.EffectiveTool()], b.byCall[failureKey{call.EffectiveTool(), call.EffectiveArguments(), why.Code}]
	n := max(tries, same)
	if tries < maxToolFailures && same < maxSameFailures {
		return failure(call, why.Code, why.Message).of(why)
	}
	return failure(call, CodeLoop, fmt.Sprintf("%s\nThis was refused %d times in this turn. Do not call it like this again: "+
		"do first what the sentence above says, or answer the user with what you have.", why.Message, n)).of(why)
}

// blockedResult returns the result of a call that is not run because it failed too often.
func (b *failureCounts) blockedResult(call Call) (Message, bool) {
	tool := call.EffectiveTool()
	if n := b.consecutive[tool]; n >= maxToolFailures {
		return failure(call, CodeLoop, fmt.Sprintf("Tool '%s' failed %d times in a row in this turn and is not run any more. "+
			"Stop calling it and tell the user what went wrong.", tool, n)), true
	}
	if b.byCall[failureKey{tool, call.EffectiveArguments(), CodeCrashed}] > 0 {
		return failure(call, CodeLoop, fmt.Sprintf("This very call of '%s' was cut off twice in this turn because the program ended, "+
			"and is not run again. Go on without it, or tell the user that it could not be done.", tool)), true
	}
	for f, n := range b.byCall {
		if n >= maxSameFailures && f.tool == tool && f.arguments == call.EffectiveArguments() && !toolgroups.IsRefusal(f.code) {
			return failure(call, CodeLoop, fmt.Sprintf("This very call of '%s' failed %d times in this turn (%s) and is not run again. "+
				"Change the arguments, use another tool, or tell the user what went wrong.", tool, n, f.code)), true
		}
	}
	return Message{}, false
}
