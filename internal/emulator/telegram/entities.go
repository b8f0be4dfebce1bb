package telegram

import (
	"cmp"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/wire"
)

// special finds what apps and service mark in plain text without being asked.
var special = regexp.MustCompile(`https?://[^\s<>"]+|@[A-Za-z][A-Za-z0-9_]{2,31}|/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?|#[\pL_][\pL\pN_]*`)

// detect returns the mentions, commands, links and hashtags of a plain text.
func detect(text string) []Entity {
	if !strings.ContainsAny(text, "@/#") {
		return nil
	}
	var found []Entity
	units, from := 0, 0
	for _, at := range special.FindAllStringIndex(text, -1) {
		units += utf16Len(text[from:at[0]])
		from = at[0]
		match := text[at[0]:at[1]]
		if before, _ := utf8.DecodeLastRuneInString(text[:at[0]]); at[0] > 0 && !startsWord(before) {
			continue
		}
		e := Entity{Offset: units, Length: utf16Len(match)}
		switch match[0] {
		case '@':
			e.Type = "mention"
		case '#':
			e.Type = "hashtag"
		case '/':
			e.Type = "bot_command"
		default:
			e.Type = "url"
		}
		found = append(found, e)
	}
	return found
}

// startsWord says whether a mark after r begins a word of its own.
func startsWord(r rune) bool {
	return strings.ContainsRune(" \t\n\r([{\"'.,;:!?-—", r)
}

// utf16Len counts UTF-16 code units, the measure of all lengths in the API.
func utf16Len(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

// formatted is a text as the server keeps it.
type formatted struct {
	text     string
	entities []Entity
	source   string // as the bot sent it
	mode     string
}

// formattedText reads a text parameter with its parse mode or entities.
func formattedText(p *wire.Params, name, entities string) (formatted, *apiError) {
	f := formatted{source: p.Text(name), mode: strings.ToLower(p.Text("parse_mode"))}
	if len(f.source) > maxRawText {
		return f, badRequest("text is too long") // Client.cpp
	}
	if !utf8.ValidString(f.source) {
		return f, badRequest("strings must be encoded in UTF-8") // MessageEntity.cpp
	}
	f.text = f.source
	switch f.mode {
	case "", "none":
		if _, err := p.JSON(entities, &f.entities); err != nil {
			return f, badRequest("can't parse entities JSON object") // Client.cpp
		}
	case "html":
		var err error
		if f.text, f.entities, err = parseHTML(f.source); err != nil {
			return f, badRequest("can't parse entities: %v", err) // SynchronousRequests.cpp
		}
	case "markdown", "markdownv2":
		return f, badRequest("the emulator does not parse %s: use HTML", f.mode) // of the emulator alone
	default:
		return f, badRequest("unsupported parse_mode") // Client.cpp
	}
	f.trim()
	f.cap()
	f.mark()
	return f, nil
}

// maxEntities is how many entities the service keeps of those that a message asks for.
// It drops the others without a word (tdlib/td, MessageEntity.cpp,
// get_input_message_entities): first those of the last kinds, bold and the like, which it
// has cut into pieces where they overlap.
const maxEntities = 100

// cap drops entities as the service does. One of which not all pieces are kept is dropped
// as a whole, which the service does not.
func (f *formatted) cap() {
	if len(f.entities) <= maxEntities/3 {
		return
	}
	var splittable []Entity
	room, dropped := maxEntities, map[int]bool{}
	for i, e := range f.entities {
		switch e.Type {
		case "bold", "italic", "underline", "strikethrough", "spoiler":
			splittable = append(splittable, e)
		case "custom_emoji":
		default:
			if room--; room < 0 {
				dropped[i] = true
			}
		}
	}
	room = max(room, 0)
	for i, e := range f.entities {
		if !slices.Contains(splittable, e) {
			continue
		}
		if room -= pieces(e, splittable); room < 0 {
			dropped[i] = true
		}
	}
	var kept []Entity
	for i, e := range f.entities {
		if !dropped[i] {
			kept = append(kept, e)
		}
	}
	f.entities = kept
}

// pieces is into how many an entity is cut by those that overlap it.
func pieces(e Entity, others []Entity) int {
	cuts := map[int]bool{}
	for _, o := range others {
		for _, at := range []int{o.Offset, o.Offset + o.Length} {
			if e.Offset < at && at < e.Offset+e.Length {
				cuts[at] = true
			}
		}
	}
	return 1 + len(cuts)
}

// mark adds what the service finds by itself in what a bot sends (tdlib/td,
// MessageEntity.cpp, find_entities): names, links, commands
// and the like, but nothing inside code or a link.
func (f *formatted) mark() {
	given := slices.Clone(f.entities)
	for _, e := range detect(f.text) {
		taken := slices.ContainsFunc(given, func(g Entity) bool {
			switch g.Type {
			case "code", "pre", "text_link", "text_mention", e.Type:
				return e.Offset < g.Offset+g.Length && g.Offset < e.Offset+e.Length
			}
			return false
		})
		if !taken {
			f.entities = append(f.entities, e)
		}
	}
	slices.SortStableFunc(f.entities, func(a, b Entity) int { return cmp.Compare(a.Offset, b.Offset) })
}

// trim cuts the white space around a text, as the service does (tdlib/td, MessageEntity.cpp,
// fix_formatted_text), and moves the
// entities along.
func (f *formatted) trim() {
	kept := strings.TrimRight(f.text, " \t\r\n")
	lead := utf16Len(kept) - utf16Len(strings.TrimLeft(kept, " \t\r\n"))
	f.text = strings.TrimLeft(kept, " \t\r\n")
	size := utf16Len(f.text)
	var entities []Entity
	for _, e := range f.entities {
		start, end := max(e.Offset-lead, 0), min(e.Offset+e.Length-lead, size)
		if end > start {
			e.Offset, e.Length = start, end-start
			entities = append(entities, e)
		}
	}
	f.entities = entities
}

// keyboard reads reply_markup. It returns nothing where there is none, and an
// empty keyboard where the markup is of another kind.
func keyboard(p *wire.Params) (*wireMarkup, *apiError) {
	var markup struct {
		InlineKeyboard json.RawMessage `json:"inline_keyboard"`
	}
	there, err := p.JSON("reply_markup", &markup)
	if err != nil {
		return nil, badRequest("can't parse reply keyboard markup JSON object") // Client.cpp
	}
	if !there || markup.InlineKeyboard == nil {
		return nil, nil
	}
	var rows [][]json.RawMessage
	if err := json.Unmarshal(markup.InlineKeyboard, &rows); err != nil {
		return nil, badRequest(`field "inline_keyboard" of the InlineKeyboardMarkup must be an Array of Arrays`) // Client.cpp
	}
	n := 0
	for _, row := range rows {
		if len(row) > 8 {
			return nil, badRequest("BUTTON_ROW_TOO_LONG") // assumed
		}
		for _, raw := range row {
			if n++; n > 100 {
				return nil, badRequest("reply markup is too long") // Client.cpp
			}
			if err := checkButton(raw); err != nil {
				return nil, err
			}
		}
	}
	if n == 0 {
		return nil, nil
	}
	return &wireMarkup{InlineKeyboard: rows}, nil
}

// checkButton refuses a button that the service would refuse.
func checkButton(raw json.RawMessage) *apiError {
	var b struct {
		Text           *string `json:"text"`
		CallbackData   *string `json:"callback_data"`
		URL            string  `json:"url"`
		Style          string  `json:"style"`
		SwitchInline   *string `json:"switch_inline_query"`
		SwitchInlineIn *string `json:"switch_inline_query_current_chat"`
		WebApp         any     `json:"web_app"`
		CopyText       any     `json:"copy_text"`
	}
	if json.Unmarshal(raw, &b) != nil {
		return badRequest("can't parse inline keyboard button: InlineKeyboardButton must be an Object") // Client.cpp
	}
	switch {
	case b.Text == nil:
		return badRequest(`can't parse inline keyboard button: Can't find field "text"`) // td, JsonBuilder.cpp
	case *b.Text == "":
		return badRequest("inline keyboard button text must be non-empty") // ReplyMarkup.cpp
	case b.Style != "" && b.Style != "danger" && b.Style != "success" && b.Style != "primary":
		return badRequest("can't parse inline keyboard button: invalid button style specified") // assumed
	case b.URL != "":
		if checkedLink(b.URL) == "" {
			return badRequest("inline keyboard button URL '%s' is invalid: Wrong HTTP URL", b.URL) // ReplyMarkup.cpp
		}
		return nil
	case b.CallbackData != nil && *b.CallbackData != "":
		if len(*b.CallbackData) > 64 {
			return badRequest("BUTTON_DATA_INVALID") // core.telegram.org/api/errors
		}
		return nil
	case b.SwitchInline != nil, b.SwitchInlineIn != nil, b.WebApp != nil, b.CopyText != nil:
		return nil
	}
	return badRequest("can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard") // Client.cpp
}
