package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/telegram"
	"oneclaw/storage"
)

// configurer is a model that changes the routing when it is asked to, and tells what
// tools say.
func configurer(_ context.Context, req openai.Request) (openai.Reply, error) {
	last := req.Messages[len(req.Messages)-1]
	if last.Role == "user" && strings.Contains(last.Content, "send all tools") || strings.HasPrefix(last.Content, "Loaded ") {
		return useTool(req, "config", "set_config", `{"key":"routing","value":"all"}`)
	}
	return openai.Reply{Text: "It says: " + last.Content}, nil
}

// TestAdministratorsConfigureInTheChat changes how tools are routed from a chat: an
// administrator may, everybody else is refused, and the change acts at once.
func TestAdministratorsConfigureInTheChat(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(configurer))
	ann, bob := w.person("Ann"), w.person("Bob")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	bot := w.run()
	wantIn(t, w.ask(bot, bob, "send all tools", nil), "administrator")
	wantIn(t, w.ask(bot, ann, "send all tools", nil), "May I run set_config", "routing", "all")
	w.tap(bot, ann, "Allow once")
	w.shownTo(bot, ann, "It says: ")
	w.ask(bot, bob, "hello", nil)
	if got := len(w.lastTools()); got < 100 {
		t.Errorf("after the change a request carries %d tools", got)
	}
	wantIn(t, w.ask(bot, ann, "/model", nil), "Model: "+openai.DefaultModel)
	w.ask(bot, ann, "/model default", nil)
	w.ask(bot, ann, "/agent General", nil)
	wantIn(t, w.ask(bot, ann, "/agent", nil), "General")
	wantIn(t, w.ask(bot, bob, "/admin", nil), "for my administrators")
	w.comesIn(t, bot, ann)
	who := fmt.Sprintf("telegram:%d Ann in ", ann)
	here := who + fmt.Sprintf("telegram:%d: ", ann)
	w.did("call: "+here+"set_config key=routing", "model: "+here+"default", "agent: "+here+"General (general)", "sign-in: "+who+"page: 127.0.0.1")
}

// TestTheClockHasTheTimeZoneOfTheSettings asks tools for the time after an administrator has changed the
// bot's time zone, by which tasks are scheduled too.
func TestTheClockHasTheTimeZoneOfTheSettings(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.ResponderFunc(toldToCall))
	ann := w.person("Ann")
	w.env["ONECLAW_ADMINS"] = fmt.Sprint("telegram:", ann)
	w.settings("approvals: [{tool: set_config, policy: allow}]\n")
	bot := w.run()
	w.ask(bot, ann, loadCall("config"), nil)
	wantIn(t, w.ask(bot, ann, `call set_config {"key":"time_zone","value":"Asia/Kathmandu"}`, nil), "Kathmandu")
	for _, clock := range []string{"call get_current_time {}", `call js_eval {"code":"_time()"}`} {
		wantIn(t, w.ask(bot, ann, clock, nil), "+05:45")
	}
	// An operator who has set another one reads which of them counts.
	bot.kill(syscall.SIGTERM)
	w.env["ONECLAW_TIMEZONE"] = "Asia/Tokyo"
	bot = w.run()
	bot.out.await(t, "changed in a chat")
	wantIn(t, bot.out.String(), `"setting":"time_zone","value":"Asia/Kathmandu"`)
	wantIn(t, w.ask(bot, ann, `call set_config {"key":"time_zone","value":"default"}`, nil), "Asia/Tokyo")
	wantIn(t, w.ask(bot, ann, "call get_current_time {}", nil), "+09:00")
}

// did checks that the audit of a program that has ended has these entries in this order: what, who,
// where, to what.
func (w *harness) did(want ...string) {
	w.t.Helper()
	w.read(func(store storage.Store) {
		all, err := audit.List(w.t.Context(), store, 0)
		var did []string
		for _, e := range slices.Backward(all) {
			did = append(did, fmt.Sprintf("%s: %s %s in %s: %s", e.Action, e.By, e.Name, e.Chat, e.About))
			if age := time.Since(e.At); age < 0 || age > time.Hour {
				w.t.Errorf("the audit has the time %s", e.At)
			}
		}
		left := want
		for _, one := range did {
			if len(left) > 0 && one == left[0] {
				left = left[1:]
			}
		}
		if err != nil || len(left) > 0 {
			w.t.Errorf("the audit lacks %q: it has %q, %v", left, did, err)
		}
	})
}

// comesIn signs somebody in to the pages of administrators, points at the message with the link
// in each way there is, and looks whether what brings them there stands anywhere.
func (w *harness) comesIn(t *testing.T, bot *process, who int64) {
	t.Helper()
	v := w.visit(bot, who, "")
	wantIn(t, v.offer, "telegram:"+fmt.Sprint(who))
	_, secret, _ := strings.Cut(v.link, ".")
	w.pointsAt(bot, who, secret)
	bot.kill(syscall.SIGTERM)
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

// pointsAt answers, quotes and passes on the last message of the bot, which has a secret. The model
// is given the rest of it each time.
func (w *harness) pointsAt(bot *process, who int64, secret string) {
	w.t.Helper()
	var shown telegram.Message
	w.telegram.View(func(s telegram.State) {
		all := s.Answers(who)
		shown = all[len(all)-1]
	})
	link := adminLinks.FindString(shown.Text)
	if !strings.Contains(link, secret) {
		w.t.Fatalf("the last message is %q", shown.Text)
	}
	for text, points := range map[string]telegram.SayOptions{
		"what is this link?":  {ReplyTo: shown.ID},
		"what is this quote?": {ReplyTo: shown.ID, References: telegram.References{Quote: link}},
		shown.Text:            {References: telegram.References{Forward: &telegram.Origin{Kind: telegram.OriginUser, User: w.telegram.Bot().ID}}},
	} {
		before, asked := 0, len(w.model.Requests())
		w.telegram.View(func(s telegram.State) { before = s.CountAnswers(who) })
		if _, err := w.telegram.Say(who, who, text, &points); err != nil {
			w.t.Fatal(err)
		}
		w.until(bot, "an answer about the link", func(s telegram.State) bool { return s.CountAnswers(who) > before })
		requests := w.model.Requests()
		if len(requests) == asked {
			w.t.Errorf("the model is not asked %q", text)
			continue
		}
		last := requests[len(requests)-1]
		if given := string(last.MessagesJSON); strings.Contains(given, secret) || !strings.Contains(given[strings.LastIndex(given, `"user"`):], "admin/enter") {
			w.t.Errorf("the model is given %s", given)
		}
	}
}

// TestMemoryReachesLaterMessages saves a note, and finds it beside a message of the same
// conversation and in the prompt of the next.
func TestMemoryReachesLaterMessages(t *testing.T) {
	t.Parallel()
	w := newHarness(t, openai.Offline{})
	ann, bob := w.person("Ann"), w.person("Bob")
	bot := w.run()
	wantIn(t, w.ask(bot, ann, "Remember that my sailing boat is called Marlin.", nil), "Noted")
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
