// Package blockkit checks Slack's blocks as the service does, and renders the part of them that users
// see. Each refusal names its source, as in package slack.
package blockkit

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// Limits of the service, of texts in characters (docs.slack.dev/reference/block-kit and the pages below
// it).
const (
	// MaxMarkdown bounds the total Markdown of a message, in characters.
	MaxMarkdown       = 12_000
	maxSection        = 3_000
	maxHeader         = 150
	maxContextActions = 5
	maxElements       = 25 // of an actions block
	maxLabel          = 75 // of a button
	maxValue          = 2000
	maxURL            = 3000 // of a button
	maxID             = 255  // action_id and block_id
)

// Refusal is an error with the service's wording.
type Refusal struct {
	Code     string
	Messages []string
}

// Button is a button under a message.
type Button struct {
	// BlockID is the id of the row's block, if the app gave it one.
	BlockID  string `json:"block,omitempty"`
	ActionID string `json:"action"`
	Label    string `json:"label"`
	Value    string `json:"value"`
	URL      string `json:"url,omitempty"`
	Style    string `json:"style,omitempty"`
}

func newRefusal(code string, messages ...string) *Refusal { return &Refusal{code, messages} }

func length(s string) int { return utf8.RuneCountInString(s) }

// mentionPattern matches mentions that notify people: of broadcasts, users and user groups.
var mentionPattern = regexp.MustCompile(`<(?:!(?:channel|here|everyone)(?:\|[^>]*)?|!subteam\^[A-Z0-9]+(?:\|[^>]*)?|@[UW][A-Z0-9]+(?:\|[^>]*)?)>`)

func mentionsIn(text string) []string { return mentionPattern.FindAllString(text, -1) }

type block struct {
	Type           string            `json:"type"`
	Rows           [][]cell          `json:"rows"`
	ColumnSettings []column          `json:"column_settings"`
	BlockID        string            `json:"block_id"`
	Text           json.RawMessage   `json:"text"`
	Elements       []json.RawMessage `json:"elements"`
}

type textObject struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Verbatim bool   `json:"verbatim"`
}

// element is an element of an actions block.
type element struct {
	Type     string     `json:"type"`
	ActionID string     `json:"action_id"`
	Text     textObject `json:"text"`
	Value    string     `json:"value"`
	URL      string     `json:"url"`
	Style    string     `json:"style"`
}

func invalidBlocks(format string, args ...any) *Refusal {
	return newRefusal("invalid_blocks", "[ERROR] "+fmt.Sprintf(format, args...)) // its page
}

// Check refuses blocks over the limits. most is the maximum number of blocks. Unknown kinds pass.
func Check(raw []byte, most int) *Refusal {
	var blocks []block
	if err := json.Unmarshal(raw, &blocks); err != nil {
		return newRefusal("invalid_blocks_format") // its page
	}
	if len(blocks) > most {
		return invalidBlocks("no more than %d items allowed [json-pointer:/blocks]", most)
	}
	markdown, tables, ids := 0, 0, map[string]bool{}
	for i, b := range blocks {
		if length(b.BlockID) > maxID || b.BlockID != "" && ids[b.BlockID] {
			return invalidBlocks("block_id is too long or used twice [json-pointer:/blocks/%d/block_id]", i)
		}
		ids[b.BlockID] = true
		if err := b.check(i); err != nil {
			return err
		}
		if b.Type == "markdown" {
			markdown += length(b.plainText())
		}
		if b.Type == "table" {
			tables++
		}
	}
	if tables > 1 {
		return newRefusal("invalid_attachments", "[ERROR] only_one_table_allowed") // reported by apps: github.com/netclaw-dev/netclaw/issues/55
	}
	if markdown > MaxMarkdown {
		return newRefusal("msg_blocks_too_long") // its page
	}
	return nil
}

// check refuses an invalid block; i is its index in the message.
func (b block) check(i int) *Refusal {
	switch b.Type {
	case "":
		return invalidBlocks("missing required field: type [json-pointer:/blocks/%d]", i)
	case "section":
		return checkSection(b, i)
	case "context_actions":
		return checkContextActions(b, i)
	case "header":
		return checkHeader(b, i)
	case "actions":
		return checkActions(b, i)
	case "table":
		return checkTable(b, i)
	case "markdown":
		if b.plainText() == "" {
			return invalidBlocks("missing required field: text [json-pointer:/blocks/%d]", i)
		}
	}
	return nil
}

// plainText returns the text of a block whose text is a string.
func (b block) plainText() string {
	var text string
	if json.Unmarshal(b.Text, &text) != nil {
		return ""
	}
	return text
}

func checkSection(b block, i int) *Refusal {
	if len(b.Text) == 0 {
		return nil // it may have fields instead of a text
	}
	var t textObject
	if json.Unmarshal(b.Text, &t) != nil || t.Type != "mrkdwn" && t.Type != "plain_text" {
		return invalidBlocks("unsupported type [json-pointer:/blocks/%d/text/type]", i)
	}
	switch n := length(t.Text); {
	case n == 0:
		return invalidBlocks("must be more than 0 characters [json-pointer:/blocks/%d/text/text]", i)
	case n > maxSection:
		return invalidBlocks("must be less than %d characters [json-pointer:/blocks/%d/text/text]", maxSection+1, i)
	}
	return nil
}

// checkContextActions refuses invalid feedback buttons
// (docs.slack.dev/reference/block-kit/blocks/context-actions-block and its elements).
func checkContextActions(b block, i int) *Refusal {
	if n := len(b.Elements); n == 0 || n > maxContextActions {
		return invalidBlocks("want 1 to %d items [json-pointer:/blocks/%d/elements]", maxContextActions, i)
	}
	for j, raw := range b.Elements {
		var e struct {
			Type     string   `json:"type"`
			Positive *element `json:"positive_button"`
			Negative *element `json:"negative_button"`
		}
		if json.Unmarshal(raw, &e) != nil || e.Type != "feedback_buttons" && e.Type != "icon_button" {
			return invalidBlocks("unsupported type [json-pointer:/blocks/%d/elements/%d]", i, j)
		}
		if e.Type == "feedback_buttons" && (e.Positive == nil || e.Negative == nil || e.Positive.invalidPart()+e.Negative.invalidPart() != "") {
			return invalidBlocks("want two buttons with a text and a value [json-pointer:/blocks/%d/elements/%d]", i, j)
		}
	}
	return nil
}

// HasFeedback reports whether blocks have feedback buttons.
func HasFeedback(raw []byte) bool {
	var blocks []block
	return json.Unmarshal(raw, &blocks) == nil && slices.ContainsFunc(blocks, func(b block) bool { return b.Type == "context_actions" })
}

// checkHeader refuses an invalid header
// (docs.slack.dev/reference/block-kit/blocks/header-block).
func checkHeader(b block, i int) *Refusal {
	var t textObject
	if json.Unmarshal(b.Text, &t) != nil || t.Type != "plain_text" || length(t.Text) == 0 || length(t.Text) > maxHeader {
		return invalidBlocks("want a plain_text of 1 to %d characters [json-pointer:/blocks/%d/text]", maxHeader, i)
	}
	return nil
}

func checkActions(b block, i int) *Refusal {
	if n := len(b.Elements); n == 0 || n > maxElements {
		return invalidBlocks("want 1 to %d items [json-pointer:/blocks/%d/elements]", maxElements, i)
	}
	actions := map[string]bool{}
	for j, raw := range b.Elements {
		var kind struct{ Type string }
		if json.Unmarshal(raw, &kind) != nil || kind.Type == "" {
			return invalidBlocks("missing required field: type [json-pointer:/blocks/%d/elements/%d]", i, j)
		}
		if kind.Type != "button" {
			continue
		}
		var e element
		if json.Unmarshal(raw, &e) != nil {
			return invalidBlocks("button does not decode [json-pointer:/blocks/%d/elements/%d]", i, j)
		}
		if wrong := e.invalidPart(); wrong != "" {
			return invalidBlocks("%s [json-pointer:/blocks/%d/elements/%d]", wrong, i, j)
		}
		if e.ActionID != "" && actions[e.ActionID] {
			return invalidBlocks("`action_id` %s already exists [json-pointer:/blocks/%d/elements/%d/action_id]", e.ActionID, i, j)
		}
		actions[e.ActionID] = true
	}
	return nil
}

// invalidPart returns the reason for which the service would refuse a button, or "".
func (e element) invalidPart() string {
	switch n := length(e.Text.Text); {
	case e.Text.Type != "plain_text":
		return "unsupported type of text: want plain_text"
	case n == 0:
		return "text must be more than 0 characters"
	case n > maxLabel:
		return "text is too long"
	case length(e.ActionID) > maxID:
		return "action_id is too long"
	case length(e.Value) > maxValue:
		return "value is too long"
	case length(e.URL) > maxURL:
		return "url is too long"
	case e.Style != "" && e.Style != "primary" && e.Style != "danger":
		return "invalid style"
	}
	return ""
}

var broadcastPattern = regexp.MustCompile(`(?:^|[\s(])@(?:channel|here|everyone)\b`)

// Broadcasts returns the broadcasts that the service makes from plain words, in a text that is not
// verbatim.
func Broadcasts(text string) []string { return broadcastPattern.FindAllString(text, -1) }

// Render renders blocks. It returns the visible text, the buttons in rows, and the mentions. Without
// blocks it renders the text.
func Render(text string, raw []byte) (seen string, rows [][]Button, called []string) {
	var blocks []block
	if len(raw) == 0 || json.Unmarshal(raw, &blocks) != nil || len(blocks) == 0 {
		return text, nil, mentionsIn(text)
	}
	var texts []string
	for _, b := range blocks {
		var t textObject
		switch {
		case b.Type == "context_actions":
			continue
		case b.Type == "actions":
			rows = append(rows, buttonRow(b))
			continue
		case b.Type == "table":
			texts = append(texts, b.tableText())
			continue
		case json.Unmarshal(b.Text, &t) != nil:
			t.Text = b.plainText()
		}
		texts = append(texts, t.Text)
		if t.Type != "plain_text" {
			called = append(called, mentionsIn(t.Text)...)
		}
		if t.Type == "mrkdwn" && !t.Verbatim {
			called = append(called, Broadcasts(t.Text)...)
		}
	}
	return strings.Join(texts, "\n"), rows, called
}

func buttonRow(b block) []Button {
	var row []Button
	for _, raw := range b.Elements {
		var e element
		if json.Unmarshal(raw, &e) == nil && e.Type == "button" {
			row = append(row, Button{BlockID: b.BlockID, ActionID: e.ActionID, Label: e.Text.Text, Value: e.Value, URL: e.URL, Style: e.Style})
		}
	}
	return row
}
