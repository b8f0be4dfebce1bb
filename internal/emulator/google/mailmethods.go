package google

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// maxBatch bounds the number of ids of batchModify
// (developers.google.com/workspace/gmail/api/reference/rest/v1/users.messages/batchModify).
const maxBatch = 1000

// gmail emulates a mailbox with its labels and settings.
type gmail struct {
	box                                             *mailbox
	labels, filters, forwarding, senders, delegates *store
	settings                                        map[string]doc // singletons, by name
}

func newGmail(box *mailbox) implementation {
	g := &gmail{
		box: box, labels: newStore("id"), filters: newStore("id"), forwarding: newStore("forwardingEmail"),
		senders: newStore("sendAsEmail"), delegates: newStore("delegateEmail"),
	}
	g.seed()
	vacation, imap := g.settingHandler("vacation"), g.settingHandler("imap")
	language, forwarding := g.settingHandler("language"), g.settingHandler("forwarding")
	return implementation{map[string]handler{
		"gmail.users.messages.list":            g.listMessages,
		"gmail.users.messages.get":             g.getMessage,
		"gmail.users.messages.modify":          g.modifyMessage,
		"gmail.users.messages.trash":           g.relabelHandler([]string{"TRASH"}, nil),
		"gmail.users.messages.untrash":         g.relabelHandler(nil, []string{"TRASH"}),
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
		"gmail.users.history.list":             g.listHistory,
		"gmail.users.getProfile":               g.getProfile,

		"gmail.users.settings.getVacation": vacation, "gmail.users.settings.updateVacation": vacation,
		"gmail.users.settings.getImap": imap, "gmail.users.settings.updateImap": imap,
		"gmail.users.settings.getLanguage": language, "gmail.users.settings.updateLanguage": language,
		"gmail.users.settings.getAutoForwarding": forwarding, "gmail.users.settings.updateAutoForwarding": forwarding,
	}, map[string]collection{
		"gmail.users.labels":           {store: g.labels, idParam: "id", listField: "labels", idPrefix: "Label_", onCreate: completeLabel},
		"gmail.users.settings.filters": {store: g.filters, idParam: "id", listField: "filter", idPrefix: "filter"},
		"gmail.users.settings.forwardingAddresses": {
			store: g.forwarding, idParam: "forwardingEmail", listField: "forwardingAddresses", onCreate: completeForwarding,
		},
		"gmail.users.settings.sendAs":    {store: g.senders, idParam: "sendAsEmail", listField: "sendAs"},
		"gmail.users.settings.delegates": {store: g.delegates, idParam: "delegateEmail", listField: "delegates"},
	}}
}

func completeLabel(_ *call, d doc) { d["type"] = "user" }

func completeForwarding(_ *call, d doc) { d["verificationStatus"] = "pending" }

// settingHandler returns a handler for a singleton setting. A PUT replaces the setting.
func (g *gmail) settingHandler(name string) handler {
	return func(c *call) (any, *rejection) {
		if c.method.HTTP == http.MethodPut {
			g.settings[name] = clone(c.body)
		}
		return clone(g.settings[name]), nil
	}
}

// checkUser refuses requests for the mailboxes of other users.
func (g *gmail) checkUser(c *call) *rejection {
	if user := c.vars["userId"]; user != "me" && user != g.box.email {
		return &rejection{status: 403, message: "Delegation denied for " + g.box.email, reason: "forbidden"}
	}
	return nil
}

// emailParam returns the email whose id is in the path.
func (g *gmail) emailParam(c *call, key string) (*email, *rejection) {
	if rej := g.checkUser(c); rej != nil {
		return nil, rej
	}
	l := g.box.findEmail(c.vars[key])
	if l == nil {
		return nil, notFound(c.vars[key])
	}
	return l, nil
}

func (g *gmail) listMessages(c *call) (any, *rejection) {
	var hits []doc
	for _, l := range g.searchEmails(c) {
		hits = append(hits, doc{"id": l.id, "threadId": l.thread})
	}
	return searchPage(c, "messages", hits)
}

// searchEmails returns the emails that match the search of a request, the newest first.
func (g *gmail) searchEmails(c *call) []*email {
	query := c.query.Get("q")
	if c.query.Get("includeSpamTrash") == "true" {
		query += " in:anywhere"
	}
	var out []*email
	for _, l := range slices.Backward(g.box.emails) {
		labels := c.query["labelIds"]
		if l.matchesSearch(query) && !slices.ContainsFunc(labels, func(id string) bool { return !l.hasLabel(id) }) && !l.hasLabel("DRAFT") {
			out = append(out, l)
		}
	}
	return out
}

// searchPage returns a page of search results, with 100 of them by default.
func searchPage(c *call, field string, hits []doc) (any, *rejection) {
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
	l, rej := g.emailParam(c, "id")
	if rej != nil {
		return nil, rej
	}
	return l.resource(c.query.Get("format"), c.query["metadataHeaders"]), nil
}

// stringList returns a list of strings in the body.
func (c *call) stringList(key string) []string {
	var out []string
	for _, v := range asList(c.body[key]) {
		out = append(out, fmt.Sprint(v))
	}
	return out
}

// labelChanges returns the labels to add and to remove.
func (g *gmail) labelChanges(c *call) (add, remove []string, rej *rejection) {
	add, remove = c.stringList("addLabelIds"), c.stringList("removeLabelIds")
	for _, id := range append(slices.Clone(add), remove...) {
		if _, ok := g.labels.find("", id); !ok {
			return nil, nil, invalidArgument("Invalid label: %s", id)
		}
	}
	if len(add)+len(remove) == 0 {
		return nil, nil, invalidArgument("No label add or removes specified")
	}
	return add, remove, nil
}

func (g *gmail) modifyMessage(c *call) (any, *rejection) {
	l, rej := g.emailParam(c, "id")
	if rej != nil {
		return nil, rej
	}
	add, remove, rej := g.labelChanges(c)
	if rej != nil {
		return nil, rej
	}
	g.box.changeLabels(l, add, remove)
	return l.resource("minimal", nil), nil
}

// relabelHandler returns a handler that adds and removes fixed labels.
func (g *gmail) relabelHandler(add, remove []string) handler {
	return func(c *call) (any, *rejection) {
		l, rej := g.emailParam(c, "id")
		if rej != nil {
			return nil, rej
		}
		g.box.changeLabels(l, add, remove)
		return l.resource("minimal", nil), nil
	}
}

func (g *gmail) batchModify(c *call) (any, *rejection) {
	if rej := g.checkUser(c); rej != nil {
		return nil, rej
	}
	ids := c.stringList("ids")
	if len(ids) == 0 || len(ids) > maxBatch {
		return nil, invalidArgument("There must be 1 to %d ids, not %d.", maxBatch, len(ids))
	}
	add, remove, rej := g.labelChanges(c)
	if rej != nil {
		return nil, rej
	}
	for _, id := range ids {
		if l := g.box.findEmail(id); l != nil { // Gmail ignores unknown ids too
			g.box.changeLabels(l, add, remove)
		}
	}
	return nil, nil
}

// parseMessage parses and checks the raw message in a body.
func (g *gmail) parseMessage(message doc, labels ...string) (*email, *rejection) {
	raw, err := decodeBytes(fmt.Sprint(message["raw"]))
	if err != nil || message["raw"] == nil {
		return nil, invalidArgument("'raw' RFC822 payload message string or uploading message via /upload/* URL required")
	}
	if err := checkEmail(raw); err != nil {
		return nil, invalidArgument("%s", err.Error())
	}
	thread, _ := message["threadId"].(string)
	l, err := g.box.parseEmail("", raw, thread, labels...)
	if err != nil {
		return nil, invalidArgument("%s", err.Error())
	}
	return l, nil
}

func (g *gmail) sendMessage(c *call) (any, *rejection) {
	if rej := g.checkUser(c); rej != nil {
		return nil, rej
	}
	l, rej := g.parseMessage(c.body, "SENT")
	if rej != nil {
		return nil, rej
	}
	g.box.deliver(l)
	return l.resource("minimal", nil), nil
}

func (g *gmail) getAttachment(c *call) (any, *rejection) {
	l, rej := g.emailParam(c, "messageId")
	if rej != nil {
		return nil, rej
	}
	data, ok := l.attachments[c.vars["id"]]
	if !ok {
		return nil, notFound(c.vars["id"])
	}
	return doc{"size": len(data), "data": base64.URLEncoding.EncodeToString(data)}, nil
}

func (g *gmail) listThreads(c *call) (any, *rejection) {
	var out []doc
	seen := map[string]bool{}
	for _, l := range g.searchEmails(c) {
		if !seen[l.thread] {
			seen[l.thread] = true
			out = append(out, doc{"id": l.thread, "snippet": snippet(l.searchText), "historyId": strconv.Itoa(l.historyID)})
		}
	}
	return searchPage(c, "threads", out)
}

func (g *gmail) getThread(c *call) (any, *rejection) {
	letters := g.box.threadEmails(c.vars["id"])
	if len(letters) == 0 {
		return nil, notFound(c.vars["id"])
	}
	var messages []any
	for _, l := range letters {
		messages = append(messages, l.resource(c.query.Get("format"), c.query["metadataHeaders"]))
	}
	return doc{"id": c.vars["id"], "historyId": strconv.Itoa(g.box.historyID), "messages": messages}, nil
}

func (g *gmail) modifyThread(c *call) (any, *rejection) {
	letters := g.box.threadEmails(c.vars["id"])
	if len(letters) == 0 {
		return nil, notFound(c.vars["id"])
	}
	add, remove, rej := g.labelChanges(c)
	if rej != nil {
		return nil, rej
	}
	var messages []any
	for _, l := range letters {
		g.box.changeLabels(l, add, remove)
		messages = append(messages, l.resource("minimal", nil))
	}
	return doc{"id": c.vars["id"], "messages": messages}, nil
}

func (g *gmail) listDrafts(c *call) (any, *rejection) {
	var out []doc
	for _, d := range g.box.drafts {
		out = append(out, doc{"id": d.id, "message": doc{"id": d.email.id, "threadId": d.email.thread}})
	}
	return searchPage(c, "drafts", out)
}

func (g *gmail) getDraft(c *call) (any, *rejection) {
	d := g.box.findDraft(c.vars["id"])
	if d == nil {
		return nil, notFound(c.vars["id"])
	}
	return doc{"id": d.id, "message": d.email.resource(c.query.Get("format"), nil)}, nil
}

func (g *gmail) createDraft(c *call) (any, *rejection) {
	message, _ := c.body["message"].(doc)
	l, rej := g.parseMessage(message, "DRAFT")
	if rej != nil {
		return nil, rej
	}
	d := &draft{id: g.box.newID("draft"), email: l}
	g.box.drafts = append(g.box.drafts, d)
	return doc{"id": d.id, "message": l.resource("minimal", nil)}, nil
}

func (g *gmail) deleteDraft(c *call) (any, *rejection) {
	if g.box.findDraft(c.vars["id"]) == nil {
		return nil, notFound(c.vars["id"])
	}
	g.box.removeDraft(c.vars["id"])
	return nil, nil
}

func (g *gmail) sendDraft(c *call) (any, *rejection) {
	d := g.box.findDraft(fmt.Sprint(c.body["id"]))
	if d == nil {
		return nil, notFound(fmt.Sprint(c.body["id"]))
	}
	g.box.removeDraft(d.id)
	d.email.labels = []string{"SENT"}
	g.box.deliver(d.email)
	return d.email.resource("minimal", nil), nil
}

// listHistory returns the changes since a history id. It refuses an id that is too old with 404.
func (g *gmail) listHistory(c *call) (any, *rejection) {
	start, err := strconv.Atoi(c.query.Get("startHistoryId"))
	if err != nil {
		return nil, invalidArgument("Invalid startHistoryId")
	}
	if start < firstHistory {
		return nil, notFound("history " + strconv.Itoa(start))
	}
	label := c.query.Get("labelId")
	var out []doc
	for _, entry := range g.box.history {
		id, err := strconv.Atoi(fmt.Sprint(entry["id"]))
		if err == nil && id > start && (label == "" || strings.Contains(fmt.Sprint(entry), label)) {
			out = append(out, entry)
		}
	}
	answer, rej := searchPage(c, "history", out)
	if d, ok := answer.(doc); ok {
		delete(d, "resultSizeEstimate")
		d["historyId"] = strconv.Itoa(g.box.historyID)
	}
	return answer, rej
}

func (g *gmail) getProfile(c *call) (any, *rejection) {
	if rej := g.checkUser(c); rej != nil {
		return nil, rej
	}
	return doc{
		"emailAddress": g.box.email, "messagesTotal": len(g.box.emails), "threadsTotal": len(g.box.emails),
		"historyId": strconv.Itoa(g.box.historyID),
	}, nil
}
