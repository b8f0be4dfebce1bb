package mail

import (
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"fmt"
	"mime"
	"mime/quotedprintable"
	"net/mail"
	"slices"
	"strings"

	"google.golang.org/api/gmail/v1"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// maxSubject bounds a subject in bytes; a header line has at most 998 (RFC 5322).
const maxSubject = 900

// field is a header field.
type field struct{ name, value string }

// compose writes a message (RFC 5322, 2045, 2047). Google adds the sender, date and id.
func compose(in gmailArgs, more ...field) (*gmail.Message, error) {
	var fields []field
	for _, f := range []field{{"To", in.To}, {"Cc", in.Cc}, {"Bcc", in.Bcc}} {
		if strings.TrimSpace(f.value) == "" {
			continue
		}
		list, err := formatAddresses(f.value)
		if err != nil {
			return nil, service.Invalidf("'%s' must be addresses, separated by commas: %v", strings.ToLower(f.name), err)
		}
		fields = append(fields, field{f.name, list})
	}
	subject := oneLine(in.Subject)
	if len(subject) > maxSubject {
		return nil, service.Invalidf("the subject is longer than %d bytes", maxSubject)
	}
	kind := "text/plain"
	if in.HTML {
		kind = "text/html"
	}
	fields = append(fields, field{"Subject", encodeSubject(subject)})
	fields = append(fields, more...)
	fields = append(fields, field{"MIME-Version", "1.0"}, field{"Content-Type", kind + "; charset=utf-8"}, field{"Content-Transfer-Encoding", "quoted-printable"})
	var b bytes.Buffer
	for _, f := range fields {
		fmt.Fprintf(&b, "%s: %s\r\n", f.name, f.value)
	}
	b.WriteString("\r\n")
	w := quotedprintable.NewWriter(&b)
	// The writer loses line feeds after a lone carriage return.
	if _, err := w.Write([]byte(strings.NewReplacer("\r\n", "\n", "\r", "\n").Replace(in.Body))); err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	if err := w.Close(); err != nil {
		return nil, fmt.Errorf("write the message: %w", err)
	}
	return &gmail.Message{Raw: base64.URLEncoding.EncodeToString(b.Bytes())}, nil
}

// oneLine returns a text with single blanks between its words.
func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// encodeSubject writes a subject as encoded words if it needs them, also if it looks like one: it is read as it was shown.
func encodeSubject(subject string) string {
	encoded := mime.BEncoding.Encode("utf-8", subject)
	if encoded != subject || !strings.Contains(subject, "=?") {
		return strings.ReplaceAll(encoded, "?= =?", "?=\r\n =?") // the encoder puts all of them on one line
	}
	const perWord = 45 // an encoded word has at most 75 characters
	var words []string
	for part := range slices.Chunk([]byte(subject), perWord) {
		words = append(words, "=?utf-8?b?"+base64.StdEncoding.EncodeToString(part)+"?=")
	}
	return strings.Join(words, "\r\n ")
}

// formatAddresses formats a list of addresses with encoded names, one per line.
func formatAddresses(list string) (string, error) {
	parsed, err := mail.ParseAddressList(oneLine(list))
	if err != nil {
		return "", err
	}
	out := make([]string, len(parsed))
	for i, a := range parsed {
		if out[i] = a.String(); strings.IndexFunc(a.Address, func(r rune) bool { return r >= 0x80 }) >= 0 {
			return "", fmt.Errorf("%s has letters that addresses cannot have", a.Address)
		}
	}
	return strings.Join(out, ",\r\n "), nil
}

// composeNew composes a message to recipients of the model, whose names and addresses stand there letter by letter: of
// what has to be decoded, a card and a judge see nothing.
func composeNew(in gmailArgs) (*gmail.Message, error) {
	for _, list := range []string{in.To, in.Cc, in.Bcc} {
		list = oneLine(list)
		parsed, _ := mail.ParseAddressList(list) // compose says what is wrong with it
		for _, a := range parsed {
			if !strings.Contains(list, a.Name) || !strings.Contains(list, a.Address) || strings.Contains(a.Name+a.Address, "=?") {
				return nil, service.Invalidf("names and addresses of recipients must be written as they are read, without escapes and encoded words")
			}
		}
	}
	return compose(in)
}

func gmailSend(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	if strings.TrimSpace(in.To) == "" {
		return nil, service.Invalidf("'to' is empty")
	}
	m, err := composeNew(in)
	if err != nil {
		return nil, err
	}
	return api.Users.Messages.Send(me, m).Context(ctx).Fields("id,threadId").Do()
}

// readReplied returns the mail that is replied to, and to whom the reply goes.
func readReplied(ctx context.Context, api *gmail.Service, in gmailArgs) (old *gmail.Message, to string, err error) {
	old, err = api.Users.Messages.Get(me, in.MessageID).Context(ctx).Format("metadata").
		MetadataHeaders("Subject", "From", "To", "Reply-To", "Message-ID", "References").Do()
	if err != nil {
		return nil, "", err
	}
	if slices.Contains(old.LabelIds, "SENT") { // own message: reply to its recipients
		return old, gmailHeader(old.Payload, "To"), nil
	}
	return old, cmp.Or(gmailHeader(old.Payload, "Reply-To"), gmailHeader(old.Payload, "From")), nil
}

// describeReply says to whom a reply goes: the author of the mail has chosen that.
func describeReply(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	old, to, err := readReplied(ctx, api, in)
	if err != nil {
		return nil, err
	}
	return fmt.Sprintf("To: %s\nAbout: %s", service.QuotedWhole(to), service.Quoted(gmailHeader(old.Payload, "Subject"))), nil
}

// describeDraft says to whom a draft goes, and shows all of its text as it is sent, of HTML the source: the
// model may have written it unasked, and any draft of the account can be meant. Each change of a draft gives its
// message another id.
func describeDraft(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	if !c.Direct {
		return nil, toolgroups.Errorf(toolgroups.CodeDenied, "A draft is sent in the direct chat with its owner, where its text can be shown. Use gmail_send with the text here.")
	}
	d, err := api.Users.Drafts.Get(me, in.DraftID).Context(ctx).Format("full").Do()
	if err != nil || d.Message == nil {
		return "", err
	}
	var shown strings.Builder
	for _, name := range []string{"To", "Cc", "Bcc", "Subject"} {
		if value := gmailHeader(d.Message.Payload, name); value != "" {
			fmt.Fprintf(&shown, "%s: %s\n", name, service.QuotedWhole(value))
		}
	}
	fmt.Fprintf(&shown, "Version: %s\n", d.Message.Id)
	gmailWalk(d.Message.Payload, 0, func(p *gmail.MessagePart, _ int) {
		switch {
		case err != nil:
		case p.Filename == "" && strings.HasPrefix(p.MimeType, "text/"):
			var text string
			text, err = gmailFetchSource(ctx, api, d.Message.Id, p)
			fmt.Fprintf(&shown, "Text (%s):\n%s\n", p.MimeType, text)
		case p.Body != nil:
			fmt.Fprintf(&shown, "Attached: %s (%s, %d bytes)\n", p.Filename, p.MimeType, p.Body.Size)
		default:
			fmt.Fprintf(&shown, "Attached: %s (%s)\n", p.Filename, p.MimeType)
		}
	})
	return strings.TrimSpace(shown.String()), err
}

func gmailReply(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	old, to, err := readReplied(ctx, api, in)
	if err != nil {
		return nil, err
	}
	header := func(name string) string { return gmailHeader(old.Payload, name) }
	subject := header("Subject")
	if !strings.HasPrefix(strings.ToLower(subject), "re:") {
		subject = strings.TrimSpace("Re: " + subject)
	}
	var thread []field
	if id := extractMessageIDs(header("Message-ID")); id != "" {
		thread = []field{{"In-Reply-To", id}, {"References", strings.TrimSpace(extractMessageIDs(header("References")) + "\r\n " + id)}}
	}
	m, err := compose(gmailArgs{To: to, Subject: subject, Body: in.Body, HTML: in.HTML}, thread...)
	if err != nil {
		return nil, err
	}
	m.ThreadId = old.ThreadId
	return api.Users.Messages.Send(me, m).Context(ctx).Fields("id,threadId").Do()
}

// extractMessageIDs returns the message ids in a header field, one per line.
func extractMessageIDs(value string) string {
	ids := slices.DeleteFunc(strings.Fields(value), func(id string) bool {
		return !strings.HasPrefix(id, "<") || !strings.HasSuffix(id, ">") || len(id) > maxSubject ||
			strings.IndexFunc(id, func(r rune) bool { return r <= ' ' || r >= 0x7F }) >= 0
	})
	return strings.Join(ids, "\r\n ")
}

func gmailCreateDraft(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	m, err := composeNew(in)
	if err != nil {
		return nil, err
	}
	return api.Users.Drafts.Create(me, &gmail.Draft{Message: m}).Context(ctx).Fields("id", "message("+changed+")").Do()
}

func gmailListDrafts(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	call := api.Users.Drafts.List(me).Context(ctx)
	limit := service.ClampLimit(in.MaxResults, defaultMail, maxDrafts)
	drafts, _, err := service.Collect(limit, call, call.MaxResults, func(page *gmail.ListDraftsResponse) ([]*gmail.Draft, string) {
		return page.Drafts, page.NextPageToken
	})
	return map[string]any{"drafts": drafts}, err
}

func gmailSendDraft(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return api.Users.Drafts.Send(me, &gmail.Draft{Id: in.DraftID}).Context(ctx).Do()
}

type gmailDraft struct {
	gmailMessage
	ID        string `json:"id"`
	MessageID string `json:"messageId"`
}

func gmailGetDraft(ctx context.Context, api *gmail.Service, c *service.Conn, in gmailArgs) (any, error) {
	d, err := api.Users.Drafts.Get(me, in.DraftID).Context(ctx).Format("full").Do()
	if err != nil {
		return nil, err
	}
	if d.Message == nil {
		return gmailDraft{ID: d.Id}, nil
	}
	m, err := gmailConvertMessage(ctx, api, c, d.Message)
	return gmailDraft{gmailMessage: m, ID: d.Id, MessageID: m.ID}, err
}

func gmailDeleteDraft(ctx context.Context, api *gmail.Service, _ *service.Conn, in gmailArgs) (any, error) {
	return service.SuccessResult(), api.Users.Drafts.Delete(me, in.DraftID).Context(ctx).Do()
}
