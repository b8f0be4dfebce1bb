package slack

import (
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
	"oneclaw/slack/blocks"
)

// partLimit is the length of a part, markup counted. Slack advises to send texts
// over 4,000 in several messages; the rest is room for the notice of a repeat.
const partLimit = 3900

// Render turns Markdown into parts in Slack's mrkdwn.
func (p *Platform) Render(text string) []chats.Part {
	var parts []chats.Part
	document := markdown.Parse(text)
	for _, part := range document.SlackMrkdwn(partLimit) {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	if len(parts) == 1 {
		parts[0].Layout = blocks.Layout(document)
	}
	if len(parts) == 0 && strings.TrimSpace(text) != "" {
		parts = []chats.Part{{Text: escape(text), Plain: escape(text)}}
	}
	return parts
}
