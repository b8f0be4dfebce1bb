package blocks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/wording"
)

// Bounds of what is read. Slack's own are lower: 50 blocks in a message, 100 in a view, 20 cells in a row.
const (
	maxReadBlocks = 100
	maxReadCells  = 100
	maxDepth      = 20
)

// Reader reads the blocks of messages that others wrote, up to a number of characters. It knows how
// blocks are built rather than a list of their kinds, so a kind that is new to it loses no text.
type Reader struct {
	left   int
	cut    bool // something was left out without a note
	others bool // something was read that people do not type
}

// NewReader returns a reader that reads at most limit characters.
func NewReader(limit int) *Reader { return &Reader{left: limit} }

// Read returns the text of each block that has one, in mrkdwn: what people typed is escaped. A note stands
// in the place of what cannot be read.
func (r *Reader) Read(raw json.RawMessage) (texts []string) {
	if isNull(raw) {
		return nil
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return []string{r.note(unreadable)}
	}
	for i, one := range list {
		if i == maxReadBlocks || r.left <= 0 {
			return append(texts, r.note(fmt.Sprintf("%d more blocks of this message", len(list)-i)))
		}
		text := r.node(one, 0)
		if text == "" && !isNull(one) && !isObject(one) {
			text = r.note(unreadable)
		}
		if text != "" {
			texts = append(texts, text)
		}
	}
	return texts
}

// Take returns a text, shortened to the characters that are left.
func (r *Reader) Take(text string) string {
	if n := utf8.RuneCountInString(text); n == 0 || n <= r.left {
		r.left -= n
		return text
	}
	head, _ := wording.SplitAt(text, max(r.left, 0))
	r.left, r.cut = 0, true
	return head
}

// Rest returns a note if texts were left out or shortened, and otherwise an empty string.
func (r *Reader) Rest() string {
	if !r.cut {
		return ""
	}
	return r.note("the rest of this message, which is too long")
}

// ownKinds are the kinds of blocks that people type, draw or paste. All others are made by apps, or by Slack for what others
// have made, as a picture with its title is.
var ownKinds = map[string]bool{
	"rich_text": true, "rich_text_section": true, "rich_text_list": true, "rich_text_quote": true, "rich_text_preformatted": true,
	"table": true, "data_table": true, "raw_text": true, "raw_number": true, "link": true, "url": true,
}

// HasOthers reports whether what was read, or left out, may have words that the sender of a message did not type, such
// as the name of a file or of an emoji that a member of the workspace has added.
func (r *Reader) HasOthers() bool { return r.others || r.cut }

// unreadable describes data that does not decode.
const unreadable = "a part of this message that I cannot read"

// Note returns a note about something that cannot be read, in the words that the model knows from files.
func Note(what string) string { return "[not received: " + escape(what) + "]" }

// note returns a note, which counts as well: a message may consist of nothing that can be read.
func (r *Reader) note(what string) string {
	text := Note(what)
	r.left -= utf8.RuneCountInString(text)
	return text
}

// fields are the fields of an object.
type fields map[string]json.RawMessage

// containers are the kinds whose text is that of their parts, in the order of partOrder.
var containers = map[string]bool{
	"section": true, "header": true, "context": true, "actions": true, "context_actions": true, "input": true, "container": true, "card": true,
	"carousel": true, "alert": true, "plan": true, "task_card": true, "divider": true, "feedback_buttons": true,
	"plain_text": true, "raw_text": true, "markdown": true,
}

// partOrder are the fields with text, in the order in which Slack shows them. Others follow if they contain
// text objects.
var partOrder = []string{
	"title", "rich_text_title", "subtitle", "label", "text", "caption", "body", "description", "details", "output", "subtext",
	"fields", "elements", "child_blocks", "blocks", "tasks", "sources", "hint", "element", "actions", "accessory",
}

// noParts are fields whose text Slack does not show with the message.
var noParts = map[string]bool{"confirm": true, "icon": true, "slack_icon": true, "positive_button": true, "negative_button": true, "style": true}

// node returns the text of a block, an element, a text object or a list of them.
func (r *Reader) node(raw json.RawMessage, depth int) string {
	raw = bytes.TrimSpace(raw)
	switch {
	case isNull(raw):
		return ""
	case depth > maxDepth:
		return r.note(unreadable)
	case raw[0] == '"':
		return escape(r.Take(stringOf(raw)))
	case raw[0] == '[':
		return r.join(raw, "\n", depth, r.node)
	case raw[0] != '{':
		return ""
	}
	var o fields
	if json.Unmarshal(raw, &o) != nil {
		return r.note(unreadable)
	}
	return r.object(o, depth)
}

func (r *Reader) object(o fields, depth int) string {
	kind := stringOf(o["type"])
	r.others = r.others || !ownKinds[kind]
	switch kind {
	case "mrkdwn":
		return r.Take(stringOf(o["text"]))
	case "rich_text":
		return r.join(o["elements"], "\n", depth, r.rich)
	case "rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted":
		return r.richObject(o, depth)
	case "image":
		return r.medium("a picture", o, depth)
	case "video":
		return r.medium("a video", o, depth)
	case "file":
		return r.note("a file that lies outside of Slack")
	case "table", "data_table":
		return r.table(o, depth)
	case "raw_number":
		return cmp.Or(escape(r.Take(stringOf(o["text"]))), r.Take(string(o["value"])))
	case "action": // a cell with a button
		return cmp.Or(r.node(o["fallback"], depth+1), r.node(o["element"], depth+1))
	case "data_visualization":
		return r.chart(o, depth)
	case "url", "link":
		return r.link(o)
	}
	if label := r.control(kind, o, depth); label != "" {
		return label
	}
	text := r.parts(o, depth)
	if text == "" && kind != "" && !containers[kind] && len(o["text"]) == 0 {
		return r.note("a block of the kind “" + wording.Clip(kind, 40) + "”")
	}
	return text
}

// parts returns the texts of the fields of an object, one below the other.
func (r *Reader) parts(o fields, depth int) string {
	var texts []string
	add := func(key string) {
		if text := r.node(o[key], depth+1); text != "" {
			texts = append(texts, text)
		}
	}
	for _, key := range partOrder {
		add(key)
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if !slices.Contains(partOrder, key) && !noParts[key] && hasKind(o[key]) {
			add(key)
		}
	}
	return strings.Join(texts, "\n")
}

// control returns the label of a button, or of a field to fill in, in brackets.
func (r *Reader) control(kind string, o fields, depth int) string {
	what := ""
	switch {
	case strings.HasSuffix(kind, "button"):
		what = "button"
	case strings.HasSuffix(kind, "_select"), kind == "overflow", kind == "radio_buttons", kind == "checkboxes":
		what = "choice"
	case strings.HasSuffix(kind, "picker"), strings.HasSuffix(kind, "_input"):
		what = "field"
	default:
		return ""
	}
	label := cmp.Or(r.node(o["text"], depth+1), r.node(o["placeholder"], depth+1))
	options := r.join(o["options"], ", ", depth, r.node)
	if shown := strings.Trim(label+"; "+options, "; "); shown != "" {
		what += ": " + shown
	}
	return "[" + what + "]"
}

// medium returns a note about a picture or a video, with the texts beside it.
func (r *Reader) medium(what string, o fields, depth int) string {
	var texts []string
	for _, key := range []string{"title", "alt_text", "description"} {
		if text := r.node(o[key], depth+1); text != "" && !slices.Contains(texts, text) {
			texts = append(texts, text)
		}
	}
	if len(texts) == 0 {
		return r.note(what)
	}
	return "[not received: " + what + ", “" + strings.Join(texts, " – ") + "”]"
}

// join joins the texts of the elements of a list.
func (r *Reader) join(raw json.RawMessage, with string, depth int, each func(json.RawMessage, int) string) string {
	if isNull(raw) {
		return ""
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return r.note(unreadable)
	}
	var texts []string
	for _, one := range list {
		if r.left <= 0 {
			r.cut = true
			break
		}
		if text := each(one, depth+1); text != "" {
			texts = append(texts, text)
		}
	}
	return strings.Join(texts, with)
}

// table returns a table in Markdown. The first row is its header.
func (r *Reader) table(o fields, depth int) string {
	var lines []string
	if caption := r.node(o["caption"], depth+1); caption != "" {
		lines = append(lines, caption)
	}
	var rows []json.RawMessage
	if json.Unmarshal(o["rows"], &rows) != nil {
		return strings.Join(append(lines, r.note("a table that I cannot read")), "\n")
	}
	for i, raw := range rows {
		if r.left <= 0 {
			lines, r.cut = append(lines, r.note(fmt.Sprintf("%d more rows of this table", len(rows)-i))), false
			break
		}
		cells := r.row(raw, depth)
		lines = append(lines, "| "+strings.Join(cells, " | ")+" |")
		if i == 0 {
			lines = append(lines, "|"+strings.Repeat("---|", len(cells)))
		}
	}
	return strings.Join(lines, "\n")
}

func (r *Reader) row(raw json.RawMessage, depth int) (cells []string) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		return []string{r.note("a row that I cannot read")}
	}
	r.left -= 3 * min(len(list), maxReadCells)
	for i, one := range list {
		if i == maxReadCells || r.left <= 0 {
			return append(cells, r.note(fmt.Sprintf("%d more cells of this row", len(list)-i)))
		}
		text := r.node(one, depth+1)
		if text == "" && !isNull(one) && !isObject(one) {
			text = r.note("a cell that I cannot read")
		}
		cells = append(cells, escapeCell(text))
	}
	return cells
}

// escapeCell puts the text of a cell on one line, and escapes the borders of cells outside of links.
func escapeCell(text string) string {
	var b strings.Builder
	inLink := false
	for _, c := range strings.Join(strings.Fields(text), " ") {
		switch c {
		case '<':
			inLink = true
		case '>':
			inLink = false
		case '|':
			if !inLink {
				b.WriteByte('\\')
			}
		}
		b.WriteRune(c)
	}
	return b.String()
}

// chart returns the figures of a chart.
func (r *Reader) chart(o fields, depth int) string {
	type point struct {
		Label string      `json:"label"`
		Value json.Number `json:"value"`
	}
	var c struct {
		Type     string  `json:"type"`
		Segments []point `json:"segments"`
		Series   []struct {
			Name string  `json:"name"`
			Data []point `json:"data"`
		} `json:"series"`
	}
	title := r.node(o["title"], depth+1)
	if json.Unmarshal(o["chart"], &c) != nil || len(c.Segments)+len(c.Series) == 0 {
		return strings.TrimSpace(title + "\n" + r.note("a chart"))
	}
	lines := []string{strings.TrimSpace("[" + escape(r.Take(c.Type)) + " chart] " + title)}
	points := func(name string, list []point) {
		var figures []string
		for _, p := range list {
			figures = append(figures, p.Label+" "+p.Value.String())
		}
		lines = append(lines, escape(r.Take(name+strings.Join(figures, ", "))))
	}
	if len(c.Segments) > 0 {
		points("", c.Segments)
	}
	for _, s := range c.Series {
		points(s.Name+": ", s.Data)
	}
	return strings.Join(lines, "\n")
}

func isNull(raw json.RawMessage) bool { return len(raw) == 0 || string(raw) == "null" }

func isObject(raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	return len(raw) > 0 && raw[0] == '{'
}

// hasKind reports whether a value is an object with a type, or a list that begins with one.
func hasKind(raw json.RawMessage) bool {
	var one struct {
		Type string `json:"type"`
	}
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) == nil {
		return len(list) > 0 && isObject(list[0]) && hasKind(list[0])
	}
	return isObject(raw) && json.Unmarshal(raw, &one) == nil && one.Type != ""
}

// stringOf returns a JSON string, or an empty one if the value is another.
func stringOf(raw json.RawMessage) (s string) {
	_ = json.Unmarshal(raw, &s) // then it stays empty
	return s
}

// escape escapes a text so that nothing in it is markup.
func escape(s string) string { return typed.Replace(s) }

var typed = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")
