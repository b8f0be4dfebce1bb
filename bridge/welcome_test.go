package bridge_test

import (
	"context"
	"strings"
	"testing"

	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
)

// Who opens the bot is shown what is theirs, by the texts of the commands.
func TestWelcomeIsForOnePerson(t *testing.T) {
	command := func(name, text string) bridge.Command {
		return bridge.Command{CommandInfo: chats.CommandInfo{Name: name}, Run: func(_ context.Context, call bridge.CommandCall) (string, error) {
			return text + " for " + call.User, nil
		}}
	}
	r := newHarness(t, nil, cupboard(t, 6), func(c *bridge.Config) {
		c.Access = access.Access{Allow: []string{"fake:1"}, Admins: []string{"fake:2"}}
		c.Commands = []bridge.Command{command("connect", "`/connect google` password1"), command("usage", "3 tokens")}
		c.Redact = func(text string) string { return strings.ReplaceAll(text, "password1", "***") }
	})
	for user, want := range map[string]struct {
		prompts int
		has     []string
		lacks   []string
	}{
		"1": {4, []string{"**Group 5** – Does things", "/connect google` *** for fake:1", "3 tokens for fake:1", "Nothing waits."}, []string{"Group 6"}},
		"2": {4, []string{"**Group 6**", "for fake:2"}, []string{"fake:1"}},
		"3": {0, []string{"I do not know you yet"}, []string{"Group", "tokens"}},
	} {
		m := direct("", "")
		m.User = user
		w, err := r.bridge.Welcome(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		if len(w.Prompts) != want.prompts || want.prompts > 0 && !strings.Contains(w.Prompts[0].Message, "Group 1") {
			t.Errorf("%s is offered %+v", user, w.Prompts)
		}
		all := ""
		for _, s := range w.Sections {
			all += s.Title + "\n" + s.Text + "\n"
		}
		for _, one := range want.has {
			if !strings.Contains(all, one) {
				t.Errorf("%s is not shown %q:\n%s", user, one, all)
			}
		}
		for _, one := range want.lacks {
			if strings.Contains(all, one) {
				t.Errorf("%s is shown %q:\n%s", user, one, all)
			}
		}
	}
}

// What a server says of its tools is quoted, and none of it is in a message that a person sends with one press.
func TestTheWelcomeQuotesWhatAServerSays(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil, ofServer(t))
	w, err := r.bridge.Welcome(t.Context(), direct("", ""))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := w.Sections[0].Text, "- **notes (MCP): all that I ever wrote**"+quotedOfServer; got != want {
		t.Errorf("shown is %q, want %q", got, want)
	}
	if len(w.Prompts) != 1 || w.Prompts[0].Message != "What can you do for me with mcp_notes?" {
		t.Errorf("offered are %+v", w.Prompts)
	}
}

func TestWelcomeTellsWhatWaits(t *testing.T) {
	w := &execTools{}
	r := w.guarded(t)
	r.accept(direct("1", "run rm -rf x"))
	r.untilHeld()
	for user, want := range map[string]bool{"1": true, "2": false} {
		m := direct("", "")
		m.User = user
		got, err := r.bridge.Welcome(t.Context(), m)
		if err != nil {
			t.Fatal(err)
		}
		text := got.Sections[len(got.Sections)-1].Text
		if strings.Contains(text, "`exec`") != want || strings.Contains(text, "rm -rf") {
			t.Errorf("%s is told %q", user, text)
		}
	}
}
