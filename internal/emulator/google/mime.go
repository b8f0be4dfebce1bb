package google

import (
	"bytes"
	"encoding/base64"
	"errors"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"mime/quotedprintable"
	"net/mail"
	"net/textproto"
	"slices"
	"strconv"
	"strings"
)

// partHeader is the header of a message or of a part, which have different types in the library.
type partHeader textproto.MIMEHeader

// first returns the first value of a field.
func (h partHeader) first(name string) string { return textproto.MIMEHeader(h).Get(name) }

// errMIME is returned for a message that Gmail refuses.
var errMIME = errors.New("invalid message")

// convertPart converts a part of a message, with its own parts, to Gmail's form.
func (l *email) convertPart(id string, header partHeader, body io.Reader) (doc, error) {
	media, params, err := mime.ParseMediaType(header.first("Content-Type"))
	if err != nil {
		media, params = "text/plain", nil
	}
	d := doc{"partId": id, "mimeType": media, "filename": "", "headers": headerFields(header)}
	if strings.HasPrefix(media, "multipart/") {
		return l.convertMultipart(d, id, params["boundary"], body)
	}
	data, err := decodePart(header.first("Content-Transfer-Encoding"), body)
	if err != nil {
		return nil, err
	}
	name := fileName(header, params)
	if name != "" || media == "message/rfc822" {
		attachment := "att-" + l.id + "-" + id
		l.attachments[attachment] = data
		d["filename"] = name
		d["body"] = doc{"size": len(data), "attachmentId": attachment}
		if media == "message/rfc822" {
			return d, l.convertAttachedMessage(d, id, data)
		}
		return d, nil
	}
	if strings.HasPrefix(media, "text/") {
		l.searchText += string(data) + "\n"
	}
	d["body"] = doc{"size": len(data), "data": base64.URLEncoding.EncodeToString(data)}
	return d, nil
}

// convertAttachedMessage adds the parts of an attached message. Gmail returns them under its part, which has an
// attachment id but not always a name (github.com/EmilTholin/gmail-api-parse-message/issues/11,
// github.com/NousResearch/hermes-agent/issues/43054).
func (l *email) convertAttachedMessage(d doc, id string, data []byte) error {
	msg, err := mail.ReadMessage(bytes.NewReader(data))
	if err != nil {
		return nil //nolint:nilerr // an attachment that is no message has no parts
	}
	text := l.searchText
	part, err := l.convertPart(id+".0", partHeader(msg.Header), msg.Body)
	l.searchText = text
	d["parts"] = []any{part}
	return err
}

func (l *email) convertMultipart(d doc, id, boundary string, body io.Reader) (doc, error) {
	var parts []any
	for reader := multipart.NewReader(body, boundary); ; {
		p, err := reader.NextRawPart()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		below := strings.TrimPrefix(id+"."+strconv.Itoa(len(parts)), ".")
		part, err := l.convertPart(below, partHeader(p.Header), p)
		if err != nil {
			return nil, err
		}
		parts = append(parts, part)
	}
	if len(parts) == 0 {
		return nil, errMIME
	}
	d["body"], d["parts"] = doc{"size": 0}, parts
	return d, nil
}

func decodePart(encoding string, body io.Reader) ([]byte, error) {
	switch strings.ToLower(encoding) {
	case "base64":
		body = base64.NewDecoder(base64.StdEncoding, body)
	case "quoted-printable":
		body = quotedprintable.NewReader(body)
	}
	return io.ReadAll(body)
}

// fileName returns the decoded name of an attachment.
func fileName(header partHeader, params map[string]string) string {
	_, disposition, err := mime.ParseMediaType(header.first("Content-Disposition"))
	name := params["name"]
	if err == nil && disposition["filename"] != "" {
		name = disposition["filename"]
	}
	return decodeWords(name)
}

func decodeWords(s string) string {
	out, err := new(mime.WordDecoder).DecodeHeader(s)
	if err != nil {
		return s
	}
	return out
}

// headerFields returns the header fields with their encoded words decoded, as Gmail returns them.
func headerFields(header partHeader) []any {
	var out []any
	for _, name := range slices.Sorted(maps.Keys(header)) {
		for _, value := range header[name] {
			out = append(out, doc{"name": name, "value": decodeWords(value)})
		}
	}
	return out
}

// checkEmail refuses a message that Gmail would refuse to send.
func checkEmail(raw []byte) error {
	msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		return errMIME
	}
	for _, field := range []string{"To", "Cc", "Bcc"} {
		if v := msg.Header.Get(field); v != "" {
			if _, err := mail.ParseAddressList(v); err != nil {
				return errors.New("Invalid " + field + " header")
			}
		}
	}
	if msg.Header.Get("To")+msg.Header.Get("Cc")+msg.Header.Get("Bcc") == "" {
		return errors.New("Recipient address required") //nolint:staticcheck // the service's own wording
	}
	for _, c := range raw {
		if c >= 0x80 {
			return errors.New("the message is not ASCII: its parts must be encoded")
		}
	}
	return nil
}
