package connections_test

import (
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tiktoken-go/tokenizer"

	"oneclaw/bridge/interact"
	"oneclaw/internal/connections"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// Every entry is complete, in order and on the web, and has its source; its line in the prompt costs no more
// than that of another group.
func TestTheCatalogueIsComplete(t *testing.T) {
	t.Parallel()
	c, err := connections.ReadCatalogue("")
	if err != nil {
		t.Fatal(err)
	}
	if len(c.Servers) == 0 || c.LookedUp.After(time.Now()) || c.LookedUp.Before(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("%d servers, looked up %s", len(c.Servers), c.LookedUp)
	}
	if !slices.IsSortedFunc(c.Servers, func(a, b connections.Entry) int { return strings.Compare(a.Name, b.Name) }) {
		t.Error("the servers are not sorted by name")
	}
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	must(t, err)
	for _, e := range c.Servers {
		for field, address := range map[string]string{"url": e.URL, "guide": e.Guide, "issuer": e.Issuer, "source": e.Source} {
			u, err := url.Parse(address)
			if address != "" && (err != nil || u.Scheme != "https" || u.RawQuery != "" || u.Port() != "" || !strings.Contains(u.Host, ".")) {
				t.Errorf("%s: %s is %s", e.Name, field, address)
			}
		}
		if tokens, err := codec.Count("- mcp_" + e.Name + ": " + e.Purpose + "\n"); err != nil || tokens > 25 {
			t.Errorf("%s costs %d tokens of each first request, want 25 at most (%v)", e.Name, tokens, err)
		}
	}
	if none, err := connections.ReadCatalogue(connections.NoCatalogue); err != nil || len(none.Servers) > 0 {
		t.Errorf("off: %v, %v", none, err)
	}
}

func TestACatalogueWithMistakesIsRefused(t *testing.T) {
	t.Parallel()
	const good = "looked_up: 2026-11-01\nservers:\n  - {name: notes, title: Notes, url: https://notes.example/mcp, purpose: Notes, client: registers, source: https://notes.example}\n"
	read := func(text string) (connections.Catalogue, error) {
		path := filepath.Join(t.TempDir(), "catalogue.yaml")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return connections.ReadCatalogue(path)
	}
	if c, err := read(good); err != nil || len(c.Servers) != 1 || c.Servers[0].Title != "Notes" {
		t.Errorf("%v, %v", c, err)
	}
	for _, test := range []struct{ old, change, want string }{
		{"looked_up: 2026-11-01\n", "", "looked_up"},
		{"name: notes", "name: No tes", "name must match"},
		{"name: notes", "name: Notes", "capital letters"},
		{"title: Notes", "title: \"No\\ntes\"", "title: want one line"},
		{"https://notes.example/mcp", "ftp://notes.example", "must begin with http"},
		{"purpose: Notes", "purpose: " + strings.Repeat("x", 81), "purpose: want one line"},
		{"client: registers", "client: maybe", "client: want"},
		{"client: registers", "client: by hand", "guide: want"},
		{"client: registers", "client: registers, issuer: nowhere", "issuer: want"},
		{"source: https://notes.example", "source: me", "source: want"},
		{"client: registers", "client: registers, color: red", "field color not found"},
		{"  - {", "  - {name: notes, title: Notes, url: https://notes.example/mcp, purpose: Notes, client: registers, source: https://notes.example}\n  - {", "it is there twice"},
	} {
		if _, err := read(strings.Replace(good, test.old, test.change, 1)); err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "mcp.catalogue") {
			t.Errorf("%s: %v, want %s", test.change, err, test.want)
		}
	}
	if _, err := connections.ReadCatalogue("/nowhere/catalogue.yaml"); err == nil {
		t.Error("a missing file is read")
	}
}

// FuzzCatalogue: whatever a file has, it is refused, or each of its servers can be added.
func FuzzCatalogue(f *testing.F) {
	f.Add([]byte("looked_up: 2026-11-01\nservers:\n  - {name: notes, title: Notes, url: https://notes.example/mcp, purpose: Notes, client: registers, source: https://notes.example}\n"))
	f.Add([]byte("servers: &a [*a]"))
	f.Add([]byte("looked_up: 2026-11-01\nservers: [null]"))
	path := filepath.Join(f.TempDir(), "catalogue.yaml")
	f.Fuzz(func(t *testing.T, data []byte) {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		c, err := connections.ReadCatalogue(path)
		if err != nil {
			return
		}
		for _, e := range c.Servers {
			server := mcp.Config{Servers: map[string]mcp.Server{e.Name: {URL: e.URL, Description: e.Purpose}}}
			if err := server.Validate(); err != nil || e.Title == "" || strings.ContainsAny(e.Title+e.Purpose, "\n\r") {
				t.Errorf("%+v: %v", e, err)
			}
		}
	})
}

// A button switches on one server, once, for administrators alone, and what needs a client first has none.
func TestServersOfTheCatalogueAreSwitchedOnByAButton(t *testing.T) {
	store := openStore(t)
	r := newReplica(t, store)
	desk := connections.New(connections.Config{Now: time.Now, Servers: r.servers, Store: store, Catalogue: connections.Catalogue{
		LookedUp: time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC),
		Servers: []connections.Entry{
			{Name: "mine", Title: "Mine", URL: "https://mine.example/mcp", Purpose: "My things", Client: connections.ClientByHand, Guide: "https://mine.example/guide"},
			{Name: "notes", Title: "Notes", URL: served(t, "read"), Purpose: "Notes of people", Client: connections.ClientRegisters},
			{Name: "gone", Title: "Gone", URL: "http://127.0.0.1:1/mcp", Purpose: "Nothing", Client: connections.ClientRegisters},
		},
	}})
	press := func(role toolgroups.Role, choice string) interact.Result {
		t.Helper()
		result, err := desk.HandlePress(t.Context(), interact.Press{Scope: toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Role: role}, Choice: choice})
		must(t, err)
		return result
	}
	says := func(text string, parts ...string) {
		t.Helper()
		for _, part := range parts {
			if !strings.Contains(text, part) {
				t.Errorf("%q does not say %q", text, part)
			}
		}
	}
	if result := press(toolgroups.RoleUser, "notes"); result.Toast == "" || result.Text != "" || r.servers.HasServer("notes") {
		t.Errorf("a user: %+v", result)
	}
	says(press(toolgroups.RoleAdmin, "gone").Text, "Nothing was added", "**Gone**", "1 November 2026", "not tried")
	says(press(toolgroups.RoleAdmin, "mine").Text, "No server `mine` waits", "need a client of yours", "**Mine**: My things", "https://mine.example/guide")
	result := press(toolgroups.RoleAdmin, "notes")
	says(result.Text, "Added notes with 1 tool", "Every call asks")
	if len(result.Choices) != 1 || result.Choices[0][0].Value != "gone" {
		t.Errorf("buttons %+v", result.Choices)
	}
	says(press(toolgroups.RoleAdmin, "notes").Text, "is on already")
	for _, st := range r.servers.Status() {
		if st.Name == "notes" && (st.Server.Trust != "none" || st.Server.Description != "Notes of people") {
			t.Errorf("%+v", st.Server)
		}
	}
}
