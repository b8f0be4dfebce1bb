package google

import (
	"bytes"
	"context"
	"encoding/json"
	"html"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/internal/emulator/google"
	"oneclaw/toolgroups"
)

// Two people, each with an account.
const (
	ada   = "telegram:1"
	grace = "slack:U2"

	adaMail   = "ada@example.com"
	graceMail = "grace@example.com"
)

// harness is the family in front of the emulator.
type harness struct {
	em     *google.Server
	server *httptest.Server
	g      *Google
	tools  map[string]toolgroups.Tool
	groups []toolgroups.Group
	logs   *logs
	client *http.Transport
}

// logs keeps what was logged.
type logs struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logs) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logs) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

func newRig(t *testing.T, cfg Config) *harness {
	t.Helper()
	em, err := google.New(google.Config{
		ClientID: "client", ClientSecret: "top-secret", Accounts: []string{adaMail, graceMail}, Now: cfg.Now,
	})
	if err != nil {
		t.Fatal(err)
	}
	r := &harness{em: em, server: httptest.NewServer(em), logs: &logs{}, tools: map[string]toolgroups.Tool{}, client: &http.Transport{}}
	t.Cleanup(func() { r.client.CloseIdleConnections(); r.server.Close() })
	cfg.ClientID, cfg.ClientSecret, cfg.SecretKey = "client", "top-secret", []byte("0123456789abcdef")
	cfg.APIURL, cfg.pause = r.server.URL, time.Millisecond
	if cfg.transport == nil {
		cfg.transport = r.client
	}
	if cfg.KV == nil {
		cfg.KV = openKV(t)
	}
	cfg.Logger = slog.New(slog.NewTextHandler(r.logs, &slog.HandlerOptions{Level: slog.LevelDebug}))
	if r.g, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	if r.groups, err = r.g.Groups(); err != nil {
		t.Fatal(err)
	}
	for _, group := range r.groups {
		for _, tool := range group.Tools {
			r.tools[tool.Name] = tool
		}
	}
	return r
}

var link = regexp.MustCompile(`\]\((http[^)]+)\)`)

// ask sends /connect google and returns the link of the answer.
func (r *harness) ask(t *testing.T, user, args string) string {
	t.Helper()
	text := r.send(t, user, args)
	found := link.FindStringSubmatch(text)
	if found == nil {
		t.Fatalf("no link in %q", text)
	}
	return found[1]
}

// consent goes by our own page where there is one, presses the button of Google's page
// and returns where the browser is sent.
func (r *harness) consent(t *testing.T, page, account string) string {
	t.Helper()
	if strings.Contains(page, startPath) {
		status, body := r.visit(t, page)
		found := regexp.MustCompile(`href="([^"]+)"`).FindStringSubmatch(body)
		if status != http.StatusOK || found == nil {
			t.Fatalf("first page: %d %s", status, body)
		}
		page = html.UnescapeString(found[1])
	}
	back, err := r.em.Consent(page, account)
	if err != nil {
		t.Fatal(err)
	}
	return back
}

// visit has a browser open an address of ours, and returns the page.
func (r *harness) visit(t *testing.T, address string) (int, string) {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	w := httptest.NewRecorder()
	r.g.Pages().ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, u.Path+"?"+u.RawQuery, nil))
	return w.Code, w.Body.String()
}

var proof = regexp.MustCompile(`<code>(.*)</code>`)

// proof has the browser come back and returns the code of the page.
func (r *harness) proof(t *testing.T, back string) string {
	t.Helper()
	status, page := r.visit(t, back)
	found := proof.FindStringSubmatch(page)
	if status != http.StatusOK || found == nil {
		t.Fatalf("callback: %d %s", status, page)
	}
	return found[1]
}

// send sends /connect google in the direct chat of a user.
func (r *harness) send(t *testing.T, user, args string) string {
	t.Helper()
	text, err := r.g.Connect(t.Context(), ConnectRequest{User: user, Chat: "chat of " + user, Direct: true, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// confirm has the browser come back and sends the code of the page.
func (r *harness) confirm(t *testing.T, user, back string) {
	t.Helper()
	if text := r.send(t, user, r.proof(t, back)); !strings.Contains(text, "is connected") {
		t.Fatalf("confirmed: %q", text)
	}
}

// connect connects an account with services, all of them if none is named.
func (r *harness) connect(t *testing.T, user, account string, services ...string) {
	t.Helper()
	if len(services) == 0 {
		services = serviceNames()
	}
	r.confirm(t, user, r.consent(t, r.ask(t, user, strings.Join(services, " ")), account))
}

// run runs a tool in the direct chat of a user.
func (r *harness) run(ctx context.Context, user, dir, tool string, args json.RawMessage) (toolgroups.Result, *toolgroups.Error) {
	return toolgroups.Run(ctx, nil, r.tools[tool], toolgroups.Call{Name: tool, Arguments: args, Scope: toolgroups.Scope{
		User: user, Owner: user, Direct: true, Chat: "chat of " + user, Workspace: dir,
	}})
}

// calls are the examples of calls, by tool.
func calls(t *testing.T) map[string]json.RawMessage {
	t.Helper()
	out := map[string]json.RawMessage{}
	files, err := filepath.Glob("testdata/calls/*.json")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		var some map[string]json.RawMessage
		load(t, file, &some)
		maps.Copy(out, some)
	}
	return out
}

func load(t *testing.T, file string, into any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, into); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
