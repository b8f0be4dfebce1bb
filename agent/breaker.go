package agent

import (
	"fmt"

	"oneclaw/toolgroups"
)

// Bounds of a turn that loops. (In the field one turn had 61 refused calls of one tool.)
const (
	// sameFailures is how often one call (tool, arguments and error) may fail.
	sameFailures = 3
	// toolFailures is how often one tool may fail in a row.
	toolFailures = 8
	// loopRounds is how many rounds in which every call is a broken loop end a turn.
	loopRounds = 3
)

// breaker counts the failures of a turn from the history, so that it survives a restart.
type breaker struct {
	same    map[failed]int
	row     map[string]int // failures of a tool that ran, since its last success
	refused map[string]int // calls of a tool that could not be run
	loops   int            // rounds at the end in which every call was a loop
}

type failed struct{ tool, arguments, code string }

// tally counts the failures of the last turn of a history.
func tally(history []Message) breaker {
	b := breaker{same: map[failed]int{}, row: map[string]int{}, refused: map[string]int{}}
	for i := turnStart(history) + 1; i < len(history); i++ {
		if history[i].Role != RoleAssistant || len(history[i].Calls) == 0 {
			continue
		}
		looped := true
		x := pair(history, i)
		for n, call := range history[i].Calls {
			if x.results[n] >= 0 {
				b.count(call, &history[x.results[n]])
				looped = looped && history[x.results[n]].Code == CodeLoop
			}
		}
		b.loops++
		if !looped {
			b.loops = 0
		}
	}
	return b
}

func (b *breaker) count(call Call, result *Message) {
	tool := call.Runs()
	switch {
	case result.Status == StatusOK:
		delete(b.row, tool)
		delete(b.row, call.Name)
		return
	case result.Code == CodeLoop, result.Code == CodeTooMany:
		return
	case toolgroups.IsRefusal(result.Code): // does not count against a tool that can be run by now
		b.refused[tool]++
	default:
		b.row[tool]++
	}
	b.same[failed{tool, call.Arg(), result.Code}]++
}

// refuse returns the result of a call that cannot be run. A call through another tool that was
// malformed counts as a failure of that tool.
func (b *breaker) refuse(call Call, why *toolgroups.Error) Message {
	tries, same := b.refused[call.Runs()]+b.row[call.Runs()], b.same[failed{call.Runs(), call.Arg(), why.Code}]
	n := max(tries, same)
	if tries < toolFailures && same < sameFailures {
		return failure(call, why.Code, why.Message)
	}
	return failure(call, CodeLoop, fmt.Sprintf("%s\nThis was refused %d times in this turn. Do not call it like this again: "+
		"do first what the sentence above says, or answer the user with what you have.", why.Message, n))
}

// blocks returns the result of a call that is not run because it failed too often.
func (b *breaker) blocks(call Call) (Message, bool) {
	tool := call.Runs()
	if n := b.row[tool]; n >= toolFailures {
		return failure(call, CodeLoop, fmt.Sprintf("Tool '%s' failed %d times in a row in this turn and is not run any more. "+
			"Stop calling it and tell the user what went wrong.", tool, n)), true
	}
	if b.same[failed{tool, call.Arg(), CodeCrashed}] > 0 {
		return failure(call, CodeLoop, fmt.Sprintf("This very call of '%s' was cut off twice in this turn because the program ended, "+
			"and is not run again. Go on without it, or tell the user that it could not be done.", tool)), true
	}
	for f, n := range b.same {
		if n >= sameFailures && f.tool == tool && f.arguments == call.Arg() && !toolgroups.IsRefusal(f.code) {
			return failure(call, CodeLoop, fmt.Sprintf("This very call of '%s' failed %d times in this turn (%s) and is not run again. "+
				"Change the arguments, use another tool, or tell the user what went wrong.", tool, n, f.code)), true
		}
	}
	return Message{}, false
}
