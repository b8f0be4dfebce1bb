package websearch_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	emulator "oneclaw/internal/emulator/websearch"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/websearch"
)

const offer = "an administrator can set BRAVE_API_KEY, TAVILY_API_KEY, EXA_API_KEY or SEARXNG_URL"

// newOpenWeb has no keys, so that the open sources alone are asked.
func newOpenWeb(t *testing.T, pages ...emulator.Page) *web {
	t.Helper()
	w := newWeb(t, emulator.Config{Pages: pages})
	w.cfg.Services = w.services(openNames()...)
	for i := range w.cfg.Services {
		w.cfg.Services[i].Key, w.cfg.Services[i].USDPerThousand = "", 0
	}
	return w
}

// Open sources are asked together, the best result of each comes first, and the result says what it is not.
func TestOpenSourcesAreAskedTogether(t *testing.T) {
	t.Parallel()
	story := emulator.Page{Title: "Ask HN: which comet?", Text: "A comet for <i>beginners</i>.", Published: now().AddDate(0, 0, -1)}
	w := newOpenWeb(t, append(pages(), story)...)
	r, fault := w.search(t, map[string]any{"query": "comet", "count": 8})
	if fault != nil {
		t.Fatal(fault)
	}
	if len(r.Text) > 4<<10 {
		t.Errorf("%d bytes", len(r.Text))
	}
	for _, want := range []string{
		"Found by Wikipedia and Hacker News for \"comet\":\n\n1. Comet seen & named\nhttps://news.example/comet?a=1&b=2\nA comet was seen over Lisbon.\n\n" +
			"2. Comet seen & named\nhttps://news.example/comet?a=1&b=2\n2026-11-18\n10 points and 0 comments at https://news.ycombinator.com/item?id=100\n",
		"Ask HN: which comet?\nhttps://news.ycombinator.com/item?id=103\n2026-11-19\nA comet for beginners.\n",
		"Nothing else was searched. For a search of the whole web, " + offer,
	} {
		if !strings.Contains(r.Text, want) {
			t.Errorf("%q is missing in\n%s", want, r.Text)
		}
	}
	if r, fault = w.search(t, map[string]any{"query": "comet", "count": 3}); fault != nil || len(r.Sources) != 3 {
		t.Errorf("three of two sources are %v, %v", r.Sources, fault)
	}
	if r, fault = w.search(t, map[string]any{"query": "zebra"}); fault != nil || !strings.HasPrefix(r.Text, "Wikipedia and Hacker News found nothing for \"zebra\"") || !strings.Contains(r.Text, offer) {
		t.Errorf("nothing found is %q, %v", r.Text, fault)
	}
	if _, fault = w.search(t, map[string]any{"query": strings.Repeat("comet comet ", 25)}); fault != nil { // Wikipedia takes 300 characters
		t.Error(fault)
	}
	for _, asked := range w.Requests() {
		if asked.Status != http.StatusOK {
			t.Errorf("refused: %+v", asked)
		}
	}
}

// Wikipedia does not know when a page was published, so it is not asked for what is new.
func TestWikipediaIsNotAskedForNews(t *testing.T) {
	t.Parallel()
	w := newOpenWeb(t, pages()...)
	r, fault := w.search(t, map[string]any{"query": "comet", "since": "week"})
	if fault != nil || len(r.Sources) != 1 || !strings.Contains(r.Text, "Nothing else was searched (Wikipedia: not asked, since its pages have no day of publication).") {
		t.Errorf("%q, %v", r.Text, fault)
	}
	if asked := w.Requests(); len(asked) != 1 || asked[0].Service != emulator.HackerNews {
		t.Errorf("asked %+v", asked)
	}
}

// A source that fails is named with its reason; one that asks for a pause is not asked meanwhile, and all
// of it ends in a sentence.
func TestOpenSourcesThatRefuse(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		answer emulator.Answer
		says   string
		rests  bool
	}{
		"too many":     {emulator.Answer{Status: 429, Body: "{}", RetryAfter: "30"}, "too many searches (HTTP 429); it wants a pause of 30 seconds", true},
		"until a time": {emulator.Answer{Status: 503, Body: "", RetryAfter: now().Add(2 * time.Minute).Format(http.TimeFormat)}, "HTTP 503; it wants a pause of 2 minutes", true},
		"very long":    {emulator.Answer{Status: 429, Body: "", RetryAfter: "1000000"}, "a pause of an hour", true},
		"maxlag": {emulator.Answer{Status: 200, Body: `{"error":{"code":"maxlag","info":"Waiting for 10.64.0.1: 7 seconds lagged","lag":7}}`, RetryAfter: "5"},
			"it is overloaded (maxlag); it wants a pause of 5 seconds", true},
		"too many, no time": {emulator.Answer{Status: 429, Body: "{}"}, "too many searches (HTTP 429)", false},
		"refused":           {emulator.Answer{Status: 200, Body: `{"error":{"code":"badvalue","info":"x"}}`}, "does not take this search (badvalue)", false},
		"agent":             {emulator.Answer{Status: 403, Body: "no"}, "ONECLAW_WEB_SEARCH_CONTACT", false},
		"no JSON":           {emulator.Answer{Status: 200, Body: "<html>"}, "not have the documented format", false},
		"large":             {emulator.Answer{Status: 200, Body: strings.Repeat("x", 3<<20)}, "larger than 2 MiB", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newOpenWeb(t, pages()...)
			var log bytes.Buffer
			w.cfg.Logger = slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))
			at := now()
			w.cfg.Now = func() time.Time { return at }
			group := groupOf(t, w.cfg)
			w.Fail(emulator.Wikipedia, c.answer)
			if r, fault := ask(t, group); fault != nil || !strings.HasPrefix(r.Text, "Found by Hacker News") || !strings.Contains(r.Text, c.says) {
				t.Errorf("%q, %v", r.Text, fault)
			}
			warned := log.String()
			w.Fail(emulator.HackerNews, emulator.Answer{Status: 500, Body: "{}"})
			asked := len(w.Requests())
			_, fault := ask(t, group)
			if fault == nil || fault.Code != websearch.CodeUnavailable || !strings.Contains(fault.Message, "Hacker News: it answered HTTP 500") || !strings.Contains(fault.Message, offer) {
				t.Errorf("%v", fault)
			}
			rested := len(w.Requests()) == asked+1
			if rested != c.rests || rested && !strings.Contains(fault.Message, "Wikipedia: not asked, since it wants a pause for another") {
				t.Errorf("paused: %t, %v", rested, fault)
			}
			if strings.Count(warned, "service=wikipedia") != 1 || c.rests && strings.Count(log.String(), "service=wikipedia") != 1 {
				t.Errorf("logged %s", &log)
			}
			w.Fail(emulator.Wikipedia, emulator.Answer{})
			at = at.Add(time.Hour)
			if r, fault := ask(t, group); fault != nil || !strings.HasPrefix(r.Text, "Found by Wikipedia for") {
				t.Errorf("later: %q, %v", r.Text, fault)
			}
		})
	}
}

// A service with a key is asked before or after the open sources, as the order says, and alone where it answers.
func TestTheOrderMixesOpenSources(t *testing.T) {
	t.Parallel()
	w := newOpenWeb(t, pages()...)
	w.Fail(emulator.Brave, emulator.Answer{Status: 503, Body: "{}"})
	for _, c := range []struct{ order, found string }{
		{"brave wikipedia hackernews", "Wikipedia and Hacker News"},
		{"wikipedia tavily hackernews", "Wikipedia"},
		{"tavily wikipedia", "Tavily"},
	} {
		w.cfg.Services = w.services(strings.Fields(c.order)...)
		r, fault := w.search(t, map[string]any{"query": "comet"})
		if fault != nil || !strings.HasPrefix(r.Text, "Found by "+c.found+" for") || strings.Contains(r.Text, offer) != (c.found != "Tavily") {
			t.Errorf("%s: %q, %v", c.order, r.Text, fault)
		}
	}
}

// Wikimedia may block a program that does not say who it is.
func TestOpenSourcesLearnWhoAsks(t *testing.T) {
	t.Parallel()
	for contact, want := range map[string]string{
		"":                "OneClaw/1.0 (self-hosted chat bot)",
		"ann@example.org": "OneClaw/1.0 (self-hosted chat bot; ann@example.org)",
	} {
		var agents []string
		w := newOpenWeb(t, pages()...)
		w.url = serve(t, func(rw http.ResponseWriter, r *http.Request) {
			agents = append(agents, r.Header.Get("User-Agent"))
			w.Server.ServeHTTP(rw, r)
		})
		w.cfg.Services = w.services(openNames()...)
		for i := range w.cfg.Services {
			w.cfg.Services[i].Contact = contact
		}
		if _, fault := w.search(t, map[string]any{"query": "comet"}); fault != nil {
			t.Error(fault)
		}
		if diff := cmp.Diff([]string{want, want}, agents); diff != "" {
			t.Error(diff)
		}
	}
}

func groupOf(t *testing.T, cfg websearch.Config) toolgroups.Group {
	t.Helper()
	s, err := websearch.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	group, err := s.Group()
	if err != nil {
		t.Fatal(err)
	}
	return group
}

// ask searches with a group that has searched before.
func ask(t *testing.T, group toolgroups.Group) (toolgroups.Result, *toolgroups.Error) {
	t.Helper()
	return toolgroups.Run(t.Context(), nil, group.Tools[0], toolgroups.Call{Name: "search_web", Arguments: json.RawMessage(fmt.Sprintf(`{"query":%q}`, "comet"))})
}
