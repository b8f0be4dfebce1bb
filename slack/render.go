package slack

import (
	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
	"oneclaw/slack/blocks"
)

// partLimit bounds a part, markup included, in characters. Slack advises splitting texts over 4,000.
// The difference is room for the notice of a repeat.
const partLimit = 3900

// sectionLimit bounds a section of a long answer with tables or code, without markup.
const sectionLimit = 3000

// convertParts returns the parts of a rendered document, with a layout if there is only one.
func convertParts(d *markdown.Document, rendered []markdown.Part) (parts []chats.Part) {
	for _, part := range rendered {
		parts = append(parts, chats.Part{Text: part.Text, Plain: part.Plain})
	}
	if len(parts) == 1 {
		parts[0].Layout = blocks.Layout(d)
	}
	return parts
}

// Render renders Markdown as parts in Slack's mrkdwn.
func (p *platform) Render(text string) (parts []chats.Part) {
	document := markdown.Parse(text)
	rendered := document.SlackMrkdwn(partLimit)
	if len(rendered) < 2 || !blocks.HasTableOrCode(document) {
		return convertParts(document, rendered)
	}
	for _, d := range document.SplitBlocks(sectionLimit) {
		parts = append(parts, convertParts(d, d.SlackMrkdwn(partLimit))...)
	}
	return parts
}
