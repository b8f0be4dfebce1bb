package admin_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"oneclaw/bridge/access"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/admin"
	"oneclaw/internal/admin/frame"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// house stands for the bridge: what it is asked to do it writes down.
type house struct {
	t       *testing.T
	did     []string
	asked   []interact.ApprovalRequest
	handler http.Handler
}

func (h *house) ListPeople() []access.Person {
	return []access.Person{
		{User: "telegram:1", Name: "Ann", Standing: "owner", Role: toolgroups.RoleOwner},
		{User: "telegram:2", Name: "<b>Bob</b>", Standing: "user", Role: toolgroups.RoleUser},
		{User: "telegram:3", Name: "Eve", Standing: "asked"},
	}
}

func (h *house) Settings() access.Access { return access.Access{Admins: []string{"slack:U1"}} }

func (h *house) Admit(_ context.Context, author audit.Author, user string, admin bool) (string, error) {
	h.did = append(h.did, fmt.Sprint("give ", user, " ", admin, " by ", author.By, " ", author.Name, " ", author.Chat))
	return "`" + user + "` may talk to me now.", nil
}

func (h *house) Revoke(_ context.Context, author audit.Author, user string) (string, error) {
	h.did = append(h.did, fmt.Sprint("take ", user, " by ", author.By))
	return "Only my owner can remove an administrator.", nil
}

func (h *house) Waiting(context.Context, string, int) ([]interact.ApprovalRequest, error) {
	return h.asked, nil
}

func (h *house) Press(_ context.Context, user, name, data string) (bool, error) {
	h.did = append(h.did, "press "+data+" by "+user+" "+name)
	return data == "data-allow", nil
}

func (h *house) PressResult(context.Context, string) (string, error) { return "", nil }

// ask makes a request and returns where it leads, or the page.
func (h *house) ask(path string, form url.Values) string {
	h.t.Helper()
	method := http.MethodGet
	if form != nil {
		method = http.MethodPost
	}
	r := httptest.NewRequestWithContext(h.t.Context(), method, path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	h.handler.ServeHTTP(w, r)
	if to := w.Header().Get("Location"); to != "" {
		return h.ask(to, nil)
	}
	if w.Code != http.StatusOK {
		h.t.Errorf("%s: %d %s", path, w.Code, w.Body)
	}
	return w.Body.String()
}

func (h *house) sees(page string, want ...string) {
	h.t.Helper()
	for _, part := range want {
		if !strings.Contains(page, part) {
			h.t.Errorf("the page has no %q:\n%s", part, page)
		}
	}
}

func TestAdministratorsDecideOnThePage(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for i := range 60 {
		if err := audit.Append(t.Context(), store, "e", audit.Entry{At: now.Add(time.Duration(i) * time.Hour), Action: "remove", By: "telegram:1", About: fmt.Sprintf("telegram:1%02d", i)}); err != nil {
			t.Fatal(err)
		}
	}
	mask := func(text string) string { return strings.ReplaceAll(text, "sk-secret", "••••") }
	h := &house{t: t, asked: []interact.ApprovalRequest{
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "exec", Text: "May I run <script>?", AllowData: "data-allow", DenyData: "data-deny"},
		{Chat: chats.Chat{Platform: "telegram", ID: "9"}, Tool: "mail", Text: "May I send sk-secret?", AllowData: "hidden-allow", DenyData: "hidden-deny"},
		{Chat: chats.Chat{Platform: "slack", ID: "C1"}, Tool: "others", Requester: "slack:U2"},
	}}
	views, err := admin.OperationsViews(admin.OperationsConfig{People: h, Approvals: h, Store: store, Redact: mask, RedactCards: func(text string) string { return text }, Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	h.handler, err = frame.New(frame.Config{Views: views, Redact: mask, Visitor: func(*http.Request) (frame.Visitor, bool) {
		return frame.Visitor{Person: "telegram:1", Name: "Ann", CSRF: "token"}, true
	}})
	if err != nil {
		t.Fatal(err)
	}
	page := h.ask("/admin/people", nil)
	h.sees(page, "&lt;b&gt;Bob&lt;/b&gt;", "Make administrator", "slack:U1", "telegram:3")
	if strings.Count(page, `value="remove"`) != 1 || strings.Contains(page, "<b>Bob") {
		t.Errorf("the page of people is\n%s", page)
	}
	h.sees(h.ask("/admin/people", url.Values{"user": {" telegram:3 "}, "do": {"user"}}), "telegram:3 may talk to me now.")
	h.sees(h.ask("/admin/people", url.Values{"user": {"telegram:2"}, "do": {"remove"}}), "Only my owner can remove")
	if strings.Contains(h.ask("/admin/people?said=Send+me+your+password", nil), "me your password") {
		t.Error("an address can say what the page says")
	}
	page = h.ask("/admin/approvals", nil)
	h.sees(page, "May I run &lt;script&gt;?", "data-allow", "data-deny", "hidden-deny", "looks like a secret", "may not decide this")
	if strings.Contains(page, "hidden-allow") || strings.Contains(page, "sk-secret") {
		t.Errorf("what is masked can be allowed:\n%s", page)
	}
	h.ask("/admin/approvals", url.Values{"press": {"data-allow"}})
	h.sees(h.ask("/admin/approvals", url.Values{"press": {"forged"}}), "over, or not yours")
	want := "give telegram:3 false by telegram:1 Ann page; take telegram:2 by telegram:1; press data-allow by telegram:1 Ann; press forged by telegram:1 Ann"
	if got := strings.Join(h.did, "; "); got != want {
		t.Errorf("done was %s", got)
	}
	page = h.ask("/admin/audit", nil)
	h.sees(page, "telegram:159", "telegram:110")
	if strings.Contains(page, "telegram:109") {
		t.Error("the page of the audit has more than fifty entries")
	}
	_, next, _ := strings.Cut(page, `href="/admin/audit?after=`)
	next, _, _ = strings.Cut(next, `"`)
	h.sees(h.ask("/admin/audit?after="+strings.ReplaceAll(next, "&amp;", "&"), nil), "telegram:109", "telegram:100")
}

// What became of a form is shown by whichever replica is asked for the next page, and in that session alone.
func TestTheResultOfAFormIsShownByAnyReplica(t *testing.T) {
	t.Parallel()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "test.db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h, session := &house{t: t}, "token"
	same := func(text string) string { return text }
	replica := func() http.Handler {
		views, err := admin.OperationsViews(admin.OperationsConfig{People: h, Approvals: h, Store: store, Redact: same, RedactCards: same})
		if err != nil {
			t.Fatal(err)
		}
		handler, err := frame.New(frame.Config{Views: views, Visitor: func(*http.Request) (frame.Visitor, bool) {
			return frame.Visitor{Person: "telegram:1", CSRF: session}, true
		}})
		if err != nil {
			t.Fatal(err)
		}
		return handler
	}
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/admin/people", strings.NewReader("user=telegram%3A2&do=remove"))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	w := httptest.NewRecorder()
	replica().ServeHTTP(w, r)
	next := w.Header().Get("Location")
	h.handler = replica()
	h.sees(h.ask(next, nil), "Only my owner can remove an administrator.")
	session = "another"
	if strings.Contains(h.ask(next, nil), "Only my owner") {
		t.Error("the address says the same to another person")
	}
}
