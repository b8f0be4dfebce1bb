package openai

import "oneclaw/agent"

// encodeInput encodes the system prompt and the messages as the input of the Responses
// API, whose calls and results are items of their own.
func encodeInput(to dialogue, system string, messages []agent.Message) []byte {
	e := newEncoder(to, system, messages)
	e.raw(`[`)
	if system != "" {
		e.message("system", system)
	}
	turn := lastUser(messages)
	for i := range messages {
		m := &messages[i]
		switch m.Role {
		case agent.RoleUser, agent.RoleSummary:
			e.userInput(userText(m), to.show.with(i, i))
		case agent.RoleAssistant:
			e.output(m, i > turn)
		case agent.RoleTool:
			e.item("function_call_output")
			e.field("call_id", m.CallID)
			e.field("output", orEmpty(m.Text))
			e.raw(`}`)
		}
	}
	e.raw(`]`)
	return e.buf
}

// item begins an item that is no message.
func (e *encoder) item(kind string) {
	if e.some {
		e.raw(`,`)
	}
	e.some = true
	e.raw(`{"type":"` + kind + `"`)
}

// output writes a reply of the model, within the turn in the order in which it came
// and with the reasoning, which has to stand in front of what it led to.
func (e *encoder) output(m *agent.Message, reasoning bool) {
	var back carried
	if reasoning {
		back = unpack(m.Reasoning, e.to.origin)
	}
	said, called := false, 0
	say := func(phase string) {
		if said || m.Text == "" && len(m.Calls) > 0 {
			return
		}
		said = true
		e.open("assistant")
		e.field("content", orEmpty(m.Text))
		if phase != "" {
			e.field("phase", phase)
		}
		e.raw(`}`)
	}
	call := func() {
		if called >= len(m.Calls) {
			return
		}
		c := &m.Calls[called]
		called++
		e.item(itemCall)
		e.field("call_id", c.ID)
		e.field("name", functionName(c.Name))
		e.field("arguments", arguments(c.Arguments))
		e.raw(`}`)
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
	e.raw(`,"summary":`)
	if len(it.Summary) > 0 && it.Summary[0] == '[' {
		e.buf = append(e.buf, it.Summary...)
	} else {
		e.raw(`[]`)
	}
	e.raw(`}`)
}
