package anthropic

import "oneclaw/toolgroups"

// Rules of the cache (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11): a request
// has at most four marks; all in front of a mark is cached as a whole, and a later mark finds it if it
// is at most this many blocks further on, its own block counted.
const (
	maxMarks = 4
	lookBack = 20
)

// mark sets where the cache ends: at the end of the messages, for the next request; at the end of the
// previous request, if that is too far back to be found from there; at the prompt, which all
// conversations share; and at the tools, without and with the group that was loaded last, so that a
// load rewrites only what follows it.
//
// With hour, all are kept for an hour.
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
		set(lastMark(r.Messages[n-1].Content))
		if before := beforeReply(r.Messages); before >= 0 && blocks(r.Messages[before+1:]) >= lookBack {
			set(lastMark(r.Messages[before].Content))
		}
	}
	if n := len(r.System); n > 0 {
		set(&r.System[n-1].Mark)
	}
	for _, end := range toolEnds(r.Tools, tools) {
		set(&r.Tools[end-1].Mark)
	}
}

// toolEnds returns where the tools end that are not deferred, the provider's search included: without the
// newest group, and with it.
func toolEnds(wire []tool, tools []toolgroups.Tool) (ends []int) {
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

// group returns the group of a tool of the array, if the tool is not deferred.
func group(tools []toolgroups.Tool, i int) string {
	if i < 0 || i >= len(tools) || tools[i].Deferred {
		return ""
	}
	return tools[i].Group
}

// lastMark returns the mark of the last block of a message that can have one.
func lastMark(all []content) **cached {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].raw == nil {
			return &all[i].Mark
		}
	}
	return nil
}

// beforeReply returns where the previous request ended: in front of the last reply; -1 for a first
// request.
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
