package openai

import (
	"encoding/json"

	"oneclaw/agent/provider"
	"oneclaw/toolgroups"
)

// familyOf returns the family whose schemas a server accepts.
func familyOf(cfg Config) provider.Family {
	switch cfg.Dialect {
	case DialectAnthropic:
		return provider.FamilyClaude
	case DialectGemini:
		return provider.FamilyGemini
	}
	return provider.FamilyOf(cfg.Model)
}

// encodeTools encodes a tools array for the API and the server's family. The bytes depend only on the tools,
// and a longer list begins with the bytes of a shorter one.
func (c *Client) encodeTools(tools []toolgroups.Tool, q quirks) json.RawMessage {
	adapted := make([]toolgroups.Tool, len(tools))
	for i := range tools {
		adapted[i] = tools[i]
		if p := c.cfg.ModelCache.Parameters(q.family, &tools[i]); p.Changed {
			adapted[i] = toolgroups.Tool{Name: tools[i].Name, Description: tools[i].Description, Parameters: p.Schema}
		}
	}
	if q.useResponses {
		// Without strict set to false, OpenAI would apply its strict mode to schemas.
		return toolgroups.EncodeToolsAs(adapted, `{"type":"function",`, `,"strict":false}`)
	}
	return toolgroups.EncodeTools(adapted)
}
