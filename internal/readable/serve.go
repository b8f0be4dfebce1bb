package readable

import (
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"time"

	"oneclaw/internal/sandbox"
)

// Argument starts the child: a program started with it as its only argument must call [Serve]
// before anything else.
const Argument = "readable-child"

const (
	// documentFile is the document's file descriptor in the child.
	documentFile = 3
	// gcMemory is the memory limit that makes a child's garbage collector work harder; above
	// maxMemory the child ends. In bytes that Go has taken from the system.
	gcMemory  = 48 << 20
	maxMemory = 80 << 20
	// maxMapped bounds the bytes that a child may map, which are more than it uses: Go maps in large steps.
	maxMapped = 512 << 20
	// maxTime bounds the processor time of a child; the parent usually ends it sooner.
	maxTime = 30 * time.Second
)

// The conversions of a document.
const (
	formPage  = "page"
	formWhole = "whole"
	formText  = "text"
)

// task is the first message to the child, which has the document as descriptor 3.
type task struct {
	Form        string `json:"form"`
	ContentType string `json:"content_type,omitempty"`
	URL         string `json:"url,omitempty"`
}

// Serve reads one document for the parent, with requests on in and answers on out. It first
// confines this process for good, and ends it when in ends or the document takes too much
// memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: maxMapped, CPU: maxTime}, in, out)
	if err != nil {
		return fmt.Errorf("readable: %w", err)
	}
	sandbox.LimitMemory(gcMemory, maxMemory, func() {
		_ = parent.SendFault(fmt.Sprintf("reading it takes more memory than the limit of %d MiB", maxMemory>>20))
	})
	text, err := t.convert(os.NewFile(documentFile, "document"))
	if err != nil {
		return parent.SendFault(err.Error())
	}
	return parent.SendAnswer([]byte(text))
}

func (t task) convert(document io.Reader) (string, error) {
	data, err := io.ReadAll(document)
	if err != nil {
		return "", err
	}
	text := Decode(data, t.ContentType)
	switch t.Form {
	case formPage:
		at, err := url.Parse(t.URL)
		if err != nil {
			return "", err
		}
		return convertPage(strings.NewReader(text), at)
	case formWhole:
		return Convert(strings.NewReader(text))
	}
	return text, nil
}
