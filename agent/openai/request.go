package openai

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"strconv"
	"strings"

	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// encode writes a request as JSON: the constant fields, then the tools, byte for byte as before, then
// the messages. pictures reports whether any are shown.
func (c *Client) encode(req agent.Request, q quirks) (body []byte, pictures bool) {
	e := &encoder{client: c, quirks: q, show: c.readPictures(req, q), ids: provider.CallIDs{Rule: q.ids}}
	e.reserve(req)
	e.raw(`{`)
	if q.responses && reasons(c.cfg.Model) {
		// The server keeps nothing: reasoning comes encrypted and goes back.
		e.raw(`"include":["reasoning.encrypted_content"],`)
	}
	e.raw(`"model":`)
	e.buf = provider.AppendString(e.buf, c.cfg.Model)
	switch {
	case q.responses:
		e.raw(`,"store":false,"stream":true`)
	case q.noUsage:
		e.raw(`,"stream":true`)
	default:
		e.raw(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	e.effort(cmp.Or(req.Effort, c.cfg.Effort))
	if c.hosted && req.CacheKey != "" {
		// OpenAI bounds the key to 64 characters, and does not need to know our ids.
		sum := sha256.Sum256([]byte(req.CacheKey))
		e.field("prompt_cache_key", hex.EncodeToString(sum[:16]))
	}
	if c.keeps {
		e.raw(`,"cache_control":{"type":"ephemeral"}`)
	}
	if req.Temperature != nil && !reasons(c.cfg.Model) {
		// Models that reason refuse any temperature but their own.
		e.raw(`,"temperature":`)
		e.buf = strconv.AppendFloat(e.buf, *req.Temperature, 'g', -1, 64)
	}
	if len(req.Tools) > 0 {
		e.raw(`,"tools":`)
		e.buf = append(e.buf, c.encodeTools(req.Tools, q)...)
	}
	if q.responses {
		e.raw(`,"input":[`)
	} else {
		e.raw(`,"messages":[`)
	}
	e.messages(req)
	e.raw(`]}`)
	return e.buf, len(e.show.pictures) > 0
}

// effort writes the reasoning effort if the settings have one. A model that is not known to reason
// would refuse an effort that was chosen for another.
func (e *encoder) effort(effort string) {
	switch {
	case effort == "" || effort != e.client.cfg.Effort && (e.quirks.noEffort || !e.client.Facts().Reasons.Yes()):
	case e.quirks.responses:
		e.raw(`,"reasoning":{"effort":`)
		e.buf = append(provider.AppendString(e.buf, effort), '}')
	default:
		e.field("reasoning_effort", effort)
	}
}

// messages encodes the system prompt and the messages. For Chat Completions consecutive user messages
// become one, because some servers insist on alternating roles.
func (e *encoder) messages(req agent.Request) {
	if req.System != "" {
		e.message("system", req.System)
	}
	messages := req.Messages
	turn := provider.LastUser(messages)
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		switch {
		case m.Heard():
			i = e.userMessages(messages, i, "", nil)
		case m.Role == agent.RoleAssistant:
			var back carried
			if i > turn || e.quirks.keeps {
				// Most servers want it only within the turn; some refuse that of earlier turns.
				back = unpack(m.Reasoning, e.client.origin)
			}
			if e.quirks.responses {
				e.output(m, back)
			} else {
				e.assistant(m, back, i > turn)
			}
		case m.Role == agent.RoleTool:
			e.result(m)
			if len(e.show.pictures) > 0 && (i+1 == len(messages) || messages[i+1].Role != agent.RoleTool) {
				i = e.resultPictures(messages, i)
			}
		}
	}
}

// userMessages writes the user message at an index, joined with those that follow if they become one; it
// returns the index of the last. Text and pictures come first.
func (e *encoder) userMessages(messages []agent.Message, at int, before string, pictures []provider.Picture) int {
	first := at
	var text strings.Builder
	text.WriteString(before)
	text.WriteString(provider.UserText(&messages[at], e.show.blind))
	for !e.quirks.responses && at+1 < len(messages) && messages[at+1].Heard() {
		at++
		text.WriteString("\n\n" + provider.UserText(&messages[at], e.show.blind))
	}
	e.user(text.String(), append(pictures, e.show.with(first, at)...))
	return at
}

// resultPictures shows the pictures of the results that end at an index, with the user's role: results hold none
// in either API. It returns the index of the last message that it wrote.
func (e *encoder) resultPictures(messages []agent.Message, at int) int {
	first := at
	for first > 0 && messages[first-1].Role == agent.RoleTool {
		first--
	}
	pictures := e.show.with(first, at)
	if len(pictures) == 0 {
		return at
	}
	text := resultPicturesText(messages[first : at+1])
	if !e.quirks.responses && at+1 < len(messages) && messages[at+1].Heard() {
		return e.userMessages(messages, at+1, text+"\n\n", pictures)
	}
	e.user(text, pictures)
	return at
}

// reserve allocates room for the messages and the tools.
func (e *encoder) reserve(req agent.Request) {
	size, calls := len(req.System)+256, 0
	for i := range req.Messages {
		calls += len(req.Messages[i].Calls)
		text := len(req.Messages[i].Text) + len(req.Messages[i].QuotedText())
		size += text + text/16 + 96
	}
	for i := range req.Tools {
		size += len(req.Tools[i].Description) + len(req.Tools[i].Parameters) + 128
	}
	for _, some := range e.show.pictures {
		for _, p := range some {
			size += base64.StdEncoding.EncodedLen(len(p.Data)) + 96
		}
	}
	e.buf = make([]byte, 0, size)
	if e.quirks.unique {
		e.ids.Seen = make(map[string]struct{}, calls)
	}
}
