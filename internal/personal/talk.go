package personal

import (
	"bytes"
	"encoding/json"
	"fmt"
	"iter"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
)

// copyConversation copies a conversation twice: as Markdown, and as the stored JSON.
func (c *exportCopy) copyConversation(of conversation.Conversation, messages iter.Seq2[agent.Message, error]) error {
	var text, stored bytes.Buffer
	begun := of.StartedAt
	for m, err := range messages {
		if queue.IsDamaged(err) {
			continue
		}
		if err == nil {
			err = json.NewEncoder(&stored).Encode(m)
		}
		if err != nil {
			return err
		}
		if begun.IsZero() {
			begun = m.Time
		}
		writeMessage(&text, m)
	}
	if stored.Len() == 0 {
		return nil
	}
	c.conversationCount++
	name := fmt.Sprintf("conversations/%04d-%s", c.conversationCount, begun.UTC().Format(time.DateOnly))
	heading := fmt.Sprintf("# %s\n\n%s\n", of.Title, of.Chat)
	if err := c.writeEntry(name+".md", []byte(heading+text.String())); err != nil {
		return err
	}
	return c.writeEntry(name+".jsonl", stored.Bytes())
}

// writeMessage writes a message as Markdown.
func writeMessage(text *bytes.Buffer, m agent.Message) {
	at := ""
	if !m.Time.IsZero() {
		at = ", " + m.Time.UTC().Format(time.RFC1123)
	}
	switch m.Role {
	case agent.RoleUser:
		fmt.Fprintf(text, "\n## You%s\n\n", at)
		if m.Quoted != "" {
			fmt.Fprintf(text, "%s\n\n", m.Quoted)
		}
	case agent.RoleAssistant:
		if m.Text == "" && len(m.Calls) == 0 {
			return
		}
		fmt.Fprintf(text, "\n## OneClaw%s\n\n", at)
	case agent.RoleSummary:
		fmt.Fprintf(text, "\n## My summary of what was said until here%s\n\n", at)
	case agent.RoleTool:
		fmt.Fprintf(text, "\n### %s returned\n\n", m.Tool)
	default:
		return // internal to the program
	}
	if m.Text != "" {
		fmt.Fprintf(text, "%s\n", strings.TrimSpace(m.Text))
	}
	for _, f := range m.Files {
		fmt.Fprintf(text, "\n- file: %s\n", f.Path)
	}
	for _, call := range m.Calls {
		fmt.Fprintf(text, "\n- called %s\n", call.Name)
	}
}
