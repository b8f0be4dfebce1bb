package office

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"strings"
)

// maxChunk bounds a document in a document, in bytes: it is read into memory.
const maxChunk = 10 << 20

// readChunk reads a document that a document contains as a part, such as the page of which a program
// made a Word document. What is wrong with it does not end the reading of the whole.
func (p *zipDocument) readChunk(name string) error {
	out := p.out
	err := p.open(name, func(from io.Reader) error {
		data, err := io.ReadAll(io.LimitReader(from, maxChunk+1))
		switch {
		case err != nil:
			return err
		case len(data) > maxChunk:
			return Refusal("is larger than the limit of 10 MiB")
		case out.inChunk:
			return Refusal("is a part of another such part")
		}
		if page := pageOfArchive(data); page != nil {
			name, data = "page.html", page
		}
		out.inChunk = true
		defer func() { out.inChunk = false }()
		_, err = read(bytes.NewReader(data), int64(len(data)), name, out)
		return err
	})
	if err := p.tolerate(name, err); err != nil {
		return err
	}
	return out.flushNotes()
}

// pageOfArchive returns the page in a web archive (MHT), or nil if data is none.
func pageOfArchive(data []byte) []byte {
	message, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return nil
	}
	kind, params, err := mime.ParseMediaType(strings.Join(strings.Fields(message.Header.Get("Content-Type")), " "))
	if err != nil || !strings.HasPrefix(kind, "multipart/") {
		return nil
	}
	parts := multipart.NewReader(message.Body, params["boundary"])
	for {
		part, err := parts.NextRawPart()
		if err != nil {
			return nil
		}
		if kind, _, err := mime.ParseMediaType(part.Header.Get("Content-Type")); err != nil || kind != "text/html" {
			continue
		}
		var from io.Reader = part
		switch strings.ToLower(part.Header.Get("Content-Transfer-Encoding")) {
		case "quoted-printable":
			from = quotedprintable.NewReader(part)
		case "base64":
			from = base64.NewDecoder(base64.StdEncoding, part)
		}
		page, err := io.ReadAll(from)
		if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) && len(page) == 0 {
			return nil
		}
		return page
	}
}
