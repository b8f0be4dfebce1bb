package demo

import (
	"strings"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
)

// ledger is what the model was sent in one chat.
type ledger struct {
	Groups []string `json:"groups"`
	Calls  []call   `json:"calls"`
	// Sent and All add up the schema tokens of all calls: those sent, and those of a bot that
	// always sends all tools.
	Sent int `json:"sent"`
	All  int `json:"all"`
}

type call struct {
	Tools  int `json:"tools"`
	Tokens int `json:"tokens"`
	All    int `json:"all"`
	Groups int `json:"groups"`
	// Routing is the routing used.
	Routing string `json:"routing"`
}

const maxCalls = 40

// observe handles the events of turns.
func (d *Demo) observe(chat chats.Chat, e agent.Event) {
	if e.Request == nil {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	l := d.calls[chat.String()]
	if l == nil {
		l = &ledger{}
		d.calls[chat.String()] = l
	}
	l.Groups = e.Request.Groups
	l.Calls = append(l.Calls, call{Tools: len(e.Request.Tools), Tokens: e.Request.ToolTokens, All: e.Request.AllTokens, Groups: len(e.Request.Groups), Routing: e.Request.Routing})
	if len(l.Calls) > maxCalls {
		l.Calls = l.Calls[1:]
	}
	l.Sent += e.Request.ToolTokens
	l.All += e.Request.AllTokens
	d.give(e.Request)
	d.notify()
}

// forget empties the list of groups when the bot says that it cleared the chat: the next request
// will show that too, but only later.
func (d *Demo) forget(chat chats.Chat, fromBot bool, text string) {
	if !fromBot || !strings.Contains(text, "Conversation cleared") {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if l := d.calls[chat.String()]; l != nil {
		l.Groups = nil
	}
}
