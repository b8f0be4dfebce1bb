package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"oneclaw/internal/emulator/openai"
)

// configurer is a model that changes the routing when it is asked to, and tells what
// tools say.
func configurer(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	call := func(name, arguments string) (openai.Reply, error) {
		return openai.Reply{Calls: []openai.ToolCall{{ID: fmt.Sprint("call_", len(req.Messages)), Name: name, Arguments: arguments}}}, nil
	}
	switch {
	case last.Role == "user" && strings.Contains(last.Content, "send all tools"):
		return call("load_tool_group", `{"group_name":"config"}`)
	case last.Role == "tool" && strings.HasPrefix(last.Content, "Loaded "):
		return call("set_config", `{"key":"routing","value":"all"}`)
	}
	return openai.Reply{Text: "It says: " + last.Content}, nil
}

// TestAdministratorsConfigureInTheChat changes how tools are routed from a chat: an
// administrator may, everybody else is refused, and the change acts at once.
func TestAdministratorsConfigureInTheChat(t *testing.T) {
	t.Parallel()
	w := newTown(t, openai.BrainFunc(configurer))
	ann, bob := w.person("Ann"), w.person("Bob")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	bot := w.run()
	wantIn(t, w.ask(bot, bob, "send all tools", nil), "administrator")
	wantIn(t, w.ask(bot, ann, "send all tools", nil), "routing")
	w.ask(bot, bob, "hello", nil)
	if got := len(w.lastTools()); got < 100 {
		t.Errorf("after the change a request carries %d tools", got)
	}
	wantIn(t, w.ask(bot, ann, "/model", nil), "preset/"+openai.DefaultModel)
	wantIn(t, w.ask(bot, ann, "/agent", nil), "General")
	wantIn(t, w.ask(bot, bob, "/admin", nil), "for my administrators")
	w.comesIn(t, bot, ann)
}

// comesIn signs somebody in to the pages of administrators, and looks whether what brings them
// there stands anywhere.
func (w *town) comesIn(t *testing.T, bot *process, who int64) {
	t.Helper()
	v := w.visit(bot, who, "")
	wantIn(t, v.offer, "telegram:"+fmt.Sprint(who))
	bot.kill(syscall.SIGTERM)
	_, secret, _ := strings.Cut(v.link, ".")
	_, session, _ := strings.Cut(v.cookie.Value, ".")
	data, err := os.ReadFile(filepath.Join(w.env["ONECLAW_DATA_DIR"], databaseName))
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range []string{secret, session} {
		if bytes.Contains(data, []byte(one)) || strings.Contains(bot.out.String(), one) {
			t.Errorf("the database or the log has a secret of a sign-in")
		}
	}
}

// TestMemoryReachesLaterMessages saves a note, and finds it beside a message of the same
// conversation and in the prompt of the next.
func TestMemoryReachesLaterMessages(t *testing.T) {
	t.Parallel()
	w := newTown(t, openai.Offline{})
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "Remember that my sailing boat is called Marlin.", nil), "Saved")
	latest := func() openai.Request {
		all := w.model.Requests()
		return all[len(all)-1]
	}
	w.ask(bot, ann, "how old is the sailing boat?", nil)
	said := latest().Messages
	wantIn(t, said[len(said)-1].Content, "[From memory]", "Marlin")
	w.ask(bot, ann, "/clear", nil)
	w.ask(bot, ann, "hello", nil)
	wantIn(t, latest().Messages[0].Content, "## Memory", "Marlin")
	w.ask(bot, bob, "how old is the sailing boat?", nil)
	for _, m := range latest().Messages {
		if strings.Contains(m.Content, "Marlin") {
			t.Errorf("another user is shown the memory: %q", m.Content)
		}
	}
}
