package slack

import (
	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
	"oneclaw/slack/blocks"
)

// partLimit is the length of a part, markup counted. Slack advises to send texts
// over 4,000 in several messages; the rest is room for the notice of a repeat.
const partLimit = 3900

// stretchLimit is the length of a stretch of a long answer with tables or code, without markup.
const stretchLimit = 3000

// laid makes parts of what a document is rendered to. Where it is one, it is laid out.
func laid(d *markdown.Document, rendered []markdown.Part) (parts []chats.Part) {
	for _, part := range rendered {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	if len(parts) == 1 {
		parts[0].Layout = blocks.Layout(d)
	}
	return parts
}

// Render turns Markdown into parts in Slack's mrkdwn.
func (p *Platform) Render(text string) (parts []chats.Part) {
	document := markdown.Parse(text)
	rendered := document.SlackMrkdwn(partLimit)
	if len(rendered) < 2 || !blocks.Lays(document) {
		return laid(document, rendered)
	}
	for _, d := range document.Cut(stretchLimit) {
		parts = append(parts, laid(d, d.SlackMrkdwn(partLimit))...)
	}
	return parts
}
