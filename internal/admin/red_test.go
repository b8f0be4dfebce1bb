package admin_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/html/atom"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/internal/doctor"
	"oneclaw/internal/telemetry"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/mcp"
)

const script = `<script>alert(1)</script><img src=x onerror=alert(2)>"'><svg onload=alert(3)>`

// everywhere lets a text stand in all that others can write.
func everywhere(t *testing.T, text string) *harness {
	t.Helper()
	ring := telemetry.NewRing(func(s string) string { return s })
	slog.New(ring.WrapHandler(slog.DiscardHandler)).With("of", text).WithGroup("g").Warn(text, "err", text)              //nolint:sloglint // Any text can become a message.
	slog.New(ring.WrapHandler(slog.DiscardHandler)).Error(text, "err", text, "incident", text, "chat", text, "of", text) //nolint:sloglint // As above.
	kept := &admin.ErrorStore{Ring: ring, Log: slog.New(slog.DiscardHandler), Now: time.Now}
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{Groups: []toolgroups.Group{{Name: "evil", Source: "mcp:" + text, Description: text}}})
	if err != nil {
		t.Fatal(err)
	}
	r := newRig(t, func(cfg *admin.Config) {
		cfg.Texts.Allowed = true
		cfg.Bot = admin.Bot{
			Version: text, QueueStats: func() queue.Stats { return queue.Stats{Open: 1, Undecided: 1} },
			ReceiveErrors: func() map[string]error { return map[string]error{"slack": fmt.Errorf("%s", text)} },
			Replicas: func(context.Context) ([]replicas.Member, error) {
				return []replicas.Member{{ID: text, Host: text}}, nil
			},
			Examine: func(context.Context) ([]doctor.Finding, error) {
				return []doctor.Finding{{Check: text, Status: doctor.VerdictFail, Text: text}}, nil
			},
		}
		cfg.Tools = admin.ToolSource{Registry: func() *toolgroups.Registry { return registry }, Servers: func() []mcp.Status { return []mcp.Status{{Name: text, Problem: text}} }}
		cfg.Program = admin.Program{
			Settings: func(context.Context) ([]admin.Setting, error) {
				return []admin.Setting{{Name: text, Value: text, Source: text}}, nil
			},
			Errors: kept,
		}
		cfg.Visitor = func(*http.Request) (frame.Visitor, bool) {
			return frame.Visitor{Person: "telegram:1", Name: text, CSRF: "token"}, true
		}
	})
	kept.Store = r.store
	keepErrors(t, kept)
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
	r.append("account", []agent.Message{{Role: agent.RoleUser, Text: text}})
	for _, kind := range []string{"user", "chat", "model", "group"} {
		key := "account/" + r.now.Format(time.DateOnly) + "/" + kind + "/" + text
		if _, err := r.store.Put(t.Context(), key, []byte(`{"calls":1,"input":5}`), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	for key, value := range map[string]string{
		"hook/abc":               `{"id":"abc","name":%[1]q,"task":%[1]q,"owner":%[1]q,"chat":%[1]q,"user":%[1]q,"outcome":%[1]q}`,
		"schedule/task/o/1":      `{"id":%[1]q,"owner":"o","chat":%[1]q,"user":%[1]q,"name":%[1]q,"prompt":%[1]q}`,
		"google/account/" + text: "sealed", "mcp/account/" + text: "sealed",
	} {
		if strings.Contains(value, "%") {
			value = fmt.Sprintf(value, "X")
			value = strings.ReplaceAll(value, `"X"`, quoted(text))
		}
		if _, err := r.store.Put(t.Context(), key, []byte(value), storage.Absent); err != nil {
			t.Fatal(err)
		}
	}
	return r
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\t", `\t`, "\r", `\r`, "<", `\u003c`).Replace(text) + `"`
}

// pages are the addresses of all views.
func pages(r *harness) []string {
	r.Helper()
	for view, form := range map[string]string{"": "", "message": "key=telegram%3A7%2F1%2Ftext"} {
		if response := r.serve(http.MethodPost, frame.Root+view, form); response.StatusCode != http.StatusSeeOther {
			r.Fatalf("%q: %s", view, response.Status)
		}
	}
	all := []string{
		frame.ViewURL("message", "key", "telegram:7/1/text", "texts", "1"), frame.ViewURL("conversation", "log", "telegram:7/1", "owner", "telegram:x", "texts", "1"),
		frame.ViewURL("messages", "find", script, "state", script), frame.ViewURL("conversations", "owner", script), frame.ViewURL("conversation", "log", "telegram:7/1", "owner", script),
		frame.ViewURL("conversation", "log", "telegram:7/1"),
		frame.ViewURL("spending", "day", script), frame.ViewURL("messages", "after", script), frame.ViewURL("tools", "server", script, "user", script),
	}
	return append(all, views(r)...)
}

// views are the addresses in the navigation.
func views(r *harness) (all []string) {
	r.Helper()
	navigation, _, _ := strings.Cut(r.get(frame.Root), "<main")
	for _, n := range nodes(r, navigation) {
		if link := attribute(n, "href"); n.DataAtom == atom.A && strings.HasPrefix(link, frame.Root) {
			all = append(all, link)
		}
	}
	if len(all) < 8 {
		r.Fatalf("the navigation leads to %q", all)
	}
	return all
}

// tables are the addresses of the files of all tables of a page.
func tables(r *harness, page string) (all []string) {
	r.Helper()
	for _, n := range nodes(r, page) {
		if attribute(n, "class") == "file" {
			all = append(all, attribute(n, "href"))
		}
	}
	return all
}

// Nothing that others wrote becomes part of a page, wherever it stands.
func TestStoredScripts(t *testing.T) {
	r := everywhere(t, script)
	shown := 0
	for _, address := range pages(r) {
		page := r.get(address)
		shown += strings.Count(page, "alert(1)")
		for _, n := range nodes(t, page) {
			for _, a := range n.Attr {
				if strings.HasPrefix(a.Key, "on") || a.Key == "style" || strings.HasPrefix(strings.TrimSpace(strings.ToLower(a.Val)), "javascript:") {
					t.Errorf("%s has <%s %s=%q>", address, n.Data, a.Key, a.Val)
				}
			}
			source := attribute(n, "src")
			if n.DataAtom == atom.Script && source != frame.Root+"assets/app.js" || n.DataAtom == atom.Style || n.DataAtom == atom.Img && source != frame.Root+"assets/icon.svg" {
				t.Errorf("%s has a <%s> of %q", address, n.Data, source)
			}
			if link := attribute(n, "href"); link != "" && link != "#main" && !strings.HasPrefix(link, frame.Root) {
				t.Errorf("%s leads to %s", address, link)
			}
		}
	}
	if shown < 30 {
		t.Errorf("the text stands in %d places: it is not looked at where others write", shown)
	}
}

// No cell of a file is a formula.
func TestFormulas(t *testing.T) {
	for _, formula := range []string{"=1+1", "+1", "-1", "@SUM(A1)", "\t=1", "\r=1"} {
		r := everywhere(t, formula)
		for _, address := range views(r) {
			if len(tables(r, r.get(address))) == 0 {
				t.Errorf("%s has no table with rows: none is looked at", address)
			}
		}
		looked := map[string]bool{}
		for _, address := range pages(r) {
			for _, file := range tables(r, r.get(address)) {
				looked[file[strings.LastIndex(file, "csv="):]] = true
				for _, cell := range slices.Concat(r.rows(file)...) {
					if cell != "" && strings.ContainsAny(cell[:1], "=+-@\t\r") {
						t.Errorf("%s has the cell %q", file, cell)
					}
				}
			}
		}
		if len(looked) < 18 {
			t.Errorf("%d tables have rows: %v", len(looked), looked)
		}
	}
}

// Where programs take semicolons for the ends of cells, what follows one begins no formula either.
func TestFormulasBehindSemicolons(t *testing.T) {
	r := everywhere(t, `a;=HYPERLINK("http://evil.example";B1);@x;	=1`)
	for address, name := range map[string]string{frame.Root + "messages": "messages", frame.Root + "errors": "errors", frame.Root + "schedules": "webhooks"} {
		rows := r.file(address, name)
		if len(rows) < 2 {
			t.Errorf("%s of %s is empty", name, address)
		}
		for _, cell := range slices.Concat(rows...) {
			for part := range strings.FieldsFuncSeq(cell, func(r rune) bool { return strings.ContainsRune(";\t\n\r", r) }) {
				if strings.ContainsAny(part[:1], "=+-@") {
					t.Errorf("%s of %s has the cell %q", name, address, cell)
				}
			}
		}
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
		{http.MethodGet, "/admin/assets/../frame.go", "", http.StatusNotFound},
		{http.MethodGet, "/admin/assets/%2e%2e/frame.go", "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages/", "", http.StatusNotFound},
		{http.MethodGet, "/admin/message?key=..%2f..%2fetc", "", http.StatusNotFound},
		{http.MethodGet, "/admin/message?key=" + strings.Repeat("x", 600), "", http.StatusNotFound},
		{http.MethodGet, "/admin/conversation?log=none", "", http.StatusNotFound},
		{http.MethodGet, "/admin/conversation?log=" + strings.Repeat("x", 600), "", http.StatusNotFound},
		{http.MethodGet, "/admin/conversation?log=none", "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages?find=" + strings.Repeat("x", 5000), "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages?csv=none", "", http.StatusNotFound},
		{http.MethodGet, "/admin/messages?%zz", "", http.StatusNotFound},
		{http.MethodPost, "/admin/messages", "", http.StatusMethodNotAllowed},
		{http.MethodDelete, "/admin/", "", http.StatusMethodNotAllowed},
		{http.MethodPost, "/admin/message", "key=" + strings.Repeat("x", 100_000), http.StatusBadRequest},
		{http.MethodPost, "/admin/conversation", "log=none", http.StatusNotFound},
		{http.MethodGet, "/admin/assets/app.js", "", http.StatusOK},
	} {
		response := r.serve(c.method, c.target, c.body)
		body, _ := io.ReadAll(response.Body)
		if response.StatusCode != c.want || strings.Contains(string(body), "package ") {
			t.Errorf("%s %.60s: %s, want %d", c.method, c.target, response.Status, c.want)
		}
	}
	r.cfg.Visitor = func(*http.Request) (frame.Visitor, bool) { return frame.Visitor{}, false }
	if response := r.serve(http.MethodGet, frame.Root, ""); response.StatusCode != http.StatusUnauthorized {
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
		cfg.Visitor = func(*http.Request) (frame.Visitor, bool) { return frame.Visitor{Person: reader, CSRF: "token"}, true }
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
	form, address := url.Values{"key": {ref}}.Encode(), frame.ViewURL("message", "key", ref, "texts", "1")
	if response := r.serve(http.MethodPost, frame.Root+"message", form); response.StatusCode != http.StatusInternalServerError {
		t.Errorf("where the chat cannot be told: %s", response.Status)
	}
	if page := r.get(address); strings.Contains(page, "my words") {
		t.Error("texts are shown although the chat was not told")
	}
	broken = false
	for _, reader = range []string{"telegram:1", "telegram:2", "telegram:1"} {
		response := r.serve(http.MethodPost, frame.Root+"message", form)
		if page := r.get(response.Header.Get("Location")); !strings.Contains(page, "my words") {
			t.Errorf("%s is not shown what was said", reader)
		}
	}
	if len(keys) != 2 {
		t.Errorf("the chat is told %d times, of %v", len(keys), keys)
	}
}
