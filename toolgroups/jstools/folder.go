package jstools

import (
	"encoding/json"
	"fmt"
	"maps"
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

// folderContent is the content of the folder, sorted by file.
type folderContent struct {
	fingerprint string // of the folder and the reserved names
	files       []manifestFile
	err         error // set if files are missing from it
}

// manifestFile is a manifest with its code.
type manifestFile struct {
	baseName string
	tool     *toolgroups.Tool  // if the manifest is an object
	group    *toolgroups.Group // if the manifest is a list
	// isList is true if the manifest is a list. function is the function that a single tool calls. Both
	// are set even if the tool is invalid.
	isList   bool
	function string
	errs     []error
}

// maxCoreTokens is the estimated size of the tools from files with one tool, in tokens, from which
// they form the group [userTools]. Below it they are core tools, which are in every request.
const maxCoreTokens = 2_000

// tools returns the tools that are in every request, and the groups.
func (c folderContent) tools() (core []toolgroups.Tool, groups []toolgroups.Group) {
	single := toolgroups.Group{Name: userTools, DisplayName: "User Tools", Source: userSource}
	var out []toolgroups.Group
	for _, f := range c.files {
		switch {
		case f.tool != nil:
			one := *f.tool
			one.RuleGroup = userTools // also while there are few of them
			single.Tools = append(single.Tools, one)
		case f.group != nil:
			g := *f.group
			g.Tools = slices.Clone(g.Tools)
			out = append(out, g)
		}
	}
	size := toolgroups.EstimateTokens(single.Tools)
	if size < maxCoreTokens || len(single.Tools) == 0 {
		return single.Tools, out
	}
	single.Description = fmt.Sprintf("Tools that people made here, a group because they take %d tokens, too many for every request: %s",
		size, strings.Join(toolgroups.Names(single.Tools), ", "))
	return nil, slices.Insert(out, 0, single)
}

func (c folderContent) errors() []error {
	var out []error
	for _, f := range c.files {
		out = append(out, f.errs...)
	}
	if c.err != nil {
		out = append(out, c.err)
	}
	return out
}

// fileOfTool returns the file that defines a tool.
func (c folderContent) fileOfTool(tool string) (manifestFile, bool) {
	for _, f := range c.files {
		if f.tool != nil && f.tool.Name == tool || f.group != nil && slices.Contains(toolgroups.Names(f.group.Tools), tool) {
			return f, true
		}
	}
	return manifestFile{}, false
}

// rescan reads the folder if it or the reserved names have changed, and reports whether they have. writeMu
// must be held.
func (t *Tools) rescan() (bool, error) {
	names, print, err := t.scan()
	if err != nil {
		return false, fmt.Errorf("jstools: %w", err)
	}
	print += strings.Join(slices.Sorted(maps.Keys(t.reservedNames())), " ")
	if print == t.content.Load().fingerprint {
		return false, nil
	}
	c := t.load(names)
	c.fingerprint = print
	for _, err := range c.errors() {
		t.cfg.Logger.Warn("user tool left out", "error", err)
	}
	t.content.Store(&c)
	return true, nil
}

// scan returns the names of the manifests without extension, and a fingerprint of the folder.
func (t *Tools) scan() (names []string, print string, err error) {
	list, err := os.ReadDir(t.cfg.Dir)
	if err != nil {
		return nil, "", err
	}
	var b strings.Builder
	b.WriteString("read\n") // not empty even for an empty folder
	for _, entry := range list {
		base, ext := splitExt(entry.Name())
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

func splitExt(name string) (base, ext string) {
	ext = filepath.Ext(name)
	return strings.TrimSuffix(name, ext), ext
}

// load reads manifests and their code. An error in one does not affect the others.
func (t *Tools) load(names []string) folderContent {
	var c folderContent
	slices.Sort(names)
	if len(names) > maxFiles {
		c.err = fmt.Errorf("%s: only the first %d of %d manifests are read", t.cfg.Dir, maxFiles, len(names))
		names = names[:maxFiles]
	}
	taken := t.reservedNames()
	single := 0
	for _, base := range names {
		f := t.readManifest(base)
		f.claimNames(taken)
		if f.tool != nil {
			if single++; single > toolgroups.MaxGroupTools {
				f.addError(fmt.Errorf("there are %d tools of single files already, and no more are taken", toolgroups.MaxGroupTools))
				f.tool = nil
			}
		}
		c.files = append(c.files, f)
	}
	return c
}

// reservedNames maps the names that files cannot use to a description of their owners.
func (t *Tools) reservedNames() map[string]string {
	taken := map[string]string{}
	for _, name := range []string{
		"js_eval", "create_js_tool", "list_user_tools", "update_js_tool", "delete_js_tool",
		management, userTools, toolgroups.LoadToolGroup,
	} {
		taken[name] = "the program"
	}
	if t.cfg.ReservedNames != nil {
		for _, name := range t.cfg.ReservedNames() {
			taken[name] = "the program"
		}
	}
	return taken
}

func (f *manifestFile) addError(err error) {
	f.errs = append(f.errs, fmt.Errorf("%s.json: %w", f.baseName, err))
}

// claimNames adds the names in a file to taken, and removes its tools whose names are taken.
func (f *manifestFile) claimNames(taken map[string]string) {
	free := func(what, name string) bool {
		if by, ok := taken[name]; ok {
			f.addError(fmt.Errorf("the name of the %s %q is taken by %s", what, name, by))
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
		taken[f.tool.Name] = f.baseName + ".json"
	case f.group != nil:
		if !free("group", f.group.Name) {
			f.group = nil
			return
		}
		f.group.Tools = slices.DeleteFunc(f.group.Tools, func(tool toolgroups.Tool) bool { return !free("tool", tool.Name) })
		for _, tool := range f.group.Tools {
			taken[tool.Name] = f.baseName + ".json"
		}
		f.dropEmptyGroup()
	}
}

// dropEmptyGroup removes a group without tools, whose line would be in every prompt for nothing.
func (f *manifestFile) dropEmptyGroup() {
	if len(f.group.Tools) == 0 {
		f.addError(fmt.Errorf("the group %q has no tool that can be used, and is left out", f.group.Name))
		f.group = nil
	}
}

// readManifest reads one manifest and its code.
func (t *Tools) readManifest(base string) manifestFile {
	f := manifestFile{baseName: base}
	data, err := readLimited(t.filePath(base, ".json"))
	if err != nil {
		f.addError(err)
		return f
	}
	source, err := readLimited(t.filePath(base, ".js"))
	f = t.parseManifest(base, data, string(source))
	if err != nil {
		f.tool, f.group = nil, nil
		f.addError(fmt.Errorf("its code: %w", err))
	}
	return f
}

func (t *Tools) filePath(base, ext string) string { return filepath.Join(t.cfg.Dir, base+ext) }

// readLimited reads a manifest or its code.
func readLimited(path string) ([]byte, error) {
	data, err := files.ReadHostFile(path, max(sandbox.MaxSource, toolgroups.MaxManifest))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	return data, nil
}

// manifestEntry has the name and the fields of a manifest that only this package reads.
type manifestEntry struct {
	Name                string          `json:"name"`
	Function            string          `json:"function"`
	Env                 json.RawMessage `json:"env"`
	RequiredPermissions json.RawMessage `json:"requiredPermissions"`
}
