package openai

import (
	"fmt"
	"slices"
	"strings"

	"oneclaw/agent"
)

// noToolsPrompt ends the system prompt for a server that takes no tools.
const noToolsPrompt = "No tools can be called in this conversation. Answer without them, and say so if a question needs one."

// shapeRequest changes a request into the form that the templates of some models require. The given request
// stays as it is.
func shapeRequest(req agent.Request, q quirks) agent.Request {
	if q.noTools {
		req.System = strings.TrimSpace(req.System + "\n\n" + noToolsPrompt)
		req.Tools, req.Messages = nil, withoutCalls(req.Messages)
	}
	if q.singleCalls {
		req.Messages = oneCallEach(req.Messages)
	}
	if q.noSystem && req.System != "" {
		req.Messages = append([]agent.Message{{Role: agent.RoleUser, Text: req.System}}, req.Messages...)
		req.System = ""
	}
	return req
}

// withoutCalls returns the messages with calls and results as texts.
func withoutCalls(messages []agent.Message) []agent.Message {
	out := make([]agent.Message, 0, len(messages))
	for i := range messages {
		m := messages[i]
		switch {
		case m.Role == agent.RoleTool:
			m = agent.Message{Role: agent.RoleUser, Text: fmt.Sprintf("[Result of %s]\n%s", m.Tool, m.Text), JoinedRef: "result", Files: m.Files}
		case len(m.Calls) > 0:
			var text strings.Builder
			text.WriteString(m.Text)
			for _, c := range m.Calls {
				fmt.Fprintf(&text, "\n[Called %s %s]", c.EffectiveTool(), c.EffectiveArguments())
			}
			m.Text, m.Calls, m.Reasoning = strings.TrimSpace(text.String()), nil, ""
		}
		out = append(out, m)
	}
	return out
}

// oneCallEach returns the messages with each call in a reply of its own, followed by its result.
func oneCallEach(messages []agent.Message) []agent.Message {
	if !slices.ContainsFunc(messages, func(m agent.Message) bool { return len(m.Calls) > 1 }) {
		return messages
	}
	var out []agent.Message
	for i := 0; i < len(messages); i++ {
		m := messages[i]
		out = append(out, m)
		if n := len(m.Calls); n > 1 && i+n < len(messages) { // the results follow in the order of the calls
			out = out[:len(out)-1]
			for k := range m.Calls {
				one := m
				one.Calls = m.Calls[k : k+1]
				if k > 0 {
					one.Text, one.Reasoning = "", ""
				}
				out = append(out, one, messages[i+1+k])
			}
			i += n
		}
	}
	return out
}
