package blocks

import (
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/slack-go/slack"

	"oneclaw/internal/markdown"
)

// Limits of the blocks (docs.slack.dev/reference/block-kit/blocks, table-block and markdown-block). A
// message can have one table (only_one_table_allowed).
const (
	maxRows     = 100
	maxCells    = 20
	maxMarkdown = 12_000 // characters of all markdown blocks together
	// maxLayoutBlocks leaves room for the other blocks of a message.
	maxLayoutBlocks = maxBlocks - 10
)

// Layout returns a document as blocks, with its first table and its code in their own. It returns nil
// for a document with neither, or if it does not fit.
func Layout(d *markdown.Document) json.RawMessage {
	var all []slack.Block
	tabled, code, more := false, 0, false
	text := func(d *markdown.Document) bool {
		parts := d.SlackMrkdwn(MaxSection)
		for _, part := range parts {
			laid, err := Append(nil, part.Text, false, nil)
			if err != nil {
				return false
			}
			all = append(all, laid...)
		}
		return len(parts) > 0
	}
	for _, piece := range d.Pieces() {
		switch {
		case piece.Code != nil && !mentionPattern.MatchString(piece.Code.Text):
			block := codeBlock(piece.Code)
			code += utf8.RuneCountInString(block.Text)
			all, more = append(all, block), true
		case piece.Table != nil && !tabled && len(piece.Table.Rows) <= maxRows && len(piece.Table.Rows[0]) <= maxCells:
			all, tabled, more = append(all, tableBlock(piece.Table)), true, true
		case !text(piece.Text):
			return nil
		}
	}
	if !more || code > maxMarkdown || len(all) > maxLayoutBlocks {
		return nil
	}
	body, err := json.Marshal(slack.Blocks{BlockSet: all})
	if err != nil {
		return nil
	}
	return body
}

// HasTableOrCode reports whether a document has parts that blocks show better than text does.
func HasTableOrCode(d *markdown.Document) bool {
	return slices.ContainsFunc(d.Pieces(), func(p markdown.Piece) bool { return p.Table != nil || p.Code != nil })
}

// Decode returns the blocks of a layout, or nil if it cannot be read.
func Decode(layout json.RawMessage) []slack.Block {
	var laid slack.Blocks
	if json.Unmarshal(layout, &laid) != nil {
		return nil
	}
	return laid.BlockSet
}

// mentionPattern matches mentions. Slack does not document whether they notify users in Markdown blocks.
var mentionPattern = regexp.MustCompile(`<[!@#]`)

// codeBlock returns a block with code, which Slack highlights.
func codeBlock(c *markdown.Code) *slack.MarkdownBlock {
	mark := fence
	for strings.Contains(c.Text, mark) {
		mark += "`"
	}
	return slack.NewMarkdownBlock("", mark+c.Lang+"\n"+c.Text+"\n"+mark)
}

func tableBlock(t *markdown.Table) *slack.TableBlock {
	block := slack.NewTableBlock("")
	for _, row := range t.Rows {
		cells := make([]slack.TableCell, len(row))
		for i, text := range row {
			if text == "" {
				text = " " // a cell may not be empty
			}
			cells[i] = slack.NewTableRawTextCell(text)
		}
		block.Rows = append(block.Rows, cells)
	}
	for _, align := range t.Align {
		block.ColumnSettings = append(block.ColumnSettings, slack.ColumnSetting{Align: slack.ColumnAlignment(align), IsWrapped: true})
	}
	return block
}
