package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups"
)

// lastTools are the names in the tools array of the newest request.
func (w *harness) lastTools() []string {
	w.t.Helper()
	requests := w.model.Requests()
	if len(requests) == 0 {
		w.t.Fatal("the model was not asked")
	}
	return requests[len(requests)-1].ToolNames()
}

// loads counts the calls of load_tool_group in the conversation.
func (w *harness) loads() int {
	n := 0
	requests := w.model.Requests()
	if len(requests) == 0 {
		return 0
	}
	last := requests[len(requests)-1].Messages
	for _, m := range last {
		for _, c := range m.ToolCalls {
			if c.Name == "load_tool_group" {
				n++
			}
		}
	}
	return n
}

// TestConversationAboutAPDF is the promise of the README: somebody sends a
// PDF and asks about it, the model loads the group, has it in the next message and
// after a restart, and /clear ends that. It covers statements 6, 8, 18, 65-69, 85.
func TestConversationAboutAPDF(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	bot := w.run()

	answer := w.ask(bot, ann, "What is this document about?", samplePDF(t))
	wantIn(t, answer, "bakery")
	if first := w.model.Requests()[0].ToolNames(); slices.Contains(first, "pdf_info") || !slices.Contains(first, "load_tool_group") {
		t.Errorf("the first request offers %v, want the core alone", first)
	}
	if !slices.Contains(w.lastTools(), "pdf_extract_text") || w.loads() != 1 {
		t.Errorf("after %d loads the tools are %v", w.loads(), w.lastTools())
	}

	asked := w.model.Count()
	answer = w.ask(bot, ann, "How many pages does the PDF have?", nil)
	wantIn(t, answer, "3")
	if first := w.model.Requests()[asked].ToolNames(); !slices.Contains(first, "pdf_info") || w.loads() != 1 {
		t.Errorf("the first request of the second message offers %v after %d loads", first, w.loads())
	}

	bot.kill(syscall.SIGTERM)
	bot = w.run()
	asked = w.model.Count()
	answer = w.ask(bot, ann, "What does page 2 of the PDF say?", nil)
	wantIn(t, answer, "October")
	if first := w.model.Requests()[asked].ToolNames(); !slices.Contains(first, "pdf_info") || w.loads() != 1 {
		t.Errorf("the first request after the restart offers %v after %d loads", first, w.loads())
	}

	if got := len(w.answers(ann)); got != 3 {
		t.Errorf("the chat shows %d messages of the bot for three questions: loading a group must not be seen", got)
	}
	wantIn(t, w.ask(bot, ann, "/clear", nil), "cleared")
	asked = w.model.Count()
	w.ask(bot, ann, "hello", nil)
	if first := w.model.Requests()[asked]; slices.Contains(first.ToolNames(), "pdf_info") || len(first.Messages) != 2 {
		t.Errorf("after /clear the model is offered %v and %d messages", first.ToolNames(), len(first.Messages))
	}
	if log := bot.out.String(); strings.Contains(log, w.telegram.Token()) || strings.Contains(log, "sk-emulated") {
		t.Error("a secret is in the log")
	}
}

// /clear deletes nothing, and it and /help say so: what was said is still found.
//
// /clear says what it does.
func TestClearSaysWhatItDoes(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(_ context.Context, req openai.Request) (openai.Reply, error) {
		last := req.Messages[len(req.Messages)-1]
		switch {
		case last.Role == "tool":
			return openai.Reply{Text: "Found: " + last.Content}, nil
		case strings.Contains(last.Content, "where"):
			return openai.Reply{Calls: []openai.ToolCall{{ID: "1", Name: "search_history", Arguments: `{"query":"umbrella","date_to":"2100-01-01"}`}}}, nil
		}
		return openai.Reply{Text: "Noted."}, nil
	}))
	ann := w.person("Ann")
	bot := w.run()
	w.ask(bot, ann, "my umbrella is in the blue cupboard", nil)
	wantIn(t, w.ask(bot, ann, "/help more", nil), "/clear – Close this conversation", "still find it when I search")
	wantIn(t, w.ask(bot, ann, "/clear", nil), "closed", "Nothing is deleted", "still find earlier messages when I search")
	wantIn(t, w.ask(bot, ann, "where is it?", nil), "Found: ", "blue cupboard")
}

// registryOf is the registry of the program as it is built.
func registryOf(t *testing.T) (registry *toolgroups.Registry) {
	t.Helper()
	err := app.WithEmptyBot(t.Context(), config.Default(), func(b *app.Bot) error {
		registry = b.Registry()
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return registry
}

// Each kind of request finds its tool in the group that is named for it.
func TestScenariosHaveTheirTools(t *testing.T) {
	registry := registryOf(t)
	for group, tool := range map[string]string{
		"google_gmail": "gmail_search", "google_sheets": "sheets_create", "scheduled_tasks": "schedule_task",
		"pdf": "pdf_info", "config": "create_provider", "js_tool_management": "create_js_tool",
	} {
		if got, ok := registry.GroupOf(tool); !ok || got != group {
			t.Errorf("%s is in the group %q, want %s", tool, got, group)
		}
	}
}

// TestAMailTaskSendsFewSchemas counts what is sent at the beginning and for mail,
// against all 165 tools.
func TestAMailTaskSendsFewSchemas(t *testing.T) {
	registry := registryOf(t)
	round := func(groups ...string) []toolgroups.Tool {
		return toolgroups.NewSet(func() *toolgroups.Registry { return registry }, groups).Round().Tools()
	}
	first, mail, all := round(), round("google_gmail"), round(registry.GroupNames()...)
	if len(first) != 13 || len(all) != 165 {
		t.Errorf("a conversation begins with %d of %d tools, want 13 of 165", len(first), len(all))
	}
	if spent, of := toolgroups.EstimateTokens(mail), toolgroups.EstimateTokens(all); 2*spent > of {
		t.Errorf("a mail task is sent %d tokens of %d", spent, of)
	}
}

// Sessions share no groups; nothing unloads or expires.
func TestLoadedGroupsAreNeverUnloaded(t *testing.T) {
	registry := registryOf(t)
	for _, name := range append(registry.GroupNames(), "core") {
		tools, err := groupTools(registry, name)
		if err != nil {
			t.Fatal(err)
		}
		for _, tool := range tools {
			if strings.Contains(tool.Name, "unload") {
				t.Errorf("there is a tool %s", tool.Name)
			}
		}
	}
}

var update = flag.Bool("update", false, "rewrite testdata/tools.golden.json")

// TestToolsOnTheWire compares what all tools look like to a model with a file, so that
// a change of a name, a parameter or a description is seen in review.
func TestToolsOnTheWire(t *testing.T) {
	var wire bytes.Buffer
	if err := printToolsJSON(&wire, registryOf(t), ""); err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := json.Indent(&got, wire.Bytes(), "", " "); err != nil {
		t.Fatal(err)
	}
	golden := filepath.Join("testdata", "tools.golden.json")
	if *update {
		if err := os.WriteFile(golden, got.Bytes(), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got.String()); diff != "" {
		t.Errorf("the tools differ from %s (-want +got); rewrite it with -update if that is meant:\n%s", golden, diff)
	}
}
