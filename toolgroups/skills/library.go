package skills

import (
	"cmp"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/toolgroups/files"
)

//go:embed builtin
var builtin embed.FS

const (
	fileName = "SKILL.md"
	// maxSkills bounds the skills of a folder.
	maxSkills = 100
	// heading and advice begin the section of the prompt.
	heading = "## Skills\n\n"
	advice  = "When a request fits one of these, call load_skill with its name first and follow what it says.\n\n"
)

// ErrUnknown is returned by [Library.Skill] for an unknown name.
var ErrUnknown = errors.New("there is no such skill")

// Config configures a [Library].
type Config struct {
	// Dir is the folder with the administrator's skills, one folder each. It need not exist. ""
	// means only the built-in ones.
	Dir string
	// Logger gets the files that are left out. nil discards them.
	Logger *slog.Logger
}

// Library holds the skills. It can be used concurrently and has no goroutines.
type Library struct {
	cfg     Config
	builtin map[string]Skill

	mu sync.Mutex // held while changed files are read
	// files are the files found in the folder, by name.
	files map[string]file
	// skills are in use; section lists them.
	skills  map[string]Skill
	section string
	crowded sync.Once // logs once that there are too many
}

// file is a SKILL.md as it was read.
type file struct {
	modified time.Time
	size     int64
	skill    Skill
	err      error
}

// New reads the built-in skills. The folder is read on use.
func New(cfg Config) (*Library, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	l := &Library{cfg: cfg, builtin: map[string]Skill{}, files: map[string]file{}}
	entries, err := builtin.ReadDir("builtin")
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	for _, e := range entries {
		data, err := builtin.ReadFile(path.Join("builtin", e.Name(), fileName))
		if err != nil {
			return nil, fmt.Errorf("skills: %w", err)
		}
		s, err := Parse(data)
		if err != nil || s.Name != e.Name() {
			return nil, fmt.Errorf("skills: built-in %s: %w", e.Name(), cmp.Or(err, errName(e.Name())))
		}
		l.builtin[s.Name] = s
	}
	l.merge()
	return l, nil
}

func errName(folder string) error {
	return fmt.Errorf("name must be that of the folder, %s", folder)
}

// Skills returns all skills, sorted by name.
func (l *Library) Skills() []Skill {
	l.lock()
	defer l.mu.Unlock()
	out := make([]Skill, 0, len(l.skills))
	for _, name := range slices.Sorted(maps.Keys(l.skills)) {
		out = append(out, l.skills[name])
	}
	return out
}

// Section returns the part of the system prompt that lists the skills, or "". It is
// deterministic.
func (l *Library) Section() string {
	l.lock()
	defer l.mu.Unlock()
	return l.section
}

// Skill returns a skill; the error is [ErrUnknown], or says what is wrong with the file.
func (l *Library) Skill(name string) (Skill, error) {
	l.lock()
	defer l.mu.Unlock()
	if s, ok := l.skills[name]; ok {
		return s, nil
	}
	if f, ok := l.files[name]; ok && f.err != nil {
		return Skill{}, f.err
	}
	return Skill{}, ErrUnknown
}

// lock scans the folder, which may be slow, and then locks the library.
func (l *Library) lock() {
	found, ok := l.scan()
	l.mu.Lock()
	if ok {
		l.refresh(found)
	}
}

// scan finds the files in the folder by skill name; false if nothing has changed.
func (l *Library) scan() (found map[string]fs.FileInfo, ok bool) {
	if l.cfg.Dir == "" {
		return nil, false
	}
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.cfg.Logger.Warn("folder of skills is not readable, the skills stay as they were", "dir", l.cfg.Dir, "err", err)
		return nil, false
	}
	if len(entries) > maxSkills {
		l.crowded.Do(func() {
			l.cfg.Logger.Warn("too many skills, those behind the limit are left out", "dir", l.cfg.Dir, "limit", maxSkills)
		})
	}
	found = make(map[string]fs.FileInfo, len(entries))
	for _, e := range entries[:min(len(entries), maxSkills)] {
		if info, err := os.Stat(filepath.Join(l.cfg.Dir, e.Name(), fileName)); err == nil { // otherwise this is not a skill's folder
			found[e.Name()] = info
		}
	}
	return found, true
}

// refresh reads the changed files.
func (l *Library) refresh(found map[string]fs.FileInfo) {
	changed := false
	for name, info := range found {
		old, known := l.files[name]
		if known && old.modified.Equal(info.ModTime()) && old.size == info.Size() {
			continue
		}
		changed = true
		l.files[name] = l.read(name, info)
	}
	for name := range l.files {
		if found[name] == nil {
			delete(l.files, name)
			changed = true
		}
	}
	if changed {
		l.merge()
	}
}

// read reads one file; an invalid one is logged once per change.
func (l *Library) read(folder string, info fs.FileInfo) file {
	f := file{modified: info.ModTime(), size: info.Size()}
	data, err := files.ReadHost(filepath.Join(l.cfg.Dir, folder, fileName), MaxFile)
	if err != nil {
		f.err = fmt.Errorf("it cannot be read: %w", err)
	} else {
		f.skill, f.err = Parse(data)
	}
	if f.err == nil && f.skill.Name != folder {
		f.err = errName(folder)
	}
	if f.err != nil {
		l.cfg.Logger.Warn("skill is left out", "file", filepath.Join(l.cfg.Dir, folder, fileName), "err", f.err)
	}
	return f
}

// merge puts the folder's skills over the built-in ones.
func (l *Library) merge() {
	l.skills = maps.Clone(l.builtin)
	for name, f := range l.files {
		if f.err == nil {
			l.skills[name] = f.skill
		}
	}
	l.section = ""
	if len(l.skills) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(heading + advice)
	for i, name := range slices.Sorted(maps.Keys(l.skills)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("- " + name + ": " + l.skills[name].Description)
	}
	l.section = b.String()
}
