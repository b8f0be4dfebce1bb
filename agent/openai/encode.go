package openai

import (
	"oneclaw/agent"
	"oneclaw/agent/provider"
)

// encoder writes a request. It is ours because the library's encoding of a long history would cost more
// than everything else that is done for a message, and would encode tools again each time.
type encoder struct {
	client *Client
	quirks quirks
	buf    []byte
	show   pictureSet
	ids    provider.CallIDs
	// last is the role of the last message; empty before the first.
	last string
}

func (e *encoder) raw(s string) { e.buf = append(e.buf, s...) }

// next puts a comma between messages.
func (e *encoder) next() {
	if e.last != "" {
		e.raw(`,`)
	}
	e.last = "item"
}

// open begins a message.
func (e *encoder) open(role string) {
	e.next()
	e.last = role
	e.raw(`{"role":"` + role + `"`)
}

// item begins an item of the Responses API that is not a message.
func (e *encoder) item(kind string) {
	e.next()
	e.raw(`{"type":"` + kind + `"`)
}

func (e *encoder) field(name, value string) {
	e.raw(`,"` + name + `":`)
	e.buf = provider.AppendString(e.buf, value)
}

func (e *encoder) message(role, content string) {
	e.open(role)
	e.field("content", content)
	e.raw(`}`)
}

// user writes a user message.
func (e *encoder) user(text string, pictures []provider.Picture) {
	if e.quirks.bridge && e.last == "tool" {
		e.message("assistant", textBridge)
	}
	if len(pictures) == 0 {
		e.message("user", text)
		return
	}
	kind, before, after := "text", `,{"type":"image_url","image_url":{"url":"`, `"}}`
	if e.quirks.responses {
		kind, before, after = "input_text", `,{"type":"input_image","detail":"auto","image_url":"`, `"}`
	}
	e.open("user")
	e.raw(`,"content":[{"type":"` + kind + `"`)
	e.field("text", text)
	e.raw(`}`)
	for _, p := range pictures {
		e.raw(before)
		e.buf = appendURL(e.buf, p)
		e.raw(after)
	}
	e.raw(`]}`)
}

// textBridge comes between a result and a user message, for servers that want a reply of the model
// there.
const textBridge = "I have the results."

// assistant writes a reply of the model, with what its server wants back. Some servers want a signature
// with the first call of each reply of the present turn.
func (e *encoder) assistant(m *agent.Message, back carried, inTurn bool) {
	e.open("assistant")
	e.ids.Reply()
	switch {
	case back.Field == fieldParts && !e.quirks.drops:
		e.raw(`,"content":[{"type":"thinking","thinking":[{"type":"text"`)
		e.field("text", back.Text)
		e.raw(`}]}`)
		if m.Text != "" {
			e.raw(`,{"type":"text"`)
			e.field("text", m.Text)
			e.raw(`}`)
		}
		e.raw(`]`)
	case m.Text != "" || len(m.Calls) == 0:
		e.field("content", provider.OrEmpty(m.Text))
	}
	for i := range m.Calls {
		if i == 0 {
			e.raw(`,"tool_calls":[`)
		} else {
			e.raw(`,`)
		}
		e.raw(`{"type":"function"`)
		e.field("id", e.ids.Call(m.Calls[i].ID))
		e.raw(`,"function":{"name":`)
		e.buf = provider.AppendString(e.buf, provider.FunctionName(m.Calls[i].Name))
		e.field("arguments", provider.Arguments(m.Calls[i].Arguments))
		e.raw(`}`)
		if !e.quirks.drops {
			e.raw(back.extra(i, inTurn && e.quirks.signs))
		}
		e.raw(`}`)
	}
	if len(m.Calls) > 0 {
		e.raw(`]`)
	}
	e.thoughts(back, inTurn)
	e.raw(`}`)
}

// output writes a reply for the Responses API: within the turn in its original order and with the
// reasoning, which has to precede the call it led to.
func (e *encoder) output(m *agent.Message, back carried) {
	e.ids.Reply()
	said, called := false, 0
	say := func(phase string) {
		if said || m.Text == "" && len(m.Calls) > 0 {
			return
		}
		said = true
		e.open("assistant")
		e.field("content", provider.OrEmpty(m.Text))
		if phase != "" {
			e.field("phase", phase)
		}
		e.raw(`}`)
	}
	call := func() {
		if called < len(m.Calls) {
			c := &m.Calls[called]
			called++
			e.item(itemCall)
			e.field("call_id", e.ids.Call(c.ID))
			e.field("name", provider.FunctionName(c.Name))
			e.field("arguments", provider.Arguments(c.Arguments))
			e.raw(`}`)
		}
	}
	for _, it := range back.Items {
		switch it.Type {
		case itemMessage:
			say(it.Phase)
		case itemCall:
			call()
		case itemReasoning:
			e.reasoning(it)
		}
	}
	say("")
	for called < len(m.Calls) {
		call()
	}
}

func (e *encoder) reasoning(it item) {
	e.item(itemReasoning)
	if it.ID != "" {
		e.field("id", it.ID)
	}
	e.field("encrypted_content", it.Encrypted)
	summary := "[]"
	if len(it.Summary) > 0 && it.Summary[0] == '[' {
		summary = string(it.Summary)
	}
	e.raw(`,"summary":` + summary + `}`)
}

func (e *encoder) result(m *agent.Message) {
	id, _ := e.ids.Result(m.CallID)
	text := provider.ResultText(m, e.show.blind)
	if e.quirks.responses {
		e.item("function_call_output")
		e.field("call_id", id)
		e.field("output", text)
	} else {
		e.open("tool")
		e.field("tool_call_id", id)
		e.field("content", text)
	}
	e.raw(`}`)
}
