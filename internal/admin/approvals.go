package admin

import (
	"context"
	"errors"
	"fmt"

	"oneclaw/bridge/audit"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
)

// maxApprovals bounds the approvals shown.
const maxApprovals = 50

func (d *operations) approvals(ctx context.Context, r frame.Request) (frame.Page, error) {
	all, err := d.Approvals.Waiting(ctx, r.Visitor.Person, maxApprovals)
	if err != nil {
		return frame.Page{}, err
	}
	page := frame.Page{
		Lead: "Calls of tools that wait for a person. What you may decide in the chat you may decide here; a decision holds for the very arguments that you see.",
	}
	text := message(r)
	if told, err := d.Approvals.PressResult(ctx, r.Query.Get("of")); err != nil {
		return frame.Page{}, err
	} else if told != "" {
		text = []string{"The question was answered: " + told}
	}
	table := &frame.Table{
		Name: "approvals", Caption: "Calls that wait", Columns: frame.Columns("Tool", "Chat", "Asked for by", "Until", "You"), Empty: "Nothing waits.",
	}
	var sections []frame.Section
	for _, q := range all {
		may := "may not decide this"
		if q.DenyData != "" {
			may = "decide below"
			sections = append(sections, d.approvalSection(q))
		}
		table.Rows = append(table.Rows, []frame.Cell{
			frame.Text(q.Tool), frame.Text(q.Chat.String()), frame.Text(q.Requester), frame.Time(q.Expires), frame.Text(may),
		})
	}
	if len(all) == maxApprovals {
		table.SearchNote = fmt.Sprintf("There may be more than these %d.", maxApprovals)
	}
	page.Sections = append([]frame.Section{{Text: text, Table: table}}, sections...)
	return page, nil
}

// approvalSection shows a call with its exact arguments, and the buttons. A call of which the page
// masks a part can be denied here but allowed only in the chat: an approver must see all of it.
func (d *operations) approvalSection(q interact.ApprovalRequest) frame.Section {
	press := func(submit, data string, danger bool) frame.Form {
		return frame.Form{
			View: approvalsView, Submit: submit, About: q.Tool + " in " + q.Chat.String(), Danger: danger, Fields: []frame.Field{{Name: "press", Value: data}},
		}
	}
	shown := d.RedactCards(q.Text)
	s := frame.Section{
		Title: q.Tool + " in " + q.Chat.String(), Quotes: []frame.Quote{{By: "The question, as it stands in the chat", Text: shown}},
		Forms: []frame.Form{press("Deny", q.DenyData, true)},
	}
	switch {
	case q.AllowData == "":
	case d.Redact(shown) != shown:
		s.Text = []string{"Something in it looks like a secret and is masked here. To allow it, look at the question in the chat."}
	default:
		s.Forms = append([]frame.Form{press("Allow once", q.AllowData, false)}, s.Forms...)
	}
	return s
}

func (d *operations) decide(ctx context.Context, r frame.Request) (string, error) {
	data := r.Form.Get("press")
	taken, err := d.Approvals.Press(ctx, r.Visitor.Person, r.Visitor.Name, data)
	if err != nil {
		return "", err
	}
	if !taken {
		return messageURL(r.Visitor, approvalsView, "That question is over, or not yours to decide."), nil
	}
	return frame.ViewURL(approvalsView, "of", data), nil
}

// audit shows the audit entries, the newest first.
func (d *operations) audit(ctx context.Context, r frame.Request) (frame.Page, error) {
	t := &frame.Table{
		Name: "audit", Caption: "Who did what, the newest first", Columns: frame.Columns("When", "Who", "Name", "Where", "What", "To what"), Empty: "Nothing yet.",
	}
	all, next, err := audit.ListAfter(ctx, d.Store, r.Query.Get("after"), r.Limit)
	if errors.Is(err, storage.ErrInvalid) {
		return frame.Page{}, frame.ErrNotFound
	}
	if err != nil {
		return frame.Page{}, err
	}
	if r.Query.Get("after") != "" {
		t.First = r.Link("after", "")
	}
	if next != "" {
		t.Next = r.Link("after", next)
	}
	for _, e := range all {
		t.Rows = append(t.Rows, []frame.Cell{frame.Time(e.At), frame.Text(e.By), frame.Text(e.Name), frame.Text(e.Chat), frame.Text(e.Action), frame.Text(e.About)})
	}
	return frame.Page{Lead: "Entries are added and never changed; the oldest go.", Sections: []frame.Section{{Table: t}}}, nil
}
