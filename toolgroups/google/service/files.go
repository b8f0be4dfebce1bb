package service

import (
	"errors"
	"io/fs"
	"path"
	"path/filepath"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// CodeFileNotFound is the code of an error about a file of the workspace.
const CodeFileNotFound = "file_not_found"

// MaxFile bounds a file that is uploaded or attached, in bytes.
const MaxFile = 50 << 20

// Read returns the bytes of a file of the workspace and its name.
func (c *Conn) Read(name string) (data []byte, base string, err error) {
	err = files.Use(c.Scope, func(root *workspace.Root) error {
		data, err = root.ReadFile(name, MaxFile)
		return err
	})
	if err != nil {
		return nil, "", FileError{name, err}
	}
	return data, filepath.Base(name), nil
}

// Save writes a file of the workspace and returns its path there.
func (c *Conn) Save(name string, data []byte) (string, error) {
	rel, err := files.Save(c.Scope, name, data)
	if err != nil {
		return "", FileError{name, err}
	}
	return rel, nil
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
	code := toolgroups.CodeExecution
	switch {
	case errors.Is(e.Err, workspace.ErrEmptyPath), errors.Is(e.Err, workspace.ErrNotFile), errors.Is(e.Err, workspace.ErrTooLarge):
		code = toolgroups.CodeInvalid
	case errors.Is(e.Err, workspace.ErrOutside), errors.Is(e.Err, fs.ErrPermission):
		code = toolgroups.CodeDenied
	case errors.Is(e.Err, fs.ErrNotExist):
		code = CodeFileNotFound
	}
	return toolgroups.Errorf(code, "%s", files.Explain(e.Name, workspace.Cause(e.Err), MaxFile))
}
