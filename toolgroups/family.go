package toolgroups

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
)

// GroupOf returns the group described by the embedded manifest name.json, with its functions.
// Any mistake in the manifest is an error.
func GroupOf(files fs.FS, name string, handlers map[string]Handler) (Group, error) {
	m, err := manifestOf(files, name, handlers)
	if err == nil && m.Group == nil {
		err = fmt.Errorf("%s.json: it holds no group", name)
	}
	if err != nil {
		return Group{}, err
	}
	return *m.Group, nil
}

// ToolOf is [GroupOf] for the manifest of a core tool.
func ToolOf(files fs.FS, name string, run Handler) (Tool, error) {
	m, err := manifestOf(files, name, map[string]Handler{name: run})
	if err == nil && m.Tool == nil {
		err = fmt.Errorf("%s.json: it holds no tool", name)
	}
	if err != nil {
		return Tool{}, err
	}
	return *m.Tool, nil
}

func manifestOf(files fs.FS, name string, handlers map[string]Handler) (Manifest, error) {
	data, err := fs.ReadFile(files, name+".json")
	if err != nil {
		return Manifest{}, err
	}
	m, errs := ParseManifest(path.Base(name), data, handlers, SourceBuiltin)
	return m, errors.Join(errs...)
}
