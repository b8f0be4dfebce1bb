package markup

import "oneclaw/internal/emulator/telegram/botapi"

// Mentions returns the names in a text whose owners are notified. They are the names that no code
// overlaps, because requested entities take precedence over detected ones, and the texts of links to
// users.
func Mentions(text string, entities []botapi.Entity) []string {
	var names []string
	inCode := func(e botapi.Entity) bool {
		for _, c := range entities {
			if (c.Type == "code" || c.Type == "pre") && c.Offset < e.Offset+e.Length && e.Offset < c.Offset+c.Length {
				return true
			}
		}
		return false
	}
	for _, e := range detectEntities(text) {
		if e.Type == "mention" && !inCode(e) {
			names = append(names, EntityText(text, e.Offset, e.Length))
		}
	}
	for _, e := range entities {
		if e.Type == "text_mention" {
			names = append(names, EntityText(text, e.Offset, e.Length))
		}
	}
	return names
}

// EntityText returns the part of a text that an entity covers.
func EntityText(text string, offset, length int) string {
	var out []rune
	at := 0
	for _, r := range text {
		if at >= offset && at < offset+length {
			out = append(out, r)
		}
		at += runeUnits(r)
	}
	return string(out)
}
