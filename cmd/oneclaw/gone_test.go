package main

import (
	"bytes"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/cli"
	"oneclaw/internal/config"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/lab"
)

// What earlier programs had is refused in one line that says what to use instead.
func TestCommandsThatAreGoneSayWhatToUse(t *testing.T) {
	t.Setenv("ONECLAW_DATA_DIR", t.TempDir())
	for command, want := range map[string]string{
		"oneclaw bill --chat telegram:1":    "oneclaw bill is gone: /usage",
		"oneclaw export eval cases.jsonl":   "oneclaw export is gone: /export",
		"oneclaw run --record talk.jsonl":   "--record is gone: the log",
		"oneclaw-lab bill chat --json":      "oneclaw-lab bill is gone: oneclaw tools",
		"oneclaw-lab replay talk.jsonl":     "oneclaw-lab replay is gone",
		"oneclaw-lab eval retrieval a.json": "oneclaw-lab eval is gone: the tests",
		"oneclaw-lab scale --replicas 9":    "oneclaw-lab scale is gone: the tests",
	} {
		program, root := strings.Fields(command), rootCommand
		if program[0] == labName {
			root = lab.Root
		}
		var out, line bytes.Buffer
		code := cli.Execute(root, config.DefaultRuntime(), program[1:], nil, &out, &line)
		if code != 1 || out.Len() > 0 || strings.Count(line.String(), "\n") != 1 || !strings.Contains(line.String(), want) {
			t.Errorf("%s: exit code %d, %s%s", command, code, &out, &line)
		}
	}
}

// A setting that is gone is a line in the log, and the bot runs.
func TestSettingsThatAreGoneAreIgnored(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	w.settings("export_judged: true\ntools: {routing: bridge, tool_search: {learn: true}}\n")
	w.env["ONECLAW_EXPORT_JUDGED"] = "true"
	bot := w.run()
	wantIn(t, w.ask(bot, w.person("Ann"), "hello", nil), "OneClaw")
	bot.kill(syscall.SIGTERM)
	wantIn(t, bot.out.String(), "setting export_judged is gone: ", "environment: ONECLAW_EXPORT_JUDGED is gone: ", "tool_search.learn is gone: ",
		"setting tools.routing (ONECLAW_ROUTING): bridge is gone: search is used instead")
}
