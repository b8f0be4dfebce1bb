package main

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/config"
	"oneclaw/internal/doctor/live"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
	"oneclaw/internal/emulator/telegram"
)

// adding is a model that calls the tool it is given, and says what came of it.
func adding(_ context.Context, req openai.Request) (openai.Reply, error) {
	if last := req.Messages[len(req.Messages)-1]; last.Role == "tool" {
		return openai.Reply{Text: "It is " + last.Content + "."}, nil
	}
	return openai.Reply{Calls: []openai.ToolCall{{ID: "call_1", Name: req.Tools[0].Name, Arguments: `{"a":1234,"b":5678}`}}}, nil
}

// tried runs oneclaw doctor --live and returns what it prints, and whether all was well.
func tried(t *testing.T, env map[string]string, args ...string) (string, bool) {
	t.Helper()
	out, err := command(t.Context(), t, env, append([]string{"doctor", "--live"}, args...)...).CombinedOutput()
	for name, value := range env {
		if (strings.HasSuffix(name, "_TOKEN") || strings.HasSuffix(name, "_KEY")) && strings.Contains(string(out), value) {
			t.Errorf("%s is in %s", name, out)
		}
	}
	return string(out), err == nil
}

func TestEveryPlatformCanBeTriedLive(t *testing.T) {
	if diff := cmp.Diff(slices.Sorted(slices.Values(config.PlatformNames())), live.Names()); diff != "" {
		t.Errorf("platforms (-program +internal/doctor/live):\n%s", diff)
	}
}

// What the table says of the emulators is what they do: with Telegram alone, with Slack
// alone, and with both, in the chat of the owner or in one that is named.
func TestDoctorLiveTellsWhatTheEmulatorsDo(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(adding))
	w.env["ONECLAW_MCP_CATALOGUE"] = "off"
	delete(w.env, "ONECLAW_ALLOW")
	if out, ok := tried(t, w.env); ok || !strings.Contains(out, "--chat telegram:123") {
		t.Errorf("before somebody owns the bot: %t, %s", ok, out)
	}
	ann := w.person("Ann")
	bot := w.run()
	_, code := offered(t, bot)
	wantIn(t, w.ask(bot, ann, "/start "+code, nil), "Welcome, Ann")
	out, ok := tried(t, w.env)
	if wantIn(t, out, "the bot runs", "stop it first"); ok || len(w.answers(ann)) != 1 {
		t.Errorf("beside a running bot: %t, %s", ok, out)
	}
	bot.kill(syscall.SIGTERM)
	w.say(ann, "wait for the bot", nil)
	before := 0
	w.telegram.View(func(s telegram.State) { before = s.PollCount() })

	out, ok = tried(t, w.env)
	if wantIn(t, out, fmt.Sprint("To telegram:", ann, " go 9 messages"), "emulator is asked twice", "12 as the emulator does, 0 other, 0 failed"); !ok || strings.Contains(out, "slack") {
		t.Errorf("telegram alone: %t, %s", ok, out)
	}
	w.telegram.View(func(s telegram.State) {
		if s.PollCount() != before || s.PendingCount() != 1 || s.CountAnswers(ann) != 1+9 {
			t.Errorf("%d polls, %d pending, %d messages", s.PollCount()-before, s.PendingCount(), s.CountAnswers(ann))
		}
	})

	env := maps.Clone(w.env)
	server, _, people := w.withSlack(t, "zoe")
	dm, err := server.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people})
	if err != nil {
		t.Fatal(err)
	}
	out, ok = tried(t, w.env, "--chat", "slack:"+dm)
	if wantIn(t, out, "To slack:"+dm+" go 9", "12 as the emulator does, 0 other, 0 failed"); !ok || strings.Contains(out, "telegram") {
		t.Errorf("slack alone: %t, %s", ok, out)
	}
	w.env["TELEGRAM_BOT_TOKEN"] = env["TELEGRAM_BOT_TOKEN"]
	if out, ok = tried(t, w.env); !ok || !strings.Contains(out, "Left out: slack.") || !strings.Contains(out, "12 as") {
		t.Errorf("both, with the owner in telegram: %t, %s", ok, out)
	}
	if out, ok = tried(t, w.env, "--chat", "slack:"+dm); !ok || !strings.Contains(out, "21 as") {
		t.Errorf("both: %t, %s", ok, out)
	}
}

// Where a service does something else, the row says what, and the others are tried all the
// same.
func TestDoctorLiveSaysWhatIsOther(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(func(context.Context, openai.Request) (openai.Reply, error) {
		return openai.Reply{Text: "6912\nof course"}, nil
	}))
	w.env["ONECLAW_MCP_CATALOGUE"] = "off"
	ann := w.person("Ann")
	chat := fmt.Sprint("telegram:", ann)
	for _, f := range []telegram.Fault{
		{Method: "sendPhoto", Effect: telegram.ServerError},
		{Method: "sendDocument", Effect: telegram.TooManyRequests, RetryAfter: 1, Times: 1},
	} {
		if _, err := w.telegram.Inject(f); err != nil {
			t.Fatal(err)
		}
	}
	out, ok := tried(t, w.env, "--chat", chat)
	if ok {
		t.Error("all is well")
	}
	wantIn(t, out, "FAILED  telegram  picture", "sendPhoto: http status 502", "same    telegram  file", "OTHER   model     round 1", "calls nothing, says “6912 of course”", "8 as the emulator does, 1 other, 2 failed",
		"oneclaw: not as the emulator does: telegram picture, model round 2, model round 1")

	delete(w.env, "OPENAI_API_KEY")
	delete(w.env, "OPENAI_BASE_URL")
	out, _ = tried(t, w.env, "--chat", chat)
	wantIn(t, out, "Left out: the model. There is no key")
	for args, want := range map[string]string{"--chat nonsense": "platform:id", "--chat telegram:1 --json": "json live"} {
		out, ok := tried(t, w.env, strings.Fields(args)...)
		if ok {
			t.Errorf("%s: %s", args, out)
		}
		wantIn(t, out, want)
	}
	var findings []any
	plain, err := command(t.Context(), t, w.env, "doctor", "--json").Output()
	if err != nil || json.Unmarshal(plain, &findings) != nil {
		t.Errorf("without --live: %v, %s", err, plain)
	}
}
