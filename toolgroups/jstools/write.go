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

// forceRescan reads the folder even if it seems unchanged. writeMu must be held.
func (t *Tools) forceRescan() error {
	old := *t.content.Load()
	old.fingerprint = ""
	t.content.Store(&old)
	_, err := t.rescan()
	return err
}

// checkUsable returns an error if a written tool is not in the folder. writeMu must be held.
func (t *Tools) checkUsable(name, code string) error {
	if err := t.forceRescan(); err != nil {
		return toolgroups.Errorf(code, "The folder of user tools cannot be read: %v.", err)
	}
	if f, ok := t.content.Load().fileOfTool(toolgroups.WireName(name)); !ok || f.baseName != name {
		return toolgroups.Errorf(code, "The tool '%s' was written but cannot be used; list_user_tools says why.", name)
	}
	return nil
}

// writeFiles writes the files of a tool: the code first, because code without a manifest is not a
// tool. If writing the manifest fails, it restores the code.
func (t *Tools) writeFiles(name string, manifest []byte, code *string) error {
	var pretty bytes.Buffer
	if err := json.Indent(&pretty, manifest, "", "  "); err != nil {
		return err
	}
	pretty.WriteByte('\n')
	undo := func() error { return nil }
	if code != nil {
		path := t.filePath(name, ".js")
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
	if err := folder.Replace(t.filePath(name, ".json"), pretty.Bytes()); err != nil {
		return errors.Join(workspace.Cause(err), undo())
	}
	return nil
}

// removeFiles deletes the manifest first: code without one is not a tool.
func (t *Tools) removeFiles(name string) error {
	t.writeMu.Lock()
	defer t.writeMu.Unlock()
	for _, ext := range []string{".json", ".js"} {
		if err := os.Remove(t.filePath(name, ext)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return toolgroups.Errorf(codeDelete, "The files of '%s' could not be deleted: %v.", name, workspace.Cause(err))
		}
	}
	if err := t.forceRescan(); err != nil {
		return toolgroups.Errorf(codeDelete, "The folder of user tools cannot be read: %v.", err)
	}
	return nil
}
