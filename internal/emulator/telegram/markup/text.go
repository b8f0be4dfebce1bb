// Package markup parses texts as Telegram does: its HTML, and the entities detected in plain text.
package markup

import (
	"slices"
	"strings"

	"oneclaw/internal/emulator/telegram/botapi"
)

// UTF16Length returns the length in UTF-16 code units, the unit of all lengths in the Bot API.
func UTF16Length(s string) int {
	n := 0
	for _, r := range s {
		n += runeUnits(r)
	}
	return n
}

// Size returns the bytes that entities take where they are stored: three numbers each, and an address or the
// name of a language as a string that is padded to a multiple of four (core.telegram.org/mtproto/serialize).
func Size(entities []botapi.Entity) (size int) {
	for _, e := range entities {
		size += 12
		if n := len(e.URL) + len(e.Language); n > 0 {
			size += (n + 1 + 3) / 4 * 4
		}
	}
	return size
}

// Text is a text in the form in which the server stores it.
type Text struct {
	Plain     string // visible text
	Entities  []botapi.Entity
	Source    string // as received
	ParseMode string // lower-case parse mode
}

// NewText returns a text as a user's app sends it.
func NewText(text string) Text {
	return Text{Plain: text, Source: text, Entities: detectEntities(text)}
}

// Normalize converts a requested text to the form in which the service stores it.
func (f *Text) Normalize() {
	f.Entities = arrange(f.Entities)
	f.clean()
	f.Entities = arrange(f.Entities) // what is deleted may have been between two
	f.trim()
	f.limitEntities()
	f.addDetected()
}

// clean deletes characters and replaces control characters by spaces, as the service does (tdlib/td,
// MessageEntity.cpp, clean_input_string_with_entities), and shifts the entities accordingly.
func (f *Text) clean() {
	var kept strings.Builder
	units, at := 0, []int{0} // the new offset by the old one
	for _, r := range f.Plain {
		switch {
		case r == '\r', r >= 0x2028 && r <= 0x202e, r == 0x30a, r == 0x333, r == 0x33f:
			at = append(at, units)
			continue
		case r < ' ' && r != '\n':
			r = ' '
		}
		kept.WriteRune(r)
		for range runeUnits(r) {
			units++
			at = append(at, units)
		}
	}
	f.Plain = kept.String()
	shift := func(offset int) int { return at[min(max(offset, 0), len(at)-1)] }
	var entities []botapi.Entity
	for _, e := range f.Entities {
		start, end := shift(e.Offset), shift(e.Offset+e.Length)
		if e.Offset, e.Length = start, end-start; e.Length > 0 {
			entities = append(entities, e)
		}
	}
	f.Entities = entities
}

// maxEntities bounds the stored entities of a message. The service silently drops the others
// (tdlib/td, MessageEntity.cpp, get_input_message_entities). It drops those of the last kinds first,
// such as bold, which it has split where they overlap.
const maxEntities = 100

// limitEntities drops entities as the service does, but drops the whole entity if a piece is dropped.
func (f *Text) limitEntities() {
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
		if room -= countPieces(e, splittable); room < 0 {
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

// countPieces returns the number of pieces into which overlapping entities split an entity.
func countPieces(e botapi.Entity, others []botapi.Entity) int {
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

// addDetected adds the entities that the service finds in a bot's text besides those that it asks for.
func (f *Text) addDetected() {
	given := slices.Clone(f.Entities)
	for _, e := range detectEntities(f.Plain) {
		taken := slices.ContainsFunc(given, func(g botapi.Entity) bool {
			switch kindOf(g.Type) {
			case style:
				return false
			case quote:
				return crosses(e, g)
			}
			return overlap(e, g)
		})
		if !taken {
			f.Entities = append(f.Entities, e)
		}
	}
	sortEntities(f.Entities)
}

// trim removes the white space around a text, as the service does (tdlib/td, MessageEntity.cpp,
// fix_formatted_text), and shifts the entities accordingly.
func (f *Text) trim() {
	kept := strings.TrimRight(f.Plain, " \t\r\n")
	lead := UTF16Length(kept) - UTF16Length(strings.TrimLeft(kept, " \t\r\n"))
	f.Plain = strings.TrimLeft(kept, " \t\r\n")
	size := UTF16Length(f.Plain)
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

// Equal reports whether two texts have the same visible content.
func (f Text) Equal(g Text) bool {
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
