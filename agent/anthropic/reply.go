package anthropic

import (
	"encoding/json"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// Block types.
const (
	blockText         = "text"
	blockToolUse      = "tool_use"
	blockThinking     = "thinking"
	blockRedacted     = "redacted_thinking"
	blockSearch       = "server_tool_use"
	blockSearchResult = "tool_search_tool_result"
)

// block is a part of a reply as it is sent back: thinking and the provider's own searches byte for
// byte, texts and calls as placeholders.
type block struct {
	Type string          `json:"type"`
	Raw  json.RawMessage `json:"raw,omitempty"`
	// Names are the tools that a search found.
	Names []string `json:"names,omitempty"`
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

// replyBuilder assembles a reply from one or more answers.
type replyBuilder struct {
	result agent.Reply
	blocks []block
	// stopReason is the stop reason of the last answer.
	stopReason string
}

// add appends an answer.
func (c *replyBuilder) add(a *answer) error {
	var text strings.Builder
	text.WriteString(c.result.Text)
	for i, p := range a.blocks {
		kept := block{Type: p.Type}
		switch p.Type {
		case blockText:
			text.WriteString(p.fullText())
		case blockToolUse:
			cut := i == len(a.blocks)-1 && (a.stopReason == stopTokens || a.stopReason == stopOverflow)
			c.result.Calls = append(c.result.Calls, agent.Call{ID: string(p.ID), Name: p.Name, Arguments: p.rawArguments(cut)})
		case blockThinking, blockRedacted, blockSearch, blockSearchResult:
			raw, err := p.raw()
			if err != nil {
				return err
			}
			kept.Raw = raw
			if p.Type == blockSearchResult {
				kept.Names = p.foundTools()
			}
		default:
			continue // unknown block types are not sent back
		}
		c.blocks = append(c.blocks, kept)
	}
	c.result.Text, c.result.Model, c.stopReason = text.String(), a.model, a.stopReason
	c.result.Usage = c.result.Usage.Plus(a.usage.sum())
	return nil
}

// finish returns the reply assembled from the answers. For a refusal it returns [provider.ErrFiltered],
// even if there is a text: the provider refuses all that follows such a turn (platform.claude.com,
// handle-streaming-refusals).
func (c *replyBuilder) finish(origin string) (agent.Reply, error) {
	switch c.stopReason {
	case stopRefusal:
		return agent.Reply{}, provider.ErrFiltered
	case stopTokens, stopOverflow, stopPause:
		c.result.Truncated = true
	}
	c.result.Reasoning = pack(c.blocks, origin)
	return c.result, nil
}
