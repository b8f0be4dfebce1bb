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

// firstHistory is the oldest history id of a mailbox.
const firstHistory = 1000

// mailbox is the mail of an account.
type mailbox struct {
	*account
	emails    []*email
	drafts    []*draft
	history   []doc
	historyID int
}

func newMailbox(o *account) *mailbox {
	m := &mailbox{account: o, historyID: firstHistory}
	m.seed()
	return m
}

// email is a message in the mailbox.
type email struct {
	id, thread  string
	labels      []string
	historyID   int
	received    time.Time
	payload     doc
	searchText  string // the text that searches look in
	attachments map[string][]byte
}

// draft is an unsent email.
type draft struct {
	id    string
	email *email
}

// header returns a header field of an email.
func (l *email) header(name string) string {
	for _, h := range asList(l.payload["headers"]) {
		if d, ok := h.(doc); ok && strings.EqualFold(fmt.Sprint(d["name"]), name) {
			return fmt.Sprint(d["value"])
		}
	}
	return ""
}

func (l *email) hasLabel(label string) bool { return slices.Contains(l.labels, label) }

// changeLabels changes the labels of an email and records the change in the history.
func (m *mailbox) changeLabels(l *email, add, remove []string) {
	var added, removed []string
	if slices.Contains(add, "TRASH") { // an email is in one folder
		remove = append([]string{"INBOX", "SPAM"}, remove...)
	}
	for _, label := range add {
		if !l.hasLabel(label) {
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
		m.recordChange(l, entry)
	}
}

func (m *mailbox) recordChange(l *email, entry doc) {
	m.historyID++
	l.historyID = m.historyID
	entry["id"] = strconv.Itoa(m.historyID)
	entry["messages"] = []any{doc{"id": l.id, "threadId": l.thread}}
	m.history = append(m.history, entry)
}

func (m *mailbox) findEmail(id string) *email {
	for _, l := range m.emails {
		if l.id == id {
			return l
		}
	}
	return nil
}

// deliver puts an email into the mailbox.
func (m *mailbox) deliver(l *email) {
	m.emails = append(m.emails, l)
	m.recordChange(l, doc{"messagesAdded": []any{doc{"message": l.summary()}}})
}

// threadEmails returns the emails of a thread, without drafts.
func (m *mailbox) threadEmails(id string) []*email {
	var out []*email
	for _, l := range m.emails {
		if l.thread == id && !l.hasLabel("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

func (m *mailbox) findDraft(id string) *draft {
	for _, d := range m.drafts {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (m *mailbox) removeDraft(id string) {
	m.drafts = slices.DeleteFunc(m.drafts, func(d *draft) bool { return d.id == id })
}

// summary returns an email in the form of the responses to changes.
func (l *email) summary() doc {
	return doc{"id": l.id, "threadId": l.thread, "labelIds": slices.Clone(l.labels)}
}

// resource returns an email in one of the formats of users.messages.get.
func (l *email) resource(format string, wanted []string) doc {
	d := l.summary()
	d["snippet"] = snippet(l.searchText)
	d["historyId"] = strconv.Itoa(l.historyID)
	d["internalDate"] = strconv.FormatInt(l.received.UnixMilli(), 10)
	d["sizeEstimate"] = len(l.searchText)
	switch format {
	case "minimal":
	case "metadata":
		payload := doc{"mimeType": l.payload["mimeType"]}
		var headers []any
		for _, h := range asList(l.payload["headers"]) {
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

// matchesSearch reports whether an email matches a search expression. Unknown operators are searched as
// words.
func (l *email) matchesSearch(query string) bool {
	words := splitQuery(query)
	hidden := l.hasLabel("SPAM") || l.hasLabel("TRASH")
	for _, word := range words {
		negated := strings.HasPrefix(word, "-")
		key, value, isTerm := strings.Cut(strings.TrimPrefix(word, "-"), ":")
		fits := l.containsWord(word)
		if isTerm {
			fits = l.matchesTerm(strings.ToLower(key), strings.ToLower(value))
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

// splitQuery splits a query at spaces outside of quotes.
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

func (l *email) containsWord(word string) bool {
	all := strings.ToLower(l.searchText + " " + l.header("Subject") + " " + l.header("From") + " " + l.header("To"))
	return strings.Contains(all, strings.ToLower(strings.TrimPrefix(word, "-")))
}

func (l *email) matchesTerm(key, value string) bool {
	contains := func(header string) bool { return strings.Contains(strings.ToLower(l.header(header)), value) }
	switch key {
	case "in", "label":
		return value == "anywhere" || slices.ContainsFunc(l.labels, func(s string) bool { return strings.EqualFold(s, value) })
	case "is":
		if value == "read" {
			return !l.hasLabel("UNREAD")
		}
		return l.hasLabel(strings.ToUpper(value))
	case "from", "to", "subject", "cc":
		return contains(key)
	case "has":
		return value == "attachment" && len(l.attachments) > 0
	case "rfc822msgid":
		return contains("Message-ID")
	case "newer_than", "older_than", "after", "before":
		return true // dates are not emulated
	}
	return l.containsWord(key + ":" + value)
}

// parseEmail parses a raw message. Without an id, the email gets a new one.
func (m *mailbox) parseEmail(id string, raw []byte, thread string, labels ...string) (*email, error) {
	msg, err := mail.ReadMessage(strings.NewReader(string(raw)))
	if err != nil {
		return nil, err
	}
	l := &email{id: cmp.Or(id, m.newID("m")), thread: thread, labels: labels, received: m.now(), attachments: map[string][]byte{}}
	if l.thread == "" {
		l.thread = m.newID("t")
	}
	if l.payload, err = l.convertPart("", partHeader(msg.Header), msg.Body); err != nil {
		return nil, err
	}
	return l, nil
}
