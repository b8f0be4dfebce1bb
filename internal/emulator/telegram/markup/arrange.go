package markup

import (
	"cmp"
	"slices"

	"oneclaw/internal/emulator/telegram/botapi"
)

// kind says with which others an entity may share a text (tdlib/td, MessageEntity.cpp, fix_entities).
type kind int

const (
	whole   kind = iota // one at a time, such as a link
	literal             // a whole one in which there are no styles, such as code
	quote               // one at a time, around whole ones
	style               // with all but literal ones
)

func kindOf(name string) kind {
	switch name {
	case "bold", "italic", "underline", "strikethrough", "spoiler":
		return style
	case "blockquote", "expandable_blockquote":
		return quote
	case "code", "pre", "date_time":
		return literal
	}
	return whole
}

// arrange returns sorted entities without those that may not share a text with another. Of two that overlap the first
// stays, and a style stays around a literal text.
func arrange(entities []botapi.Entity) []botapi.Entity {
	entities = slices.Clone(entities)
	sortEntities(entities)
	var kept, quotes, styles []botapi.Entity
	for _, e := range entities {
		clashes := func(o botapi.Entity) bool { return overlap(e, o) }
		switch kindOf(e.Type) {
		case style:
			styles = append(styles, e)
		case quote:
			if !slices.ContainsFunc(quotes, clashes) {
				quotes = append(quotes, e)
			}
		default:
			if !slices.ContainsFunc(kept, clashes) {
				kept = append(kept, e)
			}
		}
	}
	kept = slices.DeleteFunc(kept, func(e botapi.Entity) bool {
		return slices.ContainsFunc(quotes, func(q botapi.Entity) bool { return crosses(e, q) })
	})
	for _, e := range styles {
		kept = append(kept, around(e, kept)...)
	}
	kept = append(kept, quotes...)
	sortEntities(kept)
	return kept
}

// around returns the pieces of a style outside of literal texts.
func around(e botapi.Entity, others []botapi.Entity) (pieces []botapi.Entity) {
	end := e.Offset + e.Length
	for _, o := range others {
		if kindOf(o.Type) != literal || !overlap(e, o) {
			continue
		}
		if before := e; o.Offset > e.Offset {
			before.Length = o.Offset - e.Offset
			pieces = append(pieces, before)
		}
		e.Offset = o.Offset + o.Length
		e.Length = end - e.Offset
	}
	if e.Length > 0 {
		pieces = append(pieces, e)
	}
	return pieces
}

func overlap(a, b botapi.Entity) bool {
	return a.Offset < b.Offset+b.Length && b.Offset < a.Offset+a.Length
}

// crosses reports whether an entity is partly inside of a quote.
func crosses(e, q botapi.Entity) bool {
	return overlap(e, q) && (e.Offset < q.Offset || e.Offset+e.Length > q.Offset+q.Length)
}

// sortEntities sorts entities as the service does: by offset, the longer first, and then by kind.
func sortEntities(entities []botapi.Entity) {
	order := []string{"blockquote", "expandable_blockquote", "pre", "code", "text_link", "text_mention", "", "bold", "italic", "underline", "strikethrough", "spoiler", "custom_emoji"}
	rank := func(e botapi.Entity) int {
		if i := slices.Index(order, e.Type); i >= 0 {
			return i
		}
		return slices.Index(order, "")
	}
	slices.SortStableFunc(entities, func(a, b botapi.Entity) int {
		return cmp.Or(cmp.Compare(a.Offset, b.Offset), cmp.Compare(b.Length, a.Length), cmp.Compare(rank(a), rank(b)))
	})
}
