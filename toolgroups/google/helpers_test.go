package google

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	"oneclaw/internal/readable"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == readable.Argument {
		if err := readable.Serve(os.Stdin, os.Stdout); err != nil {
			os.Exit(1)
		}
		return
	}
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

const testUser = "telegram:1"

// driveHarness is the family at work for a user whose account is connected, against a
// server that plays Google with a script.
type driveHarness struct {
	g      *Google
	dir    string
	server *httptest.Server
	tools  map[string]toolgroups.Tool

	mu       sync.Mutex
	replies  map[string][]string // by method and path; the last one is repeated
	requests []string
}

func newDesk(t *testing.T) *driveHarness {
	t.Helper()
	d := &driveHarness{dir: t.TempDir(), tools: map[string]toolgroups.Tool{}, replies: map[string][]string{}}
	d.server = httptest.NewServer(http.HandlerFunc(d.serve))
	transport := &http.Transport{}
	t.Cleanup(func() { transport.CloseIdleConnections(); d.server.Close() })
	g, err := New(Config{
		ClientID: "client", ClientSecret: "secret", SecretKey: []byte("0123456789abcdef"),
		APIURL: d.server.URL, transport: transport, pause: time.Millisecond, KV: openKV(t),
	})
	if err != nil {
		t.Fatal(err)
	}
	d.g = g
	groups, err := g.Groups()
	if err != nil {
		t.Fatal(err)
	}
	for _, group := range groups {
		for _, tool := range group.Tools {
			d.tools[tool.Name] = tool
		}
	}
	d.connect(t, testUser, account{AccessToken: "good", Expiry: time.Now().Add(time.Hour), RefreshToken: "refresh", Scopes: everyScope()})
	return d
}

func openKV(t *testing.T) storage.KV {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return store
}

func everyScope() []string {
	scopes := []string{scopeEmail}
	for _, group := range groups() {
		scopes = append(scopes, group.AllScopes()...)
	}
	return scopes
}

func (d *driveHarness) connect(t *testing.T, user string, a account) {
	t.Helper()
	if _, err := d.g.store(t.Context(), user, a, storage.Any); err != nil {
		t.Fatal(err)
	}
}

// reply scripts the answers to a request: a body for 200, or "status body".
func (d *driveHarness) reply(request string, replies ...string) { d.replies[request] = replies }

func (d *driveHarness) serve(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	line := r.Method + " " + r.URL.Path
	d.mu.Lock()
	defer d.mu.Unlock()
	full := r.Method + " " + r.URL.RequestURI()
	if len(body) > 0 {
		full += " " + string(body)
	}
	d.requests = append(d.requests, full)
	if r.Header.Get("Authorization") != "Bearer good" && r.URL.Path != "/token" {
		http.Error(w, `{"error":{"code":401,"message":"Invalid Credentials"}}`, http.StatusUnauthorized)
		return
	}
	replies := d.replies[line]
	if len(replies) == 0 {
		http.Error(w, fmt.Sprintf(`{"error":{"code":404,"message":%q}}`, "nothing at "+line), http.StatusNotFound)
		return
	}
	if len(replies) > 1 {
		d.replies[line] = replies[1:]
	}
	status, text := http.StatusOK, replies[0]
	if _, err := fmt.Sscanf(text, "%d", &status); err == nil {
		text = text[3:]
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = io.WriteString(w, text)
}

// run runs a tool in the direct chat of the user.
func (d *driveHarness) run(ctx context.Context, tool, args string) (toolgroups.Result, *toolgroups.Error) {
	return d.runAs(ctx, toolgroups.Scope{User: testUser, Owner: testUser, Direct: true, Workspace: d.dir}, tool, args)
}

func (d *driveHarness) runAs(ctx context.Context, scope toolgroups.Scope, tool, args string) (toolgroups.Result, *toolgroups.Error) {
	return toolgroups.Run(ctx, nil, d.tools[tool], toolgroups.Call{Name: tool, Arguments: json.RawMessage(args), Scope: scope})
}

// take returns the requests since the last take.
func (d *driveHarness) take() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := slices.Clone(d.requests)
	d.requests = nil
	return out
}

// step is one call of a tool: the script of the server, the requests that must
// arrive there (any order where parallel), and the result.
type step struct {
	name, tool, args string
	replies          map[string][]string
	requests         []string
	result           string // JSON, compared as such
	code             string // of the error
}

func runSteps(t *testing.T, steps []step) {
	t.Helper()
	d := newDesk(t)
	for _, s := range steps {
		t.Run(s.name, func(t *testing.T) {
			d.replies = map[string][]string{}
			for request, replies := range s.replies {
				d.reply(request, replies...)
			}
			d.take()
			res, fault := d.run(t.Context(), s.tool, s.args)
			if code := codeOf(fault); code != s.code {
				t.Fatalf("%s: code %q, want %q (%+v)", s.tool, code, s.code, fault)
			}
			if diff := cmp.Diff(s.requests, d.take()); s.requests != nil && diff != "" {
				t.Errorf("requests (-want +got):\n%s", diff)
			}
			if s.code == "" {
				sameJSON(t, s.result, res.Text)
			}
		})
	}
}

func codeOf(e *toolgroups.Error) string {
	if e == nil {
		return ""
	}
	return e.Code
}

func sameJSON(t *testing.T, want, got string) {
	t.Helper()
	var w, g any
	if err := json.Unmarshal([]byte(want), &w); err != nil {
		t.Fatalf("want %s: %v", want, err)
	}
	if err := json.Unmarshal([]byte(got), &g); err != nil {
		t.Fatalf("got %s: %v", got, err)
	}
	if diff := cmp.Diff(w, g); diff != "" {
		t.Errorf("result (-want +got):\n%s", diff)
	}
}

// put writes a file of the workspace.
func (d *driveHarness) put(t *testing.T, name string, data []byte) {
	t.Helper()
	file := filepath.Join(d.dir, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
}
