package jstools

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// maxFiles bounds the manifests that are read.
const maxFiles = 500

// content is the content of the folder, sorted by file.
type content struct {
	print string // fingerprint of the folder, from [Tools.list]
	files []file
	err   error // why it is incomplete
}

// file is a manifest with its code.
type file struct {
	base  string
	tool  *toolgroups.Tool  // of an object
	group *toolgroups.Group // of a list
	// list says that the manifest is a list, if readable; function names the code of a single tool.
	// Both are set even if the tool is invalid.
	list     bool
	function string
	errs     []error
}

// MaxCoreTokens bounds the schemas of all tools from files with one tool, in estimated tokens,
// up to which they are in every request; above it they are the group [UserTools].
const MaxCoreTokens = 2_000

// tools returns the tools that are in every request, and the groups.
func (c content) tools() (core []toolgroups.Tool, groups []toolgroups.Group) {
	single := toolgroups.Group{Name: UserTools, DisplayName: "User Tools", Source: Source}
	var out []toolgroups.Group
	for _, f := range c.files {
		switch {
		case f.tool != nil:
			single.Tools = append(single.Tools, *f.tool)
		case f.group != nil:
			g := *f.group
			g.Tools = slices.Clone(g.Tools)
			out = append(out, g)
		}
	}
	size := toolgroups.EstimateTokens(single.Tools)
	if size < MaxCoreTokens || len(single.Tools) == 0 {
		return single.Tools, out
	}
	single.Description = fmt.Sprintf("Tools that people made here, a group because they take %d tokens, too many for every request: %s",
		size, strings.Join(toolgroups.Names(single.Tools), ", "))
	return nil, slices.Insert(out, 0, single)
}

func (c content) errors() []error {
	var out []error
	for _, f := range c.files {
		out = append(out, f.errs...)
	}
	if c.err != nil {
		out = append(out, c.err)
	}
	return out
}

// owner returns the file of a tool.
func (c content) owner(tool string) (file, bool) {
	for _, f := range c.files {
		if f.tool != nil && f.tool.Name == tool || f.group != nil && slices.Contains(toolgroups.Names(f.group.Tools), tool) {
			return f, true
		}
	}
	return file{}, false
}

// rescan reads the folder if it has changed, and reports that. The write lock must be held.
func (t *Tools) rescan() (bool, error) {
	names, print, err := t.scan()
	if err != nil {
		return false, fmt.Errorf("jstools: %w", err)
	}
	if print == t.content.Load().print {
		return false, nil
	}
	c := t.load(names)
	c.print = print
	for _, err := range c.errors() {
		t.cfg.Logger.Warn("user tool left out", "error", err)
	}
	t.content.Store(&c)
	return true, nil
}

// scan returns the manifests, and a fingerprint of the files.
func (t *Tools) scan() (names []string, print string, err error) {
	list, err := os.ReadDir(t.cfg.Dir)
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	b.WriteString("read\n") // not empty even for an empty folder
	for _, entry := range list {
		base, ext := split(entry.Name())
		if ext != ".json" && ext != ".js" || strings.HasPrefix(base, ".") {
			continue
		}
		info, err := os.Stat(filepath.Join(t.cfg.Dir, entry.Name()))
		if err != nil {
			continue // deleted, or a dangling link
		}
		fmt.Fprintf(&b, "%s %d %d %v\n", entry.Name(), info.Size(), info.ModTime().UnixNano(), info.Mode())
		if ext == ".json" {
			names = append(names, base)
		}
	}
	return names, b.String(), nil
}

func split(name string) (base, ext string) {
	ext = filepath.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// load reads files. A mistake in one does not affect the others.
func (t *Tools) load(names []string) content {
	var c content
	slices.Sort(names)
	if len(names) > maxFiles {
		c.err = fmt.Errorf("%s: only the first %d of %d manifests are read", t.cfg.Dir, maxFiles, len(names))
		names = names[:maxFiles]
	}
	taken := t.reserved()
	single := 0
	for _, base := range names {
		f := t.read(base)
		f.claim(taken)
		if f.tool != nil {
			if single++; single > toolgroups.MaxGroupTools {
				f.fail(fmt.Errorf("there are %d tools of single files already, and no more are taken", toolgroups.MaxGroupTools))
				f.tool = nil
			}
		}
		c.files = append(c.files, f)
	}
	return c
}

// reserved maps the names that files cannot use to their owners.
func (t *Tools) reserved() map[string]string {
	taken := map[string]string{}
	for _, name := range []string{
		"js_eval", "create_js_tool", "list_user_tools", "update_js_tool", "delete_js_tool",
		Management, UserTools, toolgroups.LoadToolGroup,
	} {
		taken[name] = "the program"
	}
	if t.cfg.Reserved != nil {
		for _, name := range t.cfg.Reserved() {
			taken[name] = "the program"
		}
	}
	return taken
}

func (f *file) fail(err error) { f.errs = append(f.errs, fmt.Errorf("%s.json: %w", f.base, err)) }

// claim registers the names of a file, and leaves out tools whose names are taken.
func (f *file) claim(taken map[string]string) {
	free := func(what, name string) bool {
		if by, ok := taken[name]; ok {
			f.fail(fmt.Errorf("the name of the %s %q is taken by %s", what, name, by))
			return false
		}
		return true
	}
	switch {
	case f.tool != nil:
		if !free("tool", f.tool.Name) {
			f.tool = nil
			return
		}
		taken[f.tool.Name] = f.base + ".json"
	case f.group != nil:
		if !free("group", f.group.Name) {
			f.group = nil
			return
		}
		f.group.Tools = slices.DeleteFunc(f.group.Tools, func(tool toolgroups.Tool) bool { return !free("tool", tool.Name) })
		for _, tool := range f.group.Tools {
			taken[tool.Name] = f.base + ".json"
		}
	}
}

// read reads one manifest and its code.
func (t *Tools) read(base string) file {
	f := file{base: base}
	data, err := readLimited(t.path(base, ".json"))
	if err != nil {
		f.fail(err)
		return f
	}
	source, err := readLimited(t.path(base, ".js"))
	f = t.parse(base, data, string(source))
	if err != nil {
		f.tool, f.group = nil, nil
		f.fail(fmt.Errorf("its code: %w", err))
	}
	return f
}

func (t *Tools) path(base, ext string) string { return filepath.Join(t.cfg.Dir, base+ext) }

// readLimited reads a manifest or its code.
func readLimited(path string) ([]byte, error) {
	data, err := files.ReadHost(path, max(sandbox.MaxSource, toolgroups.MaxManifest))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return data, nil
}

// raw has the fields of a manifest beyond those of every tool.
type raw struct {
	Name        string          `json:"name"`
	Function    string          `json:"function"`
	Env         json.RawMessage `json:"env"`
	Permissions json.RawMessage `json:"requiredPermissions"`
}
