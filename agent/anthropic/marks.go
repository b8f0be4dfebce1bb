package anthropic

import "oneclaw/toolgroups"

// Rules of the cache (platform.claude.com/docs/en/build-with-claude/prompt-caching, 2026-11): a request
// has at most four breakpoints. The prompt up to a breakpoint is cached as one prefix, and a later
// breakpoint finds that prefix if it is at most lookBack blocks further on, its own block included.
const (
	maxBreakpoints = 4
	lookBack       = 20
)

// setBreakpoints sets the cache breakpoints: at the end of the messages, for the next request; at the
// end of the previous request, if it is too far back to be found from there; at the prompt, which all
// conversations share; and at the tools, without and with the group that was loaded last, so that
// loading a group rewrites only what follows the tools before it.
//
// If hour is true, the provider keeps the cached prefixes for an hour.
func setBreakpoints(r *request, tools []toolgroups.Tool, hour bool) {
	left := maxBreakpoints
	set := func(mark **cacheControl) {
		if mark != nil && left > 0 && *mark == nil {
			*mark = &cacheControl{Type: "ephemeral"}
			if hour {
				(*mark).TTL = "1h"
			}
			left--
		}
	}
	if n := len(r.Messages); n > 0 {
		set(lastBreakpoint(r.Messages[n-1].Content))
		if before := previousRequestEnd(r.Messages); before >= 0 && countBlocks(r.Messages[before+1:]) >= lookBack {
			set(lastBreakpoint(r.Messages[before].Content))
		}
	}
	if n := len(r.System); n > 0 {
		set(&r.System[n-1].CacheControl)
	}
	for _, end := range toolEnds(tools) {
		set(&r.Tools[end-1].CacheControl)
	}
}

// toolEnds returns where the tools end, first without the newest group and then with it.
func toolEnds(tools []toolgroups.Tool) (ends []int) {
	before := len(tools)
	for before > 0 && tools[before-1].Group != "" && tools[before-1].Group == tools[len(tools)-1].Group {
		before--
	}
	for _, end := range []int{before, len(tools)} {
		if end > 0 {
			ends = append(ends, end)
		}
	}
	return ends
}

// lastBreakpoint returns the cache_control field of the last block that can have one.
func lastBreakpoint(all []content) **cacheControl {
	for i := len(all) - 1; i >= 0; i-- {
		if all[i].raw == nil {
			return &all[i].CacheControl
		}
	}
	return nil
}

// previousRequestEnd returns the index of the previous request's last message, which precedes the last
// reply; -1 if there was no previous request.
func previousRequestEnd(messages []message) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == roleAssistant {
			return i - 1
		}
	}
	return -1
}

func countBlocks(messages []message) (n int) {
	for _, m := range messages {
		n += len(m.Content)
	}
	return n
}
