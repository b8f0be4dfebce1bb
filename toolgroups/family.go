package toolgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// ReadGroup reads a group from the manifest name.json in files and binds its tools to handlers.
// Any mistake in the manifest is an error.
func ReadGroup(files fs.FS, name string, handlers map[string]Handler) (Group, error) {
	m, err := readManifest(files, name, handlers)
	if err == nil && m.Group == nil {
		err = fmt.Errorf("%s.json: it holds no group", name)
	}
	if err != nil {
		return Group{}, err
	}
	return *m.Group, nil
}

// ReadTool is [ReadGroup] for the manifest of a core tool.
func ReadTool(files fs.FS, name string, run Handler) (Tool, error) {
	m, err := readManifest(files, name, map[string]Handler{name: run})
	if err == nil && m.Tool == nil {
		err = fmt.Errorf("%s.json: it holds no tool", name)
	}
	if err != nil {
		return Tool{}, err
	}
	return *m.Tool, nil
}

func readManifest(files fs.FS, name string, handlers map[string]Handler) (Manifest, error) {
	data, err := fs.ReadFile(files, name+".json")
	if err != nil {
		return Manifest{}, err
	}
	m, errs := ParseManifest(path.Base(name), data, handlers, SourceBuiltin)
	return m, errors.Join(errs...)
}
