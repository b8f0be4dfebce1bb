package connections_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/netip"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"oneclaw/bridge"
	"oneclaw/bridge/audit"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/internal/connections"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google"
	"oneclaw/toolgroups/mcp"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// replica is a process that shares a store.
type replica struct {
	desk    *connections.Handler
	servers *mcp.Client
	audited storage.KV // where commands are recorded, if not nil
	changed chan struct{}
}

func newReplica(t *testing.T, store storage.KV) *replica {
	t.Helper()
	r := &replica{changed: make(chan struct{}, 20)}
	var err error
	r.servers, err = mcp.New(mcp.Config{
		Servers:      map[string]mcp.Server{"fixed": {Command: "/bin/false", Role: "owner"}},
		Accounts:     mcp.AccountsConfig{KV: store, SecretKey: []byte("0123456789abcdef")},
		AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")},
		TakenNames:   []string{"mcp_taken"}, OnChange: func() { r.changed <- struct{}{} },
	})
	must(t, err)
	t.Cleanup(func() { must(t, r.servers.Close()) })
	r.desk = connections.New(connections.Config{Now: time.Now, Servers: r.servers, Store: store})
	return r
}

// say gives a command.
func (r *replica) say(t *testing.T, name, args string) string {
	t.Helper()
	for _, c := range r.desk.Commands() {
		call := bridge.CommandCall{
			Scope:  toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Direct: true, Role: toolgroups.RoleAdmin},
			Author: audit.Author{KV: r.audited, By: "telegram:1"}, Args: args,
		}
		if c.Name == name && c.RunCard != nil {
			card, err := c.RunCard(t.Context(), call)
			must(t, err)
			return card.Text
		}
		if c.Name == name {
			text, err := c.Run(t.Context(), call)
			must(t, err)
			return text
		}
	}
	t.Fatalf("no command %s", name)
	return ""
}

func (r *replica) says(t *testing.T, name, args string, parts ...string) {
	t.Helper()
	text := r.say(t, name, args)
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("/%s %s: %q does not say %q", name, args, text, p)
		}
	}
}

// served is an MCP server with these tools, which asks nobody to sign in.
func served(t *testing.T, names ...string) string {
	t.Helper()
	server := sdk.NewServer(&sdk.Implementation{Name: "fake", Version: "1"}, nil)
	for _, name := range names {
		server.AddTool(&sdk.Tool{Name: name, InputSchema: &jsonschema.Schema{Type: "object"}}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{}, nil
		})
	}
	web := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{Stateless: true, JSONResponse: true}))
	t.Cleanup(web.Close)
	t.Cleanup(web.CloseClientConnections)
	return web.URL + "/mcp"
}

func openStore(t *testing.T) storage.KV {
	t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	must(t, err)
	t.Cleanup(func() { must(t, store.Close()) })
	return store
}

// What one replica adds and removes the others have and lose, and so has who starts later.
func TestServersAreAddedOnAllReplicas(t *testing.T) {
	store := openStore(t)
	one, two := newReplica(t, store), newReplica(t, store)
	var running sync.WaitGroup
	ctx, stop := context.WithCancel(t.Context())
	running.Go(func() { two.desk.Run(ctx) })
	defer running.Wait()
	defer stop()
	url := served(t, "read", "write")
	one.says(t, "mcp", "add notes "+url+" role=admin trust=none", "Added notes with 2 tools")
	<-two.changed
	late := newReplica(t, store)
	must(t, late.desk.Load(t.Context()))
	for _, r := range []*replica{one, two, late} {
		r.says(t, "mcp", "", "**notes**", "for the role admin", "added in a chat", "**fixed**", "from the settings")
		if groups := r.servers.Groups(); len(groups) != 2 || groups[1].Role != toolgroups.RoleAdmin {
			t.Errorf("groups %+v", groups)
		}
	}
	two.says(t, "mcp", "notes", "works: it has 2 tools")
	two.says(t, "mcp", "add notes "+url, "Nothing was added: there is a server notes already")
	two.says(t, "connect", "notes", "needs no account")
	two.says(t, "mcp", "remove NOTES", "Removed notes.")
	for one.servers.HasServer("notes") { // one does not follow by itself here
		must(t, one.desk.Load(t.Context()))
	}
	one.says(t, "mcp", "remove notes", "There is no server")
	one.says(t, "mcp", "remove fixed", "stands in the settings")
}

// Of two administrators who add one name at the same time, one reads that it was not theirs, and the
// descriptions stay those of the server that was added. A command that a crash has cut off says so too.
func TestTwoServersOfOneNameAreNotAdded(t *testing.T) {
	store := openStore(t)
	one, two := newReplica(t, store), newReplica(t, store)
	address := served(t, "read", "write")
	added := sync.OnceFunc(func() {
		one.says(t, "mcp", "add notes "+address, "Added notes with 2 tools")
	})
	inner := http.Handler(http.NotFoundHandler())
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		added() // while the other command is connecting
		inner.ServeHTTP(w, r)
	}))
	t.Cleanup(other.Close)
	t.Cleanup(other.CloseClientConnections)
	target, err := url.Parse(served(t, "steal"))
	must(t, err)
	inner = httputil.NewSingleHostReverseProxy(target)
	two.says(t, "mcp", "add notes "+other.URL+"/mcp", "Nothing was added: there is a server notes already")
	pins, err := store.Get(t.Context(), mcp.RecordPrefix+"notes")
	must(t, err)
	if !strings.Contains(string(pins.Value), `"read"`) {
		t.Errorf("the descriptions that were allowed are %s", pins.Value)
	}
	for range 2 { // in the process that has added it, and in one that starts
		one.says(t, "mcp", "add notes "+address, "Added notes")
		one = newReplica(t, store)
		must(t, one.desk.Load(t.Context()))
	}
	one.says(t, "mcp", "add notes "+address+" trust=hints", "Nothing was added: there is a server notes already")
}

// What cannot be added is refused in a sentence, and leaves nothing behind.
func TestServersThatAreNotAdded(t *testing.T) {
	store := openStore(t)
	r := newReplica(t, store)
	down := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(down.Close)
	good := served(t, "read")
	for args, want := range map[string]string{
		"add":                                    "/mcp add NAME ADDRESS",
		"add notes " + good + " sudo=yes":        "do not understand",
		"add notes " + good + " trust=full":      "do not understand",
		"add google " + good:                     "choose another",
		"add taken " + good:                      "taken by a tool",
		"add FIXED_2 " + good:                    "too close",
		"add notes ftp://notes.example/":         "must begin with http",
		"add notes http://user:pw@notes.example": "user name or password",
		"add notes http://10.0.0.1/mcp":          "internal or reserved, and this bot may only reach public ones of others`; an administrator allows others with `tools.allow_private`",
		"add notes " + down.URL:                  "Nothing was added",
		"add notes " + served(t):                 "Nothing was added",
		"remove ../../x":                         "/mcp remove NAME",
		"nonsense":                               "/mcp add NAME ADDRESS",
	} {
		r.says(t, "mcp", args, want)
	}
	for entry, err := range store.List(t.Context(), storage.Range{}) {
		must(t, err)
		t.Errorf("left behind: %s", entry.Key)
	}
	// A record that cannot be read, or took the name of one of the settings, is left out.
	_, err := store.Put(t.Context(), "mcp/server/broken", []byte("{"), storage.Absent)
	must(t, err)
	_, err = store.Put(t.Context(), "mcp/server/fixed", []byte(`{"url":"https://notes.example/mcp"}`), storage.Absent)
	must(t, err)
	must(t, r.desk.Load(t.Context()))
	if st := r.servers.Status(); len(st) != 1 || st[0].Added {
		t.Errorf("%+v", st)
	}
}

func withGoogle(t *testing.T, store storage.KV) (*google.Google, *connections.Handler) {
	t.Helper()
	g, err := google.New(google.Config{ClientID: "id", ClientSecret: "secret", KV: store, SecretKey: []byte("0123456789abcdef")})
	must(t, err)
	return g, connections.New(connections.Config{Now: time.Now, Google: g, Servers: newReplica(t, store).servers, Store: store})
}

// Who is forgotten has begun no sign-in either: what one holds is as much as an account.
func TestForgetEndsSignInsThatHaveBegun(t *testing.T) {
	store := openStore(t)
	g, desk := withGoogle(t, store)
	for _, user := range []string{"telegram:1", "telegram:2"} {
		_, err := g.Connect(t.Context(), google.ConnectRequest{User: user, Chat: user, Direct: true, Args: "gmail"})
		must(t, err)
		_, err = store.Put(t.Context(), "mcp/pending/notes/"+user, []byte("sealed"), storage.Absent)
		must(t, err)
	}
	must(t, desk.Forget(t.Context(), "telegram:1"))
	others := 0
	for entry, err := range store.List(t.Context(), storage.Range{}) {
		must(t, err)
		if strings.HasSuffix(entry.Key, "telegram:1") {
			t.Errorf("left behind: %s", entry.Key)
		}
		if strings.HasSuffix(entry.Key, "telegram:2") {
			others++
		}
	}
	if others < 2 {
		t.Errorf("of somebody else %d records are left", others)
	}
}

// What the last page of a sign-in shows is enough as a message, from the person and in the chat of the link, while the
// sign-in waits for it. A wrong code is one too, so that it is counted and the model learns of neither.
func TestABareCodeConnectsWhileASignInWaitsForIt(t *testing.T) {
	store := openStore(t)
	g, desk := withGoogle(t, store)
	wants := func(when, user, chat, text, want string) {
		t.Helper()
		id, thread, _ := strings.Cut(chat, ":")
		got, err := desk.CommandFor(t.Context(), chats.Message{Kind: chats.KindText, Chat: chats.Chat{Platform: "telegram", ID: id, Thread: thread}, User: user, Text: text})
		if err != nil || got != want {
			t.Errorf("%s: %q stands for %q, %v, want %q", when, text, got, err, want)
		}
	}
	wants("without a sign-in", "1", "1", "BCDF-2345", "")
	text, err := g.Connect(t.Context(), google.ConnectRequest{User: "telegram:1", Chat: "telegram:1", Direct: true, Args: "gmail"})
	must(t, err)
	state := regexp.MustCompile(`state=([^&)]+)`).FindStringSubmatch(text)
	if state == nil {
		t.Fatalf("no link in %q", text)
	}
	wants("before the permission", "1", "1", "BCDF-2345", "")
	page := httptest.NewRecorder()
	g.Pages().ServeHTTP(page, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/google/callback?code=x&state="+state[1], nil))
	code := regexp.MustCompile(`<code>(.*)</code>`).FindStringSubmatch(page.Body.String())
	if code == nil {
		t.Fatalf("the page shows no code: %s", page.Body)
	}
	wants("from the person", "1", "1", " "+code[1]+"\n", "/connect google "+code[1])
	wants("in a thread of the chat", "1", "1:7", code[1], "/connect google "+code[1])
	wants("a wrong one", "1", "1", "BCDF-2345", "/connect google BCDF-2345")
	wants("from another person", "2", "1", code[1], "")
	wants("in another chat", "1", "-100", code[1], "")
	wants("a word", "1", "1", "real-time", "")
	wants("within a text", "1", "1", "Is it "+code[1]+"?", "")
}

// A server from elsewhere is offered, contacted only when an administrator switches it on, and then added
// as one that an administrator has named.
func TestOfferedServersAreSwitchedOn(t *testing.T) {
	store := openStore(t)
	r := newReplica(t, store)
	url := served(t, "read", "write")
	offer := func(name, url string, write bool) error {
		reasons, err := connections.ImportOffers(t.Context(), store, []connections.Offer{{Name: name, URL: url}}, write)
		must(t, err)
		return reasons[0]
	}
	if offer("notes", url, false) != nil || offer("notes", url, true) != nil || !errors.Is(offer("NOTES", url, true), connections.ErrKnown) {
		t.Error("an offer is not stored once")
	}
	for name, url := range map[string]string{"two words": url, "other": "ftp://notes.example"} {
		if reason := offer(name, url, true); reason == nil || strings.Contains(reason.Error(), "\n") {
			t.Errorf("%s at %s: %v", name, url, reason)
		}
	}
	if len(r.servers.Status()) != 1 {
		t.Error("an offer is a server already")
	}
	result, err := r.desk.HandlePress(t.Context(), interact.Press{Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin}, Choice: "none"})
	must(t, err)
	host := strings.TrimSuffix(strings.TrimPrefix(url, "http://"), "/mcp")
	for _, text := range []string{r.say(t, "mcp", ""), result.Text} {
		if !strings.Contains(text, host) || strings.Contains(text, "http://"+host) {
			t.Errorf("a list that does not show the host alone: %s", text)
		}
	}
	r.says(t, "mcp", "", "**notes**", "imported, and not switched on")
	r.says(t, "mcp", "on other", "No server `other` waits")
	r.says(t, "mcp", "on notes", "Added notes with 2 tools", "Every call asks")
	if strings.Contains(r.say(t, "mcp", ""), "not switched on") {
		t.Error("what is switched on is still offered")
	}
}

// A dry run finds out what an import does: names are told apart as commands do, and their number is bounded.
func TestADryRunSaysWhatIsImported(t *testing.T) {
	store := openStore(t)
	offers := []connections.Offer{{Name: "notes", URL: "https://notes.example/mcp"}, {Name: "Notes", URL: "https://notes.example/mcp"}}
	for i := range 60 {
		offers = append(offers, connections.Offer{Name: fmt.Sprint("s", i), URL: "https://notes.example/mcp"})
	}
	for _, write := range []bool{false, true} {
		reasons, err := connections.ImportOffers(t.Context(), store, offers, write)
		must(t, err)
		for i, reason := range reasons {
			want := error(nil)
			if i == 1 {
				want = connections.ErrKnown
			} else if i > 50 {
				want = connections.ErrTooMany
			}
			if !errors.Is(reason, want) || want == nil && reason != nil {
				t.Errorf("write %t: %s: %v, want %v", write, offers[i].Name, reason, want)
			}
		}
	}
}

// However many servers wait to be switched on, /connect shows buttons that a platform can show, and names
// the others.
func TestMoreServersThanButtons(t *testing.T) {
	store := openStore(t)
	var offers []connections.Offer
	for i := range 35 {
		offers = append(offers, connections.Offer{Name: fmt.Sprintf("s%02d", i), URL: "https://notes.example/mcp"})
	}
	_, err := connections.ImportOffers(t.Context(), store, offers, true)
	must(t, err)
	r := newReplica(t, store)
	result, err := r.desk.HandlePress(t.Context(), interact.Press{Scope: toolgroups.Scope{Role: toolgroups.RoleAdmin}, Choice: "none"})
	must(t, err)
	if len(result.Choices) != 30 || !strings.Contains(result.Text, "`/mcp on NAME` switches on the others: `s30`, `s31`, `s32`, `s33`, `s34`.") {
		t.Errorf("%d buttons, %s", len(result.Choices), result.Text)
	}
}

// Who removes an imported server is recorded, as for one that was added.
func TestRemovingAnOfferIsRecorded(t *testing.T) {
	store := openStore(t)
	_, err := connections.ImportOffers(t.Context(), store, []connections.Offer{{Name: "notes", URL: "https://notes.example/mcp"}}, true)
	must(t, err)
	r := newReplica(t, store)
	r.audited = store
	r.says(t, "mcp", "remove notes", "Removed notes.")
	entries, err := audit.List(t.Context(), store, 10)
	must(t, err)
	if len(entries) != 1 || entries[0].Action != "mcp remove" || entries[0].About != "notes" || entries[0].By != "telegram:1" {
		t.Errorf("audit %+v", entries)
	}
}
