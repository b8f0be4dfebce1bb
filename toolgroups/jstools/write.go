package jstools

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"os"

	"oneclaw/internal/workspace"
	"oneclaw/storage/folder"
	"oneclaw/toolgroups"
)

// fresh reads the folder in any case. The write lock must be held.
func (t *Tools) fresh() error {
	old := *t.content.Load()
	old.print = ""
	t.content.Store(&old)
	_, err := t.rescan()
	return err
}

// confirm makes sure that a tool is there. The write lock must be held.
func (t *Tools) confirm(name, code string) error {
	if err := t.fresh(); err != nil {
		return toolgroups.Errorf(code, "The folder of user tools cannot be read: %v.", err)
	}
	if f, ok := t.content.Load().owner(toolgroups.WireName(name)); !ok || f.base != name {
		return toolgroups.Errorf(code, "The tool '%s' was written but cannot be used; list_user_tools says why.", name)
	}
	return nil
}

// put writes the files of a tool, each as a whole: the code first, as code without
// a manifest is no tool. If the manifest cannot be written, the code is put back.
func (t *Tools) put(name string, manifest []byte, code *string) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, manifest, "", "  "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	undo := func() error { return nil }
	if code != nil {
		path := t.path(name, ".js")
		old, err := readLimited(path)
		switch {
		case err == nil:
			undo = func() error { return workspace.Cause(folder.Replace(path, old)) }
		case errors.Is(err, fs.ErrNotExist):
			undo = func() error { return workspace.Cause(os.Remove(path)) }
		default:
			return err
		}
		if err := folder.Replace(path, []byte(*code)); err != nil {
			return workspace.Cause(err)
		}
	}
	if err := folder.Replace(t.path(name, ".json"), pretty.Bytes()); err != nil {
		return errors.Join(workspace.Cause(err), undo())
	}
	return nil
}

// removeFiles takes the manifest first: code without one is no tool.
func (t *Tools) removeFiles(name string) error {
	t.write.Lock()
	defer t.write.Unlock()
	for _, ext := range []string{".json", ".js"} {
		if err := os.Remove(t.path(name, ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return toolgroups.Errorf(CodeDelete, "The files of '%s' could not be deleted: %v.", name, workspace.Cause(err))
		}
	}
	if err := t.fresh(); err != nil {
		return toolgroups.Errorf(CodeDelete, "The folder of user tools cannot be read: %v.", err)
	}
	return nil
}
