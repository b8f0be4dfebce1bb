package google

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxBatch bounds the ids of batchModify
// (developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/batchModify).
const maxBatch = 1000

// gmail emulates a mailbox, with its labels and settings.
type gmail struct {
	box                                             *mailbox
	labels, filters, forwarding, senders, delegates *shelf
	settings                                        map[string]doc // singletons
}

func newGmail(box *mailbox) offer {
	g := &gmail{
		box: box, labels: newShelf("id"), filters: newShelf("id"), forwarding: newShelf("forwardingEmail"),
		senders: newShelf("sendAsEmail"), delegates: newShelf("delegateEmail"),
	}
	g.seed()
	vacation, imap := g.setting("vacation"), g.setting("imap")
	language, forwarding := g.setting("language"), g.setting("forwarding")
	return offer{map[string]handler{
		"gmail.users.messages.list":            g.listMessages,
		"gmail.users.messages.get":             g.getMessage,
		"gmail.users.messages.modify":          g.modifyMessage,
		"gmail.users.messages.trash":           g.relabel([]string{"TRASH"}, nil),
		"gmail.users.messages.untrash":         g.relabel(nil, []string{"TRASH"}),
		"gmail.users.messages.batchModify":     g.batchModify,
		"gmail.users.messages.send":            g.sendMessage,
		"gmail.users.messages.attachments.get": g.getAttachment,
		"gmail.users.threads.list":             g.listThreads,
		"gmail.users.threads.get":              g.getThread,
		"gmail.users.threads.modify":           g.modifyThread,
		"gmail.users.drafts.list":              g.listDrafts,
		"gmail.users.drafts.get":               g.getDraft,
		"gmail.users.drafts.create":            g.createDraft,
		"gmail.users.drafts.delete":            g.deleteDraft,
		"gmail.users.drafts.send":              g.sendDraft,
		"gmail.users.history.list":             g.history,
		"gmail.users.getProfile":               g.profile,

		"gmail.users.settings.getVacation": vacation, "gmail.users.settings.updateVacation": vacation,
		"gmail.users.settings.getImap": imap, "gmail.users.settings.updateImap": imap,
		"gmail.users.settings.getLanguage": language, "gmail.users.settings.updateLanguage": language,
		"gmail.users.settings.getAutoForwarding": forwarding, "gmail.users.settings.updateAutoForwarding": forwarding,
	}, map[string]collection{
		"gmail.users.labels":           {shelf: g.labels, key: "id", list: "labels", mint: "Label_", made: madeLabel},
		"gmail.users.settings.filters": {shelf: g.filters, key: "id", list: "filter", mint: "filter"},
		"gmail.users.settings.forwardingAddresses": {
			shelf: g.forwarding, key: "forwardingEmail", list: "forwardingAddresses", made: madeForwarding,
		},
		"gmail.users.settings.sendAs":    {shelf: g.senders, key: "sendAsEmail", list: "sendAs"},
		"gmail.users.settings.delegates": {shelf: g.delegates, key: "delegateEmail", list: "delegates"},
	}}
}

func madeLabel(_ *call, d doc) { d["type"] = "user" }

func madeForwarding(_ *call, d doc) { d["verificationStatus"] = "pending" }

// setting returns a handler for a singleton, which a PUT replaces first.
func (g *gmail) setting(name string) handler {
	return func(c *call) (any, *rejection) {
		if c.method.HTTP == http.MethodPut {
			g.settings[name] = clone(c.body)
		}
		return clone(g.settings[name]), nil
	}
}

// me refuses other users' mailboxes.
func (g *gmail) me(c *call) *rejection {
	if user := c.vars["userId"]; user != "me" && user != g.box.email {
		return &rejection{status: 403, message: "Delegation denied for " + g.box.email, reason: "forbidden"}
	}
	return nil
}

// one finds the letter that a path names.
func (g *gmail) one(c *call, key string) (*letter, *rejection) {
	if rej := g.me(c); rej != nil {
		return nil, rej
	}
	l := g.box.letter(c.vars[key])
	if l == nil {
		return nil, missing(c.vars[key])
	}
	return l, nil
}

func (g *gmail) listMessages(c *call) (any, *rejection) {
	var hits []doc
	for _, l := range g.hits(c) {
		hits = append(hits, doc{"id": l.id, "threadId": l.thread})
	}
	return estimated(c, "messages", hits)
}

// hits returns the letters that match a search, the newest first.
func (g *gmail) hits(c *call) []*letter {
	query := c.query.Get("q")
	if c.query.Get("includeSpamTrash") == "true" {
		query += " in:anywhere"
	}
	var out []*letter
	for _, l := range slices.Backward(g.box.letters) {
		labels := c.query["labelIds"]
		if l.matches(query) && !slices.ContainsFunc(labels, func(id string) bool { return !l.has(id) }) && !l.has("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

// estimated returns a page of a search, 100 by default.
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

func (g *gmail) getMessage(c *call) (any, *rejection) {
	l, rej := g.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	return l.full(c.query.Get("format"), c.query["metadataHeaders"]), nil
}

// list reads a list of strings in a body.
func (c *call) list(key string) []string {
	var out []string
	for _, v := range list(c.body[key]) {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// relabeled reads the labels to add and remove.
func (g *gmail) relabeled(c *call) (add, remove []string, rej *rejection) {
	add, remove = c.list("addLabelIds"), c.list("removeLabelIds")
	for _, id := range append(slices.Clone(add), remove...) {
		if _, ok := g.labels.find("", id); !ok {
			return nil, nil, invalid("Invalid label: %s", id)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil, nil, invalid("No label add or removes specified")
	}
	return add, remove, nil
}

func (g *gmail) modifyMessage(c *call) (any, *rejection) {
	l, rej := g.one(c, "id")
	if rej != nil {
		return nil, rej
	}
	add, remove, rej := g.relabeled(c)
	if rej != nil {
		return nil, rej
	}
	g.box.relabel(l, add, remove)
	return l.brief(), nil
}

// relabel returns a handler that changes fixed labels.
func (g *gmail) relabel(add, remove []string) handler {
	return func(c *call) (any, *rejection) {
		l, rej := g.one(c, "id")
		if rej != nil {
			return nil, rej
		}
		g.box.relabel(l, add, remove)
		return l.brief(), nil
	}
}

func (g *gmail) batchModify(c *call) (any, *rejection) {
	if rej := g.me(c); rej != nil {
		return nil, rej
	}
	ids := c.list("ids")
	if len(ids) == 0 || len(ids) > maxBatch {
		return nil, invalid("There must be 1 to %d ids, not %d.", maxBatch, len(ids))
	}
	add, remove, rej := g.relabeled(c)
	if rej != nil {
		return nil, rej
	}
	for _, id := range ids {
		if l := g.box.letter(id); l != nil { // unknown ids are ignored there too
			g.box.relabel(l, add, remove)
		}
	}
	return nil, nil
}

// written parses the message in a body.
func (g *gmail) written(message doc, labels ...string) (*letter, *rejection) {
	raw, err := decodeBytes(fmt.Sprint(message["raw"]))
	if err != nil || message["raw"] == nil {
		return nil, invalid("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
	}
	if err := checkLetter(raw); err != nil {
		return nil, invalid("%s", err.Error())
	}
	thread, _ := message["threadId"].(string)
	l, err := g.box.letterOf("", raw, thread, labels...)
	if err != nil {
		return nil, invalid("%s", err.Error())
	}
	return l, nil
}

func (g *gmail) sendMessage(c *call) (any, *rejection) {
	if rej := g.me(c); rej != nil {
		return nil, rej
	}
	l, rej := g.written(c.body, "SENT")
	if rej != nil {
		return nil, rej
	}
	g.box.deliver(l)
	return l.brief(), nil
}

func (g *gmail) getAttachment(c *call) (any, *rejection) {
	l, rej := g.one(c, "messageId")
	if rej != nil {
		return nil, rej
	}
	data, ok := l.files[c.vars["id"]]
	if !ok {
		return nil, missing(c.vars["id"])
	}
	return doc{"size": len(data), "data": base64.URLEncoding.EncodeToString(data)}, nil
}

func (g *gmail) listThreads(c *call) (any, *rejection) {
	var out []doc
	seen := map[string]bool{}
	for _, l := range g.hits(c) {
		if !seen[l.thread] {
			seen[l.thread] = true
			out = append(out, doc{"id": l.thread, "snippet": snippet(l.text), "historyId": strconv.Itoa(l.changed)})
		}
	}
	return estimated(c, "threads", out)
}

func (g *gmail) getThread(c *call) (any, *rejection) {
	letters := g.box.thread(c.vars["id"])
	if len(letters) == 0 {
		return nil, missing(c.vars["id"])
	}
	var messages []any
	for _, l := range letters {
		messages = append(messages, l.full(c.query.Get("format"), c.query["metadataHeaders"]))
	}
	return doc{"id": c.vars["id"], "historyId": strconv.Itoa(g.box.clock), "messages": messages}, nil
}

func (g *gmail) modifyThread(c *call) (any, *rejection) {
	letters := g.box.thread(c.vars["id"])
	if len(letters) == 0 {
		return nil, missing(c.vars["id"])
	}
	add, remove, rej := g.relabeled(c)
	if rej != nil {
		return nil, rej
	}
	var messages []any
	for _, l := range letters {
		g.box.relabel(l, add, remove)
		messages = append(messages, l.brief())
	}
	return doc{"id": c.vars["id"], "messages": messages}, nil
}

func (g *gmail) listDrafts(c *call) (any, *rejection) {
	var out []doc
	for _, d := range g.box.drafts {
		out = append(out, doc{"id": d.id, "message": doc{"id": d.letter.id, "threadId": d.letter.thread}})
	}
	return estimated(c, "drafts", out)
}

func (g *gmail) getDraft(c *call) (any, *rejection) {
	d := g.box.draft(c.vars["id"])
	if d == nil {
		return nil, missing(c.vars["id"])
	}
	return doc{"id": d.id, "message": d.letter.full(c.query.Get("format"), nil)}, nil
}

func (g *gmail) createDraft(c *call) (any, *rejection) {
	message, _ := c.body["message"].(doc)
	l, rej := g.written(message, "DRAFT")
	if rej != nil {
		return nil, rej
	}
	d := &draft{id: g.box.mint("draft"), letter: l}
	g.box.drafts = append(g.box.drafts, d)
	return doc{"id": d.id, "message": l.brief()}, nil
}

func (g *gmail) deleteDraft(c *call) (any, *rejection) {
	if g.box.draft(c.vars["id"]) == nil {
		return nil, missing(c.vars["id"])
	}
	g.box.dropDraft(c.vars["id"])
	return nil, nil
}

func (g *gmail) sendDraft(c *call) (any, *rejection) {
	d := g.box.draft(fmt.Sprint(c.body["id"]))
	if d == nil {
		return nil, missing(fmt.Sprint(c.body["id"]))
	}
	g.box.dropDraft(d.id)
	d.letter.labels = []string{"SENT"}
	g.box.deliver(d.letter)
	return d.letter.brief(), nil
}

// history returns the changes since an id; 404 if it is too old.
func (g *gmail) history(c *call) (any, *rejection) {
	start, err := strconv.Atoi(c.query.Get("startHistoryId"))
	if err != nil {
		return nil, invalid("Invalid startHistoryId")
	}
	if start < firstHistory {
		return nil, missing("history " + strconv.Itoa(start))
	}
	label := c.query.Get("labelId")
	var out []doc
	for _, entry := range g.box.history {
		id, err := strconv.Atoi(fmt.Sprint(entry["id"]))
		if err == nil && id > start && (label == "" || strings.Contains(fmt.Sprint(entry), label)) {
			out = append(out, entry)
		}
	}
	answer, rej := estimated(c, "history", out)
	if d, ok := answer.(doc); ok {
		delete(d, "resultSizeEstimate")
		d["historyId"] = strconv.Itoa(g.box.clock)
	}
	return answer, rej
}

func (g *gmail) profile(c *call) (any, *rejection) {
	if rej := g.me(c); rej != nil {
		return nil, rej
	}
	return doc{
		"emailAddress": g.box.email, "messagesTotal": len(g.box.letters), "threadsTotal": len(g.box.letters),
		"historyId": strconv.Itoa(g.box.clock),
	}, nil
}
