package google

import (
	"cmp"
	"fmt"
	"net/mail"
	"slices"
	"strconv"
	"strings"
	"time"
)

// firstHistory is the oldest known history id.
const firstHistory = 1000

// mailbox is the mail of an account.
type mailbox struct {
	*owner
	letters []*letter
	drafts  []*draft
	history []doc
	clock   int
}

func newMailbox(o *owner) *mailbox {
	m := &mailbox{owner: o, clock: firstHistory}
	m.seed()
	return m
}

// letter is an email.
type letter struct {
	id, thread string
	labels     []string
	changed    int
	at         time.Time
	payload    doc
	text       string // searched text
	files      map[string][]byte
}

// draft is an unsent letter.
type draft struct {
	id     string
	letter *letter
}

// header returns a header field of a letter.
func (l *letter) header(name string) string {
	for _, h := range list(l.payload["headers"]) {
		if d, ok := h.(doc); ok && strings.EqualFold(fmt.Sprint(d["name"]), name) {
			return fmt.Sprint(d["value"])
		}
	}
	return ""
}

func (l *letter) has(label string) bool { return slices.Contains(l.labels, label) }

// relabel changes the labels of a letter and records it in the history.
func (m *mailbox) relabel(l *letter, add, remove []string) {
	var added, removed []string
	if slices.Contains(add, "TRASH") { // a letter is in one place
		remove = append([]string{"INBOX", "SPAM"}, remove...)
	}
	for _, label := range add {
		if !l.has(label) {
			l.labels, added = append(l.labels, label), append(added, label)
		}
	}
	l.labels = slices.DeleteFunc(l.labels, func(label string) bool {
		gone := slices.Contains(remove, label)
		if gone {
			removed = append(removed, label)
		}
		return gone
	})
	entry := doc{}
	ref := doc{"id": l.id, "threadId": l.thread}
	if len(added) > 0 {
		entry["labelsAdded"] = []any{doc{"message": ref, "labelIds": added}}
	}
	if len(removed) > 0 {
		entry["labelsRemoved"] = []any{doc{"message": ref, "labelIds": removed}}
	}
	if len(entry) > 0 {
		m.note(l, entry)
	}
}

func (m *mailbox) note(l *letter, entry doc) {
	m.clock++
	l.changed = m.clock
	entry["id"] = strconv.Itoa(m.clock)
	entry["messages"] = []any{doc{"id": l.id, "threadId": l.thread}}
	m.history = append(m.history, entry)
}

func (m *mailbox) letter(id string) *letter {
	for _, l := range m.letters {
		if l.id == id {
			return l
		}
	}
	return nil
}

// deliver puts a letter into the mailbox.
func (m *mailbox) deliver(l *letter) {
	m.letters = append(m.letters, l)
	m.note(l, doc{"messagesAdded": []any{doc{"message": l.brief()}}})
}

// thread returns the letters of a conversation.
func (m *mailbox) thread(id string) []*letter {
	var out []*letter
	for _, l := range m.letters {
		if l.thread == id && !l.has("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

func (m *mailbox) draft(id string) *draft {
	for _, d := range m.drafts {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (m *mailbox) dropDraft(id string) {
	m.drafts = slices.DeleteFunc(m.drafts, func(d *draft) bool { return d.id == id })
}

// brief returns a letter as modifying methods return it.
func (l *letter) brief() doc {
	return doc{"id": l.id, "threadId": l.thread, "labelIds": slices.Clone(l.labels)}
}

// full returns a letter in one of the formats of get.
func (l *letter) full(format string, wanted []string) doc {
	d := l.brief()
	d["snippet"] = snippet(l.text)
	d["historyId"] = strconv.Itoa(l.changed)
	d["internalDate"] = strconv.FormatInt(l.at.UnixMilli(), 10)
	d["sizeEstimate"] = len(l.text)
	switch format {
	case "minimal":
	case "metadata":
		payload := doc{"mimeType": l.payload["mimeType"]}
		var headers []any
		for _, h := range list(l.payload["headers"]) {
			name := fmt.Sprint(h.(doc)["name"])
			if len(wanted) == 0 || slices.ContainsFunc(wanted, func(w string) bool { return strings.EqualFold(w, name) }) {
				headers = append(headers, h)
			}
		}
		payload["headers"] = headers
		d["payload"] = payload
	default:
		d["payload"] = l.payload
	}
	return clone(d)
}

func snippet(text string) string {
	runes := []rune(strings.Join(strings.Fields(text), " "))
	return string(runes[:min(len(runes), 100)])
}

// matches reports whether a letter matches a search expression. Unknown terms are searched as
// words.
func (l *letter) matches(query string) bool {
	words := splitQuery(query)
	hidden := l.has("SPAM") || l.has("TRASH")
	for _, word := range words {
		negated := strings.HasPrefix(word, "-")
		key, value, isTerm := strings.Cut(strings.TrimPrefix(word, "-"), ":")
		fits := l.word(word)
		if isTerm {
			fits = l.term(strings.ToLower(key), strings.ToLower(value))
		}
		if fits == negated {
			return false
		}
		if key == "in" && !negated || key == "label" && !negated {
			hidden = false
		}
	}
	return !hidden
}

// splitQuery splits at spaces outside of quotes.
func splitQuery(query string) []string {
	var out []string
	quoted := false
	for _, word := range strings.FieldsFunc(query, func(r rune) bool {
		if r == '"' {
			quoted = !quoted
		}
		return r == ' ' && !quoted
	}) {
		out = append(out, strings.ReplaceAll(word, `"`, ""))
	}
	return out
}

func (l *letter) word(word string) bool {
	all := strings.ToLower(l.text + " " + l.header("Subject") + " " + l.header("From") + " " + l.header("To"))
	return strings.Contains(all, strings.ToLower(strings.TrimPrefix(word, "-")))
}

func (l *letter) term(key, value string) bool {
	contains := func(header string) bool { return strings.Contains(strings.ToLower(l.header(header)), value) }
	switch key {
	case "in", "label":
		return value == "anywhere" || slices.ContainsFunc(l.labels, func(s string) bool { return strings.EqualFold(s, value) })
	case "is":
		if value == "read" {
			return !l.has("UNREAD")
		}
		return l.has(strings.ToUpper(value))
	case "from", "to", "subject", "cc":
		return contains(key)
	case "has":
		return value == "attachment" && len(l.files) > 0
	case "rfc822msgid":
		return contains("Message-ID")
	case "newer_than", "older_than", "after", "before":
		return true // ages are not emulated
	}
	return l.word(key + ":" + value)
}

// letterOf parses a sent message; without an id it gets a new one.
func (m *mailbox) letterOf(id string, raw []byte, thread string, labels ...string) (*letter, error) {
	msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	l := &letter{id: cmp.Or(id, m.mint("m")), thread: thread, labels: labels, at: m.now(), files: map[string][]byte{}}
	if l.thread == "" {
		l.thread = m.mint("t")
	}
	if l.payload, err = l.part("", partHeader(msg.Header), msg.Body); err != nil {
		return nil, err
	}
	return l, nil
}
