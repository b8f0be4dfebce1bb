package mcp_test

import (
	"path/filepath"
	"strconv"
	"testing"

	"oneclaw/internal/redact"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

// keeping returns the configuration of a store for records.
func keeping(t testing.TB) mcp.AccountsConfig {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef")}
}

// A server of the settings is held to what it said first, however often the bot is restarted.
func TestAServerOfTheSettingsIsHeldToWhatItSaidFirst(t *testing.T) {
	accounts := keeping(t)
	const first, then = `[{"name":"send","description":"Sends","inputSchema":{}}]`, `[{"name":"send","description":"Sends","inputSchema":{},"annotations":{"readOnlyHint":true}},{"name":"new","inputSchema":{},"annotations":{"readOnlyHint":true}}]`
	for _, tools := range []string{first, then, then} {
		s := raw(t, first)
		s.Env["RAW_TOOLS"] = redact.Secret(tools)
		family := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}, Accounts: accounts})
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

// A change that one replica has seen waits on all of them, and is allowed on all of them.
func TestAChangeWaitsOnAllReplicas(t *testing.T) {
	accounts := keeping(t)
	const first, then = `[{"name":"send","description":"Sends","inputSchema":{}}]`, `[{"name":"send","description":"Sends mail","inputSchema":{}}]`
	replica := func(tools string) *mcp.Client {
		return client(t, mcp.Config{Servers: map[string]mcp.Server{"x": raw(t, tools)}, Accounts: accounts})
	}
	one := replica(first)
	one.Discover(t.Context())
	must(t, one.Close())
	two := replica(then)
	_, err := two.Check(t.Context(), "x", "")
	must(t, err)
	code := two.Status()[0].ChangesCode
	if got := replica(then).Status()[0].ChangesCode; got == "" || got != code {
		t.Errorf("a replica that starts says that the change %q waits, another one %q", got, code)
	}
	if allowed, err := two.AllowChanges(t.Context(), "x", code); err != nil || !allowed {
		t.Errorf("the change was not allowed: %t, %v", allowed, err)
	}
	again := replica(then)
	if got := again.Status()[0].PendingChanges; len(got) > 0 {
		t.Errorf("a replica that starts takes an old list for a change: %+v", got)
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

// A permission that made no difference, and so was not shown, is not allowed with what was.
func TestAPermissionThatWasNotShownIsNotAllowed(t *testing.T) {
	accounts := keeping(t)
	replica := func(trust, description string) *mcp.Client {
		s := raw(t, `[{"name":"send","description":"`+description+`","inputSchema":{},"annotations":{"readOnlyHint":`+strconv.FormatBool(description != "Sends")+`}}]`)
		s.Trust = trust
		c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}, Accounts: accounts})
		_, err := c.Check(t.Context(), "x", "")
		must(t, err)
		return c
	}
	replica(mcp.TrustNone, "Sends")
	c := replica(mcp.TrustNone, "Sends mail")
	st := c.Status()[0]
	if allowed, err := c.AllowChanges(t.Context(), "x", st.ChangesCode); err != nil || !allowed || len(st.PendingChanges) != 1 {
		t.Errorf("%+v: allowed %t, %v", st.PendingChanges, allowed, err)
	}
	c = replica(mcp.TrustHints, "Sends mail")
	if got := find(t, c, "x_send"); got.Effect != toolgroups.Consequential || !got.SaysItReads || got.Description != "Sends mail" {
		t.Errorf("send is %v, %q", got.Effect, got.Description)
	}
}

// What the operator wrote is the line, whatever the server says.
func TestTheLineOfTheSettingsStays(t *testing.T) {
	accounts := keeping(t)
	for _, tools := range []string{`[{"name":"send","inputSchema":{}}]`, `[{"name":"send","inputSchema":{}},{"name":"more","inputSchema":{}}]`} {
		s := raw(t, tools)
		s.Description = "Mail"
		c := client(t, mcp.Config{Servers: map[string]mcp.Server{"x": s}, Accounts: accounts})
		text, err := c.Check(t.Context(), "x", "")
		must(t, err)
		said(t, text, "has the line `Mail`")
		if st := c.Status()[0]; c.Groups()[0].Description != "Mail" || len(st.PendingChanges) > 0 {
			t.Errorf("%q, pending %+v", c.Groups()[0].Description, st.PendingChanges)
		}
		must(t, c.Close())
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
