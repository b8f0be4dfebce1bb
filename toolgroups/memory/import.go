package memory

import (
	"context"
	"slices"
	"unicode/utf8"
)

// Import saves notes from elsewhere in the memory of a user. Pages may have worded them, and the user was not shown them
// one by one, so they count as words of others without an author. All are saved in one write, each in its section. For
// each note it returns nil, or [ErrDuplicate], [ErrFull] or [ErrInvalid] if the note is left out. If write is false, it
// saves nothing and only returns the reasons.
func (m *Memory) Import(ctx context.Context, owner string, notes []Note, write bool) (reasons []error, err error) {
	add := func(doc *document) error {
		reasons = make([]error, len(notes))
		for i, n := range notes {
			n.Text, n.Section, n.SavedAt, n.Author, n.Outside = cleanText(n.Text), sectionOf(n.Section), m.cfg.Now().UTC(), "", true
			switch length := utf8.RuneCountInString(n.Text); {
			case length == 0 || length > MaxNoteLength:
				reasons[i] = ErrInvalid
			case findDuplicate(doc.Notes, n.Text) >= 0:
				reasons[i] = ErrDuplicate
			case checkLimits(append(slices.Clone(doc.Notes), n)) != nil:
				reasons[i] = ErrFull
			default:
				doc.Notes = append(doc.Notes, n)
			}
		}
		return nil
	}
	if write {
		err = m.update(ctx, owner, add)
		return reasons, err
	}
	doc, _, err := m.read(ctx, owner)
	if err == nil {
		err = add(&doc)
	}
	return reasons, err
}
