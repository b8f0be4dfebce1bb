package documents

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"oneclaw/internal/sandbox"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/documents/office"
	"oneclaw/toolgroups/files"
)

// ChildArgument starts the child process: a program that is started with it as its only argument
// must call [Serve] before anything else.
const ChildArgument = "document-child"

const (
	// documentFD is the document's file descriptor in the child.
	documentFD = 3
	// gcMemoryLimit is the memory limit of a child's garbage collector. Above maxMemory the child
	// exits. Both are in bytes, and the document comes on top of them.
	gcMemoryLimit = 96 << 20
	maxMemory     = 160 << 20
	// maxMapped bounds the address space that a child may map. Go maps more than it uses.
	maxMapped = 512 << 20
	// readTimeout bounds reading a document; the result is the text read by then. maxCPUTime bounds
	// the processor time of a child. The parent usually kills it sooner.
	readTimeout = 20 * time.Second
	maxCPUTime  = 45 * time.Second
)

// task is the request to the child: a part to read or words to find in the document, which is file
// descriptor 3.
type task struct {
	Name  string `json:"name"`
	Part  string `json:"part,omitempty"`
	Query string `json:"query,omitempty"`
	// Inline is the limit of the result, in characters; 0 means [files.MaxInline].
	Inline int `json:"inline,omitempty"`
}

// report is the child's answer: a text, or an error if Code is set.
type report struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
	// Sum is the [toolgroups.SumOf] the document.
	Sum string `json:"sum,omitempty"`
	// Mail is true for a mail. Files are the names of files whose content follows, in messages of piece.
	Mail  bool     `json:"mail,omitempty"`
	Files []string `json:"files,omitempty"`
	kept  []keptFile
}

// piece is a part of a file that follows a report. The last one of a file has More unset.
type piece struct {
	Data []byte `json:"data"`
	More bool   `json:"more,omitempty"`
}

// maxPiece bounds the data of a piece, in bytes.
const maxPiece = 1 << 20

// send sends the report and the files behind it.
func (r report) send(parent *sandbox.Conn) error {
	for _, f := range r.kept {
		r.Files = append(r.Files, f.name)
	}
	if err := parent.Send(r); err != nil {
		return err
	}
	for _, f := range r.kept {
		for data := f.data; ; data = data[maxPiece:] {
			more := len(data) > maxPiece
			if err := parent.Send(piece{data[:min(len(data), maxPiece)], more}); err != nil {
				return err
			}
			if !more {
				break
			}
		}
	}
	return nil
}

// receiveFiles receives the files that follow a report.
func receiveFiles(child *sandbox.Process, names []string) ([]keptFile, error) {
	var out []keptFile
	size := 0
	for _, name := range names {
		f := keptFile{name: name}
		for p := (piece{More: true}); p.More; {
			p = piece{}
			if err := child.Receive(&p); err != nil {
				return nil, err
			}
			if size += len(p.Data); size > maxKept {
				return nil, errors.New("documents: the files are larger than allowed")
			}
			f.data = append(f.data, p.Data...)
		}
		out = append(out, f)
	}
	return out, nil
}

// Serve reads one document for the parent process. It reads the request from in and writes the
// answer to out. It first sandboxes this process irrevocably, and exits when in is closed or the
// document takes too much memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: maxMapped, CPU: maxCPUTime}, in, out)
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	data, err := sandbox.ReadFile(documentFD, maxFileSize)
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	size := int64(len(data))
	sandbox.LimitMemory(gcMemoryLimit+size, maxMemory+size, func() {
		_ = parent.Send(t.errorReport(fmt.Sprintf("takes more memory than the limit of %d MiB. Ask for it in parts, or as CSV or text", maxMemory>>20)))
	})
	ctx, cancel := context.WithTimeout(context.Background(), readTimeout)
	defer cancel()
	r := t.answer(ctx, bytes.NewReader(data), size)
	r.Sum = toolgroups.SumOf(data)
	return r.send(parent)
}

// errorReport returns an error about the document.
func (t task) errorReport(why string) report {
	return report{Code: CodeDocument, Text: fmt.Sprintf("'%s' %s.", t.Name, why)}
}

// answer reads or searches the document until ctx ends.
func (t task) answer(ctx context.Context, file io.ReaderAt, size int64) report {
	if t.Query != "" {
		return t.find(ctx, file, size)
	}
	want, err := parseSelection(t.Part)
	if err != nil {
		return report{Code: codeInvalidPart, Text: err.Error()}
	}
	x := &excerpt{want: want, checkTime: ctx.Err, limit: resultLimit(want, cmp.Or(t.Inline, files.MaxInline))}
	format, err := office.Read(file, size, t.Name, x)
	if err != nil && !errors.Is(err, ctx.Err()) {
		if len(x.sections) == 0 || x.usedChars == 0 {
			return t.errorReport(err.Error())
		}
		x.readError = err.Error()
	}
	x.timedOut = ctx.Err() != nil
	r := x.buildReport(t, format)
	r.Mail, r.kept = format.Name == "mail", x.kept
	return r
}
