package anthropic

import (
	"encoding/json"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// Types of blocks.
const (
	blockText     = "text"
	blockToolUse  = "tool_use"
	blockThinking = "thinking"
	blockRedacted = "redacted_thinking"
	blockSearch   = "server_tool_use"
	blockFound    = "tool_search_tool_result"
)

// block is a part of a reply as it is carried back: what was thought and what the provider's
// own search did byte for byte, of texts and calls only the places.
type block struct {
	Type string          `json:"type"`
	Raw  json.RawMessage `json:"raw,omitempty"`
	// Names are the tools that a search has found.
	Names []string `json:"names,omitempty"`
}

func (b block) thinks() bool { return b.Type == blockThinking || b.Type == blockRedacted }

// carriedPrefix begins what the Messages API wants back, and is followed by the origin.
const carriedPrefix = "carried/3 "

// maxCarried bounds what is carried back of a reply, in bytes.
const maxCarried = 1 << 20

// pack makes the string in which the agent keeps what is carried back; empty where there is
// nothing but texts and calls.
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

// unpack reads the string for a server. What is another's is left out.
func unpack(reasoning, origin string) (blocks []block) {
	data, ok := strings.CutPrefix(reasoning, carriedPrefix+origin+" ")
	if !ok || json.Unmarshal([]byte(data), &blocks) != nil {
		return nil
	}
	return blocks
}

// collected is a reply, which may have come in several answers.
type collected struct {
	r      agent.Reply
	blocks []block
	// finished says why the last answer ended.
	finished string
}

// add takes an answer.
func (c *collected) add(a *answer) error {
	var text strings.Builder
	text.WriteString(c.r.Text)
	for i, p := range a.blocks {
		kept := block{Type: p.Type}
		switch p.Type {
		case blockText:
			text.WriteString(p.said())
		case blockToolUse:
			cut := i == len(a.blocks)-1 && (a.stop == stopTokens || a.stop == stopOverflow)
			c.r.Calls = append(c.r.Calls, agent.Call{ID: p.ID, Name: p.Name, Arguments: p.called(cut)})
		case blockThinking, blockRedacted, blockSearch, blockFound:
			raw, err := p.raw()
			if err != nil {
				return err
			}
			kept.Raw = raw
			if p.Type == blockFound {
				kept.Names = p.found()
			}
		default:
			continue // No tool that we offer gives others.
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

// reply is what came of the answers.
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
