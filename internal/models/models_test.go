package models_test

import (
	"errors"
	"log/slog"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/anthropic"
	"oneclaw/agent/openai"
	"oneclaw/bridge"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	emulator "oneclaw/internal/emulator/anthropic"
	"oneclaw/internal/models"
	"oneclaw/internal/settings"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// world is what models are chosen with: settings, with an emulator as Anthropic.
type world struct {
	*models.Models
	claude *emulator.Server
}

func newWorld(t testing.TB, own models.OwnModel) *world {
	t.Helper()
	server, err := emulator.New(emulator.Config{})
	if err != nil {
		t.Fatal(err)
	}
	base, err := server.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	own.BaseURL, own.APIKey = base, "sk-own"
	s, vault, err := settings.Open(settings.Config{
		Now: time.Now, KV: store, SecretKey: []byte("0123456789abcdef"),
		Preset: settings.Preset{Type: settings.TypeOpenAI, BaseURL: base, Key: "sk-own", Model: own.Name},
		Agents: []settings.Agent{{ID: "assistant", Name: "Assistant", Prompt: "You help."}},
		Defaults: map[string]string{
			settings.SettingRouting: "groups", settings.SettingLogLevel: "info", settings.SettingTimeZone: "UTC", settings.SettingUserBudget: "0",
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	ledger, err := budget.Open(budget.Config{Now: time.Now, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	transport := models.NewTransport()
	t.Cleanup(func() {
		if err := ledger.Close(); err != nil {
			t.Error(err)
		}
		transport.CloseIdleConnections()
		if err := server.Close(); err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	return &world{models.New(models.Config{
		Own: own, Settings: s, Vault: vault, HTTPClient: &http.Client{Transport: transport}, Ledger: ledger, Logger: slog.New(slog.DiscardHandler),
	}), server}
}

// command gives the command /model, and returns what it answers.
func (w *world) command(t testing.TB, args string) string {
	t.Helper()
	for _, c := range w.Commands() {
		if c.Name != "model" {
			continue
		}
		card, err := c.RunCard(t.Context(), bridge.CommandCall{Scope: toolgroups.Scope{Chat: "telegram:1", Owner: "telegram:1"}, Args: args})
		if err != nil {
			t.Fatal(err)
		}
		return card.Text
	}
	t.Fatalf("there is no command %q", "model")
	return ""
}

// Whoever switches a group to an agent shows all who made it and what it is told, without formatting of its own.
func TestInASharedChatANewAgentSaysWhoMadeIt(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	w.NameOf = func(user string) string { return map[string]string{"telegram:2": "Bob"}[user] }
	spy, err := w.Settings.Agents.Add(t.Context(), settings.Agent{Name: "Spy", Description: "[in](https://evil.example)\n# May I. ● answers here, and “all” is well", Prompt: "Send it *all*", Owner: "telegram:-1", Author: "telegram:2"})
	if err != nil {
		t.Fatal(err)
	}
	agent := func(args string) string { return w.agentCommand(t, args) }
	if got, want := agent(""), " – “\\[in\\](https://evil.example) # May I. ● answers here, and ’all’ is well”\n\n"; !strings.Contains(got, want) {
		t.Errorf("the list does not quote what the agent's maker wrote: %q", got)
	}
	if got, want := agent("Spy"), "**Spy** (`"+spy.ID+"`) answers here from now on. “Bob” made it. Its instructions begin: “Send it \\*all\\*”"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	p, err := w.Profile(t.Context(), toolgroups.Scope{User: "telegram:1", Chat: "telegram:-1", Owner: "telegram:-1"}, turn.ForMessage)
	if err != nil || !p.PromptOthers {
		t.Errorf("what another member wrote is trusted: %v", err)
	}
}

// agentCommand runs /agent in a group. What it answers goes when Bob, who has made its agents, is forgotten.
func (w *world) agentCommand(t testing.TB, args string) string {
	t.Helper()
	i := slices.IndexFunc(w.Commands(), func(c bridge.Command) bool { return c.Name == "agent" })
	card, err := w.Commands()[i].RunCard(t.Context(), bridge.CommandCall{Scope: toolgroups.Scope{User: "telegram:1", Chat: "telegram:-1", Owner: "telegram:-1"}, Args: args})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(card.AlsoQuoted, "telegram:2") {
		t.Errorf("the card quotes %v", card.AlsoQuoted)
	}
	return card.Text
}

// No agent is taken for another one: several of one name are told apart by their ids, and an id is never a name.
func TestAnAgentIsNotTakenForAnotherOfItsName(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	add := func(name string) settings.Agent {
		a, err := w.Settings.Agents.Add(t.Context(), settings.Agent{Name: name, Prompt: "p", Owner: "telegram:-1", Author: "telegram:2"})
		if err != nil {
			t.Fatal(err)
		}
		return a
	}
	first, second := add("Poet"), add("POET")
	posing := add(first.ID)
	for wanted, ids := range map[string][]string{
		"poet": {first.ID, second.ID}, first.ID: {first.ID}, second.ID: {second.ID}, posing.ID: {posing.ID}, "": {first.ID, second.ID, posing.ID},
	} {
		got := w.agentCommand(t, wanted)
		for _, id := range []string{first.ID, second.ID, posing.ID} {
			if strings.Contains(got, "(`"+id+"`)") != slices.Contains(ids, id) {
				t.Errorf("/agent %s: %q", wanted, got)
			}
		}
		if switched := strings.Contains(got, "from now on"); switched != (len(ids) == 1) {
			t.Errorf("/agent %s switches: %t", wanted, switched)
		}
	}
}

// ask has the model of the chat answer as hard as the chat says, and returns the request.
func (w *world) ask(t testing.TB) string {
	t.Helper()
	p, err := w.Profile(t.Context(), toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Owner: "telegram:1"}, turn.ForMessage)
	if err != nil {
		t.Fatal(err)
	}
	_, err = p.Model.Complete(t.Context(), agent.Request{Effort: p.Effort, Messages: []agent.Message{{Role: agent.RoleUser, Text: "hello"}}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	all := w.claude.Requests()
	return string(all[len(all)-1].Body)
}

// How hard a model thinks is chosen in the chat, told to the model and shown.
func TestModelEffort(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	if body := w.ask(t); strings.Contains(body, `"effort"`) {
		t.Errorf("effort that nobody has chosen: %s", body)
	}
	for _, wrong := range []string{"effort very", "effort low high"} {
		if text := w.command(t, wrong); !strings.Contains(text, "minimal") {
			t.Errorf("/model %s: %s", wrong, text)
		}
	}
	if text := w.command(t, "effort LOW"); !strings.Contains(text, "**low**") {
		t.Error(text)
	}
	if body := w.ask(t); !strings.Contains(body, `"effort":"low"`) {
		t.Errorf("no effort in %s", body)
	}
	if text := w.command(t, ""); !strings.Contains(text, "Effort: low.") {
		t.Errorf("not shown: %s", text)
	}
	for _, back := range []string{"effort default", "effort"} {
		w.command(t, "effort low")
		w.command(t, back)
		if body := w.ask(t); strings.Contains(body, `"effort"`) {
			t.Errorf("/model %s does not take it back: %s", back, body)
		}
	}
	// A model whose name only begins so is a model.
	if text := w.command(t, "effortless/x"); strings.Contains(text, "think") {
		t.Error(text)
	}
}

// Each kind of work is done by the model that is named for it, and by the chat's where that cannot be
// asked; nothing stands in for the model of /deep.
func TestEachKindOfWorkHasItsModel(t *testing.T) {
	scope := toolgroups.Scope{User: "telegram:1", Chat: "telegram:1", Owner: "telegram:1"}
	first := func(m agent.Model) string { return agent.ProfileOf(m).Name }
	own := models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages}
	named := models.ByKind{Deep: "preset/claude-deep", Schedules: "preset/claude-schedules", Webhooks: "preset/claude-webhooks", Summaries: "preset/claude-summaries"}
	lost := models.ByKind{Deep: "gone/a", Schedules: "gone/b", Webhooks: "gone/c", Summaries: "gone/d"}
	for name, c := range map[string]struct {
		byKind  models.ByKind
		purpose turn.Purpose
		want    string
	}{
		"a message":                      {named, turn.ForMessage, own.Name},
		"a deep question":                {named, turn.ForDeep, "claude-deep"},
		"a schedule":                     {named, turn.ForSchedule, "claude-schedules"},
		"a webhook":                      {named, turn.ForWebhook, "claude-webhooks"},
		"a schedule, nothing named":      {models.ByKind{}, turn.ForSchedule, own.Name},
		"a schedule, provider not there": {lost, turn.ForSchedule, own.Name},
		"a webhook, provider not there":  {lost, turn.ForWebhook, own.Name},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, own)
			w.ByKind = c.byKind
			p, err := w.Profile(t.Context(), scope, c.purpose)
			if err != nil {
				t.Fatal(err)
			}
			// The usual model decides when the conversation of a deep question is summarized.
			if want := map[bool]string{true: own.Name}[c.purpose == turn.ForDeep]; first(p.ChatModel) != want {
				t.Errorf("the model of the chat is %q, want %q", first(p.ChatModel), want)
			}
			if got := first(p.Model); got != c.want {
				t.Errorf("%s answers, want %s", got, c.want)
			}
			switch c.byKind {
			case models.ByKind{}:
				if p.Summarizer != nil {
					t.Error("summaries have a model of their own")
				}
			case named:
				if got := first(p.Summarizer); got != "claude-summaries" {
					t.Errorf("%s writes the summaries", got)
				}
			case lost:
				if got := first(p.Summarizer); got != own.Name {
					t.Errorf("%s writes the summaries", got)
				}
			}
		})
	}
	w := newWorld(t, own)
	w.ByKind = lost
	_, err := w.Profile(t.Context(), scope, turn.ForDeep)
	if failure, ok := errors.AsType[*agent.ModelError](err); !ok || !strings.Contains(failure.Remedy, "`gone/a`") || !strings.Contains(failure.Remedy, "models.by_kind.deep") {
		t.Errorf("a deep question without its model: %v", err)
	}
}

// Names of models that cannot be read are refused with their setting.
func TestNamesOfModelsByKindAreChecked(t *testing.T) {
	for _, c := range []struct {
		byKind models.ByKind
		want   string
	}{
		{models.ByKind{}, ""},
		{models.ByKind{Deep: "preset/gpt-5.5", Summaries: "openrouter/openai/gpt-5-mini"}, ""},
		{models.ByKind{Deep: "gpt-5.5"}, "models.by_kind.deep: "},
		{models.ByKind{Schedules: "preset/"}, "models.by_kind.schedules: "},
		{models.ByKind{Webhooks: "/x"}, "models.by_kind.webhooks: "},
		{models.ByKind{Summaries: " "}, "models.by_kind.summaries: "},
	} {
		if err := c.byKind.Validate(); (err == nil) != (c.want == "") || err != nil && !strings.HasPrefix(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.byKind, err, c.want)
		}
	}
}

// /deep alone says how to use it, and where it has no model, who can name one.
func TestDeepSaysWhatItNeeds(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	says := func(role toolgroups.Role) (string, bridge.Command) {
		for _, c := range w.Commands() {
			if c.Name == turn.DeepCommand {
				text, err := c.Run(t.Context(), bridge.CommandCall{Scope: toolgroups.Scope{Role: role}})
				if err != nil {
					t.Fatal(err)
				}
				return text, c
			}
		}
		t.Fatal("there is no /deep")
		return "", bridge.Command{}
	}
	if text, c := says(toolgroups.RoleUser); !strings.Contains(text, "without /deep") || !c.Hidden || c.TakesMessage {
		t.Errorf("without a model it is %+v and says %q", c, text)
	}
	if text, _ := says(toolgroups.RoleAdmin); !strings.Contains(text, "`models.by_kind.deep`") {
		t.Errorf("an administrator is told %q", text)
	}
	w.ByKind.Deep = "preset/claude-deep"
	if text, c := says(toolgroups.RoleUser); !strings.Contains(text, "`preset/claude-deep`") || c.Hidden || !c.TakesMessage {
		t.Errorf("with a model it is %+v and says %q", c, text)
	}
}

// Which API a model is spoken to over: what the settings say, then the address.
func TestWhichAPI(t *testing.T) {
	for name, c := range map[string]struct {
		base, api string
		messages  bool
	}{
		"Anthropic's address":             {"https://api.anthropic.com/v1", "", true},
		"Anthropic's address in capitals": {"https://API.Anthropic.com", "", true},
		"another port":                    {"https://api.anthropic.com:8443", "", true},
		"part of another name":            {"https://api.anthropic.com.test/v1", "", false},
		"in the path":                     {"https://gateway.test/api.anthropic.com", "", false},
		"a gateway that speaks it":        {"https://gateway.test", models.APIMessages, true},
		"Anthropic over Chat Completions": {"https://api.anthropic.com/v1", openai.APIChat, false},
		"OpenAI":                          {"https://api.openai.com/v1", "", false},
	} {
		client, err := models.OwnModel{BaseURL: c.base, API: c.api, APIKey: "k", Name: "claude-sonnet-5"}.Client(http.DefaultClient)
		if err != nil {
			t.Errorf("%s: %v", name, err)
		} else if _, ok := client.(*anthropic.Client); ok != c.messages {
			t.Errorf("%s: %T", name, client)
		}
	}
}

// A provider of the type ANTHROPIC is spoken to over its own API, wherever it stands.
func TestProvidersOfAnthropic(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	ctx := t.Context()
	base := w.Own.BaseURL
	p, err := w.Settings.Providers.Add(ctx, "Claude", settings.TypeAnthropic, base)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Vault.SetKey(ctx, p.ID, "sk-theirs"); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Settings.Models.Add(ctx, settings.Ref{Provider: p.ID, Model: emulator.DefaultModel}, "Sonnet"); err != nil {
		t.Fatal(err)
	}
	active := true
	if _, _, err := w.Settings.Providers.Change(ctx, p.ID, settings.ProviderChange{Active: &active}); err != nil {
		t.Fatal(err)
	}
	if text := w.command(t, p.ID+"/"+emulator.DefaultModel); !strings.Contains(text, "answers here from now on") {
		t.Fatal(text)
	}
	w.ask(t)
	all := w.claude.Requests()
	if last := all[len(all)-1]; last.Header.Get("Anthropic-Version") == "" {
		t.Errorf("not over the Messages API: %v", last.Header)
	}
}

// /model shows a button for each other model, which a press switches to; a model is named with its
// provider, or alone.
func TestModelsAreSwitchedWithButtons(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	ctx, scope := t.Context(), toolgroups.Scope{Chat: "telegram:1", Owner: "telegram:1"}
	if _, err := w.Settings.Models.Add(ctx, settings.Ref{Provider: settings.PresetID, Model: "vendor/other"}, ""); err != nil {
		t.Fatal(err)
	}
	if got := w.command(t, "nonsense"); got != "There is no model `nonsense` here. /model lists them." {
		t.Errorf("told %q", got)
	}
	press := func(choice string) interact.Result {
		t.Helper()
		result, err := w.HandlePress(ctx, interact.Press{Scope: scope, Choice: choice})
		if err != nil || len(result.Choices) != 1 {
			t.Fatalf("%+v, %v", result, err)
		}
		return result
	}
	now := press(settings.PresetID + "/vendor/other")
	if !strings.HasPrefix(now.Text, "Model: `vendor/other`") || now.Choices[0][0].Label != emulator.DefaultModel {
		t.Errorf("shown is %+v", now)
	}
	if now = press(now.Choices[0][0].Value); !strings.HasPrefix(now.Text, "Model: `"+emulator.DefaultModel+"` (") || now.Choices[0][0].Label != "vendor/other" {
		t.Errorf("shown is %+v", now)
	}
	if got := w.command(t, "vendor/other"); !strings.HasPrefix(got, "`vendor/other` answers here from now on.") {
		t.Errorf("told %q", got)
	}
	if got := w.command(t, "default"); got != "The default model answers here again." {
		t.Errorf("told %q", got)
	}
}

// A provider names its models.
func TestTheNameOfAModelIsNoMarkdown(t *testing.T) {
	w := newWorld(t, models.OwnModel{Name: emulator.DefaultModel, API: models.APIMessages})
	const name, shown = "x`[in](https://evil.example)`", "`x'[in](https://evil.example)'`"
	for i := range 9 { // the last one has no button
		if _, err := w.Settings.Models.Add(t.Context(), settings.Ref{Provider: settings.PresetID, Model: strings.Repeat("a", 9-i) + name}, ""); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := w.Settings.Models.Add(t.Context(), settings.Ref{Provider: settings.PresetID, Model: name}, ""); err != nil {
		t.Fatal(err)
	}
	if got := w.command(t, ""); !strings.Contains(got, "Also: `a") || strings.Contains(got, "`[in]") {
		t.Errorf("shown is %q", got)
	}
	if got := w.command(t, name); !strings.HasPrefix(got, shown+" answers here") {
		t.Errorf("told %q", got)
	}
	if got := w.command(t, ""); !strings.HasPrefix(got, "Model: "+shown) {
		t.Errorf("shown is %q", got)
	}
}

// Where no provider can be asked, which a chat cannot bring about any more, the checks say how to repair it.
func TestThatNoProviderCanBeAskedIsAFinding(t *testing.T) {
	if got := newWorld(t, models.OwnModel{Name: "own"}).CheckKinds(t.Context()); len(got) != 0 {
		t.Fatalf("with a provider: %+v", got)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, vault, err := settings.Open(settings.Config{Now: time.Now, KV: store, SecretKey: []byte("0123456789abcdef"), Agents: []settings.Agent{{ID: "assistant", Name: "Assistant", Prompt: "You help."}}})
	if err != nil {
		t.Fatal(err)
	}
	got := models.New(models.Config{Settings: s, Vault: vault, Logger: slog.New(slog.DiscardHandler)}).CheckKinds(t.Context())
	if len(got) != 1 || !got[0].Broken || !strings.Contains(got[0].Advice, "`oneclaw provider on ID`") {
		t.Errorf("without one: %+v", got)
	}
}
