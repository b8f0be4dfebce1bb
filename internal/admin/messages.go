package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/telemetry"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const (
	messageView = "message"
	// maxOpen bounds the open messages in the list.
	maxOpen = 20
)

// messages lists open messages, and finished ones, the newest first.
func (p *page) messages(ctx context.Context, r frame.Request) (frame.Page, error) {
	open, err := p.openTable(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	done, err := p.finishedTable(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	search := frame.Form{View: "messages", IsSearch: true, Submit: "Search", Fields: []frame.Field{
		{Name: "find", Label: "Chat, person or id of an error", Value: r.Query.Get("find"), Hint: "telegram:123"},
		{Name: "state", Label: "Outcome", Value: r.Query.Get("state"), Options: []frame.Option{
			{Value: "", Label: "anything"},
			{Value: "failed", Label: "failed"},
			{Value: "done", Label: "answered"},
			{Value: "stopped", Label: "stopped"},
			{Value: "cleared", Label: "cleared"},
			{Value: "refused", Label: "refused"},
		}},
	}}
	return frame.Page{
		Lead:     "Messages and scheduled tasks of the last week. What was written in them is not here.",
		Sections: []frame.Section{{Title: "Open now", Table: open}, {Title: "Finished", Forms: []frame.Form{search}, Table: done}},
	}, nil
}

func (p *page) openTable(ctx context.Context) (*frame.Table, error) {
	t := &frame.Table{Name: "open", Caption: "Messages that wait or are being answered", Columns: frame.Columns("Message", "Chat", "From", "State", "Accepted"), Empty: "Nothing is open."}
	for entry, err := range p.Store.List(ctx, storage.Range{Prefix: queue.OpenPrefix, Limit: 10 * maxOpen}) {
		if err != nil {
			return nil, fmt.Errorf("list open messages: %w", err)
		}
		run, err := p.jobs.DecodeJob(entry)
		if err != nil {
			continue // a damaged job must not hide the others
		}
		j := run.Receipt()
		if !isExplainable(j) {
			continue
		}
		if len(t.Rows) == maxOpen {
			t.SearchNote = fmt.Sprintf("There are more than these %d.", maxOpen)
			break
		}
		state := "waits or is being answered"
		if j.State == receipts.Waiting {
			state = "waits for an approval"
		}
		t.Rows = append(t.Rows, []frame.Cell{
			{Text: kindLabel(j.Key()), Link: frame.ViewURL(messageView, "key", j.Key())},
			frame.Text(j.Message.Chat.String()),
			frame.Text(p.senderLabel(j)), frame.Text(state), frame.Time(j.Accepted),
		})
	}
	return t, nil
}

// isExplainable reports whether a job is a message or a task.
func isExplainable(j *receipts.Receipt) bool {
	return receipts.IsUserMessage(j.Message)
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

// senderLabel returns the sender's name and id. A scheduled task has no name; People may know it.
func (p *page) senderLabel(j *receipts.Receipt) string {
	by, name := j.Message.SenderID(), j.Message.UserName
	if name == "" && p.People != nil {
		people := p.People()
		if i := slices.IndexFunc(people, func(one access.Person) bool { return one.User == by }); i >= 0 {
			name = people[i].Name
		}
	}
	if name == "" {
		return by
	}
	return name + " (" + by + ")"
}

// finishedTable lists a page of the index entries that match a search.
func (p *page) finishedTable(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{
		Name: "messages", Caption: "Finished messages, the newest first",
		Columns: frame.Columns("Finished", "Outcome", "#Took", "Chat", "From", "Why"), Empty: "None was found.",
	}
	find, state := strings.TrimSpace(r.Query.Get("find")), r.Query.Get("state")
	after := r.Query.Get("after")
	if after != "" {
		t.First = r.Link("after", "")
	}
	failed, err := p.Program.Errors.byIncident(ctx)
	if err != nil {
		return nil, err
	}
	var found []receipts.Entry
	n, last, whole := 0, receipts.Entry{}, true
	for f, err := range receipts.ListEntries(ctx, p.Store, after) {
		if err != nil {
			return nil, err
		}
		if len(found) == r.Limit || n == maxScanned {
			whole = false
			break
		}
		if n, last = n+1, f; matchesSearch(f, find, state) {
			found = append(found, f)
		}
	}
	for some := range slices.Chunk(found, rowsPerBatch) {
		if err := pauseBetweenRows(ctx, len(t.Rows)); err != nil {
			return nil, err
		}
		known, err := receipts.LoadReceipts(ctx, p.Store, some)
		if err != nil {
			return nil, err
		}
		for _, f := range some {
			if j := known[f.Key]; j != nil {
				t.Rows = append(t.Rows, p.receiptRow(j, failed))
			}
		}
	}
	if !whole {
		t.Next = r.Link("after", last.IndexKey())
	}
	t.SearchNote = searchNote(n, len(t.Rows), "message", last.At, p.Zone(), whole)
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

// receiptRow returns the row of a receipt, with its stored error.
func (p *page) receiptRow(j *receipts.Receipt, failed map[string]telemetry.Error) []frame.Cell {
	mood := frame.Plain
	text := outcome(j)
	if j.State == receipts.Failed || j.Incident != "" {
		mood = frame.Bad
	}
	return []frame.Cell{
		{Time: j.Closed, Link: frame.ViewURL(messageView, "key", j.Key())},
		{Text: text, Mood: mood},
		frame.Number(frame.DurationText(j.Closed.Sub(j.Accepted))),
		frame.Text(j.Message.Chat.String()), frame.Text(p.senderLabel(j)), reasonCell(j, failed),
	}
}

// reasonCell returns why a message has no answer, linked to the error.
// If the error is no longer stored, it returns only the incident id.
func reasonCell(j *receipts.Receipt, failed map[string]telemetry.Error) frame.Cell {
	one, kept := failed[j.Incident]
	if j.Incident == "" || !kept {
		return frame.Text(j.Incident)
	}
	return frame.Cell{Text: wording.Clip(cmp.Or(one.Why(), one.Text), maxErrorText), Link: frame.ViewURL(errorsView, "find", j.Incident)}
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
