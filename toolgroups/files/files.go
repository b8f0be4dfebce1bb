// Package files has functions that tools share for files in the workspace: they open and save
// files, explain errors to the model, and save texts that are too long for a result.
package files

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"oneclaw/internal/wording"
	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
)

const (
	// MaxInline bounds the text of a result without its notices, in characters.
	MaxInline = toolgroups.MaxText - 1_000 // as InlineLimit returns for a large context
	// maxLine bounds the result of SingleLine, in characters.
	maxLine = 200
)

// WithWorkspace opens the workspace of a call, runs f with it and closes it.
func WithWorkspace(scope toolgroups.Scope, f func(*workspace.Root) error) (err error) {
	root, err := workspace.OpenWithin(scope.Workspace, scope.Quota, scope.Reserve)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, root.Close()) }()
	return f(root)
}

// Open opens a file of at most limit bytes. rel is its path in the workspace, with slashes.
func Open(scope toolgroups.Scope, name string, limit int64) (f *os.File, rel string, size int64, err error) {
	err = WithWorkspace(scope, func(root *workspace.Root) error {
		if rel, err = root.Rel(name); err != nil {
			return err
		}
		if f, err = root.Open(rel); err != nil {
			return err
		}
		info, err := f.Stat()
		if err == nil && info.Size() > limit {
			err = workspace.ErrTooLarge
		}
		if err != nil {
			return errors.Join(err, f.Close())
		}
		size = info.Size()
		return nil
	})
	return f, filepath.ToSlash(rel), size, err
}

// Save atomically replaces a file and returns its path in the workspace, with slashes. The file survives a
// crash of the machine.
func Save(scope toolgroups.Scope, name string, data []byte) (rel string, err error) {
	err = WithWorkspace(scope, func(root *workspace.Root) error {
		if rel, err = root.Rel(name); err != nil {
			return err
		}
		_, err = root.WriteFrom(rel, bytes.NewReader(data))
		return err
	})
	return filepath.ToSlash(rel), err
}

// ReadHostFile reads a regular file of at most limit bytes, anywhere on the host.
func ReadHostFile(path string, limit int64) (data []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, workspace.Cause(err)
	}
	if !info.Mode().IsRegular() {
		return nil, errors.New("not a regular file")
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, workspace.Cause(err)
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	if data, err = io.ReadAll(io.LimitReader(f, limit+1)); err != nil {
		return nil, workspace.Cause(err)
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("larger than %d bytes", limit)
	}
	return data, nil
}

// SaveNew writes a file under a new name that contains the time, and returns its path.
func SaveNew(scope toolgroups.Scope, prefix, suffix string, now time.Time, data []byte) (string, error) {
	return Save(scope, timestampedName(prefix, suffix, now), data)
}

func timestampedName(prefix, suffix string, now time.Time) string {
	return fmt.Sprintf("%s-%s-%s%s", prefix, now.UTC().Format("20060102-150405"), rand.Text()[:6], suffix)
}

// InlineLimit bounds the text of a result without its notices, in characters: [MaxInline], or less for a
// model with a small context.
func InlineLimit(scope toolgroups.Scope) int { return scope.MaxText() - min(1_000, scope.MaxText()/8) }

// secretMargin is how many bytes a shortened text is read further than it is shown, so that a secret at its end is
// masked whole.
const secretMargin = 16 << 10

// Shorten shortens a text to limit characters, or to the limit of a result if that is less or limit is 0.
// A longer text is cut, after a paragraph if one ends in its second half, else with …, and ends with a line that names
// the file with the whole text. kind is part of the name of that file.
func Shorten(scope toolgroups.Scope, kind, text string, limit int, now time.Time) string {
	short, _ := ShortenReader(scope, kind, strings.NewReader(text), limit, now) // a string is read without errors
	return short
}

// ShortenReader is [Shorten] for a text that is not in memory. The error is the reader's.
func ShortenReader(scope toolgroups.Scope, kind string, text io.Reader, limit int, now time.Time) (string, error) {
	if limit <= 0 || limit > scope.MaxText() {
		limit = scope.MaxText()
	}
	// This many bytes have more than limit characters if the text does, also without the margin.
	enough := (limit+1)*utf8.UTFMax + secretMargin
	head, err := io.ReadAll(io.LimitReader(text, int64(enough)))
	if err != nil {
		return "", err
	}
	if _, rest := wording.SplitAt(string(head), limit); rest == "" {
		return string(head), nil
	}
	limit = min(limit, InlineLimit(scope))
	shown := scope.Masked(string(head))
	if len(head) == enough {
		shown = strings.ToValidUTF8(shown[:max(0, len(shown)-secretMargin)], "") // a secret may be cut at the end
	}
	first := wording.Clip(shown, limit) // with … an address that is cut does not end there
	if end := strings.LastIndex(first, "\n\n"); end > len(first)/2 {
		first = first[:end]
	}
	var total charCounter
	whole := io.TeeReader(io.MultiReader(bytes.NewReader(head), text), &total)
	name := timestampedName("tool-output/"+kind, ".txt", now)
	where := "the rest was not kept"
	err = WithWorkspace(scope, func(root *workspace.Root) error {
		_, err := root.WriteFrom(name, whole)
		return err
	})
	if err == nil {
		where = "the whole is in the file " + name
	} else if errors.Is(err, workspace.ErrFull) || errors.Is(err, workspace.ErrDiskFull) {
		where += ": " + err.Error()
	}
	if _, err := io.Copy(io.Discard, whole); err != nil {
		return "", err
	}
	return fmt.Sprintf("%s\n\n[cut: the limit is %d of %d characters; %s]", strings.TrimRight(first, "\n"), limit, total, where), nil
}

// charCounter counts the characters of the UTF-8 written to it.
type charCounter int

// Write counts the bytes that begin a character.
func (c *charCounter) Write(data []byte) (int, error) {
	for _, b := range data {
		if utf8.RuneStart(b) {
			*c++
		}
	}
	return len(data), nil
}

// Explain explains an error about a file to the model that named it. limit is in bytes; own is as [toolgroups.Error.Own].
func Explain(name string, err error, limit int64) (text string, own bool) {
	name = SingleLine(name)
	switch {
	case errors.Is(err, workspace.ErrEmptyPath):
		return "The 'path' is empty. Give the path of a file in the workspace.", true
	case errors.Is(err, workspace.ErrOutside):
		return fmt.Sprintf("'%s' is outside the workspace. Use a relative path inside it.", name), true
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Sprintf("There is no file '%s' in the workspace.", name), true
	case errors.Is(err, workspace.ErrNotFile):
		return fmt.Sprintf("'%s' is not a file, or a part of the path is one.", name), true
	case errors.Is(err, workspace.ErrTooLarge):
		return fmt.Sprintf("'%s' is larger than the limit of %d bytes.", name, limit), true
	case errors.Is(err, fs.ErrPermission):
		return fmt.Sprintf("'%s' may not be used.", name), true
	}
	return fmt.Sprintf("'%s' could not be used: %v.", name, err), false
}

// codeNotFound is the code for a missing file.
const codeNotFound = "file_not_found"

// ToolError returns the text of [Explain] as an error. A path that is empty, not allowed, or names no
// file has its own code; defaultCode is the code of all other errors.
func ToolError(name string, err error, limit int64, defaultCode string) *toolgroups.Error {
	code := defaultCode
	switch {
	case errors.Is(err, workspace.ErrEmptyPath):
		code = toolgroups.CodeInvalid
	case errors.Is(err, workspace.ErrOutside), errors.Is(err, fs.ErrPermission):
		code = toolgroups.CodeDenied
	case errors.Is(err, fs.ErrNotExist):
		code = codeNotFound
	}
	text, own := Explain(name, err, limit)
	return &toolgroups.Error{Code: code, Message: text, Own: own}
}

// SingleLine joins the lines of a text, removes control characters, and shortens it to maxLine characters.
func SingleLine(text string) string {
	text = strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(text, ""))
	return wording.Clip(strings.Join(strings.Fields(text), " "), maxLine)
}
