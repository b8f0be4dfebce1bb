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

// Argument is what the child is started with: a program that is given it as its only
// argument must call [Serve] before it does anything else.
const Argument = "document-child"

const (
	// documentFile is the descriptor of the document in the child.
	documentFile = 3
	// frugal is how much memory a child takes before it collects its garbage at any cost, and
	// maxMemory ends it, in bytes.
	frugal    = 96 << 20
	maxMemory = 160 << 20
	// mapRoom is how much a child may map at all. Go maps in large steps and uses them as it
	// needs them.
	mapRoom = 512 << 20
	// enough is how long a document is read: what was read by then is the answer. maxTime bounds
	// the processor time of a child, which the parent ends sooner.
	enough  = 20 * time.Second
	maxTime = 45 * time.Second
)

// task is the message to the child, which has the document as descriptor 3: a part to read, or words to find.
type task struct {
	Name  string `json:"name"`
	Part  string `json:"part,omitempty"`
	Query string `json:"query,omitempty"`
}

// report is the answer: a text, which is that of an error where there is a code.
type report struct {
	Text string `json:"text"`
	Code string `json:"code,omitempty"`
}

// Serve reads one document for the parent, which asks over in and is answered over out. It bounds
// what this process may use, for good, before it looks at the document, and ends it when in does,
// or when the document takes too much memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: mapRoom, CPU: maxTime}, in, out)
	if err != nil {
		return fmt.Errorf("documents: %w", err)
	}
	sandbox.LimitMemory(frugal, maxMemory, func() {
		_ = parent.Send(t.refuse(fmt.Sprintf("takes more memory than the limit of %d MiB. Ask for it in parts, or as CSV or text", maxMemory>>20)))
	})
	file := os.NewFile(documentFile, "document")
	info, err := file.Stat()
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), enough)
	defer cancel()
	return parent.Send(t.answer(ctx, file, info.Size()))
}

// refuse says what is wrong with the document.
func (t task) refuse(why string) report {
	return report{Code: CodeDocument, Text: fmt.Sprintf("'%s' %s.", t.Name, why)}
}

// answer reads the document, as long as ctx lasts.
func (t task) answer(ctx context.Context, file io.ReaderAt, size int64) report {
	if t.Query != "" {
		return t.find(ctx, file, size)
	}
	want, err := parseSelection(t.Part)
	if err != nil {
		return report{Code: CodeInvalidPart, Text: err.Error()}
	}
	x := &excerpt{want: want, over: ctx.Err, limit: roomFor(want)}
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
