package websearch_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/goleak"

	emulator "oneclaw/internal/emulator/websearch"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/websearch"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const key = "search-key"

func now() time.Time { return time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC) }

func names() []string {
	return []string{websearch.Brave, websearch.Tavily, websearch.Exa, websearch.SearXNG}
}

// openNames are the sources that need no key.
func openNames() []string { return []string{websearch.Wikipedia, websearch.HackerNews} }

func pages() []emulator.Page {
	return []emulator.Page{
		{Title: "Comet seen & named", URL: "https://news.example/comet?a=1&b=2", Text: "A comet was seen over Lisbon.", Published: now().AddDate(0, 0, -2)},
		{Title: "Comets", URL: "https://wiki.example/Comet_(body)", Text: "A comet is a small body of ice."},
		{Title: "Old comet", URL: "https://old.example/", Text: "A comet of long ago.", Published: now().AddDate(-3, 0, 0)},
	}
}

// web is the four services, and the tool that searches with them.
type web struct {
	*emulator.Server
	url string
	cfg websearch.Config
}

func newWeb(t *testing.T, cfg emulator.Config) *web {
	t.Helper()
	cfg.Key, cfg.Now = key, now
	w := &web{Server: emulator.New(cfg)}
	w.url = serve(t, w.Server.ServeHTTP)
	w.cfg = websearch.Config{AllowPrivate: []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}, Now: now, Services: w.services(names()...)}
	return w
}

func serve(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

func (w *web) services(names ...string) (all []websearch.Service) {
	for _, name := range names {
		all = append(all, websearch.Service{Name: name, BaseURL: w.url + "/" + name, Key: key, USDPerThousand: 5})
	}
	return all
}

func (w *web) search(t *testing.T, args map[string]any) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	group := groupOf(t, w.cfg)
	arguments, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return toolgroups.Run(t.Context(), nil, group.Tools[0], toolgroups.Call{Name: "search_web", Arguments: arguments})
}

func TestEachServiceIsAskedAsItWants(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	for _, name := range names() {
		w.cfg.Services = w.services(name)
		r, fault := w.search(t, map[string]any{"query": "  comet\n over Lisbon ", "count": 2})
		if fault != nil {
			t.Fatalf("%s: %v", name, fault)
		}
		for _, want := range []string{
			"1. Comet seen & named\nhttps://news.example/comet?a=1&b=2\n2026-11-18\nA comet was seen over Lisbon.\n",
			"2. Comets\nhttps://wiki.example/Comet_(body)\nA comet is a small body of ice.\n",
		} {
			if !strings.Contains(r.Text, want) {
				t.Errorf("%s: %q is missing in\n%s", name, want, r.Text)
			}
		}
		want := []toolgroups.Source{{Title: "Comet seen & named", URL: pages()[0].URL}, {Title: "Comets", URL: pages()[1].URL}}
		if diff := cmp.Diff(want, r.Sources); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
		if r, fault = w.search(t, map[string]any{"query": "comet", "since": "week"}); fault != nil || len(r.Sources) != 1 {
			t.Errorf("%s: the last week has %v, %v", name, r.Sources, fault)
		}
		if r, fault = w.search(t, map[string]any{"query": "zebra"}); fault != nil || !strings.Contains(r.Text, "found nothing") {
			t.Errorf("%s: nothing found is %q, %v", name, r.Text, fault)
		}
	}
	for _, r := range w.Requests() {
		if r.Status != http.StatusOK {
			t.Errorf("refused: %+v", r)
		}
	}
}

func TestTextsLoseTheirTagsAlone(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: []emulator.Page{{
		Title: "How to fill a vector<int> with <b>one</b> value", URL: "https://c.example/",
		Text: "<p>For a <strong class=x>Map</strong><K, V>.</p><p>If a<b and c>d,<br/>it &lt;i&gt; is.</p>",
	}}})
	for _, name := range names() {
		w.cfg.Services = w.services(name)
		r, fault := w.search(t, map[string]any{"query": "value"})
		want := "1. How to fill a vector<int> with one value\nhttps://c.example/\nFor a Map<K, V>. If a<b and c>d, it <i> is.\n"
		if fault != nil || !strings.Contains(r.Text, want) {
			t.Errorf("%s: %v, got\n%s", name, fault, r.Text)
		}
	}
}

// What a service does wrong, and what is said of it where no other answers.
func failures() map[string]struct {
	answer emulator.Answer
	says   string
} {
	return map[string]struct {
		answer emulator.Answer
		says   string
	}{
		"key":       {emulator.Answer{Status: 401, Body: "{}"}, "does not accept the key"},
		"brave key": {emulator.Answer{Status: 422, Body: `{"error":{"code":"SUBSCRIPTION_TOKEN_INVALID"}}`}, "does not accept the key"},
		"spent":     {emulator.Answer{Status: 432, Body: "{}"}, "plan is used up"},
		"often":     {emulator.Answer{Status: 429, Body: "{}"}, "too many searches"},
		"form":      {emulator.Answer{Status: 400, Body: "{}"}, "does not take this search"},
		"down":      {emulator.Answer{Status: 503, Body: "<html>"}, "HTTP 503"},
		"no JSON":   {emulator.Answer{Status: 200, Body: "<html>"}, "not have the documented format"},
		"empty":     {emulator.Answer{Status: 200, Body: ""}, "not have the documented format"},
		"other":     {emulator.Answer{Status: 200, Body: `{"ok":true}`}, "not have the documented format"},
		"types":     {emulator.Answer{Status: 200, Body: `{"web":{"results":"x"},"results":7}`}, "not have the documented format"},
		"large":     {emulator.Answer{Status: 200, Body: `{"results":["` + strings.Repeat("x", 3<<20) + `"]}`}, "larger than 2 MiB"},
		"inner":     {emulator.Answer{Status: 302, Location: "http://10.0.0.1/"}, "leads to a host"},
		"addresses": {emulator.Answer{Status: 200, Body: lies}, "none of the results"},
	}
}

const lies = `{"query":{},"web":{"results":[{"title":"a","url":"javascript:alert(1)"}]},"results":[{"title":"a","url":"javascript:alert(1)"},
	{"url":"http://127.0.0.1/admin"},{"url":"http://localhost:9/"},{"url":"http://[::1]/"},{"url":"file:///etc/passwd"},{"url":""},{"url":"https://user:pw@x.example/"}]}`

func TestTheNextServiceIsAsked(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	for name, f := range failures() {
		w.Fail(websearch.Tavily, f.answer)
		w.cfg.Services = w.services(websearch.Tavily, websearch.SearXNG)
		if r, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil || !strings.HasPrefix(r.Text, "Found by SearXNG") {
			t.Errorf("%s: %q, %v", name, r.Text, fault)
		}
		w.cfg.Services = w.services(websearch.Tavily)
		if _, fault := w.search(t, map[string]any{"query": "comet"}); fault == nil || fault.Code != websearch.CodeUnavailable ||
			!strings.Contains(fault.Message, f.says) || strings.Contains(fault.Message, key) {
			t.Errorf("%s: %v", name, fault)
		}
	}
	w.Fail(websearch.Tavily, emulator.Answer{})
	w.cfg.Services = w.services(websearch.Exa, websearch.Tavily)
	if r, _ := w.search(t, map[string]any{"query": "comet"}); !strings.HasPrefix(r.Text, "Found by Exa") {
		t.Errorf("the order is not kept: %q", r.Text)
	}
}

// SearXNG says with a status of 200 that the engines it asks refuse it.
func TestAServerWhoseEnginesAreSilentMayHaveMissedPages(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	w.Fail(websearch.SearXNG, emulator.Answer{Status: 200, Body: `{"query":"comet","results":[],"unresponsive_engines":[["google","CAPTCHA"],["brave","too many requests"]]}`})
	w.cfg.Services = w.services(websearch.SearXNG, websearch.Brave)
	if r, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil || !strings.HasPrefix(r.Text, "Found by Brave") {
		t.Errorf("%q, %v", r.Text, fault)
	}
	w.cfg.Services = w.services(websearch.SearXNG)
	var log bytes.Buffer
	w.cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
	if r, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil || !strings.Contains(r.Text, "2 of its search engines did not answer). Try other words") || log.Len() > 0 {
		t.Errorf("%q, %v, logged %s", r.Text, fault, &log)
	}
	w.Fail(websearch.Brave, emulator.Answer{Status: 503})
	w.cfg.Services = w.services(websearch.SearXNG, websearch.Brave)
	if r, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil || !strings.Contains(r.Text, "HTTP 503). Try other words") {
		t.Errorf("%q, %v", r.Text, fault)
	}
	w.cfg.Services = w.services(websearch.SearXNG)
	w.Fail(websearch.SearXNG, emulator.Answer{Status: 200, Body: `{"query":"comet","results":[{"title":"t","url":"https://a.example/"}],"unresponsive_engines":[["google","CAPTCHA"]]}`})
	if r, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil || len(r.Sources) != 1 {
		t.Errorf("%q, %v", r.Text, fault)
	}
}

// A wrong key of each service and a SearXNG server without JSON are told apart from an outage.
func TestWhatAnAdministratorHasToDo(t *testing.T) {
	w := newWeb(t, emulator.Config{NoJSON: true})
	w.cfg.Services = w.services(names()...)
	for i := range w.cfg.Services {
		w.cfg.Services[i].Key = "wrong"
	}
	_, fault := w.search(t, map[string]any{"query": "comet"})
	for _, want := range []string{"BRAVE_API_KEY", "TAVILY_API_KEY", "EXA_API_KEY", "search.formats"} {
		if fault == nil || !strings.Contains(fault.Message, want) {
			t.Errorf("%s is missing in %v", want, fault)
		}
	}
}

func TestBadSearches(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	for name, args := range map[string]map[string]any{
		"empty": {"query": " \n"}, "missing": {}, "long": {"query": strings.Repeat("é", 401)}, "many words": {"query": strings.Repeat("a ", 51)},
		"since": {"query": "x", "since": "decade"}, "type": {"query": 7, "count": "x"},
	} {
		if r, fault := w.search(t, args); fault == nil || fault.Message == "" {
			t.Errorf("%s: %q", name, r.Text)
		}
	}
	if n := len(w.Requests()); n > 0 {
		t.Errorf("%d requests were made", n)
	}
}

func TestInnerAddressesAreNotSearched(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	w.cfg.AllowPrivate = nil
	_, fault := w.search(t, map[string]any{"query": "comet"})
	if fault == nil || !strings.Contains(fault.Message, "tools.allow_private") || len(w.Requests()) > 0 {
		t.Errorf("%v, %d requests", fault, len(w.Requests()))
	}
}

// A service that leads elsewhere does not lead the key there; what is posted does not go there at all.
func TestARedirectTakesNoKeyAlong(t *testing.T) {
	w := newWeb(t, emulator.Config{})
	var got []http.Header
	other := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { got = append(got, r.Header) }))
	defer other.Close()
	for _, name := range names() {
		w.Fail(name, emulator.Answer{Status: http.StatusTemporaryRedirect, Location: other.URL})
		w.cfg.Services = w.services(name)
		_, _ = w.search(t, map[string]any{"query": "comet"})
	}
	if len(got) == 0 || strings.Contains(fmt.Sprint(got), key) {
		t.Errorf("the other server got %v", got)
	}
}

// A query can have SearXNG redirect to another site ("!!x words").
func TestARedirectToAnotherHostIsNotFollowed(t *testing.T) {
	w := newWeb(t, emulator.Config{})
	asked := false
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { asked = true }))
	defer other.Close()
	w.Fail(websearch.SearXNG, emulator.Answer{Status: http.StatusFound, Location: strings.Replace(other.URL, "127.0.0.1", "localhost", 1)})
	w.cfg.Services = w.services(websearch.SearXNG)
	if _, fault := w.search(t, map[string]any{"query": "!!x comet"}); fault == nil || asked {
		t.Errorf("%v, the other host was asked: %t", fault, asked)
	}
}

func TestSearchesArePaid(t *testing.T) {
	w := newWeb(t, emulator.Config{Pages: pages()})
	var paid []string
	w.cfg.ReserveCost = func(_ context.Context, _ toolgroups.Scope, dollars float64) (func(bool), error) {
		return func(had bool) { paid = append(paid, fmt.Sprint(dollars, had)) }, nil
	}
	w.cfg.Services = w.services(websearch.Brave, websearch.Exa)
	w.Fail(websearch.Brave, emulator.Answer{Status: 500, Body: "{}"})
	_, _ = w.search(t, map[string]any{"query": "comet"})
	if want := []string{"0.005 false", "0.005 true"}; !slices.Equal(paid, want) {
		t.Errorf("paid %v, want %v", paid, want)
	}
	asked := len(w.Requests())
	w.cfg.ReserveCost = func(context.Context, toolgroups.Scope, float64) (func(bool), error) {
		return nil, errors.New("spent until noon")
	}
	_, fault := w.search(t, map[string]any{"query": "comet"})
	if fault == nil || fault.Code != websearch.CodeBudget || !strings.Contains(fault.Message, "spent until noon") || len(w.Requests()) != asked {
		t.Errorf("%v, %d requests", fault, len(w.Requests())-asked)
	}
}

// Whatever a service answers, results are bounded, on one line each, and lead to the web.
func FuzzAnswers(f *testing.F) {
	f.Add(200, []byte(lies))
	f.Add(200, []byte(`{"web":{"results":[{"title":"<b>a</b>\n2. b","url":"https://a.example/<x y>","description":"\u202ex","page_age":"2026-13-99"}]}}`))
	f.Add(200, []byte(`{"results":[{"title":"a","url":"https://a.example","content":"t","published_date":"Mon, 02 Jan 2006 15:04:05 GMT","highlights":["h"],"publishedDate":null}]}`))
	f.Add(422, []byte(`SUBSCRIPTION_TOKEN_INVALID`))
	f.Add(200, []byte(`{"batchcomplete":true,"query":{"pages":[{"index":2,"title":"a","fullurl":"https://a.example/<x y>","extract":"\u202ex"},{"index":1}]}}`))
	f.Add(200, []byte(`{"error":{"code":"max\nlag"}}`))
	f.Add(200, []byte(`{"hits":[{"objectID":"1&x","title":"<b>t</b>","story_text":"<p>x","created_at":"2026-13-99"},{"url":"javascript:alert(1)"}]}`))
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		for _, name := range append(names(), openNames()...) {
			sources, text, err := websearch.Read(name, status, body, 3)
			if err != nil && len(sources) > 0 || len(sources) > 3 || len(text) > 16<<10 || !utf8.ValidString(text) {
				t.Errorf("%s: %d sources, %d bytes, %v", name, len(sources), len(text), err)
			}
			for _, s := range sources {
				if !strings.HasPrefix(s.URL, "http") || strings.ContainsAny(s.URL, "<> \n") || strings.ContainsFunc(s.Title, unicode.IsControl) {
					t.Errorf("%s: %q", name, s)
				}
			}
		}
	})
}
