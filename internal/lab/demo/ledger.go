package demo

import (
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// chatUsage has the tools that were sent to the model in one chat.
type chatUsage struct {
	Groups []string `json:"groups"`
	Calls  []call   `json:"calls"`
	// SentTokens and AllTokens add up the schema tokens of all calls: those that were sent, and those
	// of a bot that always sends all tools.
	SentTokens int `json:"sent"`
	AllTokens  int `json:"all"`
}

type call struct {
	Tools     int `json:"tools"`
	Tokens    int `json:"tokens"`
	AllTokens int `json:"all"`
	Groups    int `json:"groups"`
	// Routing is the routing that was used.
	Routing string `json:"routing"`
}

const maxCalls = 40

// observe records the requests among the events of turns.
func (d *Demo) observe(chat chats.Chat, e agent.Event) {
	if e.Request == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.usage[chat.String()]
	if l == nil {
		l = &chatUsage{}
		d.usage[chat.String()] = l
	}
	l.Groups = e.Request.Groups
	l.Calls = append(l.Calls, call{Tools: len(e.Request.Tools), Tokens: e.Request.ToolTokens, AllTokens: e.Request.AllTokens, Groups: len(e.Request.Groups), Routing: e.Request.Routing})
	if len(l.Calls) > maxCalls {
		l.Calls = l.Calls[1:]
	}
	l.SentTokens += e.Request.ToolTokens
	l.AllTokens += e.Request.AllTokens
	d.recordRequest(e.Request)
	d.notify()
}

// clearGroups empties the list of groups when the bot reports that it cleared the chat. The next
// request would show that as well, but later.
func (d *Demo) clearGroups(chat chats.Chat, fromBot bool, text string) {
	if !fromBot || !strings.Contains(text, "Conversation cleared") {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.usage[chat.String()]; l != nil {
		l.Groups = nil
	}
}
