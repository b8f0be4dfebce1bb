package toolgroups

import (
	"errors"
	"fmt"
)

// GroupOf returns the group that the manifest base.json of a family describes, with
// its functions. Any mistake in the manifest is an error: it comes with the program.
func GroupOf(base string, manifest []byte, handlers map[string]Handler) (Group, error) {
	m, errs := ParseManifest(base, manifest, handlers, ManifestOptions{})
	if len(errs) == 0 && m.Group == nil {
		errs = append(errs, fmt.Errorf("%s.json: it holds no group", base))
	}
	if len(errs) > 0 {
		return Group{}, errors.Join(errs...)
	}
	return *m.Group, nil
}

// ToolOf returns the core tool that the manifest base.json of a family describes, with
// its function.
func ToolOf(base string, manifest []byte, run Handler) (Tool, error) {
	m, errs := ParseManifest(base, manifest, map[string]Handler{base: run}, ManifestOptions{})
	if len(errs) == 0 && m.Tool == nil {
		errs = append(errs, fmt.Errorf("%s.json: it holds no tool", base))
	}
	if len(errs) > 0 {
		return Tool{}, errors.Join(errs...)
	}
	return *m.Tool, nil
}
