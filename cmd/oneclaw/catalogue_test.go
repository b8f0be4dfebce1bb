package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/internal/emulator/mcp"
	"oneclaw/internal/emulator/openai"
	"oneclaw/internal/emulator/slack"
)

// withCatalogue gives a bot a catalogue with the emulated server, at a sign-in, and a server that needs a
// client first.
func (w *harness) withCatalogue(url, issuer string) {
	w.t.Helper()
	path := filepath.Join(w.t.TempDir(), "catalogue.yaml")
	text := fmt.Sprintf("looked_up: 2026-11-01\nservers:\n"+
		"  - {name: notes, title: Notes, url: %q, purpose: Notes of each person, client: registers, issuer: %q, source: https://notes.example}\n"+
		"  - {name: mine, title: Mine, url: https://mine.example/mcp, purpose: My things, client: by hand, guide: https://mine.example/guide, source: https://mine.example}\n", url, issuer)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	w.env["ONECLAW_MCP_CATALOGUE"], w.env["ONECLAW_TOOLS_ALLOW_PRIVATE"] = path, "127.0.0.0/8"
}

// An administrator switches on a server of the catalogue by a button and a person signs in, on either
// platform. Its line is in the prompt from then on, and a sign-in elsewhere than the catalogue says is refused.
func TestAServerOfTheCatalogueIsSwitchedOnAndPeopleSignIn(t *testing.T) {
	t.Parallel()
	em, err := mcp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = em.Close() })
	other, err := mcp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	var prompt atomic.Value
	model := openai.ResponderFunc(func(ctx context.Context, req openai.Request) (openai.Reply, error) {
		prompt.Store(req.Messages[0].Content)
		return notesReader(ctx, req)
	})
	listed := func() bool { return strings.Contains(prompt.Load().(string), "Notes of each person") }
	flow := func(t *testing.T, ask func(string) string, press func(label string) string) {
		t.Helper()
		ask("who am I?")
		if listed() {
			t.Error("the server is in the prompt before it is switched on")
		}
		wantIn(t, ask("/connect"), "You can switch these on", "Notes of each person", "need a client of yours first", "My things", "1 November 2026, not tried")
		wantIn(t, press("Switch on Notes"), "Added notes", "connect notes")
		wantIn(t, ask("who am I now?"), "connect notes")
		if !listed() {
			t.Error("the server is not in the prompt")
		}
		em.Misbehave(mcp.Misbehavior{Resource: func(said map[string]any) { said["authorization_servers"] = []string{other.Issuer} }})
		wantIn(t, ask("/connect notes"), "leads to the sign-in", other.Issuer, "and not to", em.Issuer)
		em.Misbehave(mcp.Misbehavior{})
		answer := ask("/connect notes")
		back, err := em.Consent(t.Context(), linkPattern.FindString(answer), mcp.Grace)
		if err != nil {
			t.Fatalf("%v: %s", err, answer)
		}
		wantIn(t, ask("/connect notes "+back), "is connected", "2 tools")
		if other.Count("register")+other.Count("authorize") > 0 {
			t.Error("something was sent to the other sign-in")
		}
	}
	t.Run("telegram", func(t *testing.T) {
		w := newHarness(t, model)
		w.withCatalogue(em.URL, em.Issuer)
		ann := w.person("Ann")
		w.env["ONECLAW_ADMINS"] = fmt.Sprintf("telegram:%d", ann)
		bot := w.run()
		flow(t, func(text string) string {
			answer := w.ask(bot, ann, text, nil)
			all := w.telegram.Messages(ann)
			for _, e := range all[len(all)-1].Entities {
				answer += " " + e.URL
			}
			return answer
		}, func(label string) string {
			card := w.shownTo(bot, ann, "You can switch these on")
			if _, err := w.telegram.Press(ann, card.ID, ann, button(t, card, label)); err != nil {
				t.Fatal(err)
			}
			return w.shownTo(bot, ann, "Added notes").Text
		})
	})
	t.Run("slack", func(t *testing.T) {
		w := newHarness(t, model)
		workspace, _, people := w.withSlack(t, "ann")
		w.withCatalogue(em.URL, em.Issuer)
		dm, err := workspace.AddChannel(slack.ChannelSpec{Kind: slack.DM, Members: people})
		if err != nil {
			t.Fatal(err)
		}
		w.env["ONECLAW_ADMINS"] = "slack:" + people[0]
		start(t, w.env, "run")
		flow(t, func(text string) string { return askSlack(t, workspace, dm, people[0], text) }, func(label string) (text string) {
			var id, value string
			workspace.View(func(s slack.State) {
				for _, m := range s.Answers(dm) {
					for _, b := range slices.Concat(m.Buttons...) {
						if b.Label == label {
							id, value = m.TS, b.Value
						}
					}
				}
			})
			if _, err := workspace.Press(dm, id, people[0], value, false); err != nil {
				t.Fatal(err)
			}
			waitSlack(t, workspace, "server", func(s slack.State) bool {
				for _, m := range s.Answers(dm) {
					if m.TS == id {
						text = m.Shown
					}
				}
				return strings.Contains(text, "Added notes")
			})
			return text
		})
	})
}

// The servers of the catalogue are asked how people sign in, and what the catalogue says otherwise is told.
func TestDoctorLiveTriesTheCatalogue(t *testing.T) {
	t.Parallel()
	em, err := mcp.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = em.Close() })
	w := newHarness(t, openai.ResponderFunc(adding))
	w.withCatalogue(em.URL, em.Issuer)
	out, ok := tried(t, w.env, "--chat", fmt.Sprint("telegram:", w.person("Ann")))
	wantIn(t, out, "2 servers of /connect are asked", "same    catalogue notes      takes this bot as a client, at "+em.Issuer, "FAILED  catalogue mine", "13 as the emulator does, 0 other, 1 failed")
	if ok || em.Count("register")+em.Count("authorize") > 0 {
		t.Errorf("%d clients and %d sign-ins, %t", em.Count("register"), em.Count("authorize"), ok)
	}
	em.Misbehave(mcp.Misbehavior{Metadata: func(said map[string]any) { delete(said, "registration_endpoint") }})
	out, _ = tried(t, w.env, "--chat", fmt.Sprint("telegram:", w.person("Bob")))
	wantIn(t, out, "OTHER   catalogue notes", "takes clients made by hand, at "+em.Issuer)
}
