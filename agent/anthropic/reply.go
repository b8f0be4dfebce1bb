package anthropic

import (
	"encoding/json"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// Block types.
const (
	blockText     = "text"
	blockToolUse  = "tool_use"
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockSearch   = "server_tool_use"
	blockFound    = "tool_search_tool_result"
)

// block is a part of a reply as it goes back: thinking and the provider's own searches byte for byte,
// texts and calls as placeholders.
type block struct {
	Type string          `json:"type"`
	Raw  json.RawMessage `json:"raw,omitempty"`
	// Names are the tools that a search found.
	Names []string `json:"names,omitempty"`
}

func (b block) thinks() bool { return b.Type == blockThinking || b.Type == blockRedacted }

// carriedPrefix begins the string that [pack] makes; the origin follows.
const carriedPrefix = "carried/3 "

// maxCarried bounds what is kept of a reply to go back, in bytes.
const maxCarried = 1 << 20

// pack encodes the blocks that go back into the agent's Reasoning string; empty if there are only texts
// and calls.
func pack(blocks []block, origin string) string {
	plain := true
	for _, b := range blocks {
		plain = plain && b.Raw == nil
	}
	data, err := json.Marshal(blocks)
	if plain || err != nil || len(data) > maxCarried {
		return ""
	}
	return carriedPrefix + origin + " " + string(data)
}

// unpack decodes the string for a server. Blocks of other servers are left out.
func unpack(reasoning, origin string) (blocks []block) {
	data, ok := strings.CutPrefix(reasoning, carriedPrefix+origin+" ")
	if !ok || json.Unmarshal([]byte(data), &blocks) != nil {
		return nil
	}
	return blocks
}

// collected is a reply, which may consist of several answers.
type collected struct {
	r      agent.Reply
	blocks []block
	// finished is the stop reason of the last answer.
	finished string
}

// add appends an answer.
func (c *collected) add(a *answer) error {
	var text strings.Builder
	text.WriteString(c.r.Text)
	for i, p := range a.blocks {
		kept := block{Type: p.Type}
		switch p.Type {
		case blockText:
			text.WriteString(p.fullText())
		case blockToolUse:
			cut := i == len(a.blocks)-1 && (a.stop == stopTokens || a.stop == stopOverflow)
			c.r.Calls = append(c.r.Calls, agent.Call{ID: p.ID, Name: p.Name, Arguments: p.rawArguments(cut)})
		case blockThinking, blockRedacted, blockSearch, blockFound:
			raw, err := p.raw()
			if err != nil {
				return err
			}
			kept.Raw = raw
			if p.Type == blockFound {
				kept.Names = p.foundTools()
			}
		default:
			continue // none of our tools returns others
		}
		c.blocks = append(c.blocks, kept)
	}
	u := a.usage
	c.r.Text, c.r.Model, c.finished = text.String(), a.model, a.stop
	c.r.Usage.Input += u.Input + u.Read + u.Written
	c.r.Usage.Cached += u.Read
	c.r.Usage.Written += u.Written
	c.r.Usage.Hour += u.Kept.Hour
	c.r.Usage.Output += u.Output
	return nil
}

// reply returns the reply that the answers make up.
func (c *collected) reply(origin string) (agent.Reply, error) {
	switch c.finished {
	case stopRefusal:
		if c.r.Text == "" {
			return agent.Reply{}, provider.ErrFiltered
		}
		c.r.Truncated, c.r.Calls, c.blocks = true, nil, nil
	case stopTokens, stopOverflow, stopPause:
		c.r.Truncated = true
	}
	c.r.Reasoning = pack(c.blocks, origin)
	return c.r, nil
}
