package admin

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"oneclaw/internal/budget"
	"oneclaw/internal/wording"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
	"oneclaw/toolgroups/mcp/oauth"
)

const toolsView = "tools"

func (p *Pages) tools(ctx context.Context, _ request) (page, error) {
	connected, err := p.connectionsTable(ctx)
	if err != nil {
		return page{}, err
	}
	registry := p.Tools.Registry()
	sections := []section{
		{Title: "MCP servers", Table: serversTable(p.Tools.Servers())},
		{Title: "Groups", Table: groupsTable(registry)},
		{Title: "Connections", Table: connected},
	}
	if off, _ := registry.DisabledNames(); len(off) > 0 {
		sections[1].Text = []string{"Tools that are switched off: " + strings.Join(off, ", ") + "."}
	}
	return page{Lead: "The tokens are estimates of what the schemas cost in each request that has them.", Sections: sections}, nil
}

func groupsTable(registry *toolgroups.Registry) *table {
	t := &table{Caption: "Tool groups", Columns: columns("Group", "From", "#Tools", "#Tokens", "For", "State")}
	row := func(name, from, role string, tools []toolgroups.Tool, off bool) {
		state := cell{Text: "on", Mood: good}
		if off {
			state = cell{Text: "switched off", Mood: muted}
		}
		t.Rows = append(t.Rows, []cell{
			text(name), text(from), number(budget.FormatCount(int64(len(tools)))), number(budget.FormatCount(int64(toolgroups.EstimateTokens(tools)))), text(role), state,
		})
	}
	row("core", "the program, always offered", "everybody", registry.Core(), false)
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

func serversTable(all []mcp.Status) *table {
	t := &table{Caption: "MCP servers", Columns: columns("Server", "State", "Last asked", "Why", "Tried again", "#Tools", "How", "Added"), Empty: "There are none."}
	for _, s := range all {
		how, added := "program", "in the settings"
		if s.Server.URL != "" {
			how = "address"
		}
		if s.Added {
			added = "in a chat"
		}
		state, why := serverState(s)
		t.Rows = append(t.Rows, []cell{text(s.Name), state, at(s.LastAsked), text(why), at(s.NextRetry), number(budget.FormatCount(int64(s.Tools))), text(how), text(added)})
	}
	return t
}

// serverState returns the state of an MCP server, bad if it needs an administrator, and why.
func serverState(s mcp.Status) (state cell, why string) {
	switch n := len(s.LeftOut); {
	case s.Problem != "":
		return cell{Text: "does not work", Mood: bad}, s.Problem
	case s.HasNews():
		return cell{Text: "changed", Mood: bad}, "says what no administrator has allowed yet: /mcp " + s.Name + " shows how"
	case n > 0:
		why = wording.Plural(n, "further tool is left out", "further tools are left out") + ": /mcp " + s.Name + " says why"
	}
	if s.Connected {
		return cell{Text: "works", Mood: good}, why
	}
	return text("not in use"), why
}

// connectionsTable lists which users have connected which services, without the names of the accounts,
// which are encrypted.
func (p *Pages) connectionsTable(ctx context.Context) (*table, error) {
	var all []oauth.Connection
	for person, err := range google.ConnectedUsers(ctx, p.Store) {
		if err != nil {
			return nil, fmt.Errorf("list connections: %w", err)
		}
		if all = append(all, oauth.Connection{Server: "google", User: person}); len(all) == maxRows {
			break
		}
	}
	for c, err := range oauth.Connections(ctx, p.Store) {
		if err != nil {
			return nil, fmt.Errorf("list connections: %w", err)
		}
		if all = append(all, c); len(all) >= 2*maxRows {
			break
		}
	}
	t := &table{Caption: "Connected accounts", Columns: columns("Person", "At"), Empty: "No accounts are connected."}
	if len(all) >= maxRows {
		t.Note = "There may be more than these."
	}
	var ids []string
	for _, c := range all {
		ids = append(ids, c.User)
	}
	names, err := p.names(ctx, ids...)
	if err != nil {
		return nil, err
	}
	for _, c := range all {
		t.Rows = append(t.Rows, []cell{text(labelled(names[c.User], c.User)), text(c.Server)})
	}
	return t, nil
}
