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
	// ErrDuplicate is returned for a note that is saved already.
	ErrDuplicate = errors.New("memory already holds this")
	// ErrFull is returned if the owner's memory has reached its limits.
	ErrFull = errors.New("memory is full")
	// ErrInvalid is returned for a note that is empty or too long, or without an owner.
	ErrInvalid = errors.New("not a usable note")
)

// Limits of a memory.
const (
	// MaxNote bounds a note, in characters.
	MaxNote = 5_000
	// MaxNotes and MaxText bound the number and the characters of all notes of an owner.
	MaxNotes = 1_000
	MaxText  = 200_000
	// short is the length up to which only equal notes are duplicates.
	short = 20
	// attempts bounds the tries of a write that meets other writers.
	attempts = 10

	keyPrefix = "memory/"
)

// Config configures a [Memory].
type Config struct {
	// Store keeps the notes. Required.
	Store storage.KV
	// Now tells the time. nil means [time.Now].
	Now func() time.Time
	// Logger gets what the model is not told. nil discards it.
	Logger *slog.Logger
	// Damaged moves a memory that cannot be decoded aside and notifies administrators; the memory
	// then starts empty. If nil, reading it is an error.
	Damaged func(ctx context.Context, entry storage.Entry) error
}

// Memory keeps the notes of all owners, each apart. It can be used concurrently.
type Memory struct {
	cfg Config
	// recent caches the notes read last: a turn reads them twice.
	recent *cache.Cache[string, []Note]
}

// Bounds of the cache: owners and age.
const (
	maxRecent = 128
	recentAge = time.Second
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
	return &Memory{cfg: cfg, recent: cache.New[string, []Note](maxRecent)}, nil
}

// Note is one fact.
type Note struct {
	// Section is one of [Sections].
	Section string `json:"section"`
	Text    string `json:"text"`
	// Saved is the time of saving.
	Saved time.Time `json:"saved"`
}

// document is what is stored for an owner: the notes in the order of saving.
type document struct {
	Notes []Note `json:"notes"`
}

// Notes returns the notes of an owner, the newest first. Notes that another process saved within
// the last second may be missing.
func (m *Memory) Notes(ctx context.Context, owner string) ([]Note, error) {
	if notes, ok := m.recent.Get(owner); ok {
		return slices.Clone(notes), nil
	}
	doc, _, err := m.read(ctx, owner)
	if err != nil {
		return nil, err
	}
	slices.SortStableFunc(doc.Notes, func(a, b Note) int { return b.Saved.Compare(a.Saved) })
	m.recent.Put(owner, slices.Clone(doc.Notes), recentAge)
	return doc.Notes, nil
}

// Save adds a note to the named section, or to Notes if there is no such section. It returns the
// memory before the change, as Markdown, and the section.
func (m *Memory) Save(ctx context.Context, owner, section, text string) (before, at string, err error) {
	text = clean(text)
	if n := utf8.RuneCountInString(text); n == 0 || n > MaxNote {
		return "", "", fmt.Errorf("%w: it must have 1 to %d characters", ErrInvalid, MaxNote)
	}
	at = sectionOf(section)
	err = m.update(ctx, owner, func(doc *document) error {
		if alreadySaved(doc.Notes, text) {
			return ErrDuplicate
		}
		before = render(doc.Notes)
		doc.Notes = append(doc.Notes, Note{Section: at, Text: text, Saved: m.cfg.Now().UTC()})
		return check(doc.Notes)
	})
	return before, at, err
}

// Forget deletes all notes of an owner.
func (m *Memory) Forget(ctx context.Context, owner string) error {
	defer m.recent.Forget(owner)
	if err := m.cfg.Store.Delete(ctx, keyPrefix+owner, storage.Any); err != nil {
		return fmt.Errorf("forget the notes of %s: %w", owner, err)
	}
	return nil
}

// Move appends the notes of one owner to another's: a chat that continues under another id keeps
// its memory. Notes saved meanwhile are moved too.
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

func check(notes []Note) error {
	total := 0
	for _, n := range notes {
		total += utf8.RuneCountInString(n.Text)
	}
	if len(notes) > MaxNotes || total > MaxText {
		return fmt.Errorf("%w: it may have %d notes and %d characters", ErrFull, MaxNotes, MaxText)
	}
	return nil
}

// alreadySaved reports whether the memory already has a text, ignoring case.
func alreadySaved(notes []Note, text string) bool {
	text = folded(text)
	long := utf8.RuneCountInString(text) > short
	return slices.ContainsFunc(notes, func(n Note) bool {
		have := folded(n.Text)
		return have == text || long && contains(have, text)
	})
}

// contains reports whether a text contains another one as whole words and numbers: Maximilian
// does not contain Max, and 10:30 not 10.
func contains(have, text string) bool {
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

func folded(text string) string { return strings.ToLower(strings.Join(strings.Fields(text), " ")) }

func (m *Memory) read(ctx context.Context, owner string) (document, storage.Revision, error) {
	var doc document
	if owner == "" {
		return doc, 0, fmt.Errorf("%w: nobody's memory", ErrInvalid)
	}
	entry, err := m.cfg.Store.Get(ctx, keyPrefix+owner)
	if errors.Is(err, storage.ErrNotFound) {
		return doc, storage.Absent, nil
	}
	if err != nil {
		return doc, 0, fmt.Errorf("read memory of %s: %w", owner, err)
	}
	if err := json.Unmarshal(entry.Value, &doc); err != nil && m.cfg.Damaged != nil {
		return m.setAside(ctx, owner, entry)
	} else if err != nil {
		return doc, 0, fmt.Errorf("decode memory of %s: %w", owner, err)
	}
	return doc, entry.Revision, nil
}

// setAside moves a damaged memory aside, and reads again.
func (m *Memory) setAside(ctx context.Context, owner string, entry storage.Entry) (document, storage.Revision, error) {
	err := m.cfg.Damaged(ctx, entry)
	if err == nil {
		err = m.cfg.Store.Delete(ctx, entry.Key, entry.Revision)
	}
	if err != nil && !errors.Is(err, storage.ErrConflict) {
		return document{}, 0, fmt.Errorf("set the memory of %s aside: %w", owner, err)
	}
	return m.read(ctx, owner)
}

// update updates an owner's document, and tries again if another writer was faster.
func (m *Memory) update(ctx context.Context, owner string, f func(*document) error) error {
	defer m.recent.Forget(owner)
	for range attempts {
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
	return fmt.Errorf("store memory of %s: %w too often", owner, storage.ErrConflict)
}
