package anthropic

import (
	"slices"

	api "github.com/anthropics/anthropic-sdk-go"

	"oneclaw/toolgroups"
)

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
func mark(p *api.MessageNewParams, tools []toolgroups.Tool) {
	left := maxMarks
	set := func(c *api.CacheControlEphemeralParam) {
		if c != nil && left > 0 && *c == (api.CacheControlEphemeralParam{}) {
			*c = api.NewCacheControlEphemeralParam()
			left--
		}
	}
	if n := len(p.Messages); n > 0 {
		set(lastBlock(p.Messages[n-1].Content))
		if before := beforeReply(p.Messages); before >= 0 && blocks(p.Messages[before+1:]) >= lookBack {
			set(lastBlock(p.Messages[before].Content))
		}
	}
	if n := len(p.System); n > 0 {
		set(&p.System[n-1].CacheControl)
	}
	for _, end := range ends(p.Tools, tools) {
		set(p.Tools[end-1].GetCacheControl())
	}
}

// ends are where the tools end that are not deferred, the provider's search among them:
// without those of the newest group, and with them.
func ends(wire []api.ToolUnionParam, tools []toolgroups.Tool) (ends []int) {
	open := 0
	for open < len(wire) && (wire[open].OfTool == nil || !wire[open].OfTool.DeferLoading.Value) {
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
func lastBlock(content []api.ContentBlockParamUnion) *api.CacheControlEphemeralParam {
	for _, c := range slices.Backward(content) {
		if c := c.GetCacheControl(); c != nil {
			return c
		}
	}
	return nil
}

// beforeReply is where the request before this one ended: in front of the last reply; -1 for
// a first request.
func beforeReply(messages []api.MessageParam) int {
	for i := len(messages) - 1; i > 0; i-- {
		if messages[i].Role == api.MessageParamRoleAssistant {
			return i - 1
		}
	}
	return -1
}

func blocks(messages []api.MessageParam) (n int) {
	for _, m := range messages {
		n += len(m.Content)
	}
	return n
}
