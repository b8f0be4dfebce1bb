package mcp_test

import (
	"path/filepath"
	"testing"

	"oneclaw/internal/redact"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// A server of the settings is held to what it said first, however often the bot is restarted
// and whether or not it has kept the list.
func TestAServerOfTheSettingsIsHeldToWhatItSaidFirst(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	const first, then = `[{"name":"send","description":"Sends","inputSchema":{}}]`, `[{"name":"send","description":"Sends","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"new","inputSchema":{},"annotations":{"readOnlyHint":true}}]`
	kept := t.TempDir()
	for _, c := range []struct{ dir, tools string }{{kept, first}, {t.TempDir(), then}, {kept, then}, {kept, then}} {
		s := raw(t, first)
		s.Env["RAW_TOOLS"] = redact.Secret(c.tools)
		family := client(t, mcp.Config{
			DataDir: c.dir, Servers: map[string]mcp.Server{"x": s},
			Accounts: mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef")},
		})
		text, err := family.Check(t.Context(), "x", "")
		must(t, err)
		t.Log(text)
		for _, tool := range family.Groups()[0].Tools {
			if tool.Effect != toolgroups.Consequential {
				t.Errorf("%s has the effect %v", tool.Name, tool.Effect)
			}
		}
		must(t, family.Close())
	}
}

// A replica starts with the list that it has kept, which is older than what another one has seen.
func TestAnOldListChangesNothingThatWaitsOrWasAllowed(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	const first, then = `[{"name":"send","description":"Sends","inputSchema":{}}]`, `[{"name":"send","description":"Sends mail","inputSchema":{}}]`
	replica := func(dir, tools string) *mcp.Client {
		s := raw(t, tools)
		return client(t, mcp.Config{
			DataDir: dir, Servers: map[string]mcp.Server{"x": s}, Accounts: mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef")},
		})
	}
	kept := t.TempDir()
	one := replica(kept, first)
	one.Discover(t.Context())
	must(t, one.Close())
	two := replica(t.TempDir(), then)
	two.Discover(t.Context())
	code := two.Status()[0].ChangesCode
	if got := replica(kept, then).Status()[0].ChangesCode; got == "" || got != code {
		t.Errorf("a replica that starts says that the change %q waits, another one %q", got, code)
	}
	if allowed, err := two.AllowChanges(t.Context(), "x", code); err != nil || !allowed {
		t.Errorf("the change was not allowed: %t, %v", allowed, err)
	}
	again := replica(kept, then)
	if got := again.Status()[0].PendingChanges; len(got) > 0 {
		t.Errorf("a replica that starts takes its old list for a change: %+v", got)
	}
	if got := find(t, again, "x_send").Description; got != "Sends mail" {
		t.Errorf("it describes the tool as %q", got)
	}
	_, err = again.Check(t.Context(), "x", "")
	must(t, err)
	if got := again.Status()[0].PendingChanges; len(got) > 0 {
		t.Errorf("changes wait: %+v", got)
	}
}

// What is allowed cannot be read: then nothing runs unasked.
func TestToolsAskWhereTheStoreCannotBeRead(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	must(t, store.Close())
	c := client(t, mcp.Config{
		Servers:  map[string]mcp.Server{"x": raw(t, `[{"name":"list","inputSchema":{},"annotations":{"readOnlyHint":true}}]`)},
		Accounts: mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef")},
	})
	c.Discover(t.Context())
	if got := find(t, c, "x_list").Effect; got != toolgroups.Consequential {
		t.Errorf("list has the effect %v", got)
	}
}
