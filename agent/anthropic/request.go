package anthropic

import (
	"encoding/json"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// Bounds of a reply, in tokens: the most that a request asks for, and the default for an unknown model.
const (
	mostOutput    = 32_000
	unknownOutput = 8_192
)

// encode makes a request. Tools, prompt and messages depend only on the input, so that each request
// begins with the bytes of the one before.
func (c *Client) encode(req *agent.Request, q quirks) *request {
	facts := c.Facts()
	r := &request{Model: c.cfg.Model, MaxTokens: unknownOutput, Stream: true}
	if n := facts.Output.Value; n > 0 {
		r.MaxTokens = min(n, mostOutput)
	}
	if n := facts.Context.Value; n > 0 {
		r.MaxTokens = min(r.MaxTokens, max(n/8, 1024))
	}
	r.Tools = encodeTools(req.Tools)
	if strings.TrimSpace(req.System) != "" {
		r.System = []content{text(req.System)}
	}
	e := encoder{client: c, quirks: q, tools: req.Tools, ids: provider.CallIDs{Seen: map[string]struct{}{}}, blind: true}
	if !q.blind && !facts.Sees.No() {
		e.shown, e.blind = provider.Pictures(req, func(file string, err error) {
			c.cfg.Logger.Warn("picture not shown to the model", "model", c.cfg.Model, "file", file, "err", err)
		})
	}
	r.Messages = e.messages(req.Messages)
	c.think(r, req, q, e.unthought)
	if req.Temperature != nil && c.family.temperature && !q.noTemperature && r.Thinking == nil {
		r.Temperature = new(min(*req.Temperature, 1))
	}
	mark(r, req.Tools, req.CacheFor >= time.Hour)
	return r
}

// encodeTools makes the tools array. If tools are deferred, the provider's search comes behind those
// that are not.
func encodeTools(tools []toolgroups.Tool) []tool {
	var open, deferred []tool
	for i := range tools {
		t := tool{
			Name: tools[i].Name, Description: tools[i].Description, Deferred: tools[i].Deferred,
			Schema: provider.ClaudeSchema(tools[i].Schema()),
		}
		if t.Deferred {
			deferred = append(deferred, t)
		} else {
			open = append(open, t)
		}
	}
	if len(deferred) > 0 {
		open = append(open, tool{Type: "tool_search_tool_bm25_20251119", Name: "tool_search_tool_bm25"})
	}
	return append(open, deferred...)
}

// text returns a text block.
func text(s string) content { return content{Type: blockText, Text: s} }

// picture returns a block with a picture.
func picture(p provider.Picture) content {
	return content{Type: "image", Source: &source{Type: "base64", Kind: p.Kind, Data: p.Data}}
}

// continueAnswer adds an answer that was paused, so that the server continues it.
func (r *request) continueAnswer(a *answer) error {
	m := message{Role: roleAssistant}
	for _, p := range a.blocks {
		raw, err := p.raw()
		if err != nil {
			return err
		}
		m.Content = append(m.Content, content{raw: raw})
	}
	r.Messages = append(r.Messages, m)
	return nil
}

// encoder encodes the messages of a request.
type encoder struct {
	client *Client
	quirks quirks
	tools  []toolgroups.Tool
	ids    provider.CallIDs
	// shown holds the pictures, by the index of their message; blind says that there are none because
	// the model cannot see.
	shown map[int][]provider.Picture
	blind bool
	// calls are the calls of the last reply.
	calls []agent.Call
	// unthought says that a reply of the present turn has calls but no thinking of this server, which
	// rules out a thinking budget.
	unthought bool
	out       []message
}

// messages returns messages with alternating roles, a user's first.
func (e *encoder) messages(messages []agent.Message) []message {
	turn := provider.LastUser(messages)
	for i := range messages {
		m := &messages[i]
		switch {
		case m.Heard():
			e.add(roleUser, text(provider.UserText(m, e.blind)))
			for _, p := range e.shown[i] {
				e.add(roleUser, picture(p))
			}
		case m.Role == agent.RoleAssistant:
			e.assistant(m, i > turn)
		case m.Role == agent.RoleTool:
			e.result(m, e.shown[i])
		}
	}
	return e.out
}

// leftOut stands for the beginning of a conversation that would otherwise begin with a reply.
const leftOut = "[What came before is left out.]"

// add appends a block.
func (e *encoder) add(role string, block content) {
	if len(e.out) == 0 && role != roleUser {
		e.out = append(e.out, message{roleUser, []content{text(leftOut)}})
	}
	if n := len(e.out); n > 0 && e.out[n-1].Role == role {
		e.out[n-1].Content = append(e.out[n-1].Content, block)
		return
	}
	e.out = append(e.out, message{role, []content{block}})
}

// assistant writes a reply in its original order, with the blocks that its server wants back.
func (e *encoder) assistant(m *agent.Message, inTurn bool) {
	e.ids.Reply()
	e.calls = m.Calls
	said, called, thought := strings.TrimSpace(m.Text) == "", 0, false
	say := func() {
		if !said {
			e.add(roleAssistant, text(m.Text))
		}
		said = true
	}
	call := func() {
		if called < len(m.Calls) {
			c := &m.Calls[called]
			called++
			e.add(roleAssistant, content{
				Type: blockToolUse, ID: e.ids.Call(c.ID), Name: provider.FunctionName(c.Name), Input: json.RawMessage(provider.Arguments(c.Arguments)),
			})
		}
	}
	carried := unpack(m.Reasoning, e.client.origin)
	for i, b := range carried {
		switch {
		case b.Type == blockText:
			say()
		case b.Type == blockToolUse:
			call()
		case e.goesBack(carried[i:], inTurn):
			thought = thought || b.thinks()
			e.add(roleAssistant, content{raw: b.Raw})
		}
	}
	say()
	for called < len(m.Calls) {
		call()
	}
	e.fill(m, thought)
	e.unthought = e.unthought || inTurn && len(m.Calls) > 0 && !thought
}

// fill adds a placeholder for a reply of which nothing is left.
func (e *encoder) fill(m *agent.Message, thought bool) {
	if len(m.Calls) == 0 && !thought && strings.TrimSpace(m.Text) == "" {
		e.add(roleAssistant, text(provider.OrEmpty("")))
	}
}

// goesBack reports whether the first of the blocks goes back.
func (e *encoder) goesBack(blocks []block, inTurn bool) bool {
	if blocks[0].thinks() {
		return e.quirks.thinks(inTurn)
	}
	return e.known(blocks[:min(2, len(blocks))])
}

// known reports whether all tools that the provider's search found are still offered: the provider
// refuses others, and a search without its result, which is the next block.
func (e *encoder) known(search []block) bool {
	found := search[0]
	if found.Type == blockSearch {
		found = search[len(search)-1]
	}
	for _, name := range found.Names {
		if !e.deferred(func(t *toolgroups.Tool) bool { return t.Name == name }) {
			return false
		}
	}
	return found.Type == blockFound && e.deferred(func(*toolgroups.Tool) bool { return true })
}

func (e *encoder) deferred(want func(*toolgroups.Tool) bool) bool {
	for i := range e.tools {
		if e.tools[i].Deferred && want(&e.tools[i]) {
			return true
		}
	}
	return false
}

// result writes the result of a call, with the pictures that it made. If tools are deferred, the result
// of loading a group shows the model its tools.
func (e *encoder) result(m *agent.Message, pictures []provider.Picture) {
	id, place := e.ids.Result(m.CallID)
	r := content{Type: "tool_result", ToolUseID: id, IsError: m.Status == agent.StatusError}
	if !r.IsError && place >= 0 && place < len(e.calls) && e.calls[place].Name == toolgroups.LoadToolGroup {
		r.Content = e.references(e.calls[place])
	}
	if len(r.Content) == 0 {
		r.Content = []content{text(provider.ResultText(m, e.blind))}
		for _, p := range pictures {
			r.Content = append(r.Content, picture(p))
		}
	}
	e.add(roleUser, r)
}

// references name the tools of the group that a call loads. The server replaces them by the
// definitions, and takes no other text beside them (assumed).
func (e *encoder) references(call agent.Call) (refs []content) {
	group, ok := toolgroups.LoadArgument(json.RawMessage(call.Arguments))
	if !ok {
		return nil
	}
	for i := range e.tools {
		if e.tools[i].Deferred && e.tools[i].Group == group {
			refs = append(refs, content{Type: "tool_reference", ToolName: e.tools[i].Name})
		}
	}
	return refs
}
