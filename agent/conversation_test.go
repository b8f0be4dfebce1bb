package agent_test

import (
	"bytes"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"oneclaw/agent"
)

// TestConversations plays the conversations of testdata. Each file tells in its
// comment what it shows; "say" holds the user messages and, below each, the replies
// of the model: a text, or calls as "id tool arguments". "want" is what becomes of
// it: for each request the tools beyond the core, and then each message.
func TestConversations(t *testing.T) {
	update := flag.Lookup("update").Value.String() == "true"
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, name := range files {
		t.Run(filepath.Base(name), func(t *testing.T) {
			file, err := txtar.ParseFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if len(file.Files) != 2 {
				t.Fatalf("%d sections, want say and want", len(file.Files))
			}
			got := play(t, string(file.Files[0].Data))
			if update {
				file.Files[1].Data = []byte(got)
				if err := os.WriteFile(name, txtar.Format(file), 0o600); err != nil {
					t.Fatal(err)
				}
				return
			}
			if diff := cmp.Diff(string(file.Files[1].Data), got); diff != "" {
				t.Errorf("conversation (-want +got):\n%s", diff)
			}
		})
	}
}

// play plays what was said and tells what came of it. Calls run one at a time, so
// that their results have an order.
func play(t *testing.T, said string) string {
	c := newChat(t, agent.Config{})
	c.agent.SetParallel(1)
	var out bytes.Buffer
	shown := 0
	for turn := range strings.SplitSeq(strings.TrimSpace(said), "\n\n") {
		lines := strings.Split(turn, "\n")
		s := c.say(strings.TrimPrefix(lines[0], "user: "), replies(t, lines[1:])...)
		for i, req := range s.requests {
			fmt.Fprintf(&out, "request %d: %v\n", i+1, offered(req)[len(core()):])
		}
		for ; shown < len(c.history); shown++ {
			show(&out, c.history[shown])
		}
	}
	return out.String()
}

// replies reads "model: text" and "model: call & call".
func replies(t *testing.T, lines []string) []agent.Reply {
	t.Helper()
	var out []agent.Reply
	for _, l := range lines {
		kind, text, _ := strings.Cut(l, ": ")
		switch kind {
		case "model":
			out = append(out, says(text))
		case "calls":
			out = append(out, calls(strings.Split(text, " & ")...))
		default:
			t.Fatalf("line %q", l)
		}
	}
	return out
}

func show(out *bytes.Buffer, m agent.Message) {
	fmt.Fprintf(out, "  %s", m.Role)
	for _, part := range []string{m.CallID, m.Tool, string(m.Status), m.Code} {
		if part != "" {
			fmt.Fprintf(out, " %s", part)
		}
	}
	if label := m.Label(); label != "" {
		fmt.Fprintf(out, " [%s]", label)
	}
	if m.Final {
		out.WriteString(" final")
	}
	if m.Text != "" {
		fmt.Fprintf(out, " %q", m.Text)
	}
	for _, call := range m.Calls {
		fmt.Fprintf(out, "\n    %s %s %s", call.ID, call.Name, call.Arguments)
	}
	out.WriteString("\n")
}
