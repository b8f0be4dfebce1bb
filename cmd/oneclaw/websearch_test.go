package main

import (
	"context"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/websearch"
)

// withWebSearch sets up Brave, which is out of order, and Tavily.
func (w *harness) withWebSearch(t *testing.T) *websearch.Server {
	t.Helper()
	server := websearch.New(websearch.Config{Key: "search-key", Pages: []websearch.Page{
		{Title: "Comet [seen] & *named*", URL: "https://news.example/comet_(1)", Text: "A comet was seen."},
		{Title: "Comets", URL: "https://wiki.example/comet", Text: "A comet is a body of ice."},
	}})
	server.Fail(websearch.Brave, websearch.Answer{Status: 503, Body: "{}"})
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	w.env["BRAVE_API_KEY"], w.env["BRAVE_API_URL"] = "search-key", web.URL+"/brave"
	w.env["TAVILY_API_KEY"], w.env["TAVILY_API_URL"] = "search-key", web.URL+"/tavily"
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"], w.env["ONECLAW_BUDGET_TOTAL_USD"] = "127.0.0.1/32", "1"
	return server
}

// webSearcher is a model that searches the web and says what it found. If reached is not
// nil, it is closed once there are results, and that request gets no answer.
type webSearcher struct {
	reached chan struct{}
	once    atomic.Bool
}

func (s *webSearcher) Reply(ctx context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == "user" || strings.HasPrefix(last.Content, "Loaded ") {
		return useTool(req, "web_search", "search_web", `{"query":"comet"}`)
	}
	if s.reached != nil && s.once.CompareAndSwap(false, true) {
		close(s.reached)
		<-ctx.Done()
		return openai.Reply{}, ctx.Err()
	}
	return openai.Reply{Text: "A comet was seen."}, nil
}

// TestTheWebIsSearched: the second service answers where the first does not, the answer has
// its sources, and whoever asked has paid.
func TestTheWebIsSearched(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, &webSearcher{}, func(s *botChat) {
		server := s.w.withWebSearch(s.t)
		s.start()
		s.say(0, "what about the comet?")
		answer := s.one("A comet was seen.").text
		wantIn(s.t, answer, "Sources: ", "Comet [seen]", " · ", "Comets")
		if requests := server.Requests(); len(requests) != 2 || requests[0].Service != websearch.Brave || requests[1].Status != 200 {
			s.t.Errorf("searched %+v", requests)
		}
		s.say(0, "/usage")
		wantIn(s.t, s.one("1 search of the web").text, "$0.008")
	})
}

// TestAFirstSearchNeedsNoKey: the open sources are asked, nothing is charged, and their results are quoted, and named
// below the answer, like those of any service.
func TestAFirstSearchNeedsNoKey(t *testing.T) {
	t.Parallel()
	onBothPlatforms(t, false, &webSearcher{}, func(s *botChat) {
		server := websearch.New(websearch.Config{Pages: []websearch.Page{{Title: "Comets", URL: "https://wiki.example/comet", Text: "A comet is a body of ice."}}})
		web := httptest.NewServer(server)
		s.t.Cleanup(web.Close)
		s.w.env["WIKIPEDIA_URL"], s.w.env["HACKER_NEWS_URL"] = web.URL+"/wikipedia", web.URL+"/hackernews"
		s.w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"], s.w.env["ONECLAW_BUDGET_TOTAL_USD"] = "127.0.0.1/32", "1"
		server.Fail(websearch.HackerNews, websearch.Answer{Status: 429, Body: "{}", RetryAfter: "60"})
		s.start()
		s.say(0, "what about the comet?")
		wantIn(s.t, s.one("A comet was seen.").text, "Sources: ", "Comets")
		if requests := server.Requests(); len(requests) != 2 || requests[0].Status != 200 || requests[1].Status != 429 {
			s.t.Errorf("searched %+v", requests)
		}
	})
}

// TestSourcesOutliveAKill kills the bot between the results and the answer.
func TestSourcesOutliveAKill(t *testing.T) {
	t.Parallel()
	model := &webSearcher{reached: make(chan struct{})}
	w := newHarness(t, model)
	server := w.withWebSearch(t)
	ann := w.person("Ann")
	bot := w.run()
	w.say(ann, "what about the comet?", nil)
	<-model.reached
	bot.kill(syscall.SIGKILL)
	bot = w.run()
	wantIn(t, w.shows(bot, ann, "A comet was seen."), "Sources: Comet")
	if n := len(server.Requests()); n != 2 {
		t.Errorf("%d requests, want the two from before the kill", n)
	}
}

func TestWebSearchIsThereWhenItIsSetUp(t *testing.T) {
	for name, c := range map[string]struct {
		env   []string
		want  string // what is wrong
		order string
	}{
		"none":      {nil, "", "wikipedia hackernews"},
		"off":       {[]string{"EXA_API_KEY=e", "ONECLAW_WEB_SEARCH=off"}, "", ""},
		"mixed":     {[]string{"EXA_API_KEY=e", "ONECLAW_WEB_SEARCH=exa,wikipedia"}, "", "exa wikipedia"},
		"contact":   {[]string{"ONECLAW_WEB_SEARCH_CONTACT=ann@example.org (Ann)"}, "ONECLAW_WEB_SEARCH_CONTACT", ""},
		"language":  {[]string{"WIKIPEDIA_URL=pt.wikipedia.org"}, "WIKIPEDIA_URL", ""},
		"all":       {[]string{"EXA_API_KEY=e", "SEARXNG_URL=http://s", "BRAVE_API_KEY=b"}, "", "brave exa searxng"},
		"order":     {[]string{"EXA_API_KEY=e", "SEARXNG_URL=http://s", "ONECLAW_WEB_SEARCH=searxng,exa"}, "", "searxng exa"},
		"left out":  {[]string{"EXA_API_KEY=e", "SEARXNG_URL=http://s", "ONECLAW_WEB_SEARCH=searxng"}, "", "searxng"},
		"no key":    {[]string{"EXA_API_KEY=e", "ONECLAW_WEB_SEARCH=exa,brave"}, `ONECLAW_WEB_SEARCH): "brave"`, ""},
		"twice":     {[]string{"EXA_API_KEY=e", "ONECLAW_WEB_SEARCH=exa,exa"}, "twice", ""},
		"unknown":   {[]string{"EXA_API_KEY=e", "ONECLAW_WEB_SEARCH=google"}, `"google"`, ""},
		"address":   {[]string{"SEARXNG_URL=searx"}, "SEARXNG_URL", ""},
		"dear":      {[]string{"EXA_API_KEY=e", "ONECLAW_EXA_USD_PER_1000=-1"}, "ONECLAW_EXA_USD_PER_1000", ""},
		"not a sum": {[]string{"ONECLAW_EXA_USD_PER_1000=much"}, "ONECLAW_EXA_USD_PER_1000", ""},
	} {
		cfg, err := config.Load("", append(c.env, "ONECLAW_DATA_DIR="+t.TempDir()))
		if (err != nil) != (c.want != "") || err != nil && !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
		if err != nil {
			continue
		}
		services, _ := cfg.Tools.WebSearch.Services()
		var order []string
		for _, s := range services {
			order = append(order, s.Name)
		}
		if got := strings.Join(order, " "); got != c.order {
			t.Errorf("%s: asked in the order %q, want %q", name, got, c.order)
		}
	}
}
