package service

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

// CodeFileNotFound is the code of an error about a file of the workspace.
const CodeFileNotFound = "file_not_found"

// MaxFile bounds a file that is uploaded or attached, in bytes.
const MaxFile = 50 << 20

// Read returns the bytes of a file of the workspace and its name.
func (c *Conn) Read(name string) (data []byte, base string, err error) {
	root, err := workspace.Open(c.Workspace)
	if err != nil {
		return nil, "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if data, err = root.ReadFile(name, MaxFile); err != nil {
		return nil, "", FileError{name, err}
	}
	return data, filepath.Base(name), nil
}

// Save writes a file of the workspace and returns its path there.
func (c *Conn) Save(name string, data []byte) (rel string, err error) {
	root, err := workspace.OpenWithin(c.Workspace, c.Quota, c.Reserve)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	if rel, err = root.Rel(name); err != nil {
		return "", FileError{name, err}
	}
	if err := root.WriteFile(rel, data, false); err != nil {
		return "", FileError{name, err}
	}
	return filepath.ToSlash(rel), nil
}

// Deliver is the result out together with a file that was saved, for the chat.
func (c *Conn) Deliver(out any, rel string) (any, error) {
	res, err := c.result(out)
	if err != nil {
		return nil, err
	}
	res.Files = []toolgroups.File{{Path: rel, Caption: path.Base(rel)}}
	return res, nil
}

// FileError is an error about a file that the model named.
type FileError struct {
	Name string
	Err  error
}

// Error implements error.
func (e FileError) Error() string { return e.Name + ": " + e.Err.Error() }

// Unwrap returns the cause.
func (e FileError) Unwrap() error { return e.Err }

// fault says what is wrong with the file.
func (e FileError) fault() error {
	name := Plain(e.Name)
	switch {
	case errors.Is(e.Err, workspace.ErrEmptyPath):
		return Invalidf("The path of the file is empty.")
	case errors.Is(e.Err, workspace.ErrOutside):
		return toolgroups.Errorf(toolgroups.CodeDenied, "'%s' is outside the workspace. Use a path inside it.", name)
	case errors.Is(e.Err, fs.ErrPermission):
		return toolgroups.Errorf(toolgroups.CodeDenied, "'%s' may not be used.", name)
	case errors.Is(e.Err, fs.ErrNotExist):
		return toolgroups.Errorf(CodeFileNotFound, "There is no file '%s' in the workspace.", name)
	case errors.Is(e.Err, workspace.ErrNotFile):
		return Invalidf("'%s' is not a file.", name)
	case errors.Is(e.Err, workspace.ErrTooLarge):
		return Invalidf("'%s' is larger than the limit of %d bytes.", name, MaxFile)
	}
	return toolgroups.Errorf(toolgroups.CodeExecution, "'%s' could not be used: %s.", name, Plain(hostless(e.Err).Error()))
}

// hostless is a file error without the path on the host.
func hostless(err error) error {
	if at, ok := errors.AsType[*fs.PathError](err); ok {
		return at.Err
	}
	if at, ok := errors.AsType[*os.LinkError](err); ok {
		return at.Err
	}
	return err
}
