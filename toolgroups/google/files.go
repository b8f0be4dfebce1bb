package google

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// CodeFileNotFound is the code of an error about a file of the workspace.
const CodeFileNotFound = "file_not_found"

// maxFile bounds a file that is uploaded or attached, in bytes.
const maxFile = 50 << 20

// read returns the bytes of a file of the workspace and its name.
func (c *conn) read(name string) (data []byte, base string, err error) {
	root, err := workspace.Open(c.Workspace)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if data, err = root.ReadFile(name, maxFile); err != nil {
		return nil, "", fileError{name, err}
	}
	return data, filepath.Base(name), nil
}

// save writes a file of the workspace and returns its path there.
func (c *conn) save(name string, data []byte) (rel string, err error) {
	root, err := workspace.OpenWithin(c.Workspace, c.Quota, c.Reserve)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if rel, err = root.Rel(name); err != nil {
		return "", fileError{name, err}
	}
	if err := root.WriteFile(rel, data, false); err != nil {
		return "", fileError{name, err}
	}
	return filepath.ToSlash(rel), nil
}

// deliver is the result out together with a file that was saved, for the chat.
func (c *conn) deliver(out any, rel string) (any, error) {
	res, err := c.result(out)
	if err != nil {
		return nil, err
	}
	res.Files = []toolgroups.File{{Path: rel, Caption: path.Base(rel)}}
	return res, nil
}

// fileError is an error about a file that the model named.
type fileError struct {
	name string
	err  error
}

// Error implements error.
func (e fileError) Error() string { return e.name + ": " + e.err.Error() }

// Unwrap returns the cause.
func (e fileError) Unwrap() error { return e.err }

func isFileError(err error) bool {
	var f fileError
	return errors.As(err, &f)
}

// fileFault says what is wrong with a file.
func fileFault(err error) error {
	var f fileError
	if !errors.As(err, &f) {
		return err
	}
	name := plain(f.name)
	switch {
	case errors.Is(f.err, workspace.ErrEmptyPath):
		return invalidf("The path of the file is empty.")
	case errors.Is(f.err, workspace.ErrOutside):
		return toolgroups.Errorf(toolgroups.CodeDenied, "'%s' is outside the workspace. Use a path inside it.", name)
	case errors.Is(f.err, fs.ErrPermission):
		return toolgroups.Errorf(toolgroups.CodeDenied, "'%s' may not be used.", name)
	case errors.Is(f.err, fs.ErrNotExist):
		return toolgroups.Errorf(CodeFileNotFound, "There is no file '%s' in the workspace.", name)
	case errors.Is(f.err, workspace.ErrNotFile):
		return invalidf("'%s' is not a file.", name)
	case errors.Is(f.err, workspace.ErrTooLarge):
		return invalidf("'%s' is larger than the limit of %d bytes.", name, maxFile)
	}
	return toolgroups.Errorf(toolgroups.CodeExecution, "'%s' could not be used: %s.", name, plain(f.err.Error()))
}
