package anthropic

import "oneclaw/toolgroups"

// What the cache does, as platform.claude.com/docs/en/build-with-claude/prompt-caching says
// (2026-11): a request has at most four marks; what stands in front of one is kept as a
// whole, and is found again from a mark at most so many blocks behind its end, the mark's
// own counted.
const (
	maxMarks = 4
	lookBack = 20
)

// mark says up to where a request is to be kept: the end of the messages, for the next
// request; the end of what the request before this one had, where that is too far back to
// be found from there; the prompt, which all conversations share; and the tools, without
// those of the group that was loaded last and with them, so that a load writes nothing anew
// but what stands behind it.
//
// All are kept for an hour where that is asked for.
func mark(r *request, tools []toolgroups.Tool, hour bool) {
	left := maxMarks
	set := func(mark **cached) {
		if mark != nil && left > 0 && *mark == nil {
			*mark = &cached{Type: "ephemeral"}
			if hour {
				(*mark).TTL = "1h"
			}
			left--
		}
	}
	if n := len(r.Messages); n > 0 {
		set(lastBlock(r.Messages[n-1].Content))
		if before := beforeReply(r.Messages); before >= 0 && blocks(r.Messages[before+1:]) >= lookBack {
			set(lastBlock(r.Messages[before].Content))
		}
	}
	if n := len(r.System); n > 0 {
		set(&r.System[n-1].Mark)
	}
	for _, end := range ends(r.Tools, tools) {
		set(&r.Tools[end-1].Mark)
	}
}

// ends are where the tools end that are not deferred, the provider's search among them:
// without those of the newest group, and with them.
func ends(wire []tool, tools []toolgroups.Tool) (ends []int) {
	open := 0
	for open < len(wire) && !wire[open].Deferred {
		open++
	}
	before := open
	for newest := group(tools, open-1); newest != "" && before > 0 && group(tools, before-1) == newest; {
		before--
	}
	for _, end := range []int{before, open} {
		if end > 0 {
			ends = append(ends, end)
		}
	}
	return ends
}

// group is that of a tool of the array, where it is offered as it is.
func group(tools []toolgroups.Tool, i int) string {
	if i < 0 || i >= len(tools) || tools[i].Deferred {
		return ""
	}
	return tools[i].Group
}

// lastBlock is the mark of the last block of a message that can have one.
func lastBlock(all []content) **cached {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].raw == nil {
			return &all[i].Mark
		}
	}
	return nil
}

// beforeReply is where the request before this one ended: in front of the last reply; -1 for
// a first request.
func beforeReply(messages []message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == roleAssistant {
			return i - 1
		}
	}
	return -1
}

func blocks(messages []message) (n int) {
	for _, m := range messages {
		n += len(m.Content)
	}
	return n
}
