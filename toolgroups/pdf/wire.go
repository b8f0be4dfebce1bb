package pdf

import (
	"errors"
	"fmt"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
)

// setup is the first message to the child, which has the document as descriptor 3. It is
// answered twice: when PDFium has started, and when the document is open.
type setup struct {
	CacheDir  string `json:"cache_dir"`
	MaxMemory int64  `json:"max_memory"`
	MaxFile   int64  `json:"max_file"`
}

// What the child is asked for.
const (
	askMeta = "meta"
	askText = "text"
	askPage = "page"
)

// request asks the child for something of its document.
type request struct {
	Ask string `json:"ask"`
	Tag string `json:"tag,omitempty"`
	// Page is the number of a page, Limit how many characters or pixels it may have.
	Page  int `json:"page,omitempty"`
	Limit int `json:"limit,omitempty"`
	DPI   int `json:"dpi,omitempty"`
}

// reply is a message of the child.
type reply struct {
	// Fault and Text say why there is no result: a name of faults, and the error.
	Fault string `json:"fault,omitempty"`
	Text  string `json:"text,omitempty"`
	// Data is a text or a picture; More says that the next message goes on with it.
	Data []byte `json:"data,omitempty"`
	More bool   `json:"more,omitempty"`
	// Count is how many pages the document or characters a page has.
	Count int `json:"count,omitempty"`
	// Width, Height and DPI are those of a picture.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	DPI    int `json:"dpi,omitempty"`
}

// maxData is how much of a result one message carries, in bytes.
const maxData = 1 << 20

// Names of faults: that PDFium did not start, and all that are not in faults.
const (
	startFault = "start"
	otherFault = "other"
)

// faults are the errors that the parent tells apart, by the names that go over the wire.
var faults = map[string]error{
	startFault: errStart,
	"password": pdfiumerrors.ErrPassword,
	"security": pdfiumerrors.ErrSecurity,
	"format":   pdfiumerrors.ErrFormat,
	"file":     pdfiumerrors.ErrFile,
	"page":     pdfiumerrors.ErrPage,
}

// failed is the reply that carries an error.
func failed(err error) reply {
	for name, fault := range faults {
		if errors.Is(err, fault) {
			return reply{Fault: name, Text: err.Error()}
		}
	}
	return reply{Fault: otherFault, Text: err.Error()}
}

// err returns the error that a reply carries.
func (r reply) err() error {
	if r.Fault == "" {
		return nil
	}
	if fault, ok := faults[r.Fault]; ok {
		return fmt.Errorf("%w: %s", fault, r.Text)
	}
	return errors.New(r.Text)
}
