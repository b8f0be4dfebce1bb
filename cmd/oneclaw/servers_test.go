package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/tiktoken-go/tokenizer"
	"go.yaml.in/yaml/v3"

	"oneclaw/internal/app"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/toolgroups/search"
)

// Variables that tell the test binary to be an MCP server, and where it leaves a file
// each time it is started.
const (
	serverVariable = "ONECLAW_TEST_MCP_SERVER"
	startsVariable = "ONECLAW_TEST_MCP_STARTS"
)

// serveTools is a real server over standard input and output, with the fifty tools that
// bill has for its name.
func serveTools(name string) int {
	if err := runTools(name); err != nil && !errors.Is(err, io.EOF) {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return 0
}

func runTools(name string) error {
	mark, err := os.CreateTemp(os.Getenv(startsVariable), name+"-")
	if err != nil {
		return err
	}
	if err := mark.Close(); err != nil {
		return err
	}
	if name == everydayServer {
		return serveEveryday()
	}
	if name == killer {
		return serveKiller()
	}
	for _, g := range largeServers() {
		if g.Name == name {
			return serveLarge(g)
		}
	}
	list, err := serverList()
	if err != nil {
		return err
	}
	for _, s := range list {
		if s.Name != name {
			continue
		}
		server := sdk.NewServer(&sdk.Implementation{Name: s.Name, Title: s.Title, Version: "1"}, nil)
		for _, t := range s.tools() {
			server.AddTool(&sdk.Tool{
				Name: t.Name, Description: t.Description, InputSchema: t.Schema, Annotations: &sdk.ToolAnnotations{ReadOnlyHint: t.ReadOnly},
			}, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
				return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
			})
		}
		return server.Run(context.Background(), &sdk.StdioTransport{})
	}
	return fmt.Errorf("there is no server %q", name)
}

// withServers gives the bot ten servers of fifty tools each, and returns their names and
// the folder in which they leave a file at each start.
func (w *harness) withServers() (names []string, starts string) {
	w.t.Helper()
	list, err := serverList()
	if err != nil {
		w.t.Fatal(err)
	}
	self, err := os.Executable()
	if err != nil {
		w.t.Fatal(err)
	}
	starts = w.t.TempDir()
	servers := map[string]any{}
	for _, s := range list {
		names = append(names, s.Name)
		servers[s.Name] = map[string]any{
			"command": self, "description": s.Description, "start_timeout": patience.String(),
			"env": map[string]string{serverVariable: s.Name, startsVariable: starts, "GORACE": "atexit_sleep_ms=0"},
		}
	}
	data, err := yaml.Marshal(map[string]any{"mcp": map[string]any{"servers": servers}})
	if err != nil {
		w.t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], config.ConfigName), data, 0o600); err != nil {
		w.t.Fatal(err)
	}
	return names, starts
}

// learnServers starts the bot, waits until it knows all tools, and ends it.
func (w *harness) learnServers(names []string) {
	w.t.Helper()
	bot := w.run()
	for _, name := range names {
		bot.out.await(w.t, fmt.Sprintf(`"group":"mcp_%s","tools":50`, name))
	}
	bot.kill(syscall.SIGTERM)
}

func count(t testing.TB, dir string) int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// firstTokens is what tools and listing of a first request may cost.
const firstTokens = 1800

// With 165 tools of its own and 500 of ten servers, what a first request says about tools
// stays short, and no server runs for it.
func TestFirstRequestWithTenServers(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann := w.person("Ann")
	names, starts := w.withServers()
	w.learnServers(names)
	if n := count(t, starts); n != len(names) {
		t.Fatalf("%d starts of %d servers to learn their tools", n, len(names))
	}
	for _, routing := range []search.Routing{search.RoutingGroups, search.RoutingSearch} {
		w.env["ONECLAW_ROUTING"] = string(routing)
		first, tokens := w.firstRequest(ann)
		for _, name := range names {
			wantIn(t, first.Messages[0].Content, "mcp_"+name+": ")
		}
		if text := string(first.ToolsJSON); routing == search.RoutingSearch && !strings.Contains(text, "among 631 ") {
			t.Errorf("search does not have the 131 tools of users and 500 of servers: %s", tail(text, 1500))
		}
		if t.Logf("%s: %d tokens", routing, tokens); tokens > firstTokens {
			t.Errorf("%s: a first request has %d tokens of tools and listing, more than %d", routing, tokens, firstTokens)
		}
	}
	if n := count(t, starts); n != len(names) {
		t.Errorf("servers were started %d times more to be listed", n-len(names))
	}
}

// firstRequest is that of a conversation, with the tokens of its tools and their listing.
func (w *harness) firstRequest(ann int64) (openai.Request, int) {
	w.t.Helper()
	codec, err := tokenizer.Get(tokenizer.O200kBase)
	if err != nil {
		w.t.Fatal(err)
	}
	bot := w.run()
	asked := w.model.Count()
	wantIn(w.t, w.ask(bot, ann, "/clear", nil), "cleared")
	w.ask(bot, ann, "hello", nil)
	first := w.model.Requests()[asked]
	bot.kill(syscall.SIGTERM)
	_, listing, _ := strings.Cut(first.Messages[0].Content, "## Available Tool Groups")
	listing, _, _ = strings.Cut(listing, "\n---")
	tools, _ := codec.Count(string(first.ToolsJSON))
	listed, _ := codec.Count("## Available Tool Groups" + listing)
	return first, tools + listed
}

// BenchmarkStartWithServers is [BenchmarkStart] with 500 tools of ten servers, none of
// which is running.
func BenchmarkStartWithServers(b *testing.B) {
	w := newHarness(b, openai.Offline{})
	names, _ := w.withServers()
	w.learnServers(names)
	w.measureStart(b)
}

// measureStart reports the time to the first poll and the memory of an idle bot.
func (w *harness) measureStart(b *testing.B) {
	b.Helper()
	var took time.Duration
	var first, idle, own float64
	n := 0
	w.env["ONECLAW_LOG_LEVEL"] = "debug"
	for b.Loop() {
		begun := time.Now()
		bot := w.run()
		took += time.Since(begun)
		first += bot.resident(b)
		bot.out.await(b, app.StartMemoryReleased)
		idle, own = idle+bot.resident(b), own+bot.status(b, "RssAnon")
		n++
		bot.kill(9)
	}
	b.ReportMetric(float64(took.Microseconds())/1000/float64(n), "ms-to-first-poll")
	b.ReportMetric(first/float64(n)/(1<<20), "MiB-at-first-poll")
	b.ReportMetric(idle/float64(n)/(1<<20), "idle-MiB")
	b.ReportMetric(own/float64(n)/(1<<20), "idle-own-MiB")
	b.ReportMetric(0, "ns/op")
}
