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

// encode writes a request as JSON: the constant fields, the tools, then the messages. Each part begins
// with the bytes that it had in the previous request. pictures reports whether there are any.
func (c *Client) encode(req agent.Request, q quirks) (body []byte, pictures bool) {
	req = shapeRequest(req, q)
	e := &encoder{client: c, quirks: q, pictures: c.readPictures(req, q), ids: provider.CallIDs{Rule: q.idRule}, renamed: c.cfg.ModelCache.Renamed(q.family, req.Tools)}
	e.reserve(req)
	e.writeRaw(`{`)
	if q.useResponses && isReasoningModel(c.cfg.Model) {
		// The server stores nothing, so reasoning is returned encrypted and sent back.
		e.writeRaw(`"include":["reasoning.encrypted_content"],`)
	}
	e.writeRaw(`"model":`)
	e.buf = provider.AppendString(e.buf, c.cfg.Model)
	switch {
	case q.useResponses:
		e.writeRaw(`,"store":false,"stream":true`)
	case q.noUsage:
		e.writeRaw(`,"stream":true`)
	default:
		e.writeRaw(`,"stream":true,"stream_options":{"include_usage":true}`)
	}
	e.writeEffort(c.effort(req.Effort, q))
	if c.openAIHosted && req.CacheKey != "" {
		// OpenAI limits the key to 64 characters, and need not know our ids.
		sum := sha256.Sum256([]byte(req.CacheKey))
		e.writeField("prompt_cache_key", hex.EncodeToString(sum[:16]))
	}
	if c.marksCache {
		e.writeRaw(`,"cache_control":{"type":"ephemeral"}`)
	}
	if req.Temperature != nil && !q.noTemperature && !isReasoningModel(c.cfg.Model) {
		// Reasoning models refuse every temperature except their default.
		e.writeRaw(`,"temperature":`)
		e.buf = strconv.AppendFloat(e.buf, c.temperature(&req, q), 'g', -1, 64)
	}
	if len(req.Tools) > 0 {
		e.writeRaw(`,"tools":`)
		e.buf = append(e.buf, c.encodeTools(req.Tools, q)...)
	}
	if q.useResponses {
		e.writeRaw(`,"input":[`)
	} else {
		e.writeRaw(`,"messages":[`)
	}
	e.writeMessages(req)
	e.writeRaw(`]}`)
	return e.buf, len(e.pictures.pictures) > 0
}

// temperature returns the temperature to ask for, at most 1 for servers that have refused a higher one; 0
// if none is set.
func (c *Client) temperature(req *agent.Request, q quirks) float64 {
	if req.Temperature == nil {
		return 0
	}
	if q.lowTemperature {
		return min(*req.Temperature, 1)
	}
	return *req.Temperature
}

// effort returns the reasoning effort to ask for: the wanted one, the model's own setting, or the nearest
// that the server has not refused. An effort that is not the model's own setting is sent only to models
// known to reason, because other models would refuse it.
func (c *Client) effort(wanted string, q quirks) string {
	wanted = cmp.Or(wanted, c.cfg.Effort)
	if wanted != c.cfg.Effort && !c.Facts().Reasons.Yes() {
		return ""
	}
	return q.refusedEfforts.Nearest(wanted)
}

// writeEffort writes the reasoning effort, if there is one.
func (e *encoder) writeEffort(effort string) {
	switch {
	case effort == "":
	case e.quirks.useResponses:
		e.writeRaw(`,"reasoning":{"effort":`)
		e.buf = append(provider.AppendString(e.buf, effort), '}')
	default:
		e.writeField("reasoning_effort", effort)
	}
}

// writeMessages writes the system prompt and the messages. For Chat Completions, consecutive user
// messages are joined, because some servers require alternating roles.
func (e *encoder) writeMessages(req agent.Request) {
	if req.System != "" {
		e.writeMessage("system", req.System)
	}
	messages := req.Messages
	turn := provider.TurnStart(messages)
	for i := 0; i < len(messages); i++ {
		m := &messages[i]
		switch {
		case m.ShownAsUser():
			i = e.writeUserMessages(messages, i, "", nil)
		case m.Role == agent.RoleAssistant:
			var back replay
			if i > turn || e.quirks.keepsReasoning {
				// Most servers need reasoning only within the turn; some refuse that of earlier turns.
				back = unpack(m.Reasoning, e.client.origin)
			}
			if e.quirks.useResponses {
				e.writeOutput(m, back)
			} else {
				e.writeReply(m, back, i > turn)
			}
		case m.Role == agent.RoleTool:
			e.writeResult(m)
			if len(e.pictures.pictures) > 0 && (i+1 == len(messages) || messages[i+1].Role != agent.RoleTool) {
				i = e.writeResultPictures(messages, i)
			}
		}
	}
}

// writeUserMessages writes the user message at an index after the text before and pictures, joined with
// the user messages that follow if the API requires it. It returns the index of the last one written.
func (e *encoder) writeUserMessages(messages []agent.Message, at int, before string, pictures []provider.Picture) int {
	first := at
	texts := []string{before + provider.UserText(&messages[at], e.pictures.noVision)}
	for !e.quirks.useResponses && at+1 < len(messages) && messages[at+1].ShownAsUser() {
		at++
		texts = append(texts, provider.UserText(&messages[at], e.pictures.noVision))
	}
	e.writeUser(strings.Join(texts, "\n\n"), append(pictures, e.pictures.inMessages(first, at)...))
	return at
}

// writeResultPictures writes the pictures of the results that end at an index as a user message, because
// results cannot contain pictures in either API. It returns the index of the last message written.
func (e *encoder) writeResultPictures(messages []agent.Message, at int) int {
	first := at
	for first > 0 && messages[first-1].Role == agent.RoleTool {
		first--
	}
	pictures := e.pictures.inMessages(first, at)
	if len(pictures) == 0 {
		return at
	}
	text := resultPicturesText(messages[first : at+1])
	if !e.quirks.useResponses && at+1 < len(messages) && messages[at+1].ShownAsUser() {
		return e.writeUserMessages(messages, at+1, text+"\n\n", pictures)
	}
	e.writeUser(text, pictures)
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
	for _, some := range e.pictures.pictures {
		for _, p := range some {
			size += base64.StdEncoding.EncodedLen(len(p.Data)) + 96
		}
	}
	e.buf = make([]byte, 0, size)
	if e.quirks.uniqueIDs {
		e.ids.Seen = make(map[string]struct{}, calls)
	}
}
