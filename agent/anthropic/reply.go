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
)

// block is a part of a reply as it is sent back: thinking byte for byte, texts and calls as placeholders.
type block struct {
	Type string          `json:"type"`
	Raw  json.RawMessage `json:"raw,omitempty"`
}

func (b block) isThinking() bool { return b.Type == blockThinking || b.Type == blockRedacted }

// replayPrefix begins a string made by [pack]; the origin follows.
const replayPrefix = "carried/3 "

// maxReplayBytes bounds the encoded blocks of a reply that are kept to be sent back.
const maxReplayBytes = 1 << 20

// pack encodes the blocks that are sent back as the agent's Reasoning string. It returns "" if there
// are only texts and calls.
func pack(blocks []block, origin string) string {
	plain := true
	for _, b := range blocks {
		plain = plain && b.Raw == nil
	}
	data, err := json.Marshal(blocks)
	if plain || err != nil || len(data) > maxReplayBytes {
		return ""
	}
	return replayPrefix + origin + " " + string(data)
}

// unpack decodes a string made by [pack]. It returns nil if the string is from another server.
func unpack(reasoning, origin string) (blocks []block) {
	data, ok := strings.CutPrefix(reasoning, replayPrefix+origin+" ")
	if !ok || json.Unmarshal([]byte(data), &blocks) != nil {
		return nil
	}
	return blocks
}

// reply returns the reply that the answer is. For a refusal it returns [provider.ErrFiltered], even if there
// is a text: the provider refuses all that follows such a turn (platform.claude.com,
// handle-streaming-refusals). The reply has its usage then, and after any other error.
func (a *answer) reply(origin string) (agent.Reply, error) {
	r := agent.Reply{Model: a.model, Usage: a.usage.sum(), Truncated: a.stopReason == stopTokens || a.stopReason == stopOverflow}
	if a.stopReason == stopRefusal {
		return agent.Reply{Usage: r.Usage}, provider.ErrFiltered
	}
	var text strings.Builder
	var blocks []block
	for i, p := range a.blocks {
		kept := block{Type: p.Type}
		switch p.Type {
		case blockText:
			text.WriteString(p.fullText())
		case blockToolUse:
			cut := i == len(a.blocks)-1 && r.Truncated
			r.Calls = append(r.Calls, agent.Call{ID: string(p.ID), Name: p.Name, Arguments: p.rawArguments(cut)})
		case blockThinking, blockRedacted:
			raw, err := p.raw()
			if err != nil {
				return agent.Reply{Usage: r.Usage}, err
			}
			kept.Raw = raw
		default:
			continue // unknown block types are not sent back
		}
		blocks = append(blocks, kept)
	}
	r.Text, r.Reasoning = text.String(), pack(blocks, origin)
	return r, nil
}
