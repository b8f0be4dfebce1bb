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

// Argument is what the child is started with: a program that is given it as its only
// argument must call [Serve] before it does anything else.
const Argument = "readable-child"

const (
	// documentFile is the descriptor of the document in the child.
	documentFile = 3
	// frugal is how much memory a child takes before it collects its garbage at any cost, and
	// maxMemory ends it: in bytes, as Go counts what it has of the system.
	frugal    = 48 << 20
	maxMemory = 80 << 20
	// mapRoom is how much a child may map at all. Go maps in large steps and uses them as it
	// needs them.
	mapRoom = 512 << 20
	// maxTime bounds the processor time of a child, which the parent ends sooner.
	maxTime = 30 * time.Second
	// maxPart is how much of a text one message carries, in bytes.
	maxPart = 256 << 10
)

// Forms are what a document can become.
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

// reply is a message of the child: a part of the text, nothing at its end, or why there is none.
type reply struct {
	Data  []byte `json:"data,omitempty"`
	Fault string `json:"fault,omitempty"`
}

// Serve reads one document for the parent, which asks over in and is answered over out. It
// bounds what this process may use, for good, before it looks at the document, and ends it
// when in does, or when the document takes too much memory.
func Serve(in io.Reader, out io.Writer) error {
	t, parent, err := sandbox.ServeTask[task](sandbox.Limits{Memory: mapRoom, CPU: maxTime}, in, out)
	if err != nil {
		return fmt.Errorf("readable: %w", err)
	}
	sandbox.LimitMemory(frugal, maxMemory, func() {
		_ = parent.Send(reply{Fault: fmt.Sprintf("reading it takes more memory than the limit of %d MiB", maxMemory>>20)})
	})
	text, err := t.read(os.NewFile(documentFile, "document"))
	if err != nil {
		return parent.Send(reply{Fault: err.Error()})
	}
	for from := 0; from < len(text); from += maxPart {
		if err := parent.Send(reply{Data: []byte(text[from:min(from+maxPart, len(text))])}); err != nil {
			return err
		}
	}
	return parent.Send(reply{})
}

func (t task) read(document io.Reader) (string, error) {
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
		return markdown(strings.NewReader(text), at)
	case formWhole:
		return Convert(strings.NewReader(text))
	}
	return text, nil
}
