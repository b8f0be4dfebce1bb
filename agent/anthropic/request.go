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
	e := encoder{client: c, quirks: q, ids: provider.CallIDs{Seen: map[string]struct{}{}}, noVision: true, renamed: c.cfg.ModelCache.Renamed(provider.FamilyClaude, req.Tools)}
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

// encodeTools builds the tools array.
func (c *Client) encodeTools(tools []toolgroups.Tool) []tool {
	var out []tool
	for i := range tools {
		out = append(out, tool{
			Name: tools[i].Name, Description: tools[i].Description,
			Schema: c.cfg.ModelCache.Parameters(provider.FamilyClaude, &tools[i]).Schema,
		})
	}
	return out
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

// encoder encodes the messages of a request.
type encoder struct {
	client *Client
	quirks quirks
	ids    provider.CallIDs
	// renamed holds the parameters of the tools of which properties were renamed, by the name of the tool.
	renamed map[string]provider.Parameters
	// pictures holds the pictures by the index of their message. noVision is set if the model does not
	// accept pictures, or the request has no ReadFile for its pictures.
	pictures map[int][]provider.Picture
	noVision bool
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
	for _, b := range unpack(m.Reasoning, e.client.origin) {
		switch {
		case b.Type == blockText:
			say()
		case b.Type == blockToolUse:
			call()
		case b.isThinking() && e.quirks.sendsThinking(inTurn):
			thought = true
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

// addResult adds the result of a call, with the pictures in it.
func (e *encoder) addResult(m *agent.Message, pictures []provider.Picture) {
	id := e.ids.NextResult(m.CallID)
	r := content{
		Type: "tool_result", ToolUseID: id, IsError: m.Status == agent.StatusError,
		Content: []content{textBlock(provider.ResultText(m, e.noVision))},
	}
	for _, p := range pictures {
		r.Content = append(r.Content, pictureBlock(p))
	}
	e.addBlock(roleUser, r)
}
