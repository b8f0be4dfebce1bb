package openai

import (
	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// encoder writes a request as JSON. The library's encoding of a long history would cost more than all
// other work for a message, and would encode the tools again each time.
type encoder struct {
	client   *Client
	quirks   quirks
	buf      []byte
	pictures pictureSet
	ids      provider.CallIDs
	// renamed holds the parameters of the tools of which properties were renamed, by the name of the tool.
	renamed map[string]provider.Parameters
	// calls are the calls of the last reply.
	calls []agent.Call
	// lastRole is the role of the last message, "item" for another item, or empty before the first.
	lastRole string
}

func (e *encoder) writeRaw(s string) { e.buf = append(e.buf, s...) }

// writeComma writes the comma between messages.
func (e *encoder) writeComma() {
	if e.lastRole != "" {
		e.writeRaw(`,`)
	}
	e.lastRole = "item"
}

// openMessage writes the beginning of a message.
func (e *encoder) openMessage(role string) {
	e.writeComma()
	e.lastRole = role
	e.writeRaw(`{"role":"` + role + `"`)
}

// openItem writes the beginning of an item of the Responses API that is not a message.
func (e *encoder) openItem(kind string) {
	e.writeComma()
	e.writeRaw(`{"type":"` + kind + `"`)
}

func (e *encoder) writeField(name, value string) {
	e.writeRaw(`,"` + name + `":`)
	e.buf = provider.AppendString(e.buf, value)
}

func (e *encoder) writeMessage(role, content string) {
	e.openMessage(role)
	e.writeField("content", content)
	e.writeRaw(`}`)
}

// writeUser writes a user message.
func (e *encoder) writeUser(text string, pictures []provider.Picture) {
	if e.quirks.needsBridge && e.lastRole == "tool" {
		e.writeMessage("assistant", textBridge)
	}
	if len(pictures) == 0 {
		e.writeMessage("user", text)
		return
	}
	kind, before, after := "text", `,{"type":"image_url","image_url":{"url":"`, `"}}`
	if e.quirks.useResponses {
		kind, before, after = "input_text", `,{"type":"input_image","detail":"auto","image_url":"`, `"}`
	}
	e.openMessage("user")
	e.writeRaw(`,"content":[{"type":"` + kind + `"`)
	e.writeField("text", text)
	e.writeRaw(`}`)
	for _, p := range pictures {
		e.writeRaw(before)
		e.buf = appendDataURL(e.buf, p)
		e.writeRaw(after)
	}
	e.writeRaw(`]}`)
}

// textBridge is the reply written between a result and a user message, for servers that require one
// there.
const textBridge = "I have the results."

// writeReply writes a reply for Chat Completions, with the data that its server requires back. Some
// servers require a signature with the first call of each reply in the current turn.
func (e *encoder) writeReply(m *agent.Message, back replay, inTurn bool) {
	e.openMessage("assistant")
	e.ids.BeginReply()
	e.calls = m.Calls
	switch {
	case back.Field == fieldParts && !e.quirks.dropsReasoning:
		e.writeRaw(`,"content":[{"type":"thinking","thinking":[{"type":"text"`)
		e.writeField("text", back.Text)
		e.writeRaw(`}]}`)
		if m.Text != "" {
			e.writeRaw(`,{"type":"text"`)
			e.writeField("text", m.Text)
			e.writeRaw(`}`)
		}
		e.writeRaw(`]`)
	case m.Text != "" || len(m.Calls) == 0:
		e.writeField("content", provider.OrPlaceholder(m.Text))
	}
	for i := range m.Calls {
		if i == 0 {
			e.writeRaw(`,"tool_calls":[`)
		} else {
			e.writeRaw(`,`)
		}
		e.writeRaw(`{"type":"function"`)
		e.writeField("id", e.ids.AddCall(m.Calls[i].ID))
		e.writeRaw(`,"function":{"name":`)
		e.buf = provider.AppendString(e.buf, provider.ValidFunctionName(m.Calls[i].Name))
		e.writeField("arguments", e.arguments(&m.Calls[i]))
		e.writeRaw(`}`)
		if !e.quirks.dropsReasoning {
			e.writeRaw(back.extraContent(i, inTurn && e.quirks.needsSignatures))
		}
		e.writeRaw(`}`)
	}
	if len(m.Calls) > 0 {
		e.writeRaw(`]`)
	}
	e.writeReasoning(back, inTurn)
	e.writeRaw(`}`)
}

// arguments returns the arguments of a call as the model wrote them, if they are valid.
func (e *encoder) arguments(c *agent.Call) string {
	return provider.ValidArguments(e.renamed[c.Name].SentNames(c.Arguments))
}

// writeOutput writes a reply for the Responses API. Within the current turn, the items are in their
// original order, with reasoning in front of the call that it led to.
func (e *encoder) writeOutput(m *agent.Message, back replay) {
	e.ids.BeginReply()
	said, called := false, 0
	say := func(phase string) {
		if said || m.Text == "" && len(m.Calls) > 0 {
			return
		}
		said = true
		e.openMessage("assistant")
		e.writeField("content", provider.OrPlaceholder(m.Text))
		if phase != "" {
			e.writeField("phase", phase)
		}
		e.writeRaw(`}`)
	}
	call := func() {
		if called < len(m.Calls) {
			c := &m.Calls[called]
			called++
			e.openItem(itemCall)
			e.writeField("call_id", e.ids.AddCall(c.ID))
			e.writeField("name", provider.ValidFunctionName(c.Name))
			e.writeField("arguments", e.arguments(c))
			e.writeRaw(`}`)
		}
	}
	for _, it := range back.Items {
		switch it.Type {
		case itemMessage:
			say(it.Phase)
		case itemCall:
			call()
		case itemReasoning:
			e.writeReasoningItem(it)
		}
	}
	say("")
	for called < len(m.Calls) {
		call()
	}
}

func (e *encoder) writeReasoningItem(it item) {
	e.openItem(itemReasoning)
	if it.ID != "" {
		e.writeField("id", it.ID)
	}
	e.writeField("encrypted_content", it.EncryptedContent)
	summary := "[]"
	if len(it.Summary) > 0 && it.Summary[0] == '[' {
		summary = string(it.Summary)
	}
	e.writeRaw(`,"summary":` + summary + `}`)
}

// calledName returns the name of the function whose result a message is.
func (e *encoder) calledName(m *agent.Message) string {
	for i := range e.calls {
		if e.calls[i].ID == m.CallID {
			return provider.ValidFunctionName(e.calls[i].Name)
		}
	}
	return provider.ValidFunctionName(m.Tool)
}

func (e *encoder) writeResult(m *agent.Message) {
	id := e.ids.NextResult(m.CallID)
	text := provider.ResultText(m, e.pictures.noVision)
	if e.quirks.useResponses {
		e.openItem("function_call_output")
		e.writeField("call_id", id)
		e.writeField("output", text)
	} else {
		e.openMessage("tool")
		e.writeField("tool_call_id", id)
		if e.quirks.namesResults {
			e.writeField("name", e.calledName(m))
		}
		e.writeField("content", text)
	}
	e.writeRaw(`}`)
}
