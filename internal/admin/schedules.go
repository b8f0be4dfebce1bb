package admin

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"oneclaw/internal/admin/frame"
	"oneclaw/internal/hooks"
	"oneclaw/toolgroups/schedule"
)

// schedulesPage shows schedules and webhooks.
func (p *page) schedulesPage(ctx context.Context, r frame.Request) (frame.Page, error) {
	tasks, err := p.schedulesTable(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	hooked, err := p.hooksTable(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	return frame.Page{
		Lead:     "What the tasks are called and what they ask is what people wrote, so it is not here. The address of a webhook is its owner's.",
		Sections: []frame.Section{{Title: "Schedules", Table: tasks}, {Title: "Webhooks", Table: hooked}},
	}, nil
}

// schedulesTable lists scheduled tasks by owner.
func (p *page) schedulesTable(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{
		Name: "schedules", Caption: "Scheduled tasks, by their owners", Columns: frame.Columns("Owner", "Plan", "State", "Next run", "Last run", "Outcome", "Task", "Chat", "Made by"),
		Empty: "Nothing is scheduled.",
	}
	owner, id, ok := strings.Cut(r.Query.Get("after"), "/")
	if ok {
		t.First = r.Link("after", "")
	}
	var last schedule.Task
	for one, err := range schedule.All(ctx, p.Store, schedule.Task{Owner: owner, ID: id}) {
		if err != nil {
			return nil, fmt.Errorf("list schedules: %w", err)
		}
		if len(t.Rows) == r.Limit {
			t.Next = r.Link("after", last.Owner+"/"+last.ID)
			break
		}
		last = one
		state, ran, outcome := frame.Cell{Text: "on", Mood: frame.Good}, frame.Cell{}, frame.Cell{}
		if !one.Enabled {
			state = frame.Cell{Text: "off", Mood: frame.Muted}
		}
		if n := len(one.History); n > 0 {
			e := one.History[n-1]
			ran, outcome = frame.Time(e.Due), frame.Text(string(e.State))
			if e.State == schedule.Failed {
				outcome.Mood = frame.Bad
			}
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(one.Owner), frame.Text(one.Plan.String()), state, frame.Time(one.Due), ran, outcome, frame.Text(one.ID), frame.Text(one.Chat), frame.Text(one.User),
		})
	}
	return t, nil
}

// hooksTable lists the webhooks, the newest first.
func (p *page) hooksTable(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{
		Name: "webhooks", Caption: "Webhooks, the newest first", Columns: frame.Columns("Made", "Name", "Chat", "Made by", "#Deliveries", "Last", "Outcome"), Empty: "There are none.",
	}
	var all []hooks.Hook
	for one, err := range hooks.All(ctx, p.Store) {
		if err != nil {
			return nil, err
		}
		if all = append(all, one); len(all) == maxScanned {
			t.SearchNote = "There may be more than the " + formatThousands(maxScanned) + " that were looked at."
			break
		}
	}
	slices.SortFunc(all, func(a, b hooks.Hook) int { return b.Created.Compare(a.Created) })
	if len(all) > r.Limit {
		t.SearchNote = fmt.Sprintf("Looked at %s: these are the newest %d. ", formatCount(len(all), "webhook", "webhooks"), r.Limit) + t.SearchNote
		all = all[:r.Limit]
	}
	for _, one := range all {
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Time(one.Created), frame.Text(one.Name), frame.Text(one.Chat), frame.Text(one.User), frame.Number(formatThousands(int64(one.Deliveries))), frame.Time(one.LastDelivery), frame.Text(one.Outcome),
		})
	}
	return t, nil
}
