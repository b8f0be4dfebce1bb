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
var builtinFS embed.FS

const (
	fileName = "SKILL.md"
	// maxSkills bounds the skills of a folder.
	maxSkills = 100
	// sectionHeading and sectionAdvice begin the section of the prompt.
	sectionHeading = "## Skills\n\n"
	sectionAdvice  = "When a request fits one of these, call load_skill with its name first and follow what it says.\n\n"
)

// errUnknown is returned by [Library.Skill] for an unknown name.
var errUnknown = errors.New("there is no such skill")

// Config configures a [Library].
type Config struct {
	// Dir is the administrator's folder, with one folder for each skill. It need not exist. ""
	// means that there are only the built-in skills.
	Dir string
	// Logger receives warnings about files that are left out. nil discards them.
	Logger *slog.Logger
}

// Library holds the skills. It can be used concurrently and has no goroutines.
type Library struct {
	cfg     Config
	builtin map[string]Skill

	mu sync.Mutex // held while changed files are read
	// files are the files found in the folder, by name.
	files map[string]skillFile
	// skills are the valid skills that are switched on, by name. section lists them for the prompt.
	skills      map[string]Skill
	section     string
	off         []string  // the skills that are switched off
	tooManyOnce sync.Once // to log once that there are too many skills
}

// skillFile is a SKILL.md as it was last read.
type skillFile struct {
	modTime time.Time
	size    int64
	skill   Skill
	err     error
}

// New reads the built-in skills. The folder is read on use.
func New(cfg Config) (*Library, error) {
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	l := &Library{cfg: cfg, builtin: map[string]Skill{}, files: map[string]skillFile{}}
	entries, err := builtinFS.ReadDir("builtin")
	if err != nil {
		return nil, fmt.Errorf("skills: %w", err)
	}
	for _, e := range entries {
		data, err := builtinFS.ReadFile(path.Join("builtin", e.Name(), fileName))
		if err != nil {
			return nil, fmt.Errorf("skills: %w", err)
		}
		s, err := Parse(data)
		if err != nil || s.Name != e.Name() {
			return nil, fmt.Errorf("skills: built-in %s: %w", e.Name(), cmp.Or(err, nameError(e.Name())))
		}
		l.builtin[s.Name] = s
	}
	l.merge()
	return l, nil
}

// IsBuiltin reports whether a skill comes with the program.
func IsBuiltin(name string) bool {
	_, err := fs.Stat(builtinFS, path.Join("builtin", name, fileName))
	return err == nil
}

func nameError(folder string) error {
	return fmt.Errorf("name must be that of the folder, %s", folder)
}

// list returns the valid skills that are switched on, sorted by name.
func (l *Library) list() []Skill {
	l.refreshAndLock()
	defer l.mu.Unlock()
	out := make([]Skill, 0, len(l.skills))
	for _, name := range slices.Sorted(maps.Keys(l.skills)) {
		out = append(out, l.skills[name])
	}
	return out
}

// SetOff sets which skills are switched off: they are not listed and cannot be loaded.
func (l *Library) SetOff(names []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.off, names) {
		l.off = slices.Clone(names)
		l.merge()
	}
}

// States returns whether each valid skill is switched on, by name.
func (l *Library) States() map[string]bool {
	l.refreshAndLock()
	defer l.mu.Unlock()
	states := make(map[string]bool, len(l.skills))
	for name := range l.valid() {
		states[name] = !slices.Contains(l.off, name)
	}
	return states
}

// Description returns the description of a valid skill, switched on or not.
func (l *Library) Description(name string) string {
	l.refreshAndLock()
	defer l.mu.Unlock()
	return l.valid()[name].Description
}

// Section returns the part of the system prompt that lists the skills, or "". It is
// deterministic.
func (l *Library) Section() string {
	l.refreshAndLock()
	defer l.mu.Unlock()
	return l.section
}

// Skill returns a skill. It returns [errUnknown] for the name of an unknown skill or of one that is
// switched off, or the error in the skill's file.
func (l *Library) Skill(name string) (Skill, error) {
	l.refreshAndLock()
	defer l.mu.Unlock()
	if s, ok := l.skills[name]; ok {
		return s, nil
	}
	if f, ok := l.files[name]; ok && f.err != nil {
		return Skill{}, f.err
	}
	return Skill{}, errUnknown
}

// refreshAndLock scans the folder, which may be slow, locks the library, and reads changed files.
func (l *Library) refreshAndLock() {
	found, ok := l.scanFolder()
	l.mu.Lock()
	if ok {
		l.readChanged(found)
	}
}

// scanFolder returns the files in the folder by skill name. ok is false if the folder cannot be scanned.
func (l *Library) scanFolder() (found map[string]fs.FileInfo, ok bool) {
	if l.cfg.Dir == "" {
		return nil, false
	}
	entries, err := os.ReadDir(l.cfg.Dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		l.cfg.Logger.Warn("cannot read the folder of skills, keeping the skills read before", "dir", l.cfg.Dir, "err", err)
		return nil, false
	}
	if len(entries) > maxSkills {
		l.tooManyOnce.Do(func() {
			l.cfg.Logger.Warn("too many skills, ignoring those beyond the limit", "dir", l.cfg.Dir, "limit", maxSkills)
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

// readChanged reads the files that have changed, and forgets deleted ones.
func (l *Library) readChanged(found map[string]fs.FileInfo) {
	changed := false
	for name, info := range found {
		old, known := l.files[name]
		if known && old.modTime.Equal(info.ModTime()) && old.size == info.Size() {
			continue
		}
		changed = true
		l.files[name] = l.readSkill(name, info)
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

// readSkill reads the file of a skill. It logs an invalid file, once per change.
func (l *Library) readSkill(folder string, info fs.FileInfo) skillFile {
	f := skillFile{modTime: info.ModTime(), size: info.Size()}
	data, err := files.ReadHostFile(filepath.Join(l.cfg.Dir, folder, fileName), MaxFile)
	if err != nil {
		f.err = fmt.Errorf("it cannot be read: %w", err)
	} else {
		f.skill, f.err = Parse(data)
	}
	if f.err == nil && f.skill.Name != folder {
		f.err = nameError(folder)
	}
	if f.err != nil {
		l.cfg.Logger.Warn("skill is left out", "file", filepath.Join(l.cfg.Dir, folder, fileName), "err", f.err)
	}
	return f
}

// valid returns the built-in skills and those in the folder, which take precedence.
func (l *Library) valid() map[string]Skill {
	all := maps.Clone(l.builtin)
	for name, f := range l.files {
		if f.err == nil {
			all[name] = f.skill
		}
	}
	return all
}

// merge makes the list of the valid skills that are switched on.
func (l *Library) merge() {
	l.skills = l.valid()
	maps.DeleteFunc(l.skills, func(name string, _ Skill) bool { return slices.Contains(l.off, name) })
	l.section = ""
	if len(l.skills) == 0 {
		return
	}
	var b strings.Builder
	b.WriteString(sectionHeading + sectionAdvice)
	for i, name := range slices.Sorted(maps.Keys(l.skills)) {
		if i > 0 {
			b.WriteByte('\n')
		}
		b.WriteString("- " + name + ": " + l.skills[name].Description)
	}
	l.section = b.String()
}
