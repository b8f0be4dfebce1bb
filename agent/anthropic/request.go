package anthropic

import (
	"encoding/json"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// maxOutput bounds max_tokens in a request; defaultOutput is its value for an unknown model.
const (
	maxOutput     = 32_000
	defaultOutput = 8_192
)

// encode builds a request. Tools, prompt and messages depend only on the input, so that each request
// begins with the same bytes as the previous one.
func (c *Client) encode(req *agent.Request, q quirks) *request {
	facts := c.Facts()
	r := &request{Model: c.cfg.Model, MaxTokens: defaultOutput, Stream: true}
	if n := facts.OutputTokens.Value; n > 0 {
		r.MaxTokens = min(n, maxOutput)
	}
	if n := facts.ContextTokens.Value; n > 0 {
		r.MaxTokens = min(r.MaxTokens, max(n/8, 1024))
	}
	r.Tools = c.encodeTools(req.Tools)
	if strings.TrimSpace(req.System) != "" {
		r.System = []content{textBlock(req.System)}
	}
	e := encoder{client: c, quirks: q, tools: req.Tools, ids: provider.CallIDs{Seen: map[string]struct{}{}}, noVision: true, renamed: c.cfg.ModelCache.Renamed(provider.FamilyClaude, req.Tools)}
	if !q.noVision && !facts.Sees.No() {
		e.pictures, e.noVision = provider.ReadPictures(req, func(file string, err error) {
			c.cfg.Logger.Warn("picture left out of a model request", "model", c.cfg.Model, "file", file, "err", err)
		})
	}
	r.Messages = e.encodeMessages(req.Messages)
	c.setThinking(r, req, q, e.missingThinking)
	if req.Temperature != nil && c.family.takesTemperature && !q.noTemperature && r.Thinking == nil {
		r.Temperature = new(min(*req.Temperature, 1))
	}
	setBreakpoints(r, req.Tools, req.CacheFor >= time.Hour)
	return r
}

// encodeTools builds the tools array. If some tools are deferred, the provider's search tool precedes
// them.
func (c *Client) encodeTools(tools []toolgroups.Tool) []tool {
	var open, deferred []tool
	for i := range tools {
		t := tool{
			Name: tools[i].Name, Description: tools[i].Description, Deferred: tools[i].Deferred,
			Schema: c.cfg.ModelCache.Parameters(provider.FamilyClaude, &tools[i]).Schema,
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

// wireNames returns the names of the tools as they are sent.
func wireNames(tools []tool) []string {
	names := make([]string, len(tools))
	for i := range tools {
		names[i] = tools[i].Name
	}
	return names
}

// textBlock returns a text block.
func textBlock(s string) content { return content{Type: blockText, Text: s} }

// pictureBlock returns a block with a picture.
func pictureBlock(p provider.Picture) content {
	return content{Type: "image", Source: &source{Type: "base64", MediaType: p.MediaType, Data: p.Data}}
}

// continueAnswer adds a paused answer to the request, so that the server continues it.
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
	// renamed holds the parameters of the tools of which properties were renamed, by the name of the tool.
	renamed map[string]provider.Parameters
	// pictures holds the pictures by the index of their message. noVision is set if the model does not
	// accept pictures, or the request has no ReadFile for its pictures.
	pictures map[int][]provider.Picture
	noVision bool
	// calls are the calls of the last reply.
	calls []agent.Call
	// missingThinking reports whether a reply of this turn has calls but no thinking blocks from this
	// server. A thinking budget cannot be set then.
	missingThinking bool
	out             []message
}

// encodeMessages returns the messages with alternating roles, beginning with the user's.
func (e *encoder) encodeMessages(messages []agent.Message) []message {
	turn := provider.TurnStart(messages)
	for i := range messages {
		m := &messages[i]
		switch {
		case m.ShownAsUser():
			e.addBlock(roleUser, textBlock(provider.UserText(m, e.noVision)))
			for _, p := range e.pictures[i] {
				e.addBlock(roleUser, pictureBlock(p))
			}
		case m.Role == agent.RoleAssistant:
			e.addReply(m, i > turn)
		case m.Role == agent.RoleTool:
			e.addResult(m, e.pictures[i])
		}
	}
	return e.out
}

// omittedText is the first user message of a conversation that would otherwise begin with a reply.
const omittedText = "[What came before is left out.]"

// addBlock appends a block to the last message if that has the same role, and otherwise in a new message.
func (e *encoder) addBlock(role string, block content) {
	if len(e.out) == 0 && role != roleUser {
		e.out = append(e.out, message{roleUser, []content{textBlock(omittedText)}})
	}
	if n := len(e.out); n > 0 && e.out[n-1].Role == role {
		e.out[n-1].Content = append(e.out[n-1].Content, block)
		return
	}
	e.out = append(e.out, message{role, []content{block}})
}

// addReply adds a reply in its original order, with the blocks that must be sent back to its server.
func (e *encoder) addReply(m *agent.Message, inTurn bool) {
	e.ids.BeginReply()
	e.calls = m.Calls
	said, called, thought := strings.TrimSpace(m.Text) == "", 0, false
	say := func() {
		if !said {
			e.addBlock(roleAssistant, textBlock(m.Text))
		}
		said = true
	}
	call := func() {
		if called < len(m.Calls) {
			c := &m.Calls[called]
			called++
			e.addBlock(roleAssistant, content{
				Type: blockToolUse, ID: e.ids.AddCall(c.ID), Name: provider.ValidFunctionName(c.Name), Input: json.RawMessage(provider.ValidArguments(e.renamed[c.Name].SentNames(c.Arguments))),
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
		case e.isReplayed(carried[i:], inTurn):
			thought = thought || b.isThinking()
			e.addBlock(roleAssistant, content{raw: b.Raw})
		}
	}
	say()
	for called < len(m.Calls) {
		call()
	}
	e.addPlaceholder(m, thought)
	e.missingThinking = e.missingThinking || inTurn && len(m.Calls) > 0 && !thought
}

// addPlaceholder adds a placeholder for a reply that would otherwise be empty.
func (e *encoder) addPlaceholder(m *agent.Message, thought bool) {
	if len(m.Calls) == 0 && !thought && strings.TrimSpace(m.Text) == "" {
		e.addBlock(roleAssistant, textBlock(provider.OrPlaceholder("")))
	}
}

// isReplayed reports whether the first of these blocks, thinking or a search of the provider, is sent
// back.
func (e *encoder) isReplayed(blocks []block, inTurn bool) bool {
	if blocks[0].isThinking() {
		return e.quirks.sendsThinking(inTurn)
	}
	return e.isStillOffered(blocks[:min(2, len(blocks))])
}

// isStillOffered reports whether all tools found by the provider's search are still offered. search is
// the search and its result, or only one of them. The provider refuses other tools, and a search block
// that is not followed by its result.
func (e *encoder) isStillOffered(search []block) bool {
	found := search[0]
	if found.Type == blockSearch {
		found = search[len(search)-1]
	}
	for _, name := range found.Names {
		if !e.hasDeferred(func(t *toolgroups.Tool) bool { return t.Name == name }) {
			return false
		}
	}
	return found.Type == blockSearchResult && e.hasDeferred(func(*toolgroups.Tool) bool { return true })
}

func (e *encoder) hasDeferred(want func(*toolgroups.Tool) bool) bool {
	for i := range e.tools {
		if e.tools[i].Deferred && want(&e.tools[i]) {
			return true
		}
	}
	return false
}

// addResult adds the result of a call, with the pictures in it. If tools are deferred, the result of
// loading a group references the group's tools.
func (e *encoder) addResult(m *agent.Message, pictures []provider.Picture) {
	id, place := e.ids.NextResult(m.CallID)
	r := content{Type: "tool_result", ToolUseID: id, IsError: m.Status == agent.StatusError}
	if !r.IsError && place >= 0 && place < len(e.calls) && e.calls[place].Name == toolgroups.LoadToolGroup {
		r.Content = e.toolReferences(e.calls[place])
	}
	if len(r.Content) == 0 {
		r.Content = []content{textBlock(provider.ResultText(m, e.noVision))}
		for _, p := range pictures {
			r.Content = append(r.Content, pictureBlock(p))
		}
	}
	e.addBlock(roleUser, r)
}

// toolReferences returns references to the tools of the group that a call loads. The server replaces
// them with the definitions, and accepts no text beside them (assumed).
func (e *encoder) toolReferences(call agent.Call) (refs []content) {
	group, ok := toolgroups.ParseLoadArgument(json.RawMessage(call.Arguments))
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
