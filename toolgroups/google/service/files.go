package service

import (
	"errors"
	"path"
	"path/filepath"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// MaxFile bounds a file that is read from the workspace, in bytes.
const MaxFile = 50 << 20

// ReadFile returns the content of a file in the workspace and its base name.
func (c *Conn) ReadFile(name string) (data []byte, base string, err error) {
	err = files.WithWorkspace(c.Scope, func(root *workspace.Root) error {
		data, err = root.ReadFile(name, MaxFile)
		return err
	})
	if err != nil {
		return nil, "", FileError(name, err)
	}
	return data, filepath.Base(name), nil
}

// SaveFile writes a file in the workspace and returns its path there.
func (c *Conn) SaveFile(name string, data []byte) (string, error) {
	rel, err := files.Save(c.Scope, name, data)
	if err != nil {
		return "", FileError(name, err)
	}
	return rel, nil
}

// Deliver encodes the result of an operation and adds the saved file at rel for the chat.
func (c *Conn) Deliver(out any, rel string) (any, error) {
	res, err := c.encodeResult(out)
	if err != nil {
		return nil, err
	}
	res.Files = []toolgroups.File{{Path: rel, Caption: path.Base(rel)}}
	return res, nil
}

// FileError returns the error for a file that the model named.
func FileError(name string, err error) error {
	code := toolgroups.CodeExecution
	if errors.Is(err, workspace.ErrNotFile) || errors.Is(err, workspace.ErrTooLarge) {
		code = toolgroups.CodeInvalid
	}
	return files.ToolError(name, workspace.Cause(err), MaxFile, code)
}
