package admin_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html/atom"

	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/signin"
	"oneclaw/internal/doctor"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

const script = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><svg onload=alert(3)>`

// everywhere lets a text stand in all that others can write.
func everywhere(t *testing.T, text string) *harness {
	t.Helper()
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "evil", Source: "mcp:" + text, Description: text}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Texts.Allowed, cfg.Allowance = true, text
		finding := func(context.Context) []doctor.Finding {
			return []doctor.Finding{{Check: text, Status: doctor.VerdictFail, Text: text}, {Check: text, Status: doctor.VerdictWarn, Text: text}}
		}
		cfg.Bot = admin.Bot{Version: text, QueueStats: func() queue.Stats { return queue.Stats{} }, ChatName: func(context.Context, chats.Chat) string { return text }, Health: finding, Examine: finding}
		cfg.Tools = admin.ToolSource{Registry: func() *toolgroups.Registry { return registry }, Servers: func() []mcp.Status { return []mcp.Status{{Name: text, Problem: text}} }}
		cfg.Visitor = func(*http.Request) (signin.Session, bool) {
			return signin.Session{User: "telegram:1", Name: text, CSRF: "token"}, true
		}
	})
	r.known = []access.Person{{User: text, Name: text, Standing: text, By: text}, {User: "telegram:9", Name: text, Standing: "asked"}}
	r.asked = []interact.ApprovalRequest{{Chat: chats.Chat{Platform: "telegram", ID: text}, Tool: text, Requester: text, Text: text + "\n```\n" + text + "\n```", AllowData: text, DenyData: text}}
	r.log.Error(text, "err", text, "incident", text, "remedy", text) //nolint:sloglint // Any text can become a message.
	at := r.now.Add(-time.Hour)
	turn := r.turn("telegram:7/1/text", text, at)
	for i := range turn {
		turn[i].Model, turn[i].Sender = text, text
		if turn[i].Tool != "" {
			turn[i].Tool, turn[i].Code = text, text
		}
		for k := range turn[i].Calls {
			turn[i].Calls[k].Name = text
		}
	}
	r.finish(said{chat: "telegram:7", id: "1", user: text, name: text, text: text, at: at, took: time.Second, state: receipts.Failed, incident: text, turn: turn})
	for _, kind := range []string{"user", "chat", "model", "group"} {
		key := "account/" + r.now.Format(time.DateOnly) + "/" + kind + "/" + text
		if _, err := r.store.Put(t.Context(), key, []byte(`{"calls":1,"input":5}`), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	for _, key := range []string{"google/account/" + text, "mcp/account/" + text} {
		if _, err := r.store.Put(t.Context(), key, []byte("sealed"), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

// pages returns all pages, by their addresses, with a form where there is one.
func pages(r *harness) map[string]string {
	r.Helper()
	key := url.Values{"key": {"telegram:7/1/text"}}
	all := map[string]string{
		"checks": r.post(admin.Root, nil), "texts": r.post(admin.Root+"message", key),
		"people": r.post(admin.Root+"people", url.Values{"do": {"user"}, "user": {script}}),
	}
	for _, address := range append(views(r), admin.Root+"message?"+key.Encode(), admin.Root+"messages?"+url.Values{"find": {script}, "state": {script}}.Encode(),
		admin.Root+"messages?"+url.Values{"after": {script}}.Encode(), admin.Root+"costs?"+url.Values{"day": {script}}.Encode(), admin.Root+"people?"+url.Values{"from": {script}}.Encode()) {
		all[address] = r.get(address)
	}
	return all
}

// views are the addresses in the navigation.
func views(r *harness) (all []string) {
	r.Helper()
	navigation, _, _ := strings.Cut(r.get(admin.Root), "<main")
	for _, n := range nodes(r, navigation) {
		if link := attribute(n, "href"); n.DataAtom == atom.A && strings.HasPrefix(link, admin.Root) {
			all = append(all, link)
		}
	}
	if len(all) != 5 {
		r.Fatalf("the navigation leads to %q", all)
	}
	return all
}

// Nothing that others wrote becomes part of a page, wherever it stands.
func TestStoredScripts(t *testing.T) {
	r := everywhere(t, script)
	shown := 0
	for address, page := range pages(r) {
		shown += strings.Count(page, "alert(1)")
		for _, n := range nodes(t, page) {
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Val)), "javascript:") {
					t.Errorf("%s has <%s %s=%q>", address, n.Data, a.Key, a.Val)
				}
			}
			source := attribute(n, "src")
			if n.DataAtom == atom.Script || n.DataAtom == atom.Style || n.DataAtom == atom.Img && source != admin.Root+"assets/icon.svg" {
				t.Errorf("%s has a <%s> of %q", address, n.Data, source)
			}
			if link := attribute(n, "href"); link != "" && link != "#main" && !strings.HasPrefix(link, admin.Root) {
				t.Errorf("%s leads to %s", address, link)
			}
		}
	}
	if shown < 30 {
		t.Errorf("the text stands in %d places: it is not looked at where others write", shown)
	}
}

// What is not a page is none, and nothing is read for it.
func TestPaths(t *testing.T) {
	r := newRig(t)
	for _, c := range []struct {
		method, target, body string
		want                 int
	}{
		{http.MethodGet, "/admin/../admin.go", "", http.StatusNotFound},
		{http.MethodGet, "/admin/assets/../admin.go", "", http.StatusNotFound},
		{http.MethodGet, "/admin/assets/%2e%2e/admin.go", "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages/", "", http.StatusNotFound},
		{http.MethodGet, "/admin/message?key=..%2f..%2fetc", "", http.StatusNotFound},
		{http.MethodGet, "/admin/message?key=" + strings.Repeat("x", 600), "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages?find=" + strings.Repeat("x", 5000), "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages?%zz", "", http.StatusNotFound},
		{http.MethodPost, "/admin/messages", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/admin/people", "do=nothing", http.StatusNotFound},
		{http.MethodGet, "/admin/assets/style.css", "", http.StatusOK},
	} {
		response := r.serve(c.method, c.target, c.body)
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.want || strings.Contains(string(body), "package ") {
			t.Errorf("%s %.60s: %s, want %d", c.method, c.target, response.Status, c.want)
		}
	}
	r.cfg.Visitor = func(*http.Request) (signin.Session, bool) { return signin.Session{}, false }
	if response := r.serve(http.MethodGet, admin.Root, ""); response.StatusCode != http.StatusUnauthorized {
		t.Errorf("nobody: %s", response.Status)
	}
}

// Nobody reads what was said before the chat is told who does: not where it cannot be told, and
// not because it was told of somebody else.
func TestNoTextsBeforeTheChatIsTold(t *testing.T) {
	keys := make(map[string]string)
	broken := true
	reader := "telegram:1"
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Visitor = func(*http.Request) (signin.Session, bool) { return signin.Session{User: reader, CSRF: "token"}, true }
		cfg.Texts = admin.Texts{Allowed: true, Announce: func(_ context.Context, _ chats.Chat, key, _ string) error {
			if broken {
				return errors.New("no such platform")
			}
			keys[key] = reader // once for a key
			return nil
		}}
	})
	at, ref := r.now.Add(-time.Hour), "telegram:7/1/text"
	r.finish(said{chat: "telegram:7", id: "1", user: "5", text: "my words", at: at, state: receipts.Done, turn: r.turn(ref, "my words", at)})
	form := url.Values{"key": {ref}}
	if response := r.serve(http.MethodPost, admin.Root+"message", form.Encode()); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("where the chat cannot be told: %s", response.Status)
	}
	r.says(r.get(admin.Root+"message?"+form.Encode()), nil, []string{"my words"})
	broken = false
	for _, reader = range []string{"telegram:1", "telegram:2", "telegram:1"} {
		r.says(r.post(admin.Root+"message", form), []string{"my words"}, nil)
	}
	if len(keys) != 2 {
		t.Errorf("the chat is told %d times, of %v", len(keys), keys)
	}
	r.now = r.now.Add(2 * time.Hour)
	r.says(r.get(admin.Root+"message?"+form.Encode()), nil, []string{"my words"})
	if r.says(r.post(admin.Root+"message", form), []string{"my words"}, nil); len(keys) != 3 {
		t.Errorf("a second reading after two hours is not told: %v", keys)
	}
}
