package slack

import (
	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
	"oneclaw/slack/blocks"
)

// partLimit bounds a part, markup included, in characters. Slack advises to split texts over 4,000; the
// rest is room for the notice of a repeat.
const partLimit = 3900

// stretchLimit bounds a section of a long answer with tables or code, without markup.
const stretchLimit = 3000

// laid returns the parts of a rendered document, with a layout if there is only one.
func laid(d *markdown.Document, rendered []markdown.Part) (parts []chats.Part) {
	for _, part := range rendered {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	if len(parts) == 1 {
		parts[0].Layout = blocks.Layout(d)
	}
	return parts
}

// Render renders Markdown as parts in Slack's mrkdwn.
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
