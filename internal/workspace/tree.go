package workspace

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// tree is the content of a folder by path: files, folders and symbolic links. A path is any
// bytes that the system accepts.
type tree map[string]entry

// entry is a file, folder or link. Without chunks and link it may be an empty file.
type entry struct {
	Dir  bool        `json:"d,omitempty"`
	Mode fs.FileMode `json:"m,omitempty"` // permissions of a file
	Time int64       `json:"t,omitempty"` // time of a file's last change, in nanoseconds
	Size int64       `json:"s,omitempty"`
	// Chunks are the concatenated hashes of a file's chunks. All chunks but the last have
	// [ChunkSize] bytes.
	Chunks []byte `json:"c,omitempty"`
	Link   []byte `json:"l,omitempty"` // target of a symbolic link; never empty
}

// kind returns the type bits of an entry.
func (e entry) kind() fs.FileMode {
	switch {
	case e.Dir:
		return fs.ModeDir
	case len(e.Link) > 0:
		return fs.ModeSymlink
	}
	return 0
}

// same reports whether two entries are equal except for their times.
func (e entry) same(o entry) bool {
	return e.kind() == o.kind() && e.Mode == o.Mode && e.Size == o.Size && bytes.Equal(e.Chunks, o.Chunks) && bytes.Equal(e.Link, o.Link)
}

// hashes yields the hashes of a file's chunks in order.
func (e entry) hashes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for chunk := range slices.Chunk(e.Chunks, sha256.Size) {
			if !yield(hex.EncodeToString(chunk)) {
				return
			}
		}
	}
}

// chunks returns the hashes of all chunks.
func (t tree) chunks() map[string]bool {
	all := make(map[string]bool)
	for _, e := range t {
		for name := range e.hashes() {
			all[name] = true
		}
	}
	return all
}

func (t tree) equal(o tree) bool {
	return maps.EqualFunc(t, o, func(a, b entry) bool { return a.same(b) && a.Time == b.Time })
}

// sameAs is equal, ignoring times.
func (t tree) sameAs(o tree) bool { return maps.EqualFunc(t, o, entry.same) }

// paths returns the paths, folders before their content.
func (t tree) paths() []string { return slices.Sorted(maps.Keys(t)) }

// line is an entry as it is stored.
type line struct {
	Path []byte `json:"p"`
	entry
}

// encode encodes a tree deterministically.
func (t tree) encode() ([]byte, error) {
	lines := make([]line, 0, len(t))
	for _, path := range t.paths() {
		lines = append(lines, line{[]byte(path), t[path]})
	}
	data, err := json.Marshal(lines)
	if err != nil {
		return nil, fmt.Errorf("workspace: encode: %w", err)
	}
	if len(data) > maxManifest {
		return nil, ErrTooMany
	}
	return data, nil
}

// errManifest is returned for a manifest that cannot be decoded.
var errManifest = errors.New("workspace: a manifest does not decode")

// decode decodes a tree; no bytes are an empty tree.
func decode(data []byte) (tree, error) {
	t := tree{}
	if len(data) == 0 {
		return t, nil
	}
	var lines []line
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	for _, l := range lines {
		path := string(l.Path)
		if path != filepath.Clean(path) || path == "." || !filepath.IsLocal(path) || strings.ContainsRune(path, 0) ||
			int64(len(l.Chunks)) != (l.Size+ChunkSize-1)/ChunkSize*sha256.Size || l.Mode != l.Mode.Perm() {
			return nil, fmt.Errorf("%w: entry %q", errManifest, path)
		}
		t[path] = l.entry
	}
	for path := range t {
		if dir := filepath.Dir(path); dir != "." && !t[dir].Dir {
			return nil, fmt.Errorf("%w: there is no folder for %q", errManifest, path)
		}
	}
	return t, nil
}

// merge returns the three-way merge of a folder: for each path the change, and the stored
// version if both have changed it. lost are the paths whose local change is dropped for that.
func merge(base, here, stored tree) (merged tree, lost []string) {
	merged = tree{}
	all := maps.Clone(here)
	maps.Copy(all, stored)
	for _, path := range all.paths() {
		b, inBase := base[path]
		h, isHere := here[path]
		s, isStored := stored[path]
		changedHere := isHere != inBase || !h.same(b)
		changedThere := isStored != inBase || !s.same(b)
		take, is := s, isStored
		switch {
		case changedHere && !changedThere:
			take, is = h, isHere
		case changedHere && (isHere != isStored || !h.same(s)):
			lost = append(lost, path)
		}
		if is {
			merged.add(path, take)
		}
	}
	return merged, lost
}

// add adds an entry and the folders above it, unless one of those is a file. Entries are added
// in the order of their paths.
func (t tree) add(path string, e entry) {
	var above []string
	for dir := filepath.Dir(path); dir != "."; dir = filepath.Dir(dir) {
		if e, ok := t[dir]; ok && !e.Dir {
			return
		}
		above = append(above, dir)
	}
	for _, dir := range above {
		t[dir] = entry{Dir: true}
	}
	t[path] = e
}
