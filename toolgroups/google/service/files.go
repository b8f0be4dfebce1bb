package service

import (
	"errors"
	"path"
	"path/filepath"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// MaxFile bounds a file that is uploaded or attached, in bytes.
const MaxFile = 50 << 20

// Read returns the content of a file of the workspace and its base name.
func (c *Conn) Read(name string) (data []byte, base string, err error) {
	err = files.WithWorkspace(c.Scope, func(root *workspace.Root) error {
		data, err = root.ReadFile(name, MaxFile)
		return err
	})
	if err != nil {
		return nil, "", FileFault(name, err)
	}
	return data, filepath.Base(name), nil
}

// Save writes a file of the workspace and returns its path there.
func (c *Conn) Save(name string, data []byte) (string, error) {
	rel, err := files.Save(c.Scope, name, data)
	if err != nil {
		return "", FileFault(name, err)
	}
	return rel, nil
}

// Deliver returns the result out with a saved file for the chat.
func (c *Conn) Deliver(out any, rel string) (any, error) {
	res, err := c.result(out)
	if err != nil {
		return nil, err
	}
	res.Files = []toolgroups.File{{Path: rel, Caption: path.Base(rel)}}
	return res, nil
}

// FileFault says what is wrong with a file that the model named.
func FileFault(name string, err error) error {
	code := toolgroups.CodeExecution
	if errors.Is(err, workspace.ErrNotFile) || errors.Is(err, workspace.ErrTooLarge) {
		code = toolgroups.CodeInvalid
	}
	return files.ToolError(name, workspace.Cause(err), MaxFile, code)
}
