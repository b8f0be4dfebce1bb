package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/mcp"
	"oneclaw/internal/emulator/openai"
)

// movedModel is a model that does what it is asked with the tool of that name, and keeps the last prompt.
type movedModel struct{ prompt atomic.Value }

// Reply implements openai.Responder.
func (m *movedModel) Reply(_ context.Context, req openai.Request) (openai.Reply, error) {
	m.prompt.Store(req.Messages[0].Content)
	last := req.Messages[len(req.Messages)-1]
	asked := last.Content
	for _, one := range req.Messages {
		if one.Role == "user" {
			asked = one.Content
		}
	}
	group, tool, arguments := "", "", `{}`
	switch {
	case last.Role == "tool" && !strings.HasPrefix(last.Content, "Loaded "):
		return openai.Reply{Text: "The tool says: " + last.Content}, nil
	case strings.Contains(asked, "my tasks"):
		group, tool = "scheduled_tasks", "list_scheduled_tasks"
	case strings.Contains(asked, "switch on the skill"):
		group, tool, arguments = "config", "set_tool_enabled", `{"name":"weekly","enabled":true,"type":"skill"}`
	default:
		return openai.Reply{Text: "fine"}, nil
	}
	return useTool(req, group, tool, arguments)
}

// The owner of a bot moves in from OpenClaw: memory is there at once, and everything else waits until it is
// switched on, each by itself.
func TestWhatIsImportedWaitsUntilItIsSwitchedOn(t *testing.T) {
	t.Parallel()
	em, err := mcp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = em.Close() })
	model := &movedModel{}
	w := newHarness(t, model)
	delete(w.env, "ONECLAW_ALLOW")
	w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"] = "127.0.0.0/8"
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	_, code := offered(t, bot)
	w.ask(bot, ann, "/start "+code, nil)

	dir := t.TempDir()
	for name, content := range map[string]string{
		"openclaw.json":          fmt.Sprintf(`{"channels": {"telegram": {"allowFrom": [%d, %d]}}, "mcp": {"servers": {"notes": {"url": %q}}}}`, ann, bob, em.URL),
		"workspace/MEMORY.md":    "- The cat is called Minka.\n",
		"skills/weekly/SKILL.md": "---\nname: weekly\ndescription: sum up the week\n---\nSum up.\n",
		"schedules.json":         `{"jobs": [{"id": "a", "name": "Brief", "schedule": {"kind": "every", "everyMs": 60000}, "payload": {"kind": "agentTurn", "message": "Sum up the news."}}]}`,
	} {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	move := func(args ...string) (string, error) {
		out, err := command(t.Context(), t, w.env, append([]string{"import", "openclaw", dir, "--schedules", dir + "/schedules.json"}, args...)...).CombinedOutput()
		return string(out), err
	}
	for _, args := range [][]string{nil, {"--dry-run"}} {
		if out, err := move(args...); err == nil || !strings.Contains(out, "OneClaw runs with") {
			t.Errorf("beside a running bot: %v: %s", err, out)
		}
	}
	bot.kill(syscall.SIGTERM)
	out, err := move()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	wantIn(t, out, "let people in with /people", "+ 4 taken over, = 0 there already, - 2 left") // and the file of schedules

	bot = w.run()
	w.say(bob, "hello?", nil) // has no access
	w.shownTo(bot, ann, "They wrote: hello?")
	prompt := func() string { text, _ := model.prompt.Load().(string); return text }
	w.ask(bot, ann, "hello", nil)
	wantIn(t, prompt(), "The cat is called Minka.")
	if strings.Contains(prompt(), "weekly") || strings.Contains(prompt(), "mcp_notes") {
		t.Errorf("a skill or a server is on before anybody switched it on: %s", prompt())
	}
	wantIn(t, w.ask(bot, ann, "show my tasks", nil), "Brief", "every 1 minutes", "enabled: no")
	wantIn(t, w.ask(bot, ann, "switch on the skill weekly", nil), "May I run set_tool_enabled", "weekly")
	w.tap(bot, ann, "Allow once")
	w.shownTo(bot, ann, "Skill 'weekly' is now on")
	w.ask(bot, ann, "hello again", nil)
	wantIn(t, prompt(), "weekly: sum up the week")

	wantIn(t, w.ask(bot, ann, "/mcp", nil), "no MCP servers yet", "notes", strings.TrimPrefix(strings.TrimSuffix(em.URL, "/mcp"), "http://"), "imported, and not switched on")
	wantIn(t, w.ask(bot, ann, "/mcp on notes", nil), "Added notes", "/connect notes")
	wantIn(t, w.ask(bot, ann, "/mcp on notes", nil), "notes is on already")
}

// A folder that is a trap, and one of which nothing can be read, end with one line, and take no more than the
// limits of the process that reads them.
func TestFoldersThatCannotBeImportedAreSaidInOneLine(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	for name, c := range map[string]struct{ bot, file, content, want string }{
		"a trap":      {"hermes", "config.yaml", "a: &a " + strings.Repeat("x", 1<<20) + "\nb: [" + strings.Repeat("*a,", 40_000) + "]", "memory"},
		"encrypted":   {"hermes", "config.yaml", "age-encryption.org/v1\n-> X25519 x\n", "config.yaml: "},
		"another bot": {"openclaw", "config.yaml", "a: b", "there is no openclaw.json in it"},
		"large":       {"openclaw", "openclaw.json", strings.Repeat(" ", 5<<20), "openclaw.json: it has more than 4 MiB"},
	} {
		dir := t.TempDir()
		if err := os.WriteFile(filepath.Join(dir, c.file), []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, args := range [][]string{{"--dry-run"}, nil} {
			out, err := command(t.Context(), t, w.env, append([]string{"import", c.bot, dir}, args...)...).CombinedOutput()
			if text := string(out); err == nil || !strings.HasPrefix(text, "oneclaw: "+dir+": ") || !strings.Contains(text, c.want) || strings.Count(text, "\n") != 1 {
				t.Errorf("%s %v: %v: %s", name, args, err, text)
			}
		}
	}
}
