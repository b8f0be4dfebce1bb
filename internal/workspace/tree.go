package workspace

import (
	"bytes"
	"crypto/sha256"
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

// tree is the content of a folder by path: files, folders and symbolic links. A path can have any
// bytes that the operating system accepts.
type tree map[string]entry

// looseChunks is the path of an entry that lists chunks that no file has, so that they are not forgotten.
const looseChunks = ""

// entry is a file, folder or symbolic link. An empty file has no chunks.
type entry struct {
	Dir     bool        `json:"d,omitempty"`
	Mode    fs.FileMode `json:"m,omitempty"` // permissions of a file
	ModTime int64       `json:"t,omitempty"` // time of a file's last change, in nanoseconds
	Size    int64       `json:"s,omitempty"`
	// Chunks are the concatenated hashes of a file's chunks. All chunks but the last have
	// [ChunkSize] bytes.
	Chunks []byte `json:"c,omitempty"`
	Link   []byte `json:"l,omitempty"` // target of a symbolic link; never empty
}

// fileType returns the type bits of an entry.
func (e entry) fileType() fs.FileMode {
	switch {
	case e.Dir:
		return fs.ModeDir
	case len(e.Link) > 0:
		return fs.ModeSymlink
	}
	return 0
}

// equal reports whether two entries are equal except for their times.
func (e entry) equal(o entry) bool {
	return e.fileType() == o.fileType() && e.Mode == o.Mode && e.Size == o.Size && bytes.Equal(e.Chunks, o.Chunks) && bytes.Equal(e.Link, o.Link)
}

// hashes yields the hashes of a file's chunks in order.
func (e entry) hashes() iter.Seq[string] {
	return func(yield func(string) bool) {
		for chunk := range slices.Chunk(e.Chunks, sha256.Size) {
			if !yield(string(chunk)) {
				return
			}
		}
	}
}

// chunkHashes returns the hashes of all chunks in a tree.
func (t tree) chunkHashes() map[string]bool {
	all := make(map[string]bool)
	for _, e := range t {
		for hash := range e.hashes() {
			all[hash] = true
		}
	}
	return all
}

// equal reports whether two trees are equal except for their times.
func (t tree) equal(o tree) bool { return maps.EqualFunc(t, o, entry.equal) }

// paths returns the paths in a tree, also that of [looseChunks], folders before their content.
func (t tree) paths() []string { return slices.Sorted(maps.Keys(t)) }

// manifestLine is an entry as it is stored in a manifest.
type manifestLine struct {
	Path []byte `json:"p"`
	entry
}

// encode encodes a tree deterministically.
func (t tree) encode() ([]byte, error) {
	lines := make([]manifestLine, 0, len(t))
	for _, path := range t.paths() {
		lines = append(lines, manifestLine{[]byte(path), t[path]})
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
var errManifest = errors.New("workspace: invalid manifest")

// decodeTree decodes a tree. Empty data is an empty tree.
func decodeTree(data []byte) (tree, error) {
	t := tree{}
	if len(data) == 0 {
		return t, nil
	}
	var lines []manifestLine
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf("%w: %w", errManifest, err)
	}
	for _, l := range lines {
		path := string(l.Path)
		if path == looseChunks && len(l.Chunks) > 0 && len(l.Chunks)%sha256.Size == 0 {
			t[path] = entry{Chunks: l.Chunks}
			continue
		}
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

// mergeTrees returns the three-way merge of a folder. If a path has changed both here and in the
// store, it takes the stored version. lost are the paths whose local change is dropped.
func mergeTrees(base, here, stored tree) (merged tree, lost []string) {
	merged = tree{}
	all := maps.Clone(here)
	maps.Copy(all, stored)
	delete(all, looseChunks)
	for _, path := range all.paths() {
		b, inBase := base[path]
		h, isHere := here[path]
		s, isStored := stored[path]
		changedHere := isHere != inBase || !h.equal(b)
		changedThere := isStored != inBase || !s.equal(b)
		take, is := s, isStored
		switch {
		case changedHere && !changedThere:
			take, is = h, isHere
		case changedHere && (isHere != isStored || !h.equal(s)):
			lost = append(lost, path)
		}
		if is {
			merged.add(path, take)
		}
	}
	return merged, lost
}

// add adds an entry and the folders above it, unless one of these is a file. Entries must be added
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
