package memory

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/base32"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Errors that callers distinguish.
var (
	// ErrDuplicate is returned for a note that is already saved.
	ErrDuplicate = errors.New("memory already holds this")
	// ErrFull is returned if the owner's memory has reached its limits.
	ErrFull = errors.New("memory is full")
	// ErrNotFound is returned for a note that the owner does not have.
	ErrNotFound = errors.New("memory holds no such note")
	// ErrDenied is returned to a user who may not change a note of a shared chat.
	ErrDenied = errors.New("only the author or an administrator may change this note")
	// ErrTooManyRemoved is returned if so many notes were removed within [UndoTime] that one more could not
	// be restored beside them.
	ErrTooManyRemoved = errors.New("too many notes were removed")
	// ErrInvalid is returned for a note that is empty or too long, or without an owner.
	ErrInvalid = errors.New("invalid note")
)

// Limits of a memory.
const (
	// MaxNoteLength bounds a note, in characters.
	MaxNoteLength = 5_000
	// MaxNotes and MaxText bound the number and the characters of all notes of an owner.
	MaxNotes = 1_000
	MaxText  = 200_000
	// UndoTime is how long a removed note can be restored. At most maxRemoved can be: further removals are
	// refused, so that nobody can make an earlier one final by many others.
	UndoTime   = 24 * time.Hour
	maxRemoved = 200
	// shortNote is the length up to which only an equal note is a duplicate, not one that contains it.
	shortNote = 20

	keyPrefix = "memory/"
)

// Config configures a [Memory].
type Config struct {
	// Store keeps the notes. Required.
	Store storage.KV
	// Now returns the current time. Required.
	Now func() time.Time
	// Zone returns the time zone of displayed days. nil means UTC.
	Zone func() *time.Location
	// Logger receives errors that are not shown to the model. nil discards them.
	Logger *slog.Logger
	// HandleDamaged keeps a copy of a memory that cannot be decoded. The memory is then deleted and
	// starts empty. If nil, reading a damaged memory is an error.
	HandleDamaged func(ctx context.Context, entry storage.Entry) error
}

// Memory keeps the notes of all owners, separately for each. It can be used concurrently.
type Memory struct {
	cfg        Config
	dictionary func() *dictionary // made at the first use
}

// New makes a memory on a store.
func New(cfg Config) (*Memory, error) {
	if cfg.Store == nil || cfg.Now == nil {
		return nil, errors.New("memory: Store and Now are required")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Zone == nil {
		cfg.Zone = func() *time.Location { return time.UTC }
	}
	return &Memory{cfg, sync.OnceValue(newDictionary)}, nil
}

// Note is one fact.
type Note struct {
	// Section is one of [sections].
	Section string `json:"section"`
	Text    string `json:"text"`
	// SavedAt is the time of saving.
	SavedAt time.Time `json:"saved"`
	// Author is the user for whom the note was saved, as platform:id. It is empty in notes that were imported or are from
	// before authors were recorded, and after the user was forgotten.
	Author string `json:"by,omitempty"`
	// Outside says that it was saved in a conversation that held words of others, and Unshown that neither a line nor a
	// card showed all of it then.
	Outside bool `json:"outside,omitempty"`
	Unshown bool `json:"unshown,omitempty"`
	// Zone is the IANA name of the time zone in which Author lives, if the note tells.
	Zone string `json:"zone,omitempty"`
}

// IsOthers reports whether a note may be the words of others than a user, in a direct chat with them or in a
// shared one.
func (n Note) IsOthers(user string, direct bool) bool {
	return n.Outside || n.Author != user && (!direct || n.Author != "")
}

// isAbout reports whether the zone of a note is that of the user of a scope.
func (n Note) isAbout(scope toolgroups.Scope) bool { return n.Author == scope.User || scope.Direct }

// WasShownTo reports whether a user was shown all of a note when it was saved: by a line with an Undo, or a card.
func (n Note) WasShownTo(user string) bool { return n.Author == user && !n.Unshown }

// isUnshown reports whether the line of a note that is saved in a call does not show all of it, and no card did.
func isUnshown(scope toolgroups.Scope, text string) bool {
	return scope.HoldsOthers && !scope.Approved && !wording.QuotesWhole(text, maxAnnounced)
}

// idLength is the length of a note's ID.
const idLength = 8

// ID identifies the note among those of its owner. A note whose text changes gets another one.
func (n Note) ID() string {
	sum := sha256.Sum256([]byte(n.SavedAt.UTC().Format(time.RFC3339Nano) + "\n" + n.Text))
	return strings.ToLower(base32.StdEncoding.EncodeToString(sum[:]))[:idLength]
}

// removedNote is a note that can be restored.
type removedNote struct {
	Note
	RemovedAt time.Time `json:"removed"`
	// ReplacedBy is the ID of the note that took its place, if any; its own if its saving was undone.
	ReplacedBy string `json:"replaced_by,omitempty"`
}

// document is the stored value of an owner: the notes in the order of saving, and the removed ones in
// the order of removal.
type document struct {
	Notes   []Note        `json:"notes"`
	Removed []removedNote `json:"removed,omitempty"`
}

// remove removes the i-th note.
func (d *document) remove(i int, now time.Time, replacedBy string) {
	d.Removed = append(d.Removed, removedNote{d.Notes[i], now, replacedBy})
	d.Notes = slices.Delete(d.Notes, i, i+1)
}

// prune drops the removed notes that can no longer be restored.
func (d *document) prune(now time.Time) {
	d.Removed = slices.DeleteFunc(d.Removed, func(r removedNote) bool { return now.Sub(r.RemovedAt) >= UndoTime })
}

// checkRemoved returns [ErrTooManyRemoved] if more notes can be restored than may be.
func (d *document) checkRemoved(now time.Time) error {
	d.prune(now)
	text := 0
	for _, r := range d.Removed {
		text += utf8.RuneCountInString(r.Text)
	}
	if len(d.Removed) > maxRemoved || text > MaxText {
		return ErrTooManyRemoved
	}
	return nil
}

// MayChange reports whether a user may change or remove a note: in a shared chat only its author and
// administrators may.
func MayChange(scope toolgroups.Scope, n Note) bool {
	return scope.Direct || scope.Role >= toolgroups.RoleAdmin || n.Author != "" && n.Author == scope.User
}

// Save adds a note to the named section, or to Notes if there is no such section, on behalf of a user, who lives in
// zone if that is not empty. It returns the note and those that were there before, or [ErrInvalid], [ErrFull], or
// [ErrDuplicate] with the note that holds it already.
func (m *Memory) Save(ctx context.Context, scope toolgroups.Scope, section, text, zone string) (note Note, others []Note, err error) {
	if text, err = checkText(text); err != nil {
		return note, nil, err
	}
	err = m.update(ctx, scope.Owner, func(doc *document) error {
		if i := findDuplicate(doc.Notes, text); i >= 0 {
			note = doc.Notes[i]
			return ErrDuplicate
		}
		note = Note{Section: sectionOf(section), Text: text, SavedAt: m.cfg.Now().UTC(), Author: scope.User, Outside: scope.HoldsOthers, Unshown: isUnshown(scope, text), Zone: zone}
		others = slices.Clone(doc.Notes)
		doc.Notes = append(doc.Notes, note)
		return checkLimits(doc.Notes)
	})
	return note, others, err
}

// checkText returns a note's text as it is stored, or [ErrInvalid].
func checkText(text string) (string, error) {
	text = cleanText(text)
	if n := utf8.RuneCountInString(text); n == 0 || n > MaxNoteLength {
		return "", fmt.Errorf("%w: it must have 1 to %d characters", ErrInvalid, MaxNoteLength)
	}
	return text, nil
}

// Update replaces a note, which is named by its ID or its text, on behalf of a user. An empty section or
// zone keeps the old one.
func (m *Memory) Update(ctx context.Context, scope toolgroups.Scope, name, section, text, zone string) (old, note Note, err error) {
	if text, err = checkText(text); err != nil {
		return old, note, err
	}
	err = m.update(ctx, scope.Owner, func(doc *document) error {
		i, err := doc.find(scope, name)
		if err != nil {
			return err
		}
		old = doc.Notes[i]
		note = Note{Section: old.Section, Text: text, SavedAt: m.cfg.Now().UTC(), Author: cmp.Or(old.Author, scope.User), Outside: scope.HoldsOthers, Unshown: isUnshown(scope, text), Zone: cmp.Or(zone, old.Zone)}
		if section != "" {
			note.Section = sectionOf(section)
		}
		doc.remove(i, note.SavedAt, note.ID())
		if findDuplicate(doc.Notes, text) >= 0 || note.Text == old.Text && note.Section == old.Section && note.Zone == old.Zone {
			return ErrDuplicate
		}
		doc.Notes = append(doc.Notes, note)
		return errors.Join(doc.checkRemoved(note.SavedAt), checkLimits(doc.Notes))
	})
	return old, note, err
}

// Remove removes a note, which is named by its ID or its text, on behalf of a user, and returns it. A
// note that was removed already is returned, too.
func (m *Memory) Remove(ctx context.Context, scope toolgroups.Scope, name string) (Note, error) {
	return m.remove(ctx, scope, name, "")
}

// remove removes a note as [Memory.Remove] does. If unsaved is not empty, it is the note's ID, and the
// removal undoes its saving; then the note must not have been removed otherwise.
func (m *Memory) remove(ctx context.Context, scope toolgroups.Scope, name, unsaved string) (note Note, err error) {
	err = m.update(ctx, scope.Owner, func(doc *document) error {
		if i := doc.findRemoved(name); i >= 0 {
			if note = doc.Removed[i].Note; unsaved != "" && doc.Removed[i].ReplacedBy != unsaved {
				return toolgroups.ErrChanged
			}
			return storage.ErrUnchanged
		}
		i, err := doc.find(scope, name)
		if err != nil {
			return err
		}
		note = doc.Notes[i]
		now := m.cfg.Now().UTC()
		doc.remove(i, now, unsaved)
		err = doc.checkRemoved(now)
		if err != nil && unsaved != "" {
			doc.Removed = doc.Removed[:len(doc.Removed)-1] // what was just saved need not come back
			return nil
		}
		return err
	})
	return note, err
}

// Restore restores a removed note with this ID on behalf of a user, in the place of the note that
// replaced it. If that one has been removed, too, it returns [toolgroups.ErrChanged]. A note that is there
// already is returned, too.
func (m *Memory) Restore(ctx context.Context, scope toolgroups.Scope, id string) (Note, error) {
	return m.restore(ctx, scope, id, false)
}

// restore restores a note as [Memory.Restore] does. If forgotten is true, it must not have been replaced.
func (m *Memory) restore(ctx context.Context, scope toolgroups.Scope, id string, forgotten bool) (note Note, err error) {
	err = m.update(ctx, scope.Owner, func(doc *document) error {
		if i := doc.indexOf(id); i >= 0 {
			note = doc.Notes[i]
			return storage.ErrUnchanged
		}
		at := doc.findRemoved(id)
		if at < 0 {
			return ErrNotFound
		}
		removed := doc.Removed[at]
		if note = removed.Note; !MayChange(scope, note) {
			return ErrDenied
		}
		by := doc.indexOf(removed.ReplacedBy)
		if removed.ReplacedBy != "" && (forgotten || by < 0 && removed.ReplacedBy != id) {
			return toolgroups.ErrChanged
		}
		doc.Removed = slices.Delete(doc.Removed, at, at+1)
		if by >= 0 {
			doc.remove(by, m.cfg.Now().UTC(), id)
		}
		at, _ = slices.BinarySearchFunc(doc.Notes, note, func(a, b Note) int { return a.SavedAt.Compare(b.SavedAt) })
		doc.Notes = slices.Insert(doc.Notes, at, note)
		return checkLimits(doc.Notes)
	})
	return note, err
}

// ZoneOf returns the time zone in which the user of a scope lives, as the newest note that tells says; "" if none does.
func (m *Memory) ZoneOf(ctx context.Context, scope toolgroups.Scope) string {
	notes, err := m.Notes(ctx, scope.Owner)
	if err != nil {
		m.cfg.Logger.Warn("the time zone of a user cannot be read from the memory", "owner", scope.Owner, "err", err)
	}
	for _, n := range notes {
		if n.Zone != "" && n.isAbout(scope) {
			return n.Zone
		}
	}
	return ""
}

// Notes returns the notes of an owner, the newest first.
func (m *Memory) Notes(ctx context.Context, owner string) ([]Note, error) {
	notes, _, err := m.List(ctx, owner)
	return notes, err
}

// List returns the notes of an owner, the newest first, and those that can be restored, the last
// removed first.
func (m *Memory) List(ctx context.Context, owner string) (notes, removed []Note, err error) {
	doc, _, err := m.read(ctx, owner)
	if err != nil {
		return nil, nil, err
	}
	doc.prune(m.cfg.Now())
	for _, r := range slices.Backward(doc.Removed) {
		removed = append(removed, r.Note)
	}
	slices.SortStableFunc(doc.Notes, func(a, b Note) int { return b.SavedAt.Compare(a.SavedAt) })
	return doc.Notes, removed, nil
}

// Check returns [ErrNotFound] or [ErrDenied] if a user cannot change the note with an ID, removed or not.
func (m *Memory) Check(ctx context.Context, scope toolgroups.Scope, id string) error {
	notes, removed, err := m.List(ctx, scope.Owner)
	if err != nil {
		return err
	}
	doc := document{Notes: append(notes, removed...)}
	_, err = doc.find(scope, id)
	return err
}

// find returns the place of the note with a name, its ID or its text, if the user may change it.
func (d *document) find(scope toolgroups.Scope, name string) (int, error) {
	i := d.indexOf(name)
	if i < 0 {
		text := foldText(strings.TrimPrefix(strings.TrimSpace(name), "- "))
		i = slices.IndexFunc(d.Notes, func(n Note) bool { return foldText(n.Text) == text })
	}
	switch {
	case i < 0:
		return i, ErrNotFound
	case !MayChange(scope, d.Notes[i]):
		return i, ErrDenied
	}
	return i, nil
}

func (d *document) indexOf(id string) int {
	return slices.IndexFunc(d.Notes, func(n Note) bool { return n.ID() == id })
}

func (d *document) findRemoved(id string) int {
	return slices.IndexFunc(d.Removed, func(r removedNote) bool { return r.ID() == id })
}

// Forget deletes all notes of an owner, and the owner's name as the author of others' notes.
func (m *Memory) Forget(ctx context.Context, owner string) error {
	if err := m.cfg.Store.Delete(ctx, keyPrefix+owner, storage.Any); err != nil {
		return fmt.Errorf("delete the memory of %s: %w", owner, err)
	}
	return m.updateAll(ctx, func(doc *document) bool { return doc.clearAuthor(owner) })
}

func (d *document) clearAuthor(author string) (changed bool) {
	forget := func(n *Note) {
		if n.Author == author {
			n.Author, changed = "", true
		}
	}
	for i := range d.Notes {
		forget(&d.Notes[i])
	}
	for i := range d.Removed {
		forget(&d.Removed[i].Note)
	}
	return changed
}

// Prune deletes the removed notes that can no longer be restored.
func (m *Memory) Prune(ctx context.Context) error {
	return m.updateAll(ctx, func(doc *document) bool {
		before := len(doc.Removed)
		doc.prune(m.cfg.Now())
		return len(doc.Removed) < before
	})
}

// updateAll changes the documents of all owners with f, and writes those for which f returns true. It skips
// damaged ones.
func (m *Memory) updateAll(ctx context.Context, f func(*document) (changed bool)) error {
	for entry, err := range m.cfg.Store.List(ctx, storage.Range{Prefix: keyPrefix}) {
		if err != nil {
			return fmt.Errorf("list memories: %w", err)
		}
		var doc document
		if json.Unmarshal(entry.Value, &doc) != nil || !f(&doc) {
			continue
		}
		if err := m.update(ctx, strings.TrimPrefix(entry.Key, keyPrefix), func(doc *document) error { f(doc); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Move moves the notes of one owner to another, for a chat that continues under another ID. Notes
// saved meanwhile are moved too.
func (m *Memory) Move(ctx context.Context, from, to string) error {
	if from == to {
		return nil
	}
	for {
		source, _, err := m.read(ctx, from)
		if err != nil || len(source.Notes)+len(source.Removed) == 0 {
			return err
		}
		in := func(notes []Note) func(Note) bool {
			return func(n Note) bool { return slices.ContainsFunc(notes, func(o Note) bool { return o.Text == n.Text }) }
		}
		err = m.update(ctx, to, func(doc *document) error {
			doc.Notes = append(doc.Notes, slices.DeleteFunc(slices.Clone(source.Notes), in(doc.Notes))...)
			doc.Removed = append(doc.Removed, slices.DeleteFunc(slices.Clone(source.Removed), func(r removedNote) bool { return doc.findRemoved(r.ID()) >= 0 })...)
			return nil
		})
		if err != nil {
			return err
		}
		err = m.update(ctx, from, func(doc *document) error {
			doc.Notes = slices.DeleteFunc(doc.Notes, in(source.Notes))
			doc.Removed = slices.DeleteFunc(doc.Removed, func(r removedNote) bool { return slices.Contains(source.Removed, r) })
			return nil
		})
		if err != nil {
			return err
		}
	}
}

func checkLimits(notes []Note) error {
	total := 0
	for _, n := range notes {
		total += utf8.RuneCountInString(n.Text)
	}
	if len(notes) > MaxNotes || total > MaxText {
		return fmt.Errorf("%w: it may have %d notes and %d characters", ErrFull, MaxNotes, MaxText)
	}
	return nil
}

// findDuplicate returns the place of a note that already has the text, ignoring case; negative if there is none. A long text
// may be part of a note that does not negate it.
func findDuplicate(notes []Note, text string) int {
	text = foldText(text)
	long := utf8.RuneCountInString(text) > shortNote
	return slices.IndexFunc(notes, func(n Note) bool {
		have := foldText(n.Text)
		return have == text || long && containsWords(have, text) && negates(have) == negates(text)
	})
}

// negates reports whether a sentence has a word such as not, in English or German.
func negates(text string) bool {
	return slices.ContainsFunc(strings.Fields(text), func(word string) bool {
		return strings.HasSuffix(word, "n't") || slices.Contains([]string{"not", "no", "never", "cannot", "nicht", "kein", "keine", "keinen"}, word)
	})
}

// containsWords reports whether have contains text as whole words and numbers: Maximilian does not
// contain Max, and 10:30 does not contain 10.
func containsWords(have, text string) bool {
	const joins = ".,:/-'"
	for {
		before, rest, ok := strings.Cut(have, text)
		if !ok {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(strings.TrimRight(before, joins))
		next, _ := utf8.DecodeRuneInString(strings.TrimLeft(rest, joins))
		if !isWordRune(last) && !isWordRune(next) {
			return true
		}
		have = rest
	}
}

func isWordRune(r rune) bool {
	return r != utf8.RuneError && (unicode.IsLetter(r) || unicode.IsDigit(r))
}

func foldText(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func (m *Memory) read(ctx context.Context, owner string) (document, storage.Revision, error) {
	var doc document
	if owner == "" {
		return doc, 0, fmt.Errorf("%w: the owner is missing", ErrInvalid)
	}
	entry, err := storage.Find(ctx, m.cfg.Store, keyPrefix+owner)
	if err != nil || entry.Revision == storage.Absent {
		return doc, storage.Absent, err
	}
	if err := json.Unmarshal(entry.Value, &doc); err != nil && m.cfg.HandleDamaged != nil {
		return m.replaceDamaged(ctx, owner, entry)
	} else if err != nil {
		return doc, 0, fmt.Errorf("decode memory of %s: %w", owner, err)
	}
	return doc, entry.Revision, nil
}

// replaceDamaged handles a damaged memory, deletes it, and reads the memory again.
func (m *Memory) replaceDamaged(ctx context.Context, owner string, entry storage.Entry) (document, storage.Revision, error) {
	err := m.cfg.HandleDamaged(ctx, entry)
	if err == nil {
		err = m.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
	}
	if err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict another process has replaced it
		return document{}, 0, fmt.Errorf("replace the damaged memory of %s: %w", owner, err)
	}
	return m.read(ctx, owner)
}

// update changes an owner's document with f. After a conflict with another writer it tries again.
func (m *Memory) update(ctx context.Context, owner string, f func(*document) error) error {
	return storage.Retry(ctx, func() error {
		doc, rev, err := m.read(ctx, owner)
		if err != nil {
			return err
		}
		if err := f(&doc); err != nil {
			return err
		}
		if len(doc.Removed) > 0 {
			doc.prune(m.cfg.Now())
		}
		_, err = storage.Save(ctx, m.cfg.Store, keyPrefix+owner, doc, rev)
		return err
	})
}
