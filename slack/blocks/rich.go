package blocks

import (
	"bytes"
	"cmp"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"oneclaw/internal/wording"
)

// rich returns the text of an element of a rich text: a section, a list, a quote or code.
func (r *Reader) rich(raw json.RawMessage, depth int) string {
	var o fields
	if depth > maxDepth || json.Unmarshal(raw, &o) != nil {
		return r.note(unreadable)
	}
	switch stringOf(o["type"]) {
	case "rich_text_section", "rich_text_list", "rich_text_quote", "rich_text_preformatted":
		return r.richObject(o, depth)
	}
	return r.inline(raw, depth) // Slack's library for Java knows lists without sections
}

func (r *Reader) richObject(o fields, depth int) string {
	switch stringOf(o["type"]) {
	case "rich_text_list":
		return r.list(o, depth)
	case "rich_text_quote":
		return "&gt; " + strings.ReplaceAll(r.inlines(o, depth), "\n", "\n&gt; ")
	case "rich_text_preformatted":
		return fence + "\n" + r.inlines(o, depth) + "\n" + fence
	}
	return r.inlines(o, depth)
}

func (r *Reader) inlines(o fields, depth int) string {
	return strings.TrimRight(r.join(o["elements"], "", depth, r.inline), "\n")
}

// list returns the items of a list, each on a line with its number or bullet.
func (r *Reader) list(o fields, depth int) string {
	var items []json.RawMessage
	var indent, offset int
	_, _ = json.Unmarshal(o["indent"], &indent), json.Unmarshal(o["offset"], &offset) // then they are 0
	if json.Unmarshal(o["elements"], &items) != nil {
		return r.note(unreadable)
	}
	var lines []string
	for i, raw := range items {
		if r.left <= 0 {
			r.cut = true
			break
		}
		mark := "• "
		if stringOf(o["style"]) == "ordered" {
			mark = strconv.Itoa(offset+i+1) + ". "
		}
		lines = append(lines, strings.Repeat("  ", min(max(indent, 0), maxDepth))+mark+r.rich(raw, depth+1))
	}
	return strings.Join(lines, "\n")
}

// inline returns the text of an element of a line.
func (r *Reader) inline(raw json.RawMessage, depth int) string {
	var o fields
	if depth > maxDepth || json.Unmarshal(raw, &o) != nil {
		return r.note(unreadable)
	}
	id := func(prefix, key string) string { return "<" + prefix + r.Take(tokenPart(stringOf(o[key]))) + ">" }
	switch stringOf(o["type"]) {
	case "text":
		return r.styled(o)
	case "user", "canvas_user_mention":
		return id("@", "user_id")
	case "channel":
		return id("#", "channel_id")
	case "usergroup":
		return id("!subteam^", "usergroup_id")
	case "broadcast":
		return id("!", "range")
	case "team":
		return escape(r.Take(stringOf(o["team_id"])))
	case "emoji":
		name := ":" + stringOf(o["name"]) + ":"
		r.others = r.others || stringOf(o["unicode"]) == "" // then somebody has added it
		if tone := string(bytes.TrimSpace(o["skin_tone"])); tone != "" && tone != "null" {
			name += ":skin-tone-" + tone + ":"
		}
		return escape(r.Take(name))
	case "date":
		return r.date(o)
	case "color":
		return escape(r.Take(stringOf(o["value"])))
	case "file":
		if label := cmp.Or(stringOf(o["label"]), stringOf(o["text"])); label != "" {
			r.others = true
			return "[file: " + escape(r.Take(label)) + "]"
		}
		return "" // it is one of the files of the message
	}
	if text := r.link(o); text != "" {
		r.others = r.others || !ownKinds[stringOf(o["type"])]
		return text
	}
	if text := r.object(o, depth); text != "" {
		return text
	}
	return r.note("a part of this text of the kind “" + wording.Clip(stringOf(o["type"]), 40) + "”")
}

// link returns a link with its text, or the one of them that there is.
func (r *Reader) link(o fields) string {
	title := stringOf(o["title"]) // of what the link leads to
	r.others = r.others || title != ""
	address, text := r.Take(stringOf(o["url"])), r.Take(cmp.Or(stringOf(o["text"]), title))
	switch {
	case address == "":
		return escape(text)
	case text == "":
		return "<" + tokenPart(address) + ">"
	}
	return "<" + tokenPart(address) + "|" + escape(text) + ">"
}

// date returns a moment as Slack shows it where it cannot format it, and otherwise in UTC.
func (r *Reader) date(o fields) string {
	if text := stringOf(o["fallback"]); text != "" {
		return escape(r.Take(text))
	}
	seconds, err := strconv.ParseInt(string(o["timestamp"]), 10, 64)
	if err != nil {
		return r.note("a date")
	}
	return r.Take(time.Unix(seconds, 0).UTC().Format("2006-01-02 15:04 UTC"))
}

// styled returns a text with those marks that carry a meaning: code, and what is struck through.
func (r *Reader) styled(o fields) string {
	text := escape(r.Take(stringOf(o["text"])))
	var style struct{ Strike, Code bool }
	_ = json.Unmarshal(o["style"], &style) // without a style, as most
	inner := strings.TrimSpace(text)
	if inner == "" {
		return text
	}
	before, after, _ := strings.Cut(text, inner)
	if style.Code {
		inner = "`" + inner + "`"
	}
	if style.Strike {
		inner = "~" + inner + "~"
	}
	return before + inner + after
}

// tokenPart returns a text that cannot end the token in angle brackets that contains it.
func tokenPart(s string) string {
	return strings.NewReplacer("&", "&amp;", "<", "%3C", ">", "%3E", "|", "%7C", "\n", "").Replace(s)
}
