// Package markup parses texts as Telegram does: its HTML, and what it detects in plain text.
package markup

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"oneclaw/internal/emulator/telegram/botapi"
)

// special matches what apps and service detect in plain text.
var special = regexp.MustCompile(`https?://[^\s<>"]+|@[A-Za-z][A-Za-z0-9_]{2,31}|/[A-Za-z0-9_]{1,64}(?:@[A-Za-z0-9_]{3,32})?|#[\pL_][\pL\pN_]*`)

// Detect returns the mentions, commands, links and hashtags of a plain text.
func Detect(text string) []botapi.Entity {
	if !strings.ContainsAny(text, "@/#") {
		return nil
	}
	var found []botapi.Entity
	units, from := 0, 0
	for _, at := range special.FindAllStringIndex(text, -1) {
		units += Length(text[from:at[0]])
		from = at[0]
		match := text[at[0]:at[1]]
		if before, _ := utf8.DecodeLastRuneInString(text[:at[0]]); at[0] > 0 && !startsWord(before) {
			continue
		}
		e := botapi.Entity{Offset: units, Length: Length(match)}
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

// startsWord reports whether a mark after r begins a word.
func startsWord(r rune) bool {
	return strings.ContainsRune(" \t\n\r([{\"'.,;:!?-—", r)
}

// Length counts UTF-16 code units, the unit of all lengths in the API.
func Length(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

// Text is a text as the server stores it.
type Text struct {
	Plain    string // visible text
	Entities []botapi.Entity
	Source   string // as received
	Mode     string // its parse mode
}

// Typed returns a text as a person's app sends it.
func Typed(text string) Text {
	return Text{Plain: text, Source: text, Entities: Detect(text)}
}

// Settle converts a requested text to what the service stores.
func (f *Text) Settle() {
	f.trim()
	f.cap()
	f.mark()
}

// maxEntities bounds the stored entities of a message. The service silently drops others
// (tdlib/td, MessageEntity.cpp, get_input_message_entities): first those of the last kinds, bold
// and the like, which it has split where they overlap.
const maxEntities = 100

// cap drops entities like the service, but as a whole if not all pieces are kept.
func (f *Text) cap() {
	if len(f.Entities) <= maxEntities/3 {
		return
	}
	var splittable []botapi.Entity
	room, dropped := maxEntities, map[int]bool{}
	for i, e := range f.Entities {
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
	for i, e := range f.Entities {
		if !slices.Contains(splittable, e) {
			continue
		}
		if room -= pieces(e, splittable); room < 0 {
			dropped[i] = true
		}
	}
	var kept []botapi.Entity
	for i, e := range f.Entities {
		if !dropped[i] {
			kept = append(kept, e)
		}
	}
	f.Entities = kept
}

// pieces returns into how many pieces overlapping entities split an entity.
func pieces(e botapi.Entity, others []botapi.Entity) int {
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

// mark adds what the service detects in a bot's text (tdlib/td, MessageEntity.cpp,
// find_entities): names, links, commands and the like, but nothing inside code or a link.
func (f *Text) mark() {
	given := slices.Clone(f.Entities)
	for _, e := range Detect(f.Plain) {
		taken := slices.ContainsFunc(given, func(g botapi.Entity) bool {
			switch g.Type {
			case "code", "pre", "text_link", "text_mention", e.Type:
				return e.Offset < g.Offset+g.Length && g.Offset < e.Offset+e.Length
			}
			return false
		})
		if !taken {
			f.Entities = append(f.Entities, e)
		}
	}
	slices.SortStableFunc(f.Entities, func(a, b botapi.Entity) int { return cmp.Compare(a.Offset, b.Offset) })
}

// trim cuts the white space around a text, as the service does (tdlib/td, MessageEntity.cpp,
// fix_formatted_text), and moves the entities along.
func (f *Text) trim() {
	kept := strings.TrimRight(f.Plain, " \t\r\n")
	lead := Length(kept) - Length(strings.TrimLeft(kept, " \t\r\n"))
	f.Plain = strings.TrimLeft(kept, " \t\r\n")
	size := Length(f.Plain)
	var entities []botapi.Entity
	for _, e := range f.Entities {
		start, end := max(e.Offset-lead, 0), min(e.Offset+e.Length-lead, size)
		if end > start {
			e.Offset, e.Length = start, end-start
			entities = append(entities, e)
		}
	}
	f.Entities = entities
}

// Same compares texts by their visible content.
func (f Text) Same(g Text) bool {
	if f.Plain != g.Plain || len(f.Entities) != len(g.Entities) {
		return false
	}
	for i, e := range f.Entities {
		if o := g.Entities[i]; e.Type != o.Type || e.Offset != o.Offset || e.Length != o.Length || e.URL != o.URL || e.Language != o.Language {
			return false
		}
	}
	return true
}
