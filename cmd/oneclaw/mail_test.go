package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"oneclaw/internal/emulator/google"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
)

// withGoogle adds Google to a harness.
func (w *harness) withGoogle(t *testing.T) *google.Server {
	t.Helper()
	server, err := google.New(google.Config{ClientID: "client", ClientSecret: "client-secret"})
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(server)
	t.Cleanup(web.Close)
	w.env["GOOGLE_API_URL"], w.env["GOOGLE_CLIENT_ID"], w.env["GOOGLE_CLIENT_SECRET"] = web.URL, "client", "client-secret"
	return server
}

// askForLink is ask with the addresses of the links in the answer.
func (w *harness) askForLink(bot *process, who int64, text string) string {
	w.t.Helper()
	answer := w.ask(bot, who, text, nil)
	all := w.telegram.Messages(who)
	for _, e := range all[len(all)-1].Entities {
		answer += " " + e.URL
	}
	return answer
}

var linkPattern = regexp.MustCompile(`https?://[^\s|>)]+`)

// mailReader is a model that knows what to do about mail: it searches, and moves to the
// trash what it found in the spam, all at once.
func mailReader(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	switch {
	case last.Role == "user" && strings.Contains(last.Content, "check my email"), strings.HasPrefix(last.Content, "Loaded "):
		return useTool(req, "google_gmail", "gmail_search", `{"query":"in:spam","max_results":100}`)
	case last.Role == "user":
		ids := regexp.MustCompile(`\bs-\d+\b`).FindAllString(req.Messages[len(req.Messages)-3].Content, -1)
		slices.Sort(ids)
		arguments, err := json.Marshal(map[string]any{"message_ids": slices.Compact(ids), "add_labels": []string{"TRASH"}, "remove_labels": []string{"SPAM"}})
		if err != nil {
			return openai.Reply{}, err
		}
		return useTool(req, "google_gmail", "gmail_batch_modify", string(arguments))
	}
	return openai.Reply{Text: "The tool says: " + last.Content[:min(300, len(last.Content))]}, nil
}

// TestDeleteTheSpamOnes checks mail in one message and deletes the spam in
// the next, on both platforms: one load, one question with the number of letters, and one request to Google for them.
func TestDeleteTheSpamOnes(t *testing.T) {
	t.Parallel()
	t.Run("telegram", func(t *testing.T) {
		w := newHarness(t, openai.ResponderFunc(mailReader))
		server := w.withGoogle(t)
		ann := w.person("Ann")
		bot := w.run()
		deleteSpam(t, w, server, func(text string) string { return w.askForLink(bot, ann, text) }, func() {
			w.shows(bot, ann, "on 61 things at once") // below the messages that name the letters
			w.tap(bot, ann, "Allow once")
			w.shows(bot, ann, "The tool says")
		})
	})
	t.Run("slack", func(t *testing.T) {
		w := newHarness(t, openai.ResponderFunc(mailReader))
		server := w.withGoogle(t)
		workspace, _, people := w.withSlack(t, "ann")
		dm, err := workspace.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people})
		if err != nil {
			t.Fatal(err)
		}
		start(t, w.env, "run")
		deleteSpam(t, w, server, func(text string) string {
			return askSlack(t, workspace, dm, people[0], text)
		}, func() {
			var card slack.Message
			waitSlack(t, workspace, "the question", func(s slack.State) bool {
				all := s.Answers(dm)
				card = all[len(all)-1]
				return strings.Contains(card.Text, "on 61 things at once")
			})
			if _, err := workspace.Press(dm, card.TS, people[0], card.Buttons[0][0].Value, false); err != nil {
				t.Fatal(err)
			}
			waitSlack(t, workspace, "the end of the spam", func(s slack.State) bool {
				all := s.Answers(dm)
				return strings.Contains(all[len(all)-1].Text, "The tool says")
			})
		})
	})
}

// askSlack has somebody write in a channel and returns the text of the next answer.
func askSlack(t *testing.T, workspace *slack.Server, channel, who, text string) string {
	t.Helper()
	before := 0
	workspace.View(func(s slack.State) { before = s.CountAnswers(channel) })
	sayTo(t, workspace, channel, who, text, "")
	waitSlack(t, workspace, "answer to "+text, func(s slack.State) bool { return s.CountAnswers(channel) > before })
	var answer string
	workspace.View(func(s slack.State) { answer = s.Answers(channel)[before].Text })
	return strings.NewReplacer("&amp;", "&", "&lt;", "<", "&gt;", ">").Replace(answer)
}

func deleteSpam(t *testing.T, w *harness, server *google.Server, ask func(string) string, allow func()) {
	t.Helper()
	wantIn(t, ask("check my email"), "connect")
	answer := ask("/connect google gmail")
	back, err := server.Consent(linkPattern.FindString(answer), google.DefaultAccount)
	if err != nil {
		t.Fatalf("%v: %s", err, answer)
	}
	wantIn(t, ask("/connect google "+back), google.DefaultAccount)
	wantIn(t, ask("check my email again"), "s-61")
	server.ClearRequests()
	asked := w.model.Count()
	ask("delete the spam ones")
	if n := strings.Count(fmt.Sprint(server.Requests()), "batchModify"); n > 0 {
		t.Errorf("%d batches before anybody allowed them", n)
	}
	allow()
	batches := 0
	for _, r := range server.Requests() {
		if r.Method == "gmail.users.messages.batchModify" && strings.Count(r.Body, `"s-`) == 61 {
			batches++
		} else if !strings.HasSuffix(r.Method, ".get") { // which name the letters on the card
			t.Errorf("besides the one batch: %s %s", r.Method, r.Body)
		}
	}
	if batches != 1 {
		t.Errorf("%d batch requests, want one for all 61 letters", batches)
	}
	requests := w.model.Requests()
	if !slices.Contains(requests[asked].ToolNames(), "gmail_batch_modify") || w.loads() != 1 {
		t.Errorf("%d loads, and the tools of the second message are %v", w.loads(), requests[asked].ToolNames())
	}
}

// A user tool with the permission google acts in the account of the person who asks, and says how to
// connect one where there is none.
func TestAUserToolUsesTheAccountOfThePersonWhoAsks(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
			return openai.Reply{Text: "The tool says: " + last.Content}, nil
		}
		return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("call_", len(req.Messages)), Name: "whose_account", Arguments: "{}"}}}, nil
	}))
	server := w.withGoogle(t)
	dir := filepath.Join(w.env["ONECLAW_DATA_DIR"], "tools")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{
		"whose_account.json": `{"name": "whose_account", "description": "Whose account it is.", "parameters": {"type": "object", "properties": {}},
			"effect": "read_only", "requiredPermissions": ["google"]}`,
		"whose_account.js": `async function execute() { return await google.getAccountEmail() + " " + ((await google.getAccessToken()) !== "") }`,
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	address := linkPattern.FindString(w.askForLink(bot, ann, "/connect google tasks"))
	back, err := server.Consent(address, google.DefaultAccount)
	if err != nil {
		t.Fatal(err)
	}
	wantIn(t, w.ask(bot, ann, "/connect google "+back, nil), google.DefaultAccount)
	wantIn(t, w.ask(bot, ann, "whose is it?", nil), google.DefaultAccount+" true")
	wantIn(t, w.ask(bot, bob, "and mine?", nil), "connect")
}
