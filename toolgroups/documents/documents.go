// Package documents is the group of tools for office files: they read documents in parts, search
// them, and write DOCX and XLSX.
//
// Each file is read in a child process (see package sandbox): the program starts itself with
// [ChildArgument], and the child runs [Serve]. A damaged or malicious file can at worst crash the
// child that reads it. The child has no access to the network or to other files, has bounded
// memory, and is killed when the call times out.
package documents

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"path"
	"strings"

	"oneclaw/internal/markdown"
	"oneclaw/internal/named"
	"oneclaw/internal/sandbox"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/files"
)

// Error codes of these tools.
const (
	CodeDocument    = "document_error"
	codeInvalidPart = "invalid_part"
)

const (
	// maxFileSize bounds a file that is read, in bytes.
	maxFileSize = 50 << 20
	// maxParallel bounds the documents read in parallel; other calls wait.
	maxParallel = 2
)

//go:embed documents.json
var manifests embed.FS

// Documents holds the tools.
type Documents struct {
	command []string
	slots   chan struct{}
	log     *slog.Logger
}

// New makes the tools and starts no process. If a child ends without an answer, the reason is
// logged. A nil log discards it.
func New(log *slog.Logger) (*Documents, error) {
	command, err := sandbox.Command(ChildArgument)
	if err != nil {
		return nil, fmt.Errorf("documents: %w", err)
	}
	return &Documents{command: command, slots: make(chan struct{}, maxParallel), log: cmp.Or(log, slog.New(slog.DiscardHandler))}, nil
}

// Group returns the three tools.
func (d *Documents) Group() (toolgroups.Group, error) {
	return toolgroups.ReadGroup(manifests, "documents", map[string]toolgroups.Handler{
		"read_document":   toolgroups.TypedHandler(d.read),
		"search_document": toolgroups.TypedHandler(d.search),
		"write_document":  toolgroups.TypedHandler(d.write),
	})
}

type readArgs struct {
	Path string `json:"path"`
	Part string `json:"part"`
}

func (d *Documents) read(ctx context.Context, call toolgroups.Call, in readArgs) (toolgroups.Result, error) {
	return d.runTask(ctx, call, in.Path, task{Part: in.Part, Inline: files.InlineLimit(call.Scope)})
}

type searchArgs struct {
	Path  string `json:"path"`
	Query string `json:"query"`
}

func (d *Documents) search(ctx context.Context, call toolgroups.Call, in searchArgs) (toolgroups.Result, error) {
	if strings.TrimSpace(in.Query) == "" {
		return toolgroups.Result{}, toolgroups.Errorf(toolgroups.CodeInvalid, "'query' is blank. Give words to look for.")
	}
	return d.runTask(ctx, call, in.Path, task{Query: in.Query})
}

// runTask runs a task on a file in a child process.
func (d *Documents) runTask(ctx context.Context, call toolgroups.Call, name string, t task) (toolgroups.Result, error) {
	f, rel, _, err := files.Open(call.Scope, name, maxFileSize)
	if err != nil {
		return toolgroups.Result{}, files.ToolError(name, err, maxFileSize, CodeDocument)
	}
	defer func() { _ = f.Close() }() // The file is only read.
	if err := named.AcquireSlot(ctx, d.slots); err != nil {
		return toolgroups.Result{}, err
	}
	defer func() { <-d.slots }()
	child, err := sandbox.Start(ctx, d.command, f)
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("documents: start: %w", err)
	}
	t.Name = files.SingleLine(path.Base(rel))
	var r report
	err = errors.Join(child.Send(t), child.Receive(&r))
	var kept []keptFile
	if err == nil {
		kept, err = receiveFiles(child, r.Files)
	}
	exit := child.End()
	switch {
	case ctx.Err() != nil:
		return toolgroups.Result{}, ctx.Err()
	case err != nil:
		d.log.Warn("a document could not be read", "err", errors.Join(err, exit))
		return toolgroups.Result{}, toolgroups.Errorf(CodeDocument,
			"'%s' could not be read: it is damaged, or takes more time or memory than allowed. Ask for it in another format or in parts.", t.Name)
	case r.Code != "":
		return toolgroups.Result{}, toolgroups.Errorf(r.Code, "%s", r.Text)
	}
	res := toolgroups.Result{Text: r.Text}
	if r.Mail {
		res.Origin = toolgroups.OriginMail
	}
	if len(kept) == 0 { // names of saved files are in part the model's
		res.Read = r.Sum
	}
	for i, f := range kept {
		to := path.Join("mail-attachments", strings.TrimSuffix(path.Base(rel), path.Ext(rel)), wording.SafeFileName(f.name, i+1))
		if to, err = files.Save(call.Scope, freeCopy(call.Scope, to, f.data), f.data); err != nil {
			return toolgroups.Result{}, files.ToolError(f.name, err, maxFileSize, CodeDocument)
		}
		res.Text += fmt.Sprintf("\n[Saved: %s]", to)
	}
	return res, nil
}

// freeCopy returns the first of name, name-2, name-3 and so on that no file has, or one with this content.
func freeCopy(scope toolgroups.Scope, name string, data []byte) string {
	ext := path.Ext(name)
	for n, free := 2, name; ; n++ {
		f, _, size, err := files.Open(scope, free, math.MaxInt64)
		if err != nil {
			return free
		}
		old, err := io.ReadAll(io.LimitReader(f, size))
		_ = f.Close() // it is only read
		if err == nil && bytes.Equal(old, data) {
			return free
		}
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
	}
}

type writeArgs struct {
	Path    string `json:"path"`
	Content string `json:"content"`
}

func (d *Documents) write(_ context.Context, call toolgroups.Call, in writeArgs) (toolgroups.Result, error) {
	if len(in.Content) > markdown.MaxInput {
		return toolgroups.Result{}, toolgroups.Errorf(CodeDocument, "The content has %d bytes, more than the limit of %d. Write several files.", len(in.Content), markdown.MaxInput)
	}
	var data []byte
	var err error
	note := ""
	switch strings.ToLower(path.Ext(in.Path)) {
	case ".docx":
		data, err = markdown.Parse(in.Content).DOCX()
	case ".xlsx":
		var left int
		if data, left, err = markdown.Parse(in.Content).XLSX(); errors.Is(err, markdown.ErrNoTable) {
			return toolgroups.Result{}, toolgroups.Errorf(CodeDocument, "There is no table in 'content'. Write tables of Markdown, each below a heading that names its sheet.")
		}
		if left > 0 {
			note = fmt.Sprintf("\n[%d paragraphs that are in no table were left out.]", left)
		}
	default:
		return toolgroups.Result{}, toolgroups.OwnErrorf(CodeDocument, "'%s' has to end in .docx or .xlsx. Other text is written with write_file.", files.SingleLine(in.Path))
	}
	if err != nil {
		return toolgroups.Result{}, fmt.Errorf("documents: write: %w", err)
	}
	name := freeName(call.Scope, in.Path)
	if name != in.Path {
		note += fmt.Sprintf("\n[The file '%s' that was there is kept.]", files.SingleLine(in.Path))
	}
	rel, err := files.Save(call.Scope, name, data)
	if err != nil {
		return toolgroups.Result{}, files.ToolError(in.Path, err, maxFileSize, CodeDocument)
	}
	return toolgroups.Result{
		Text:  fmt.Sprintf("Saved and sent: %s\nFile size: %d bytes%s", rel, len(data), note),
		Files: []toolgroups.File{{Path: rel}},
	}, nil
}

// freeName returns the first of name, name-2, name-3 and so on that no file has, or only a file that
// write_document has made and may replace. It returns an invalid name unchanged, which [files.Save]
// refuses.
func freeName(scope toolgroups.Scope, name string) string {
	ext := path.Ext(name)
	free := name
	for n := 2; isOriginal(scope, free); n++ {
		free = fmt.Sprintf("%s-%d%s", strings.TrimSuffix(name, ext), n, ext)
	}
	return free
}

// isOriginal reports whether a file exists that write_document has not made.
func isOriginal(scope toolgroups.Scope, name string) bool {
	f, _, _, err := files.Open(scope, name, math.MaxInt64)
	if err != nil {
		return false
	}
	defer func() { _ = f.Close() }() // The file is only read.
	head, err := io.ReadAll(io.LimitReader(f, 1_000))
	return err != nil || !markdown.MadeHere(head)
}
