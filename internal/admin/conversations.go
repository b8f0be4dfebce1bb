package admin

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strings"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage"
)

const (
	conversationView = "conversation"
	// turnsOnPage and maxRecords bound the turns and records that are read for one page.
	turnsOnPage, maxRecords = 25, 2000
)

// conversations lists conversations, the newest first, or those of one owner.
func (p *page) conversations(ctx context.Context, r frame.Request) (frame.Page, error) {
	owner, kind, after := strings.TrimSpace(r.Query.Get("owner")), r.Query.Get("kind"), r.Query.Get("after")
	t := &frame.Table{Name: "conversations", Caption: "Conversations, the newest first", Columns: frame.Columns("Begun", "Chat", "Whose", "Kind"), Empty: "None was found."}
	all := conversation.ByStart(ctx, p.Store, after)
	next := conversation.Conversation.IndexKey
	if owner != "" {
		t.Caption = "Conversations of " + owner + ", by their names"
		all, next = conversation.ByOwner(ctx, p.Store, owner, after), conversation.Conversation.Log
	}
	if after != "" {
		t.First = r.Link("after", "")
	}
	n, last, whole, err := p.addConversationRows(ctx, all, t, kind, r.Limit)
	if err != nil {
		return frame.Page{}, err
	}
	if !whole {
		t.Next = r.Link("after", next(last))
	}
	t.SearchNote = searchNote(n, len(t.Rows), "conversation", last.StartedAt, p.Zone(), whole || owner != "")
	search := frame.Form{View: "conversations", IsSearch: true, Submit: "Search", Fields: []frame.Field{
		{Name: "owner", Label: "Whose: a person, or a group", Value: owner, Hint: "telegram:123"},
		{Name: "kind", Label: "Kind", Value: kind, Options: []frame.Option{{Value: "", Label: "all"}, {Value: "chat", Label: "of chats"}, {Value: "task", Label: "of tasks"}}},
	}}
	return frame.Page{
		Lead:     "By when they began. Their titles are what people wrote, so they are not here.",
		Sections: []frame.Section{{Forms: []frame.Form{search}, Table: t}},
	}, nil
}

// addConversationRows adds the conversations of a kind, or of all kinds if it is empty, until the
// table has limit rows. n counts the conversations that it read, last is the last of them, and whole
// reports whether there are no more.
func (p *page) addConversationRows(ctx context.Context, all iter.Seq2[conversation.Conversation, error], t *frame.Table, kind string, limit int) (n int, last conversation.Conversation, whole bool, err error) {
	for c, err := range all {
		if err != nil {
			return n, last, false, err
		}
		if len(t.Rows) == limit || n == maxRecordReads+limit {
			return n, last, false, nil
		}
		if n%rowsPerBatch == 0 {
			if err := pauseBetweenRows(ctx, n); err != nil {
				return n, last, false, err
			}
		}
		n, last = n+1, c
		of := fmt.Sprintf("chat, number %d", c.Generation)
		if c.Task != "" {
			of = "task"
		}
		if kind != "" && !strings.HasPrefix(of, kind) {
			continue
		}
		t.Rows = append(t.Rows, []frame.Cell{
			{Time: c.StartedAt, Link: frame.ViewURL(conversationView, "owner", c.Owner, "log", c.Log())},
			frame.Text(c.Chat.String()), frame.Text(c.Owner), frame.Text(of),
		})
	}
	return n, last, true, nil
}

// conversation shows the turns of a conversation, the newest first, without their texts.
func (p *page) conversation(ctx context.Context, r frame.Request) (frame.Page, error) {
	log := r.Query.Get("log")
	turns, next, err := p.turns(ctx, log, parsePosition(r.Query.Get("before")))
	if err != nil {
		return frame.Page{}, err
	}
	facts, err := p.conversationFacts(ctx, r.Query.Get("owner"), log)
	if err != nil {
		return frame.Page{}, err
	}
	t := &frame.Table{
		Name: "turns", Caption: "Turns, the newest first", Columns: frame.Columns("Begun", "Model", "#Replies", "#Tools", "#Tokens in", "#From the cache", "#Tokens out", "#Took"),
		Empty: "No turn is on record.",
	}
	var texts []agent.Message
	for _, turn := range turns {
		row, err := p.turnCells(ctx, turn)
		if err != nil {
			return frame.Page{}, err
		}
		t.Rows = append(t.Rows, row)
		texts = append(texts, turn...)
	}
	if r.Query.Get("before") != "" {
		t.First = r.Link("before", "")
	}
	if next > 0 {
		t.Next = r.Link("before", fmt.Sprint(next))
	}
	said, err := p.textSection(ctx, r, textPage{view: conversationView, name: "log", value: log, log: log}, func() []frame.Quote { return quotes(texts) })
	if err != nil {
		return frame.Page{}, err
	}
	sections := []frame.Section{{Facts: facts}, {Title: "Turns", Table: t}, said}
	return frame.Page{Sections: sections}, nil
}

// conversationFacts returns facts about a conversation. owner may be empty if it is not known.
func (p *page) conversationFacts(ctx context.Context, owner, log string) ([]frame.Fact, error) {
	groups, err := conversation.LoadedGroups(ctx, p.Store, log)
	if err != nil {
		return nil, err
	}
	loaded := "none"
	if len(groups) > 0 {
		loaded = strings.Join(groups, ", ")
	}
	facts := []frame.Fact{{Name: "Name", Value: frame.Text(log)}, {Name: "Tool groups loaded", Value: frame.Text(loaded)}}
	if owner == "" {
		return facts, nil
	}
	c, err := conversation.FindConversation(ctx, p.Store, owner, log)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return facts, nil
	case err != nil:
		return nil, err
	}
	return append(facts, frame.Fact{Name: "Whose", Value: frame.Text(c.Owner)}, frame.Fact{Name: "Begun", Value: frame.Time(c.StartedAt)}), nil
}

// turns returns the turns of a log before a position, or the last ones if it is 0, the newest first.
// next is the position before which there are older ones; 0 for none.
func (p *page) turns(ctx context.Context, log string, before storage.Position) (readTurns [][]agent.Message, next storage.Position, err error) {
	if log == "" || len(log) > storage.MaxKey {
		return nil, 0, frame.ErrNotFound
	}
	var part []agent.Message
	n := 0
	for record, err := range conversation.Records(ctx, p.Store, log, storage.Query{Backward: true, Before: before}) {
		if err != nil {
			return nil, 0, fmt.Errorf("read %s: %w", log, err)
		}
		n++
		m, err := conversation.Decode(log, record)
		if queue.IsDamaged(err) {
			continue
		}
		part = append(part, m)
		next = record.Pos
		if m.BeginsTurn() {
			slices.Reverse(part)
			readTurns, part = append(readTurns, part), nil
		}
		if (len(readTurns) == turnsOnPage || n >= maxRecords) && record.Pos > 1 {
			return readTurns, next, nil
		}
	}
	if n == 0 && before == 0 {
		return nil, 0, frame.ErrNotFound
	}
	return readTurns, 0, nil
}

// turnCells returns the row of a turn, linked to its message if that is still on record.
func (p *page) turnCells(ctx context.Context, messages []agent.Message) ([]frame.Cell, error) {
	first := frame.Time(messages[0].Time)
	if key := messages[0].Ref; key != "" {
		j, err := p.jobs.Find(ctx, key)
		if err != nil && !queue.IsDamaged(err) {
			return nil, err
		}
		if j != nil && isExplainable(j) {
			first.Link = frame.ViewURL(messageView, "key", key)
		}
	}
	replies, tools, model, end, used := 0, 0, "", messages[0].Time, agent.Usage{}
	for _, m := range messages {
		end = latest(end, m.Time)
		switch {
		case m.Role == agent.RoleTool:
			tools++
		case m.Role == agent.RoleAssistant && m.Usage != nil:
			replies++
			model = m.Model
			used.Input, used.Cached, used.Output = used.Input+m.Usage.Input, used.Cached+m.Usage.Cached, used.Output+m.Usage.Output
		}
	}
	number := func(n int) frame.Cell { return frame.Number(formatThousands(int64(n))) }
	return []frame.Cell{
		first, frame.Text(model), number(replies), number(tools), number(used.Input), number(used.Cached), number(used.Output),
		frame.Number(frame.DurationText(end.Sub(messages[0].Time).Round(time.Millisecond))),
	}, nil
}

func (p *page) readConversation(ctx context.Context, r frame.Request) (string, error) {
	log := r.Form.Get("log")
	if turns, _, err := p.turns(ctx, log, 0); err != nil || len(turns) == 0 {
		return "", errors.Join(err, frame.ErrNotFound)
	}
	name, _, _ := strings.Cut(log, "/")
	chat, err := chats.ParseChat(name)
	if err != nil {
		return "", errors.Join(frame.ErrNotFound, err)
	}
	return p.announceReading(ctx, r, chat, textPage{view: conversationView, name: "log", value: log, log: log})
}
