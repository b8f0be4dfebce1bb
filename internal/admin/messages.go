package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
)

const (
	messageView = "message"
	// maxOpen bounds the open messages that are listed.
	maxOpen = 20
)

// messages lists what is open, and what was finished, the newest first.
func (p *page) messages(ctx context.Context, r frame.Request) (frame.Page, error) {
	open, err := p.open(ctx)
	if err != nil {
		return frame.Page{}, err
	}
	done, err := p.finished(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	search := frame.Form{View: "messages", Get: true, Submit: "Search", Fields: []frame.Field{
		{Name: "find", Label: "Chat, person or incident", Value: r.Query.Get("find"), Hint: "telegram:123"},
		{Name: "state", Label: "What became of it", Value: r.Query.Get("state"), Options: []frame.Option{
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

func (p *page) open(ctx context.Context) (*frame.Table, error) {
	t := &frame.Table{Name: "open", Caption: "Messages that wait or are being answered", Columns: frame.Columns("Message", "Chat", "From", "State", "Accepted"), Empty: "Nothing is open."}
	for entry, err := range p.Store.List(ctx, storage.Range{Prefix: queue.OpenPrefix, Limit: 10 * maxOpen}) {
		if err != nil {
			return nil, fmt.Errorf("list open messages: %w", err)
		}
		j, err := p.jobs.Read(entry)
		if err != nil || !explained(&j.Job) {
			continue // one that is damaged hides no other
		}
		if len(t.Rows) == maxOpen {
			t.Looked = fmt.Sprintf("There are more than these %d.", maxOpen)
			break
		}
		state := "waits or is being answered"
		if j.State == queue.StateWaiting {
			state = "waits for an approval"
		}
		t.Rows = append(t.Rows, []frame.Cell{
			{Text: kindOf(j.Key()), Link: frame.To(messageView, "key", j.Key())},
			frame.Text(j.Message.Chat.String()),
			frame.Text(personOf(&j.Job)), frame.Text(state), frame.At(j.Accepted),
		})
	}
	return t, nil
}

// explained reports whether a job is a message or a task.
func explained(j *queue.Job) bool {
	return j.Message.Kind == chats.KindText || j.Message.Kind == queue.KindTask
}

// kindOf says what the job with a key is.
func kindOf(key string) string {
	if strings.HasSuffix(key, "/"+string(queue.KindTask)) {
		return "Task"
	}
	return "Message"
}

func personOf(j *queue.Job) string {
	if name := j.Message.UserName; name != "" {
		return name + " (" + j.Message.By() + ")"
	}
	return j.Message.By()
}

// finished lists the page of an index of which entries fit a search.
func (p *page) finished(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{
		Name: "messages", Caption: "Finished messages, the newest first",
		Columns: frame.Columns("Finished", "Chat", "From", "What became of it", "#Took", "Incident"), Empty: "None was found.",
	}
	find, state := strings.TrimSpace(r.Query.Get("find")), r.Query.Get("state")
	after := r.Query.Get("after")
	if after != "" {
		t.First = r.Link("after", "")
	}
	var found []queue.Completed
	n, last, whole := 0, queue.Completed{}, true
	for f, err := range p.jobs.Completed(ctx, after) {
		if err != nil {
			return nil, err
		}
		if len(found) == r.Limit || n == maxLooked {
			whole = false
			break
		}
		if n, last = n+1, f; fits(f, find, state) {
			found = append(found, f)
		}
	}
	for some := range slices.Chunk(found, rowsAtOnce) {
		if err := rest(ctx, len(t.Rows)); err != nil {
			return nil, err
		}
		receipts, err := p.jobs.Receipts(ctx, some)
		if err != nil {
			return nil, err
		}
		for _, f := range some {
			if j := receipts[f.Key]; j != nil {
				t.Rows = append(t.Rows, receiptRow(j))
			}
		}
	}
	if !whole {
		t.Next = r.Link("after", last.Place())
	}
	t.Looked = looked(n, len(t.Rows), "message", last.At, p.Zone(), whole)
	return t, nil
}

// fits reports whether an entry is of a chat, a person or an incident, and of a state.
func fits(f queue.Completed, find, state string) bool {
	switch {
	case state == string(queue.StateFailed) && f.State != queue.StateFailed && f.Incident == "":
		return false
	case state != "" && state != string(queue.StateFailed) && (string(f.State) != state || f.Incident != ""):
		return false
	case find == "" || f.Incident != "" && strings.EqualFold(find, f.Incident):
		return true
	}
	chat, _, _ := strings.Cut(f.Key, "/")
	platform, _, _ := strings.Cut(chat, ":")
	return find == chat || find == platform || find == platform+":"+f.User || find == f.Key
}

// receiptRow is the row of a receipt.
func receiptRow(j *queue.Job) []frame.Cell {
	mood := frame.Plain
	text := outcome(j)
	if j.State == queue.StateFailed || j.Incident != "" {
		mood = frame.Bad
	}
	return []frame.Cell{
		{Time: j.Closed, Link: frame.To(messageView, "key", j.Key())},
		frame.Text(j.Message.Chat.String()), frame.Text(personOf(j)),
		{Text: text, Mood: mood},
		frame.Number(took(j.Closed.Sub(j.Accepted))), frame.Text(j.Incident),
	}
}

// outcome says in a few words what became of a message.
func outcome(j *queue.Job) string {
	switch {
	case j.Refused:
		return "no budget"
	case j.Incident != "":
		return "error"
	case j.State == queue.StateFailed:
		return "not delivered in full"
	case j.State == queue.StateDone && j.Trigger != nil && j.Trigger.Silent:
		return "ended in silence"
	case j.State == queue.StateDone && j.Notice != "":
		return "answered with a notice"
	case j.State == queue.StateDone:
		return "answered"
	}
	return string(j.State)
}
