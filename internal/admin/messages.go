package admin

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/why"
	"oneclaw/internal/telemetry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const (
	messagesView = "messages"
	messageView  = "message"
	// maxOpen bounds the open messages in the list.
	maxOpen = 20
)

// messages lists open messages, and finished ones, the newest first.
func (p *Pages) messages(ctx context.Context, r request) (page, error) {
	open, err := p.openTable(ctx)
	if err != nil {
		return page{}, err
	}
	done, err := p.finishedTable(ctx, r)
	if err != nil {
		return page{}, err
	}
	search := form{View: messagesView, IsSearch: true, Submit: "Search", Fields: []field{
		{Name: "find", Label: "Chat, person or id of an error", Value: r.query.Get("find"), Hint: "telegram:123"},
		{Name: "state", Label: "Outcome", Value: r.query.Get("state"), Options: []option{
			{"", "anything"}, {"failed", "failed"}, {"done", "answered"}, {"stopped", "stopped"}, {"cleared", "cleared"}, {"refused", "refused"},
		}},
	}}
	sections := []section{{Title: "Open now", Table: open}, {Title: "Finished", Forms: []form{search}, Table: done}}
	if len(r.query) > 0 { // a search, and a further page of it, are about finished messages
		slices.Reverse(sections)
	}
	return page{Lead: "Messages and scheduled tasks of the last week. What was written in them is not here.", Sections: sections}, nil
}

func (p *Pages) openTable(ctx context.Context) (*table, error) {
	t := &table{Caption: "Messages that wait or are being answered", Columns: columns("Message", "From", "Where", "State", "Accepted"), Empty: "Nothing is open."}
	var open []*receipts.Receipt
	for entry, err := range p.Store.List(ctx, storage.Range{Prefix: queue.OpenPrefix, Limit: 10 * maxOpen}) {
		if err != nil {
			return nil, fmt.Errorf("list open messages: %w", err)
		}
		run, err := p.jobs.DecodeJob(entry)
		if err != nil {
			continue // a damaged job must not hide the others
		}
		j := run.Receipt()
		if !receipts.IsUserMessage(j.Message) {
			continue
		}
		if len(open) == maxOpen {
			t.Note = fmt.Sprintf("There are more than these %d.", maxOpen)
			break
		}
		open = append(open, j)
	}
	names := p.placeNames(ctx, open...)
	for _, j := range open {
		state := "waits or is being answered"
		if j.State == receipts.Waiting {
			state = "waits for an approval"
		}
		t.Rows = append(t.Rows, []cell{{Text: kindLabel(j.Key()), Link: messageLink(j.Key())}, text(p.senderName(j)), text(place(j, names)), text(state), at(j.Accepted)})
	}
	return t, nil
}

// messageLink returns the address of the page about a job's message, or "" if there is none.
func messageLink(job string) string {
	if !receipts.IsUserMessage(chats.Message{Kind: chats.Kind(job[strings.LastIndexByte(job, '/')+1:])}) {
		return ""
	}
	return viewURL(messageView, url.Values{"key": {job}})
}

// kindLabel returns the kind of the job with the given key.
func kindLabel(key string) string {
	switch chats.Kind(key[strings.LastIndexByte(key, '/')+1:]) {
	case receipts.KindTask:
		return "Task"
	case receipts.KindBackground:
		return "Background task"
	case receipts.KindResult:
		return "Result"
	}
	return "Message"
}

// senderName returns the sender's name and id. A scheduled task has no name; People may know it.
func (p *Pages) senderName(j *receipts.Receipt) string {
	one := access.Person{User: j.Message.SenderID(), Name: j.Message.UserName}
	if people := p.People.ListPeople(); one.Name == "" {
		if i := slices.IndexFunc(people, func(known access.Person) bool { return known.User == one.User }); i >= 0 {
			one = people[i]
		}
	}
	return labelled(one.Name, one.User)
}

// labelled returns a name with the id that a search takes.
func labelled(name, id string) string {
	if name == "" || name == id {
		return id
	}
	return name + " (" + id + ")"
}

// placeNames returns the names of the shared chats in which messages were written.
func (p *Pages) placeNames(ctx context.Context, all ...*receipts.Receipt) map[string]string {
	var ids []string
	for _, j := range all {
		if !j.Message.Direct {
			ids = append(ids, j.Message.Chat.WithoutThread().String())
		}
	}
	return p.chatNames(ctx, ids...)
}

// place returns where a message was written, with the id that a search takes.
func place(j *receipts.Receipt, names map[string]string) string {
	if j.Message.Direct {
		return "direct chat"
	}
	return labelled(names[j.Message.Chat.WithoutThread().String()], j.Message.Chat.String())
}

// finishedTable lists a page of the index entries that match a search.
func (p *Pages) finishedTable(ctx context.Context, r request) (*table, error) {
	t := &table{Caption: "Finished messages, the newest first", Columns: columns("Finished", "Outcome", "#Took", "From", "Where", "Why"), Empty: "None was found."}
	find, state, after := strings.TrimSpace(r.query.Get("find")), r.query.Get("state"), r.query.Get("after")
	if after != "" {
		t.First = r.link("after", "")
	}
	var found []receipts.Entry
	n, last := 0, receipts.Entry{}
	for f, err := range receipts.ListEntries(ctx, p.Store, after) {
		if err != nil {
			return nil, err
		}
		if len(found) == maxRows || n == maxScanned {
			t.Next = r.link("after", last.IndexKey())
			break
		}
		if n, last = n+1, f; matchesSearch(f, find, state) {
			found = append(found, f)
		}
	}
	known, err := receipts.LoadReceipts(ctx, p.Store, found)
	if err != nil {
		return nil, err
	}
	failed, names := p.byIncident(), p.placeNames(ctx, slices.Collect(maps.Values(known))...)
	for _, f := range found {
		if j := known[f.Key]; j != nil {
			t.Rows = append(t.Rows, p.receiptRow(j, failed, names))
		}
	}
	if t.Next != "" {
		t.Note = fmt.Sprintf("Looked at %s, back to %s.", wording.Plural(n, "message", "messages"), last.At.In(p.Zone()).Format(time.DateTime))
	}
	return t, nil
}

// matchesSearch reports whether an entry has a state and matches find: a platform, a chat, a user, an
// incident or a key. An empty state or find matches all.
func matchesSearch(f receipts.Entry, find, state string) bool {
	switch {
	case state == string(receipts.Failed) && f.State != receipts.Failed && f.Incident == "":
		return false
	case state != "" && state != string(receipts.Failed) && (string(f.State) != state || f.Incident != ""):
		return false
	case find == "" || f.Incident != "" && strings.EqualFold(find, f.Incident):
		return true
	}
	chat, _, _ := strings.Cut(f.Key, "/")
	platform, _, _ := strings.Cut(chat, ":")
	return find == chat || find == platform || find == platform+":"+f.User || find == f.Key
}

// byIncident returns the logged errors by the incident ids that were shown in chats.
func (p *Pages) byIncident() map[string]telemetry.Error {
	all := map[string]telemetry.Error{}
	for _, one := range p.Errors.Last() {
		all[one.Incident] = one // the oldest one, which comes last, is the cause
	}
	return all
}

// receiptRow returns the row of a receipt, with its error as far as this process has logged it.
func (p *Pages) receiptRow(j *receipts.Receipt, failed map[string]telemetry.Error, names map[string]string) []cell {
	outcome := cell{Text: outcome(j)}
	if j.State == receipts.Failed || j.Incident != "" {
		outcome.Mood = bad
	}
	return []cell{
		{Time: j.Closed, Link: messageLink(j.Key())},
		outcome, number(wording.ShortDuration(j.Closed.Sub(j.Accepted))),
		text(p.senderName(j)), text(place(j, names)), text(cause(j, failed)),
	}
}

// cause returns why a message has no answer, as far as this process has logged it; empty if it has one.
func cause(j *receipts.Receipt, failed map[string]telemetry.Error) string {
	one := failed[j.Incident]
	switch known := cmp.Or(one.Why(), one.Text); {
	case j.Incident == "":
		return ""
	case known == "":
		return "the log has the cause: incident " + j.Incident
	default:
		return wording.Clip(known, maxErrorText)
	}
}

// outcome describes briefly what happened to a message.
func outcome(j *receipts.Receipt) string {
	switch {
	case j.Turn.Refused:
		return "no budget"
	case j.Incident != "":
		return "error"
	case j.State == receipts.Failed:
		return "not delivered in full"
	case j.State == receipts.Done && j.Task != nil && j.Task.Silent:
		return "ended in silence"
	case j.State == receipts.Done && j.Answer.Notice != "":
		return "answered with a notice"
	case j.State == receipts.Done:
		return "answered"
	}
	return string(j.State)
}

// message explains what happened to one message. With a form it announces that the visitor reads the
// conversation.
func (p *Pages) message(ctx context.Context, r request) (page, error) {
	key := cmp.Or(r.form.Get("key"), r.query.Get("key"))
	told, err := p.explain(ctx, key)
	if err != nil {
		return page{}, err
	}
	j := told.Receipt
	log := conversationLog(j)
	if r.form != nil {
		if err := p.announceReading(ctx, r.visitor, j.Message.Chat, log); err != nil {
			return page{}, err
		}
	}
	s := section{Facts: []fact{
		{"From", text(p.senderName(j))}, {"Where", text(place(j, p.placeNames(ctx, j)))}, {"Outcome", text(outcome(j))}, {"Accepted", at(j.Accepted)},
	}}
	if why := cause(j, p.byIncident()); why != "" {
		s.Facts = append(s.Facts, fact{"Why", cell{Text: why, Mood: bad}})
	}
	for _, line := range told.Lines {
		s.Items = append(s.Items, text(plainText(line)))
	}
	said, err := p.textSection(ctx, r.visitor, key, log, told.Turn)
	if err != nil {
		return page{}, err
	}
	return page{Title: kindLabel(j.Key()) + " of " + j.Accepted.In(p.Zone()).Format(time.DateTime), Sections: []section{s, said}}, nil
}

func (p *Pages) explain(ctx context.Context, key string) (*why.Explanation, error) {
	told, err := p.Explain(ctx, key)
	if errors.Is(err, storage.ErrInvalid) {
		return nil, errNotFound
	}
	if err != nil {
		return nil, err
	}
	if told == nil || !receipts.IsUserMessage(told.Receipt.Message) {
		return nil, errNotFound
	}
	return told, nil
}

// conversationLog returns the name of the log of a message's conversation, or "" if the message had no
// turn.
func conversationLog(j *receipts.Receipt) string {
	if receipts.IsTask(j.Message) {
		return conversation.Session{Chat: j.Origin(), Task: j.Message.ID}.Log()
	}
	if j.Turn.Generation == 0 {
		return ""
	}
	return conversation.Session{Chat: j.Message.Chat, Generation: j.Turn.Generation}.Log()
}
