package main

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// TestToolSearchByMeaning has the vectors of the configured provider's model join the
// search for tools, and a search that does without where there are none.
func TestToolSearchByMeaning(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		model string
		some  bool
	}{{"preset/" + openai.DefaultModel, true}, {"preset/no-such-model", false}} {
		t.Run(tt.model, func(t *testing.T) {
			w := newHarness(t, openai.ResponderFunc(searcher))
			w.env["ONECLAW_ROUTING"] = "search"
			file := "tools:\n  tool_search:\n    embeddings: " + tt.model + "\n"
			if err := os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], "oneclaw.yaml"), []byte(file), 0o600); err != nil {
				t.Fatal(err)
			}
			bot := w.run()
			wantIn(t, w.ask(bot, w.person("Ann"), "what can you do with mail?", nil), "gmail_")
			if n := w.model.EmbeddedCount(); n > 100 != tt.some {
				t.Errorf("%d texts became vectors", n)
			}
			if !tt.some {
				bot.out.await(t, "ranking by words alone")
			}
		})
	}
}

// searcher is a model that looks for tools of mail and tells what it finds.
func searcher(_ context.Context, req openai.Request) (openai.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
		return openai.Reply{Text: last.Content}, nil
	}
	return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: "tool_search", Arguments: `{"query":"send an email"}`}}}, nil
}
