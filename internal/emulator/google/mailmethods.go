package google

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxBatch is how many ids batchModify takes
// (developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/batchModify).
const maxBatch = 1000

// me checks that a mailbox is the account's own.
func (w *world) me(c *call) *rejection {
	if user := c.vars["userId"]; user != "me" && user != w.email {
		return &rejection{status: 403, message: "Delegation denied for " + w.email, reason: "forbidden"}
	}
	return nil
}

// one finds the letter that a path names.
func (w *world) one(c *call, key string) (*letter, *rejection) {
	if rej := w.me(c); rej != nil {
		return nil, rej
	}
	l := w.mail.letter(c.vars[key])
	if l == nil {
		return nil, missing(c.vars[key])
	}
	return l, nil
}

func (w *world) listMessages(c *call) (any, *rejection) {
	var hits []doc
	for _, l := range w.hits(c) {
		hits = append(hits, doc{"id": l.id, "threadId": l.thread})
	}
	return estimated(c, "messages", hits)
}

// hits are the letters that a search finds, the newest first.
func (w *world) hits(c *call) []*letter {
	query := c.query.Get("q")
	if c.query.Get("includeSpamTrash") == "true" {
		query += " in:anywhere"
	}
	var out []*letter
	for _, l := range slices.Backward(w.mail.letters) {
		labels := c.query["labelIds"]
		if l.matches(query) && !slices.ContainsFunc(labels, func(id string) bool { return !l.has(id) }) && !l.has("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

// estimated is a page of a search, of 100 where nothing else is asked for.
func estimated(c *call, field string, hits []doc) (any, *rejection) {
	if c.query.Get("maxResults") == "" {
		c.query.Set("maxResults", "100")
	}
	answer, rej := c.page(field, hits)
	if d, ok := answer.(doc); ok {
		d["resultSizeEstimate"] = len(hits)
	}
	return answer, rej
}

func (w *world) getMessage(c *call) (any, *rejection) {
	l, rej := w.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	return l.full(c.query.Get("format"), c.query["metadataHeaders"]), nil
}

// list reads a list of texts in a body.
func (c *call) list(key string) []string {
	var out []string
	items, _ := c.body[key].([]any)
	for _, v := range items {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// labels reads the labels that a request adds and removes.
func (w *world) labels(c *call) (add, remove []string, rej *rejection) {
	add, remove = c.list("addLabelIds"), c.list("removeLabelIds")
	for _, id := range append(slices.Clone(add), remove...) {
		if _, ok := w.find("gmail.users.labels", "", id); !ok {
			return nil, nil, invalid("Invalid label: %s", id)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil, nil, invalid("No label add or removes specified")
	}
	return add, remove, nil
}

func (w *world) modifyMessage(c *call) (any, *rejection) {
	l, rej := w.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	add, remove, rej := w.labels(c)
	if rej != nil {
		return nil, rej
	}
	w.mail.relabel(l, add, remove)
	return l.brief(), nil
}

func (w *world) trashMessage(c *call) (any, *rejection) {
	l, rej := w.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	w.mail.relabel(l, []string{"TRASH"}, []string{"INBOX", "SPAM"})
	return l.brief(), nil
}

func (w *world) untrashMessage(c *call) (any, *rejection) {
	l, rej := w.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	w.mail.relabel(l, nil, []string{"TRASH"})
	return l.brief(), nil
}

func (w *world) batchModify(c *call) (any, *rejection) {
	if rej := w.me(c); rej != nil {
		return nil, rej
	}
	ids := c.list("ids")
	if len(ids) == 0 || len(ids) > maxBatch {
		return nil, invalid("There must be 1 to %d ids, not %d.", maxBatch, len(ids))
	}
	add, remove, rej := w.labels(c)
	if rej != nil {
		return nil, rej
	}
	for _, id := range ids {
		if l := w.mail.letter(id); l != nil { // Unknown ids are no error there either.
			w.mail.relabel(l, add, remove)
		}
	}
	return nil, nil
}

// written reads the message in a body.
func (w *world) written(message doc, labels ...string) (*letter, *rejection) {
	raw, err := decodeBytes(fmt.Sprint(message["raw"]))
	if err != nil || message["raw"] == nil {
		return nil, invalid("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
	}
	if err := checkLetter(raw); err != nil {
		return nil, invalid("%s", err.Error())
	}
	thread, _ := message["threadId"].(string)
	l, err := w.letterOf(raw, thread, labels...)
	if err != nil {
		return nil, invalid("%s", err.Error())
	}
	return l, nil
}

func (w *world) sendMessage(c *call) (any, *rejection) {
	if rej := w.me(c); rej != nil {
		return nil, rej
	}
	l, rej := w.written(c.body, "SENT")
	if rej != nil {
		return nil, rej
	}
	w.deliver(l)
	return l.brief(), nil
}

// deliver puts a letter into the mailbox.
func (w *world) deliver(l *letter) {
	w.mail.letters = append(w.mail.letters, l)
	w.mail.note(l, doc{"messagesAdded": []any{doc{"message": l.brief()}}})
}

func (w *world) getAttachment(c *call) (any, *rejection) {
	l, rej := w.one(c, "messageId")
	if rej != nil {
		return nil, rej
	}
	data, ok := l.files[c.vars["id"]]
	if !ok {
		return nil, missing(c.vars["id"])
	}
	return doc{"size": len(data), "data": base64.URLEncoding.EncodeToString(data)}, nil
}

// thread are the letters of a conversation.
func (w *world) thread(id string) []*letter {
	var out []*letter
	for _, l := range w.mail.letters {
		if l.thread == id && !l.has("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

func (w *world) listThreads(c *call) (any, *rejection) {
	var out []doc
	seen := map[string]bool{}
	for _, l := range w.hits(c) {
		if !seen[l.thread] {
			seen[l.thread] = true
			out = append(out, doc{"id": l.thread, "snippet": snippet(l.text), "historyId": strconv.Itoa(l.changed)})
		}
	}
	return estimated(c, "threads", out)
}

func (w *world) getThread(c *call) (any, *rejection) {
	letters := w.thread(c.vars["id"])
	if len(letters) == 0 {
		return nil, missing(c.vars["id"])
	}
	var messages []any
	for _, l := range letters {
		messages = append(messages, l.full(c.query.Get("format"), c.query["metadataHeaders"]))
	}
	return doc{"id": c.vars["id"], "historyId": strconv.Itoa(w.mail.clock), "messages": messages}, nil
}

func (w *world) modifyThread(c *call) (any, *rejection) {
	letters := w.thread(c.vars["id"])
	if len(letters) == 0 {
		return nil, missing(c.vars["id"])
	}
	add, remove, rej := w.labels(c)
	if rej != nil {
		return nil, rej
	}
	var messages []any
	for _, l := range letters {
		w.mail.relabel(l, add, remove)
		messages = append(messages, l.brief())
	}
	return doc{"id": c.vars["id"], "messages": messages}, nil
}

func (w *world) draft(id string) *draft {
	for _, d := range w.mail.drafts {
		if d.id == id {
			return d
		}
	}
	return nil
}

func (w *world) listDrafts(c *call) (any, *rejection) {
	var out []doc
	for _, d := range w.mail.drafts {
		out = append(out, doc{"id": d.id, "message": doc{"id": d.letter.id, "threadId": d.letter.thread}})
	}
	return estimated(c, "drafts", out)
}

func (w *world) getDraft(c *call) (any, *rejection) {
	d := w.draft(c.vars["id"])
	if d == nil {
		return nil, missing(c.vars["id"])
	}
	return doc{"id": d.id, "message": d.letter.full(c.query.Get("format"), nil)}, nil
}

func (w *world) createDraft(c *call) (any, *rejection) {
	message, _ := c.body["message"].(doc)
	l, rej := w.written(message, "DRAFT")
	if rej != nil {
		return nil, rej
	}
	d := &draft{id: w.mint("draft"), letter: l}
	w.mail.drafts = append(w.mail.drafts, d)
	return doc{"id": d.id, "message": l.brief()}, nil
}

func (w *world) deleteDraft(c *call) (any, *rejection) {
	if w.draft(c.vars["id"]) == nil {
		return nil, missing(c.vars["id"])
	}
	w.dropDraft(c.vars["id"])
	return nil, nil
}

func (w *world) dropDraft(id string) {
	w.mail.drafts = slices.DeleteFunc(w.mail.drafts, func(d *draft) bool { return d.id == id })
}

func (w *world) sendDraft(c *call) (any, *rejection) {
	d := w.draft(fmt.Sprint(c.body["id"]))
	if d == nil {
		return nil, missing(fmt.Sprint(c.body["id"]))
	}
	w.dropDraft(d.id)
	d.letter.labels = []string{"SENT"}
	w.deliver(d.letter)
	return d.letter.brief(), nil
}

// history are the changes since an id; 404 for one that is too old.
func (w *world) history(c *call) (any, *rejection) {
	start, err := strconv.Atoi(c.query.Get("startHistoryId"))
	if err != nil {
		return nil, invalid("Invalid startHistoryId")
	}
	if start < firstHistory {
		return nil, missing("history " + strconv.Itoa(start))
	}
	label := c.query.Get("labelId")
	var out []doc
	for _, entry := range w.mail.history {
		id, err := strconv.Atoi(fmt.Sprint(entry["id"]))
		if err == nil && id > start && (label == "" || strings.Contains(fmt.Sprint(entry), label)) {
			out = append(out, entry)
		}
	}
	answer, rej := estimated(c, "history", out)
	if d, ok := answer.(doc); ok {
		delete(d, "resultSizeEstimate")
		d["historyId"] = strconv.Itoa(w.mail.clock)
	}
	return answer, rej
}

func (w *world) profile(c *call) (any, *rejection) {
	if rej := w.me(c); rej != nil {
		return nil, rej
	}
	return doc{
		"emailAddress": w.email, "messagesTotal": len(w.mail.letters), "threadsTotal": len(w.mail.letters),
		"historyId": strconv.Itoa(w.mail.clock),
	}, nil
}

// userinfo is whose token it is.
func (w *world) userinfo(*call) (any, *rejection) {
	return doc{"id": "1", "email": w.email, "verified_email": true, "name": w.email}, nil
}
