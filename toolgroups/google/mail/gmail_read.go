package mail

import (
	"cmp"
	"context"
	"encoding/base64"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/html/charset"
	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups/google/service"
)

const (
	// maxGmailDepth bounds the nesting of a message's parts.
	maxGmailDepth = 30
	// attachedMessage is the type of a part that is a message of its own.
	attachedMessage = "message/rfc822"
)

// gmailMessage is a message for the model.
type gmailMessage struct {
	ID        string `json:"id"`
	ThreadID  string `json:"threadId"`
	HistoryID uint64 `json:"historyId,string,omitempty"`
	gmailContent
	LabelIDs []string `json:"labelIds"`
}

// gmailContent is the content of a message, or of one that is attached to another.
type gmailContent struct {
	Subject     string            `json:"subject"`
	From        string            `json:"from"`
	To          string            `json:"to"`
	Cc          string            `json:"cc"`
	Date        string            `json:"date"`
	Body        string            `json:"body"`
	Attachments []gmailAttachment `json:"attachments"`
}

type gmailAttachment struct {
	Name string `json:"filename"`
	Type string `json:"mimeType"`
	Size int64  `json:"size"`
	ID   string `json:"attachmentId"`
	// Message is the content of an attached message.
	Message *gmailContent `json:"message,omitempty"`
}

func gmailGetMessage(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	m, err := api.Users.Messages.Get(me, in.MessageID).Context(ctx).Format("full").Do()
	if err != nil {
		return nil, err
	}
	return gmailConvertMessage(ctx, api, c, m)
}

// gmailConvertMessage converts a message for the model.
func gmailConvertMessage(ctx context.Context, api *gmail.Service, c *service.Conn, m *gmail.Message) (gmailMessage, error) {
	content, err := gmailConvertContent(ctx, api, c, m.Id, m.Payload, 0)
	return gmailMessage{ID: m.Id, ThreadID: m.ThreadId, HistoryID: m.HistoryId, gmailContent: content, LabelIDs: service.OrEmpty(m.LabelIds)}, err
}

// gmailConvertContent converts the content under a part of a message.
func gmailConvertContent(ctx context.Context, api *gmail.Service, c *service.Conn, message string, root *gmail.MessagePart, depth int) (gmailContent, error) {
	out := gmailContent{
		Attachments: []gmailAttachment{},
		Subject:     gmailHeader(root, "Subject"), From: gmailHeader(root, "From"), To: gmailHeader(root, "To"),
		Cc: gmailHeader(root, "Cc"), Date: gmailHeader(root, "Date"),
	}
	var html []*gmail.MessagePart
	var err error
	gmailWalk(root, depth, func(p *gmail.MessagePart, depth int) {
		switch {
		case p.MimeType == attachedMessage || p.Filename != "":
			a := gmailAttachment{Name: p.Filename, Type: p.MimeType}
			if p.Body != nil {
				a.Size, a.ID = p.Body.Size, p.Body.AttachmentId
			}
			if p.MimeType == attachedMessage {
				a.Name = cmp.Or(a.Name, "message.eml")
				if len(p.Parts) > 0 && depth < maxGmailDepth && err == nil {
					var content gmailContent
					content, err = gmailConvertContent(ctx, api, c, message, p.Parts[0], depth+1)
					a.Message = &content
				}
			}
			out.Attachments = append(out.Attachments, a)
		case p.MimeType == "text/html":
			html = append(html, p)
		}
	})
	if err != nil {
		return out, err
	}
	out.Body, err = gmailFetchText(ctx, api, c, message, gmailTextParts(root, depth))
	if err == nil && strings.TrimSpace(out.Body) == "" {
		out.Body, err = gmailFetchText(ctx, api, c, message, html)
	}
	return out, err
}

// gmailTextParts returns the parts with the text of a message, and among alternatives the plain one.
// A plain part elsewhere, such as the footer of a mailing list, does not replace other parts.
func gmailTextParts(p *gmail.MessagePart, depth int) (texts []*gmail.MessagePart) {
	switch {
	case p == nil || depth > maxGmailDepth:
		return nil
	case len(p.Parts) == 0 && p.Filename == "" && (p.MimeType == "text/plain" || p.MimeType == "text/html"):
		return []*gmail.MessagePart{p}
	}
	for _, below := range p.Parts {
		if below.MimeType != attachedMessage { // its text is not the sender's
			texts = append(texts, gmailTextParts(below, depth+1)...)
		}
	}
	is := func(kind string) func(*gmail.MessagePart) bool {
		return func(p *gmail.MessagePart) bool { return p.MimeType == kind }
	}
	if p.MimeType == "multipart/alternative" && slices.ContainsFunc(texts, is("text/plain")) {
		texts = slices.DeleteFunc(texts, is("text/html"))
	}
	return texts
}

// gmailWalk visits the leaf parts under a part, and attached messages as a whole.
func gmailWalk(p *gmail.MessagePart, depth int, visit func(p *gmail.MessagePart, depth int)) {
	if p == nil || depth > maxGmailDepth {
		return
	}
	if len(p.Parts) == 0 {
		visit(p, depth)
		return
	}
	for _, below := range p.Parts {
		if below.MimeType == attachedMessage {
			visit(below, depth+1)
		} else {
			gmailWalk(below, depth+1, visit)
		}
	}
}

// gmailFetchText returns the joined text of parts, and of HTML what can be read.
func gmailFetchText(ctx context.Context, api *gmail.Service, c *service.Conn, message string, parts []*gmail.MessagePart) (string, error) {
	var texts []string
	for _, p := range parts {
		text, err := gmailFetchSource(ctx, api, message, p)
		if err != nil {
			return "", err
		}
		if p.MimeType == "text/html" {
			// Markup costs tokens and says little. Keep HTML that cannot be converted.
			if read, err := c.Reader.VisibleText(ctx, text); err == nil {
				text = read
			}
		}
		texts = append(texts, text)
	}
	return strings.Join(texts, "\n"), nil
}

// gmailFetchSource returns the text of a part as it was sent. It fetches a part that is not in the message.
func gmailFetchSource(ctx context.Context, api *gmail.Service, message string, p *gmail.MessagePart) (string, error) {
	body := p.Body
	if body == nil {
		return "", nil
	}
	if body.Data == "" && body.AttachmentId != "" {
		var err error
		if body, err = api.Users.Messages.Attachments.Get(me, message, body.AttachmentId).Context(ctx).Do(); err != nil {
			return "", err
		}
	}
	data, err := decodeBase64(body.Data)
	if err != nil {
		return "", service.Wrap("decode the text of the message", err)
	}
	return decodeText(data, gmailHeader(p, "Content-Type")), nil
}

// decodeText converts a text to UTF-8. Google has already converted most texts, whatever their type
// says, but not attachments.
func decodeText(data []byte, contentType string) string {
	if !utf8.Valid(data) {
		if e, _, _ := charset.DetermineEncoding(data, contentType); e != nil {
			if decoded, err := e.NewDecoder().Bytes(data); err == nil {
				data = decoded
			}
		}
	}
	return strings.ToValidUTF8(string(data), "\uFFFD")
}

// decodeBase64 decodes the URL alphabet, with or without padding.
func decodeBase64(s string) ([]byte, error) {
	return base64.RawURLEncoding.DecodeString(strings.TrimRight(s, "="))
}

// gmailHeader returns a header field of a message.
func gmailHeader(p *gmail.MessagePart, name string) string {
	if p == nil {
		return ""
	}
	for _, h := range p.Headers {
		if strings.EqualFold(h.Name, name) {
			return h.Value
		}
	}
	return ""
}

func gmailGetThread(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	thread, err := api.Users.Threads.Get(me, in.ThreadID).Context(ctx).Format("full").Do()
	if err != nil {
		return nil, err
	}
	messages, err := service.MapConcurrent(ctx, thread.Messages, func(ctx context.Context, m *gmail.Message) (gmailMessage, error) {
		return gmailConvertMessage(ctx, api, c, m)
	})
	return map[string]any{"id": thread.Id, "messages": messages}, err
}

// savedFile is the result of a tool that saves a file.
type savedFile struct {
	Size      int    `json:"size"`
	SavedPath string `json:"saved"`
}

func gmailGetAttachment(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	body, err := api.Users.Messages.Attachments.Get(me, in.MessageID, in.AttachmentID).Context(ctx).Do()
	if err != nil {
		return nil, err
	}
	data, err := decodeBase64(body.Data)
	if err != nil {
		return nil, service.Wrap("decode the attachment", err)
	}
	rel, err := c.SaveFile(in.SavePath, data)
	if err != nil {
		return nil, err
	}
	return c.Deliver(savedFile{len(data), rel}, rel)
}
