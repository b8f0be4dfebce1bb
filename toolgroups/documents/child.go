package documents

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"oneclaw/internal/office"
	"oneclaw/internal/sandbox"
)

// Argument starts the child: a program started with it as its only argument must call [Serve]
// before anything else.
const Argument = "document-child"

const (
	// documentFile is the document's file descriptor in the child.
	documentFile = 3
	// gcMemory is the memory limit that makes a child's garbage collector work harder; above
	// maxMemory the child ends. In bytes.
	gcMemory  = 96 << 20
	maxMemory = 160 << 20
	// maxMapped bounds what a child may map, which is more than it uses: Go maps in large steps.
	maxMapped = 512 << 20
	// maxReading bounds reading a document: the answer is what was read by then. maxTime bounds the
	// processor time of a child; the parent usually ends it sooner.
	maxReading = 20 * time.Second
	maxTime    = 45 * time.Second
)

// task is the request to the child: a part to read or words to find in the document (descriptor
// 3).
type task struct {
	Name  string `json:"name"`
	Part  string `json:"part,omitempty"`
	Query string `json:"query,omitempty"`
}

// report is the child's answer: a text, or an error if there is a code.
type report struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
}

// Serve reads one document for the parent, with requests on in and answers on out. It first
// confines this process for good, and ends it when in ends or the document takes too much
// memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: maxMapped, CPU: maxTime}, in, out)
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	sandbox.LimitMemory(gcMemory, maxMemory, func() {
		_ = parent.Send(t.refuse(fmt.Sprintf("takes more memory than the limit of %d MiB. Ask for it in parts, or as CSV or text", maxMemory>>20)))
	})
	file := os.NewFile(documentFile, "document")
	info, err := file.Stat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), maxReading)
	defer cancel()
	return parent.Send(t.answer(ctx, file, info.Size()))
}

// refuse reports what is wrong with the document.
func (t task) refuse(why string) report {
	return report{Code: CodeDocument, Text: fmt.Sprintf("'%s' %s.", t.Name, why)}
}

// answer reads the document until ctx ends.
func (t task) answer(ctx context.Context, file io.ReaderAt, size int64) report {
	if t.Query != "" {
		return t.find(ctx, file, size)
	}
	want, err := parseSelection(t.Part)
	if err != nil {
		return report{Code: CodeInvalidPart, Text: err.Error()}
	}
	x := &excerpt{want: want, over: ctx.Err, limit: resultLimit(want)}
	format, err := office.Read(file, size, t.Name, x)
	if err != nil && !errors.Is(err, ctx.Err()) {
		if len(x.sections) == 0 || x.used == 0 {
			return t.refuse(err.Error())
		}
		x.trouble = err.Error()
	}
	x.late = ctx.Err() != nil
	return x.report(t, format)
}
