package core

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"unicode/utf8"

	"golang.org/x/text/encoding"
	"golang.org/x/text/encoding/htmlindex"
	"golang.org/x/text/encoding/unicode"

	"oneclaw/internal/workspace"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// maxFile bounds the data that one call reads or writes, in bytes.
const maxFile = 1 << 20

type readArgs struct {
	Path     string `json:"path"`
	Encoding string `json:"encoding"`
}

func (t *tools) readFile(_ context.Context, call toolgroups.Call, in readArgs) (toolgroups.Result, error) {
	decoder, err := decoderOf(in.Encoding)
	if err != nil {
		return toolgroups.Result{}, err
	}
	var data []byte
	err = files.WithWorkspace(call.Scope, func(root *workspace.Root) error {
		data, err = root.ReadFile(in.Path, maxFile)
		return err
	})
	if err != nil {
		return toolgroups.Result{}, fileError(in.Path, err)
	}
	sum := toolgroups.SumOf(data)
	if decoder != nil {
		if data, err = decoder.Bytes(data); err != nil {
			return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution,
				"'%s' is not text in the encoding '%s'.", files.SingleLine(in.Path), files.SingleLine(in.Encoding))
		}
	}
	if !utf8.Valid(data) || strings.IndexByte(string(data), 0) >= 0 {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution,
			"'%s' is not UTF-8 text. If it is text in another encoding, name that in 'encoding'.", files.SingleLine(in.Path))
	}
	return toolgroups.Result{Text: string(data), Read: sum}, nil
}

// decoderOf returns the decoder for an encoding by its name on web pages; nil for UTF-8.
func decoderOf(name string) (*encoding.Decoder, error) {
	name = strings.TrimSpace(name)
	if name == "" || strings.EqualFold(name, "utf-8") || strings.EqualFold(name, "utf8") {
		return nil, nil
	}
	if strings.EqualFold(name, "utf-16") {
		return unicode.UTF16(unicode.LittleEndian, unicode.UseBOM).NewDecoder(), nil
	}
	e, err := htmlindex.Get(name)
	if err != nil {
		return nil, toolgroups.Errorf(toolgroups.CodeExecution,
			"Unknown encoding '%s'. Use a name such as UTF-8, UTF-16, ISO-8859-1 or windows-1251.", files.SingleLine(name))
	}
	return e.NewDecoder(), nil
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
	Mode    string `json:"mode"`
}

func (t *tools) writeFile(_ context.Context, call toolgroups.Call, in writeArgs) (toolgroups.Result, error) {
	if len(in.Content) > maxFile {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeExecution,
			"The content has %d bytes, more than the limit of %d. Write it in parts with mode append.", len(in.Content), maxFile)
	}
	mode := "overwrite"
	if in.Mode == "append" {
		mode = in.Mode
	}
	var rel string
	err := files.WithWorkspace(call.Scope, func(root *workspace.Root) (err error) {
		if rel, err = root.Rel(in.Path); err != nil {
			return err
		}
		return root.WriteFile(rel, []byte(in.Content), mode == "append")
	})
	if err != nil {
		return toolgroups.Result{}, fileError(in.Path, err)
	}
	return toolgroups.Result{Text: fmt.Sprintf("Wrote %d bytes to %s (%s)", len(in.Content), filepath.ToSlash(rel), mode)}, nil
}

func fileError(path string, err error) error {
	text, own := files.Explain(path, err, maxFile)
	return &toolgroups.Error{Code: toolgroups.CodeExecution, Message: text, Own: own}
}
