package pdf

import (
	"errors"
	"fmt"

	pdfiumerrors "github.com/klippa-app/go-pdfium/errors"
)

// setup is the first message to the child, which has the document as file descriptor 3. The child
// replies twice: when PDFium has started, and when the document is open.
type setup struct {
	CacheDir  string `json:"cache_dir"`
	MaxMemory int64  `json:"max_memory"`
	MaxFile   int64  `json:"max_file"`
}

// Requests to the child.
const (
	opMeta = "meta"
	opText = "text"
	opPage = "page"
	// opFiles requests the names of the attached files.
	opFiles = "files"
)

// request requests a part of the document from the child.
type request struct {
	Operation string `json:"ask"`
	Tag       string `json:"tag,omitempty"`
	// Page counts from 1; Limit is in characters or pixels.
	Page  int `json:"page,omitempty"`
	Limit int `json:"limit,omitempty"`
	DPI   int `json:"dpi,omitempty"`
}

// reply is a message from the child.
type reply struct {
	// Fault and Text are the error, if any: a key of errorsByName or otherFault, and the error's text.
	Fault string `json:"fault,omitempty"`
	Text  string `json:"text,omitempty"`
	// Data is a text or a picture. If More is set, the next message continues it.
	Data []byte `json:"data,omitempty"`
	More bool   `json:"more,omitempty"`
	// Count is the number of pages of the document or characters of a page.
	Count int `json:"count,omitempty"`
	// XFA is set if the document is a form that PDFium cannot show.
	XFA bool `json:"xfa,omitempty"`
	// Sum is the [toolgroups.SumOf] the document, as it was opened.
	Sum string `json:"sum,omitempty"`
	// Width, Height and DPI describe a picture.
	Width  int `json:"width,omitempty"`
	Height int `json:"height,omitempty"`
	DPI    int `json:"dpi,omitempty"`
}

// maxData bounds the data in one message, in bytes.
const maxData = 1 << 20

// Names of errors: PDFium did not start, and any error that is not in errorsByName.
const (
	startFault = "start"
	otherFault = "other"
)

// errorsByName are the errors that the parent distinguishes, by their names in messages.
var errorsByName = map[string]error{
	startFault: errStart,
	"password": pdfiumerrors.ErrPassword,
	"security": pdfiumerrors.ErrSecurity,
	"format":   pdfiumerrors.ErrFormat,
	"file":     pdfiumerrors.ErrFile,
	"page":     pdfiumerrors.ErrPage,
}

// errorReply returns the reply for an error.
func errorReply(err error) reply {
	for name, fault := range errorsByName {
		if errors.Is(err, fault) {
			return reply{Fault: name, Text: err.Error()}
		}
	}
	return reply{Fault: otherFault, Text: err.Error()}
}

// toError returns the error in a reply, or nil.
func (r reply) toError() error {
	if r.Fault == "" {
		return nil
	}
	if fault, ok := errorsByName[r.Fault]; ok {
		return fmt.Errorf("%w: %s", fault, r.Text)
	}
	return errors.New(r.Text)
}
