package google

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"strings"
	"testing"
	"time"

	"oneclaw/internal/emulator/google"
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
		{"reading after 503", "tasks_list_tasklists", list, busy, 2, ""},
		{"writing after 503", "tasks_create_tasklist", insert, busy, 1, service.CodeUnavailable},
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
	d.reply("POST /gmail/v1/users/me/messages/send", `429 {}`, `429 {}`, `{"id":"m","threadId":"t"}`)
	if _, fault := d.run(t.Context(), "gmail_send", `{"to":"a@b.example","subject":"x","body":"y"}`); fault != nil {
		t.Fatal(fault)
	}
	sent := d.take()
	if len(sent) != 3 || sent[0] != sent[2] || !strings.Contains(sent[2], `{"raw":"`) {
		t.Errorf("sent %q", sent)
	}
}

// Numbers keep their digits on their way to Google.
func TestNumbersOfCellsKeepTheirDigits(t *testing.T) {
	d := newDesk(t)
	d.reply("PUT /v4/spreadsheets/s/values/A1", `{}`)
	if _, fault := d.run(t.Context(), "sheets_update_values", `{"spreadsheet_id":"s","range":"A1","values":[[725653563933458433,0.1000000000000000055,null,true]]}`); fault != nil {
		t.Fatal(fault)
	}
	if sent := d.take(); len(sent) != 1 || !strings.Contains(sent[0], `[725653563933458433,0.1000000000000000055,null,true]`) {
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

// No network is told as such. What Google may have done is told as unknown, however the wait for its
// answer ended: told as a failure, it would be done again.
func TestUnreachable(t *testing.T) {
	const unknown = "It is not known whether Google has done it"
	for name, tc := range map[string]struct {
		tool      string
		err       error // nil stops the call
		connected bool
		tries     int
		code      string
		text      string
	}{
		"refused":                   {"tasks_create_tasklist", &net.OpError{Op: "dial", Err: errors.New("connection refused")}, false, maxAttempts, service.CodeUnavailable, "could not be reached"},
		"cut":                       {"tasks_create_tasklist", io.ErrUnexpectedEOF, true, 1, service.CodeUnavailable, unknown},
		"cut while reading":         {"tasks_list_tasklists", io.ErrUnexpectedEOF, true, maxAttempts, service.CodeUnavailable, "could not be reached"},
		"no answer in time":         {"tasks_create_tasklist", context.DeadlineExceeded, true, 1, toolgroups.CodeTimeout, unknown},
		"stopped":                   {"tasks_create_tasklist", nil, true, 1, toolgroups.CodeCancelled, unknown},
		"stopped while reading":     {"tasks_list_tasklists", nil, true, 1, toolgroups.CodeCancelled, "was stopped before it ended"},
		"stopped without a request": {"tasks_create_tasklist", nil, false, 1, toolgroups.CodeCancelled, "was stopped before it ended"},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			tries := 0
			g := alone(t, roundTrip(func(req *http.Request) (*http.Response, error) {
				tries++
				if tc.connected {
					httptrace.ContextClientTrace(req.Context()).GotConn(httptrace.GotConnInfo{})
				}
				if tc.err == nil {
					cancel()
					return nil, req.Context().Err()
				}
				return nil, tc.err
			}))
			_, fault := g.call(ctx, tc.tool, `{"title":"x"}`)
			if codeOf(fault) != tc.code || !strings.Contains(fault.Message, tc.text) || strings.Contains(fault.Message, "googleapis.com/tasks") {
				t.Errorf("%+v, want %s with %q", fault, tc.code, tc.text)
			}
			if tries != tc.tries {
				t.Errorf("tried %d times, want %d", tries, tc.tries)
			}
		})
	}
}

// A mail whose answer is lost is in the mailbox once, and the call does not ask for a second one.
func TestALostAnswerIsNotAFailure(t *testing.T) {
	for _, fault := range []google.Fault{{Late: true}, {Late: true, Status: 503}} {
		for tool, tc := range map[string]struct{ method, args string }{
			"gmail_send":            {"gmail.users.messages.send", `{"to":"a@b.example","subject":"x","body":"y"}`},
			"gmail_reply":           {"gmail.users.messages.send", `{"message_id":"m-1","body":"y"}`},
			"calendar_create_event": {"calendar.events.insert", `{"calendar_id":"primary","summary":"x","start":"2027-01-01","end":"2027-01-01"}`},
			"calendar_respond":      {"calendar.events.patch", `{"calendar_id":"primary","event_id":"event-lunch","response":"accepted"}`},
			"drive_share_file":      {"drive.permissions.create", `{"file_id":"file-report","email":"a@b.example","role":"reader"}`},
		} {
			r := newRig(t, Config{})
			r.connect(t, ada, adaMail)
			fault.Method = tc.method
			r.em.Inject(fault)
			_, told := r.run(t.Context(), ada, t.TempDir(), tool, json.RawMessage(tc.args))
			if codeOf(told) != service.CodeUnavailable || !strings.Contains(strings.ToLower(told.Message), "look first") {
				t.Errorf("%s after %+v: %+v", tool, fault, told)
			}
			n := 0
			for _, request := range r.em.Requests() {
				if request.Method == tc.method {
					n++
				}
			}
			if n != 1 {
				t.Errorf("%s after %+v: sent %d times", tool, fault, n)
			}
		}
	}
}

// A deletion that is repeated because its answer was lost finds nothing any more; that is a success. An id
// that leads nowhere is still an error.
func TestARepeatedDeletionIsDone(t *testing.T) {
	r := newRig(t, Config{})
	r.connect(t, ada, adaMail, "calendar")
	for _, fault := range []google.Fault{{}, {Status: 500}, {Status: 503}} {
		e, _ := r.event(t, "calendar_create_event", `{"calendar_id":"primary","summary":"x","start":"2027-01-01","end":"2027-01-01"}`)
		args := fmt.Sprintf(`{"calendar_id":"primary","event_id":%q}`, e.Id)
		fault.Method, fault.Late, fault.Times = "calendar.events.delete", true, 1
		r.em.Inject(fault)
		if _, code := r.event(t, "calendar_delete_event", args); code != "" {
			t.Errorf("%+v: %s", fault, code)
		}
		r.em.Inject(google.Fault{Method: "calendar.events.delete", Status: 429, Times: 1})
		if _, code := r.event(t, "calendar_delete_event", args); code != service.CodeNotFound {
			t.Errorf("deleted before: %q", code)
		}
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
	g, err := New(Config{KV: openKV(t), SecretKey: []byte("0123456789abcdef"), ClientID: "x", transport: transport, pause: time.Millisecond})
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
