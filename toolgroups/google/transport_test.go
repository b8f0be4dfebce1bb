package google

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

const trouble = `500 {"error":{"code":500,"message":"Internal"}}`

// What was perhaps done is not done twice; what Google did not take is sent again.
func TestRetries(t *testing.T) {
	t.Parallel()
	const list, insert = "GET /tasks/v1/users/@me/lists", "POST /tasks/v1/users/@me/lists"
	busy := `503 {"error":{"code":503,"message":"Busy"}}`
	limit := `403 {"error":{"code":403,"errors":[{"reason":"rateLimitExceeded"}]}}`
	for _, tc := range []struct {
		name, tool, request, reply string
		times                      int
		code                       string
	}{
		{"reading after 500", "tasks_list_tasklists", list, trouble, 2, ""},
		{"writing after 500", "tasks_create_tasklist", insert, trouble, 1, service.CodeUnavailable},
		{"writing after 503", "tasks_create_tasklist", insert, busy, 2, ""},
		{"writing after a limit", "tasks_create_tasklist", insert, limit, 2, ""},
		{"reading after 501", "tasks_list_tasklists", list, `501 {"error":{"code":501}}`, 1, service.CodeUnavailable},
		{"reading after 400", "tasks_list_tasklists", list, `400 {"error":{"code":400}}`, 1, toolgroups.CodeInvalid},
	} {
		t.Run(tc.name, func(t *testing.T) {
			d := newDesk(t)
			d.reply(tc.request, tc.reply, `{"id":"x","title":"y"}`)
			_, fault := d.run(t.Context(), tc.tool, `{"title":"y"}`)
			if n := len(d.take()); n != tc.times || codeOf(fault) != tc.code {
				t.Errorf("%d requests, %+v; want %d, %q", n, fault, tc.times, tc.code)
			}
		})
	}
}

// Methods of the library that could carry media are sent again with their whole body.
func TestBodyIsReplayed(t *testing.T) {
	d := newDesk(t)
	d.reply("POST /gmail/v1/users/me/messages/send", `503 {}`, `429 {}`, `{"id":"m","threadId":"t"}`)
	if _, fault := d.run(t.Context(), "gmail_send", `{"to":"a@b.example","subject":"x","body":"y"}`); fault != nil {
		t.Fatal(fault)
	}
	sent := d.take()
	if len(sent) != 3 || sent[0] != sent[2] || !strings.Contains(sent[2], `{"raw":"`) {
		t.Errorf("sent %q", sent)
	}
}

// A pause that is longer than the call may take is not waited for.
func TestNoPauseBeyondTheDeadline(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.g.base.(*retryTransport).pause = time.Hour
	d.reply("GET /tasks/v1/users/@me/lists", `503 {"error":{"code":503,"message":"Busy"}}`)
	if _, fault := d.run(t.Context(), "tasks_list_tasklists", `{}`); codeOf(fault) != service.CodeUnavailable {
		t.Errorf("%+v", fault)
	}
}

// No network is told as such, and a call that is stopped ends.
func TestUnreachable(t *testing.T) {
	for name, err := range map[string]error{
		"refused": &net.OpError{Op: "dial", Net: "tcp", Err: errors.New("connection refused")},
		"cut":     io.ErrUnexpectedEOF,
	} {
		tries := 0
		g := alone(t, roundTrip(func(*http.Request) (*http.Response, error) { tries++; return nil, err }))
		_, fault := g.call(t.Context(), "tasks_create_tasklist", `{"title":"x"}`)
		if codeOf(fault) != service.CodeUnavailable || strings.Contains(fault.Message, "googleapis.com/tasks") {
			t.Errorf("%s: %+v", name, fault)
		}
		if want := map[string]int{"refused": maxAttempts, "cut": 1}[name]; tries != want {
			t.Errorf("%s: tried %d times, want %d", name, tries, want)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	g := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		cancel()
		<-req.Context().Done()
		return nil, req.Context().Err()
	}))
	if _, fault := g.call(ctx, "tasks_list_tasklists", `{}`); codeOf(fault) != toolgroups.CodeCancelled {
		t.Errorf("stopped: %+v", fault)
	}
}

// A token does not travel to where an answer points.
func TestRedirectsAreNotFollowed(t *testing.T) {
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("%s arrived with %q", r.URL, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	g := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		w := httptest.NewRecorder()
		http.Redirect(w, req, elsewhere.URL, http.StatusFound)
		return w.Result(), nil
	}))
	if _, fault := g.call(t.Context(), "tasks_list_tasklists", `{}`); codeOf(fault) != toolgroups.CodeExecution {
		t.Errorf("%+v", fault)
	}
}

// Every address is Google's own where none takes its place.
func TestAddressesAreGoogles(t *testing.T) {
	t.Parallel()
	var hosts []string
	g := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		hosts = append(hosts, req.URL.Scheme+"://"+req.URL.Host)
		return nil, io.ErrUnexpectedEOF
	}))
	for tool, args := range calls(t) {
		if g.tools[tool].Effect == toolgroups.ReadOnly {
			_, _ = g.call(t.Context(), tool, string(args))
		}
	}
	for _, host := range hosts {
		if !strings.HasPrefix(host, "https://") || !strings.HasSuffix(host, ".googleapis.com") {
			t.Errorf("a request went to %s", host)
		}
	}
	if len(hosts) == 0 {
		t.Error("no requests")
	}
}

// Building the tools touches neither the network nor the store's contents.
func TestNothingHappensBeforeUse(t *testing.T) {
	g := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
		t.Errorf("%s was asked for", req.URL)
		return nil, io.EOF
	}))
	if len(g.tools) != toolCount {
		t.Errorf("%d tools", len(g.tools))
	}
}

type roundTrip func(*http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (f roundTrip) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

// lone is the family of a connected user whose network is a function.
type lone struct {
	tools map[string]toolgroups.Tool
}

func alone(t *testing.T, transport http.RoundTripper) lone {
	t.Helper()
	g, err := New(Config{KV: openKV(t), SecretKey: []byte("0123456789abcdef"), ClientID: "x", Transport: transport, Pause: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	d := &driveHarness{g: g}
	d.connect(t, testUser, account{AccessToken: "good", Expiry: time.Now().Add(time.Hour), RefreshToken: "refresh", Scopes: everyScope()})
	groups, err := g.Groups()
	if err != nil {
		t.Fatal(err)
	}
	l := lone{map[string]toolgroups.Tool{}}
	for _, group := range groups {
		for _, tool := range group.Tools {
			l.tools[tool.Name] = tool
		}
	}
	return l
}

func (l lone) call(ctx context.Context, tool, args string) (toolgroups.Result, *toolgroups.Error) {
	return toolgroups.Run(ctx, nil, l.tools[tool], toolgroups.Call{
		Name: tool, Arguments: json.RawMessage(args), Scope: toolgroups.Scope{User: testUser, Owner: testUser, Direct: true},
	})
}

func TestNewRefuses(t *testing.T) {
	kv, key := openKV(t), []byte("0123456789abcdef")
	for name, cfg := range map[string]Config{
		"no store":        {SecretKey: key},
		"short key":       {KV: kv, SecretKey: key[:15]},
		"API address":     {KV: kv, SecretKey: key, APIURL: "localhost:80"},
		"public address":  {KV: kv, SecretKey: key, PublicURL: "ftp://x"},
		"with a password": {KV: kv, SecretKey: key, PublicURL: "https://a:b@x"},
	} {
		if _, err := New(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func FuzzPasted(f *testing.F) {
	for _, s := range []string{"", "4/0abc", "4%2F0abc", "http://127.0.0.1/google/callback?state=a&code=4%2F0b", "code=%zz", "gmail calendar"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if code, state, ok := parsePasted(s); !ok && code+state != "" {
			t.Errorf("%q: %q %q without ok", s, code, state)
		}
	})
}

func BenchmarkGroups(b *testing.B) {
	g, err := New(Config{KV: struct{ storage.KV }{}, SecretKey: []byte("0123456789abcdef")})
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := g.Groups(); err != nil {
			b.Fatal(err)
		}
	}
}
