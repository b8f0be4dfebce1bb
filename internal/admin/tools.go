package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"oneclaw/bridge/conversation"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
)

// ToolSource supplies what the page about tools shows.
type ToolSource struct {
	// Registry returns the current tools.
	Registry func() *toolgroups.Registry
	// Servers returns the MCP servers.
	Servers func() []mcp.Status
}

func (p *page) tools(ctx context.Context, r frame.Request) (frame.Page, error) {
	loaded, err := p.loadedTable(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	connected, err := p.connectionsTable(ctx, r)
	if err != nil {
		return frame.Page{}, err
	}
	registry := p.Tools.Registry()
	sections := []frame.Section{
		{Title: "Groups", Table: groupsTable(registry)},
		{Title: "MCP servers", Table: serversTable(p.Tools.Servers())},
		{Title: "Loaded where", Table: loaded},
		{Title: "Connections", Table: connected},
	}
	if off, _ := registry.DisabledNames(); len(off) > 0 {
		sections[0].Text = []string{"Tools that are switched off: " + strings.Join(off, ", ") + "."}
	}
	return frame.Page{Lead: "The tokens are estimates of what the schemas cost in each request that has them.", Sections: sections}, nil
}

func groupsTable(registry *toolgroups.Registry) *frame.Table {
	t := &frame.Table{Name: "groups", Caption: "Tool groups", Columns: frame.Columns("Group", "From", "#Tools", "#Tokens", "For", "State")}
	core := registry.Core()
	row := func(name, from, role string, tools []toolgroups.Tool, off bool) {
		state := frame.Cell{Text: "on", Mood: frame.Good}
		if off {
			state = frame.Cell{Text: "switched off", Mood: frame.Muted}
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(name), frame.Text(from), frame.Number(formatThousands(int64(len(tools)))), frame.Number(formatThousands(int64(toolgroups.EstimateTokens(tools)))), frame.Text(role), state,
		})
	}
	row("core", "the program, always offered", "everybody", core, false)
	for _, g := range registry.Groups() {
		row(g.Name, cmp.Or(g.Source, toolgroups.SourceBuiltin), roleName(g.Role), g.Tools, registry.GroupDisabled(g.Name))
	}
	return t
}

func roleName(r toolgroups.Role) string {
	switch {
	case r >= toolgroups.RoleOwner:
		return "the owner"
	case r >= toolgroups.RoleAdmin:
		return "administrators"
	}
	return "everybody"
}

func serversTable(all []mcp.Status) *frame.Table {
	t := &frame.Table{Name: "servers", Caption: "MCP servers", Columns: frame.Columns("Server", "How", "Added", "#Tools", "State", "Why", "Tried again"), Empty: "There are none."}
	for _, s := range all {
		how, added, state := "program", "in the settings", frame.Cell{Text: "not in use"}
		if s.Server.URL != "" {
			how = "address"
		}
		if s.Added {
			added = "in a chat"
		}
		switch {
		case s.Problem != "":
			state = frame.Cell{Text: "does not work", Mood: frame.Bad}
		case s.Connected:
			state = frame.Cell{Text: "works", Mood: frame.Good}
		}
		why := s.Problem
		if len(s.PendingChanges) > 0 && why == "" {
			state, why = frame.Cell{Text: "changed", Mood: frame.Bad}, "describes tools otherwise than when it was allowed: /mcp "+s.Name+" shows how"
		}
		if n := len(s.LeftOut); n > 0 && why == "" {
			why = wording.Plural(n, "further tool is left out", "further tools are left out") + ": /mcp " + s.Name + " says why"
		}
		t.Rows = append(t.Rows, []frame.Cell{
			frame.Text(s.Name), frame.Text(how), frame.Text(added), frame.Number(formatThousands(int64(s.Tools))), state, frame.Text(why), frame.Time(s.NextRetry),
		})
	}
	return t
}

// loadedTable lists the groups that recently active conversations have loaded.
func (p *page) loadedTable(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{Name: "loaded", Caption: "Conversations that were active last, with the groups that they have loaded", Columns: frame.Columns("Conversation", "Groups"), Empty: "None has loaded a group."}
	n, last, whole, seen := 0, receipts.Entry{}, true, make(map[string]bool)
	var some []receipts.Entry
	for f, err := range receipts.ListEntries(ctx, p.Store, "") {
		if err != nil {
			return nil, err
		}
		if n == maxRecordReads || len(seen) == r.Limit {
			whole = false
			break
		}
		n, last = n+1, f
		if some = append(some, f); len(some) == rowsPerBatch {
			if err := p.addActive(ctx, some, seen, r.Limit, t); err != nil {
				return nil, err
			}
			some = some[:0]
		}
	}
	if err := p.addActive(ctx, some, seen, r.Limit, t); err != nil {
		return nil, err
	}
	t.SearchNote = searchNote(n, len(t.Rows), "message", last.At, p.Zone(), whole)
	return t, nil
}

// addActive adds the conversations of some messages to a table, unless they were added before.
func (p *page) addActive(ctx context.Context, some []receipts.Entry, seen map[string]bool, most int, t *frame.Table) error {
	known, err := receipts.LoadReceipts(ctx, p.Store, some)
	if err != nil {
		return err
	}
	for _, f := range some {
		j := known[f.Key]
		if j == nil || conversationLog(j) == "" || seen[conversationLog(j)] || len(seen) == most {
			continue
		}
		log := conversationLog(j)
		seen[log] = true
		groups, err := conversation.LoadedGroups(ctx, p.Store, log)
		if err != nil {
			return err
		}
		if len(groups) > 0 {
			t.Rows = append(t.Rows, []frame.Cell{{Text: log, Link: frame.ViewURL(conversationView, "log", log)}, frame.Text(strings.Join(groups, ", "))})
		}
	}
	return nil
}

// connectionsTable lists which users have connected which services, without the names of the accounts,
// which are encrypted.
func (p *page) connectionsTable(ctx context.Context, r frame.Request) (*frame.Table, error) {
	t := &frame.Table{Name: "connections", Caption: "Connected accounts", Columns: frame.Columns("Person", "At"), Empty: "No accounts are connected."}
	at, user := r.Query.Get("server"), r.Query.Get("user")
	if at != "" {
		t.First = r.Link("server", "", "user", "")
	}
	add := func(server, person string) bool {
		if len(t.Rows) == r.Limit {
			t.Next = r.Link("server", at, "user", user)
			return false
		}
		at, user = server, person
		t.Rows = append(t.Rows, []frame.Cell{frame.Text(person), frame.Text(server)})
		return true
	}
	const ours = "google" // no MCP server has the name of a built-in service
	if at == "" || at == ours {
		for person, err := range google.ConnectedUsers(ctx, p.Store, user) {
			if err != nil {
				return nil, fmt.Errorf("list connections: %w", err)
			}
			if !add(ours, person) {
				return t, nil
			}
		}
	}
	after := oauth.Connection{Server: at, User: user}
	if at == ours {
		after = oauth.Connection{}
	}
	for c, err := range oauth.Connections(ctx, p.Store, after) {
		if err != nil {
			return nil, fmt.Errorf("list connections: %w", err)
		}
		if !add(c.Server, c.User) {
			break
		}
	}
	return t, nil
}
