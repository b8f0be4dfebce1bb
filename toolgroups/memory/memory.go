package memory

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/cache"
	"oneclaw/storage"
)

// Errors that callers distinguish.
var (
	// ErrDuplicate is returned for a note that is already saved.
	ErrDuplicate = errors.New("memory already holds this")
	// ErrFull is returned if the owner's memory has reached its limits.
	ErrFull = errors.New("memory is full")
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
	// shortNote is the length up to which only an equal note is a duplicate, not one that contains it.
	shortNote = 20
	// maxAttempts bounds the attempts of a write that conflicts with others.
	maxAttempts = 10

	keyPrefix = "memory/"
)

// Config configures a [Memory].
type Config struct {
	// Store keeps the notes. Required.
	Store storage.KV
	// Now returns the current time. nil means [time.Now].
	Now func() time.Time
	// Logger receives errors that are not shown to the model. nil discards them.
	Logger *slog.Logger
	// HandleDamaged keeps a copy of a memory that cannot be decoded. The memory is then deleted and
	// starts empty. If nil, reading a damaged memory is an error.
	HandleDamaged func(ctx context.Context, entry storage.Entry) error
}

// Memory keeps the notes of all owners, separately for each. It can be used concurrently.
type Memory struct {
	cfg Config
	// recentNotes caches recently read notes, because a turn reads them twice.
	recentNotes *cache.Cache[string, []Note]
}

// Bounds of the cache of notes.
const (
	maxCachedOwners = 128
	cacheAge        = time.Second
)

// New makes a memory on a store.
func New(cfg Config) (*Memory, error) {
	if cfg.Store == nil {
		return nil, errors.New("memory: no store")
	}
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Memory{cfg: cfg, recentNotes: cache.New[string, []Note](maxCachedOwners)}, nil
}

// Note is one fact.
type Note struct {
	// Section is one of [Sections].
	Section string `json:"section"`
	Text    string `json:"text"`
	// SavedAt is the time of saving.
	SavedAt time.Time `json:"saved"`
}

// document is the stored value of an owner: the notes in the order of saving.
type document struct {
	Notes []Note `json:"notes"`
}

// Notes returns the notes of an owner, the newest first. Notes that another process saved within
// the last second may be missing.
func (m *Memory) Notes(ctx context.Context, owner string) ([]Note, error) {
	if notes, ok := m.recentNotes.Get(owner); ok {
		return slices.Clone(notes), nil
	}
	doc, _, err := m.read(ctx, owner)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(doc.Notes, func(a, b Note) int { return b.SavedAt.Compare(a.SavedAt) })
	m.recentNotes.Put(owner, slices.Clone(doc.Notes), cacheAge)
	return doc.Notes, nil
}

// Save adds a note to the named section, or to Notes if there is no such section. It returns the
// memory before the change as Markdown, and the section used.
func (m *Memory) Save(ctx context.Context, owner, section, text string) (before, at string, err error) {
	text = cleanText(text)
	if n := utf8.RuneCountInString(text); n == 0 || n > MaxNoteLength {
		return "", "", fmt.Errorf("%w: it must have 1 to %d characters", ErrInvalid, MaxNoteLength)
	}
	at = sectionOf(section)
	err = m.update(ctx, owner, func(doc *document) error {
		if isSaved(doc.Notes, text) {
			return ErrDuplicate
		}
		before = renderMarkdown(doc.Notes)
		doc.Notes = append(doc.Notes, Note{Section: at, Text: text, SavedAt: m.cfg.Now().UTC()})
		return checkLimits(doc.Notes)
	})
	return before, at, err
}

// Forget deletes all notes of an owner.
func (m *Memory) Forget(ctx context.Context, owner string) error {
	defer m.recentNotes.Forget(owner)
	if err := m.cfg.Store.Delete(ctx, keyPrefix+owner, storage.Any); err != nil {
		return fmt.Errorf("delete the memory of %s: %w", owner, err)
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
		if err != nil || len(source.Notes) == 0 {
			return err
		}
		in := func(notes []Note) func(Note) bool {
			return func(n Note) bool { return slices.ContainsFunc(notes, func(o Note) bool { return o.Text == n.Text }) }
		}
		err = m.update(ctx, to, func(doc *document) error {
			doc.Notes = append(doc.Notes, slices.DeleteFunc(slices.Clone(source.Notes), in(doc.Notes))...)
			return nil
		})
		if err != nil {
			return err
		}
		err = m.update(ctx, from, func(doc *document) error {
			doc.Notes = slices.DeleteFunc(doc.Notes, in(source.Notes))
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

// isSaved reports whether a note already has the text, ignoring case. A long text may be part of a note.
func isSaved(notes []Note, text string) bool {
	text = foldText(text)
	long := utf8.RuneCountInString(text) > shortNote
	return slices.ContainsFunc(notes, func(n Note) bool {
		have := foldText(n.Text)
		return have == text || long && containsWords(have, text)
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
	entry, err := m.cfg.Store.Get(ctx, keyPrefix+owner)
	if errors.Is(err, storage.ErrNotFound) {
		return doc, storage.Absent, nil
	}
	if err != nil {
		return doc, 0, fmt.Errorf("read memory of %s: %w", owner, err)
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
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return document{}, 0, fmt.Errorf("replace the damaged memory of %s: %w", owner, err)
	}
	return m.read(ctx, owner)
}

// update changes an owner's document with f. After a conflict with another writer it tries again.
func (m *Memory) update(ctx context.Context, owner string, f func(*document) error) error {
	defer m.recentNotes.Forget(owner)
	for range maxAttempts {
		doc, rev, err := m.read(ctx, owner)
		if err != nil {
			return err
		}
		if err := f(&doc); err != nil {
			return err
		}
		data, err := json.Marshal(doc)
		if err != nil {
			return fmt.Errorf("encode memory of %s: %w", owner, err)
		}
		if _, err = m.cfg.Store.Put(ctx, keyPrefix+owner, data, rev); err == nil {
			return nil
		}
		if !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("store memory of %s: %w", owner, err)
		}
	}
	return fmt.Errorf("store memory of %s: too many conflicts: %w", owner, storage.ErrConflict)
}
