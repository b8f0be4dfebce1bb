// Package blocks lays out texts in Slack's blocks: in sections, with tables and code in their own
// blocks, and with buttons below.
package blocks

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/bridge/chats"
	"oneclaw/internal/wording"
)

// Limits of Block Kit (docs.slack.dev, reference of blocks and elements).
const (
	// maxBlocks bounds the blocks of a message.
	maxBlocks = 50
	// MaxSection bounds a section, in characters.
	MaxSection = 3000
	maxRow     = 25 // elements of an actions block
	maxLabel   = 75 // characters of a button
	maxValue   = 2000
)

// fence encloses code.
const fence = "```"

// ErrLayout is returned for a part that does not fit into a message.
var ErrLayout = errors.New("slack: the part does not fit a message")

// Append appends a text to the blocks, in sections, followed by the rows of buttons.
func Append(all []slack.Block, text string, plain bool, buttons [][]chats.Button) ([]slack.Block, error) {
	kind := slack.MarkdownType
	if plain {
		kind = slack.PlainTextType
	}
	for _, piece := range splitSections(text, plain) {
		// Verbatim: text that only looks like a mention notifies no user.
		object := &slack.TextBlockObject{Type: kind, Text: piece, Verbatim: !plain}
		all = append(all, slack.NewSectionBlock(object, nil, nil, slack.SectionBlockOptionExpand(true)))
	}
	for i, row := range buttons {
		elements, err := buttonElements(row, i)
		if err != nil {
			return nil, err
		}
		for len(elements) > 0 {
			n := min(len(elements), maxRow)
			all = append(all, slack.NewActionBlock("", elements[:n]...))
			elements = elements[n:]
		}
	}
	if len(all) > maxBlocks {
		return nil, fmt.Errorf("%w: it has %d blocks, %d are possible", ErrLayout, len(all), maxBlocks)
	}
	return all, nil
}

func buttonElements(row []chats.Button, number int) ([]slack.BlockElement, error) {
	var list []slack.BlockElement
	for i, b := range row {
		if b.Label == "" || b.Data == "" || len(b.Data) > maxValue {
			return nil, fmt.Errorf("%w: button %d of row %d: want a label, and data of 1 to %d bytes", ErrLayout, i+1, number+1, maxValue)
		}
		label := wording.Clip(b.Label, maxLabel)
		id := "row" + strconv.Itoa(number) + "-" + strconv.Itoa(i)
		button := slack.NewButtonBlockElement(id, b.Data, slack.NewTextBlockObject(slack.PlainTextType, label, true, false))
		button.Style = slack.Style(b.Style) // the names are the same
		button.URL = b.URL
		list = append(list, button)
	}
	return list, nil
}

// splitSections splits a text into sections, at the end of a line if possible. Code that is split is
// closed and opened again, unless the text is plain.
func splitSections(body string, plain bool) []string {
	var pieces []string
	for utf8.RuneCountInString(body) > MaxSection {
		first, _ := wording.SplitAt(body, MaxSection-2*(len(fence)+1))
		at := lastBreak(first)
		piece, rest := strings.TrimRight(body[:at], "\n"), strings.TrimLeft(body[at:], "\n")
		if !plain && strings.Count(piece, fence)%2 == 1 {
			piece += "\n" + fence
			rest = fence + "\n" + rest
		}
		if piece != "" {
			pieces = append(pieces, piece)
		}
		body = rest
	}
	if body = strings.TrimRight(body, "\n"); body != "" {
		pieces = append(pieces, body)
	}
	return pieces
}

// lastBreak returns the index after the last complete line or word of a text, and never 0.
func lastBreak(s string) int {
	for _, sep := range []string{"\n\n", "\n", " "} {
		if i := strings.LastIndex(s, sep); i >= len(s)/4 {
			return i + len(sep)
		}
	}
	// Do not split an entity.
	if i := strings.LastIndexByte(s, '&'); i > 0 && len(s)-i < len("&quot;") && !strings.Contains(s[i:], ";") {
		return i
	}
	return len(s)
}
