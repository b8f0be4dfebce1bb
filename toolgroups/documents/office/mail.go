package office

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/textproto"
	"path"
	"regexp"
	"strings"

	"github.com/emersion/go-message"
	"golang.org/x/net/html/charset"

	"oneclaw/internal/readable"
	"oneclaw/internal/wording"
)

// Bounds of a mail.
const (
	maxMailParts   = 500
	maxMailDepth   = 20 // of parts in parts
	maxMailsInMail = 3
	// maxAttachment bounds an attachment that is read, in bytes.
	maxAttachment = 24 << 20
)

// Keeper is an optional interface of a [Sink]: it is given the files that a document carries, if their part is
// wanted.
type Keeper interface {
	// Keep is given a file of a part.
	Keep(p Part, name string, data []byte)
}

// mailHeader matches a line of the header of a mail, and knownHeader the names of which a mail has several.
var (
	mailHeader  = regexp.MustCompile(`^([!-9;-~]+):`)
	knownHeader = regexp.MustCompile(`(?i)^(received|return-path|delivered-to|from|to|date|subject|message-id|mime-version|content-type|dkim-signature|reply-to)$`)
)

// isMail reports whether a text is a mail: it begins with the lines of a header, at least three of them known.
func isMail(head []byte, extension string) bool {
	head = bytes.TrimPrefix(head, []byte("\ufeff"))
	known := map[string]bool{}
	for i, line := range bytes.Split(head, []byte("\n")) {
		line = bytes.TrimRight(line, "\r")
		m := mailHeader.FindSubmatch(line)
		switch {
		case len(line) == 0 && i > 0:
			return len(known) >= 3 || extension == ".eml" && len(known) > 0
		case m != nil && knownHeader.Match(m[1]):
			known[strings.ToLower(string(m[1]))] = true
		case m != nil, i > 0 && (line[0] == ' ' || line[0] == '\t'), i == 0 && bytes.HasPrefix(line, []byte("From ")):
		default:
			return len(known) >= 3 && i+1 == bytes.Count(head, []byte("\n"))+1 // the last line may be cut
		}
	}
	return len(known) >= 3
}

// mailLeaf is a part of a mail that holds no parts.
type mailLeaf struct {
	kind, charset string
	name          string // of a file
	attached      bool   // not text of the mail itself
	alternatives  int    // the parts of which one is to be shown, 0 for none
	size          int64  // decoded, in bytes
	body          bool   // shown as text of the mail
	skipped       bool   // another alternative is shown
}

// readMail reads a mail: its header, its text and the list of its attachments are the first part, and each
// attachment is another one.
func readMail(file *io.SectionReader, out *emitter) error {
	var leaves []*mailLeaf
	header, cut := walkMail(file, func(l *mailLeaf, from io.Reader) error {
		if len(leaves) >= maxMailParts {
			return Refusal(fmt.Sprintf("has more than the limit of %d parts, and is not read further", maxMailParts))
		}
		l.size, _ = io.Copy(io.Discard, from) // what is damaged ends there
		leaves = append(leaves, l)
		return nil
	})
	if header == nil {
		return cut
	}
	chooseText(leaves)
	out.beginPart(decodeWords(header.Get("Subject")), false)
	if err := addMailHeader(header, out); err != nil {
		return err
	}
	// again reads the leaves once more; cut has the reason if there are more of them.
	again := func(visit func(*mailLeaf, io.Reader) error) error {
		at := 0
		_, err := walkMail(file, func(_ *mailLeaf, from io.Reader) error {
			if at++; at > len(leaves) {
				return cut
			}
			return visit(leaves[at-1], from)
		})
		return cmp.Or(out.err, cut, err)
	}
	shown := 0
	if err := again(func(l *mailLeaf, from io.Reader) error {
		if !l.body || l.size == 0 {
			return nil
		}
		shown++
		return addMailText(l, from, out)
	}); err != nil && cut == nil {
		return err
	}
	if shown == 0 {
		if err := out.addParagraph("[The mail has no text that can be read.]", false); err != nil {
			return err
		}
	}
	if err := listAttachments(leaves, out); err != nil {
		return err
	}
	return again(func(l *mailLeaf, from io.Reader) error {
		if l.body || l.skipped {
			return nil
		}
		return addAttachment(l, from, out)
	})
}

// walkMail calls visit with each part of a mail that holds no parts, in their order, with its decoded content. It
// returns the header; nil if there is none.
func walkMail(file *io.SectionReader, visit func(*mailLeaf, io.Reader) error) (*message.Header, error) {
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return nil, err
	}
	e, err := message.ReadWithOptions(skipFirstLine(file), &message.ReadOptions{MaxHeaderBytes: 1 << 20})
	if e == nil || err != nil && !message.IsUnknownCharset(err) && !message.IsUnknownEncoding(err) {
		return nil, errDamaged
	}
	groups := 0
	var walk func(e *message.Entity, alternatives, depth int) error
	walk = func(e *message.Entity, alternatives, depth int) error {
		if repairParameters(&e.Header, "Content-Type", "text/plain") && strings.HasPrefix(e.Header.Get("Content-Type"), "multipart/") {
			e, _ = message.New(e.Header, e.Body) // an error is about encodings, which its parts have
		}
		repairParameters(&e.Header, "Content-Disposition", "attachment")
		parts := e.MultipartReader()
		if parts == nil || depth >= maxMailDepth {
			return visit(newLeaf(e, alternatives), e.Body)
		}
		if kind, _, _ := e.Header.ContentType(); kind == "multipart/alternative" && alternatives == 0 {
			groups++
			alternatives = groups
		}
		for {
			part, err := parts.NextPart()
			if part == nil {
				if err == nil || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
					return nil // the last boundary is often missing
				}
				return errDamaged
			}
			if err := walk(part, alternatives, depth+1); err != nil {
				return err
			}
		}
	}
	return &e.Header, walk(e, 0, 0)
}

// skipFirstLine skips a byte order mark and the first line of a mailbox.
func skipFirstLine(file io.Reader) io.Reader {
	head := make([]byte, 512)
	n, _ := io.ReadFull(file, head) // a shorter file ends there
	head = bytes.TrimPrefix(head[:n], []byte("\ufeff"))
	if bytes.HasPrefix(head, []byte("From ")) {
		if end := bytes.IndexByte(head, '\n'); end >= 0 {
			head = head[end+1:]
		}
	}
	return io.MultiReader(bytes.NewReader(head), file)
}

// headerParameter matches a parameter of a field, also without the quotes that its value needs.
var headerParameter = regexp.MustCompile(`(?i);\s*(boundary|charset|name|filename)\s*=\s*(?:"([^"]*)"?|([^;]*))`)

// repairParameters rewrites a field whose parameters are written wrongly, such as a name with spaces: nothing of a
// field can be read otherwise. kind replaces a value that has no meaning.
func repairParameters(header *message.Header, key, kind string) (repaired bool) {
	value := header.Get(key)
	if _, _, err := mime.ParseMediaType(value); value == "" || err == nil {
		return false
	}
	params := map[string]string{}
	for _, m := range headerParameter.FindAllStringSubmatch(value, -1) {
		params[strings.ToLower(m[1])] = cmp.Or(m[2], strings.TrimSpace(m[3]))
	}
	first, _, _ := strings.Cut(value, ";")
	header.Set(key, cmp.Or(mime.FormatMediaType(strings.ToLower(strings.TrimSpace(first)), params), mime.FormatMediaType(kind, params), kind))
	return true
}

func newLeaf(e *message.Entity, alternatives int) *mailLeaf {
	kind, params, _ := e.Header.ContentType() // an unreadable one is empty
	disposition, more, _ := e.Header.ContentDisposition()
	l := &mailLeaf{kind: strings.ToLower(cmp.Or(kind, "text/plain")), charset: params["charset"], alternatives: alternatives}
	l.name = oneLine(decodeWords(cmp.Or(more["filename"], params["name"])))
	isText := l.kind == "text/plain" || l.kind == "text/html"
	l.attached = !isText || strings.EqualFold(disposition, "attachment") || l.name != "" && !strings.EqualFold(disposition, "inline")
	return l
}

// chooseText decides which parts are the text of the mail: of alternatives the plain text, unless it is empty.
func chooseText(leaves []*mailLeaf) {
	chosen := map[int]*mailLeaf{}
	for _, l := range leaves {
		if l.attached {
			continue
		}
		l.body = true
		if l.alternatives == 0 {
			continue
		}
		other := chosen[l.alternatives]
		switch {
		case other == nil:
			chosen[l.alternatives] = l
		case other.kind == "text/plain" && other.size > 1 || l.size <= 1:
			l.body, l.skipped = false, true
		default:
			other.body, other.skipped = false, true
			chosen[l.alternatives] = l
		}
	}
}

// decodeWords decodes the encoded words of a header, and what is not encoded although it is no ASCII.
func decodeWords(text string) string {
	words := mime.WordDecoder{CharsetReader: charset.NewReaderLabel}
	if decoded, err := words.DecodeHeader(text); err == nil {
		text = decoded
	}
	return readable.Decode([]byte(text), "")
}

func addMailHeader(header *message.Header, out *emitter) error {
	for i, name := range []string{"From", "To", "Cc", "Bcc", "Reply-To", "Date", "Subject"} {
		var values []string
		for fields := header.FieldsByKey(name); fields.Next(); {
			values = append(values, oneLine(decodeWords(fields.Value())))
		}
		if text := strings.Join(values, ", "); text != "" {
			if err := out.add(Block{Text: textproto.CanonicalMIMEHeaderKey(name) + ": " + text, Tight: i > 0}); err != nil {
				return err
			}
		}
	}
	return out.err
}

// addMailText adds a part of the text of a mail.
func addMailText(l *mailLeaf, from io.Reader, out *emitter) error {
	data, damage := io.ReadAll(io.LimitReader(from, maxHTML))
	if damage != nil && len(data) == 0 {
		return out.addParagraph("[A part of the text is damaged.]", false)
	}
	var err error
	text := readable.Decode(data, contentType(l))
	if l.kind == "text/html" {
		if text, err = readable.Convert(strings.NewReader(text)); err != nil {
			return out.addParagraph("[A part of the text cannot be read as HTML.]", false)
		}
		err = addMarkdown(text, out)
	} else {
		_ = out.add(Block{Tight: true})
		err = readLines(strings.NewReader(strings.TrimSpace(text)), out)
	}
	if err == nil && damage != nil {
		return out.addParagraph("[The rest of this text is damaged.]", false)
	}
	if err == nil && l.size > maxHTML {
		err = out.addParagraph(fmt.Sprintf("[The rest of this text is over the limit of %d MiB.]", maxHTML>>20), false)
	}
	return err
}

func contentType(l *mailLeaf) string {
	if l.charset == "" {
		return ""
	}
	return mime.FormatMediaType(l.kind, map[string]string{"charset": l.charset})
}

// label describes an attachment.
func (l *mailLeaf) label() string {
	return fmt.Sprintf("%s (%s, %s)", l.fileName(), l.kind, wording.FormatSize(l.size))
}

// fileName returns the name of an attachment, or one that is made for it.
func (l *mailLeaf) fileName() string {
	if l.name != "" {
		return path.Base(l.name)
	}
	if l.kind == "message/rfc822" {
		return "mail.eml"
	}
	ext := ""
	if known, err := mime.ExtensionsByType(l.kind); err == nil && len(known) > 0 {
		ext = known[0]
	}
	return "attachment" + ext
}

// listAttachments lists the attachments with the numbers of their parts.
func listAttachments(leaves []*mailLeaf, out *emitter) error {
	number, first := out.parts, true
	for _, l := range leaves {
		if l.body || l.skipped {
			continue
		}
		if first {
			if err := out.addParagraph("Attachments, each a part, which reading that part saves as a file:", false); err != nil {
				return err
			}
			first = false
		}
		number++
		if err := out.add(Block{Text: fmt.Sprintf("- part %d: %s", number, l.label()), Tight: true}); err != nil {
			return err
		}
	}
	return out.err
}

// addAttachment adds a part for an attachment. Its content follows if this package reads it.
func addAttachment(l *mailLeaf, from io.Reader, out *emitter) error {
	name := l.fileName()
	if !out.beginPart(name, false) {
		return nil
	}
	if l.size > maxAttachment {
		return out.addParagraph(fmt.Sprintf("[%s: larger than the limit of %d MiB.]", l.label(), maxAttachment>>20), false)
	}
	data, _ := io.ReadAll(io.LimitReader(from, maxAttachment)) // what is damaged ends there
	if keeper, ok := out.sink.(Keeper); ok && out.mails == 0 {
		keeper.Keep(Part{Number: out.parts, Name: name}, name, data)
	}
	if strings.HasPrefix(l.kind, "text/") && l.charset != "" {
		data = []byte(readable.Decode(data, contentType(l)))
	}
	inner := &emitter{sink: &embeddedSink{out: out, rows: &table{out: out}}, mails: out.mails + 1}
	var err error = Refusal("is a mail in a mail in a mail, which is not read")
	if inner.mails <= maxMailsInMail {
		_, err = read(bytes.NewReader(data), int64(len(data)), name, inner)
	}
	if err == nil {
		err = inner.flushNotes()
	}
	if out.err != nil {
		return out.err
	}
	if err != nil {
		return out.addParagraph(fmt.Sprintf("[%s is not read here: it %s.]", l.label(), strings.TrimSuffix(asRefusal(err).Error(), ".")), false)
	}
	return inner.sink.(*embeddedSink).rows.end()
}

// embeddedSink adds the blocks of a document to the part of a mail that holds it.
type embeddedSink struct {
	out  *emitter
	rows *table
}

// Begin writes the name of a part of the document.
func (s *embeddedSink) Begin(p Part) bool {
	if s.rows.end() != nil {
		return false
	}
	s.rows = &table{out: s.out}
	if p.Name != "" && s.out.wanted {
		_ = s.out.addParagraph("**"+p.Name+"**", false) // the next block returns the error
	}
	return s.out.wanted
}

// Add adds a block of the document. A row of a sheet becomes one of a table.
func (s *embeddedSink) Add(b Block) error {
	if b.Cells != nil {
		return s.rows.addRow(b.Cells)
	}
	b.Number = 0
	return s.out.add(b)
}
