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

// forceRead reads the folder even if it seems unchanged. The write lock must be held.
func (t *Tools) forceRead() error {
	old := *t.content.Load()
	old.print = ""
	t.content.Store(&old)
	_, err := t.rescan()
	return err
}

// confirm checks that a tool exists. The write lock must be held.
func (t *Tools) confirm(name, code string) error {
	if err := t.forceRead(); err != nil {
		return toolgroups.Errorf(code, "The folder of user tools cannot be read: %v.", err)
	}
	if f, ok := t.content.Load().owner(toolgroups.WireName(name)); !ok || f.base != name {
		return toolgroups.Errorf(code, "The tool '%s' was written but cannot be used; list_user_tools says why.", name)
	}
	return nil
}

// put writes the files of a tool atomically: the code first, because code without a manifest is
// not a tool. If writing the manifest fails, the code is restored.
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

// removeFiles deletes the manifest first: code without one is not a tool.
func (t *Tools) removeFiles(name string) error {
	t.write.Lock()
	defer t.write.Unlock()
	for _, ext := range []string{".json", ".js"} {
		if err := os.Remove(t.path(name, ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return toolgroups.Errorf(CodeDelete, "The files of '%s' could not be deleted: %v.", name, workspace.Cause(err))
		}
	}
	if err := t.forceRead(); err != nil {
		return toolgroups.Errorf(CodeDelete, "The folder of user tools cannot be read: %v.", err)
	}
	return nil
}
