package slack

import (
	"encoding/json"
	"strings"
	"testing"

	"pgregory.net/rapid"

	emulator "oneclaw/internal/emulator/slack"
)

// The mention is stripped, entities are decoded.
func TestMentionsAndEntities(t *testing.T) {
	name := func(id string) string { return map[string]string{"U2": "Bea"}[id] }
	tests := []struct {
		raw, want         string
		mentioned, called bool
	}{
		{"hi", "hi", false, false},
		{"<@U0BOT> hi", "hi", true, true},
		{"  <@U0BOT|oneclaw>, hi", "hi", true, true},
		{"<@U0BOT> <@U0BOT>: hi", "hi", true, true},
		{"<@U0BOT>: :smile: hi", ":smile: hi", true, true},
		{"<@U0BOT>:+1:", ":+1:", true, true},
		{"<@U0BOT> ;-)", ";-)", true, true},
		{"<@U0BOT> : <@U0BOT>, :hi", "hi", true, true},
		{"hi <@U0BOT>", "hi", true, false},
		{"what does <@U0BOT> say?", "what does @oneclaw say?", true, false},
		{"<@U0BOT>", "@oneclaw", true, true},
		{"<@U0BOTX> hi", "@ hi", false, false},
		{"ask <@U2>", "ask @Bea", false, false},
		{"ask <@U3|carl>", "ask @carl", false, false},
		{"in <#C1|general> and <#C2>", "in #general and #C2", false, false},
		{"<!here> <!channel|channel>", "@here channel", false, false},
		{"<!subteam^S1|@devs> <!subteam^S2>", "@devs @S2", false, false},
		{"at <!date^1700000000^{date}|Nov 14>", "at Nov 14", false, false},
		{"see <https://a.test/?x=1&amp;y=2>", "see https://a.test/?x=1&y=2", false, false},
		{"see <https://a.test|the page>", "see the page (https://a.test)", false, false},
		{"see <http://a.test|a.test> or <mailto:b@a.test|b@a.test>", "see a.test or b@a.test", false, false},
		{"1 &lt; 2 &amp;&amp; 3 &gt; 2", "1 < 2 && 3 > 2", false, false},
		{"&amp;lt; and &lt;@U0BOT&gt;", "&lt; and <@U0BOT>", false, false},
		{"broken <@U0BOT", "broken <@U0BOT", false, false},
		{"", "", false, false},
	}
	for _, tt := range tests {
		got := me.decodeText(tt.raw, name)
		if got.text != tt.want || got.mentioned != tt.mentioned || got.addressed != tt.called {
			t.Errorf("%q: got %+v, want %q", tt.raw, got, tt.want)
		}
	}
}

func TestTypedTextComesBack(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		typed := strings.TrimSpace(rapid.String().Draw(t, "typed"))
		if got := me.decodeText(emulator.Escape(typed), func(string) string { return "" }); got.text != typed || got.mentioned {
			t.Errorf("%q became %+v", typed, got)
		}
	})
}

func TestCommands(t *testing.T) {
	tests := []struct {
		text      string
		addressed bool
		want      string
	}{
		{"clear", true, "/clear"},
		{"Clear", true, "/clear"},
		{"clear", false, "clear"},
		{"!clear", false, "/clear"},
		{"/clear", false, "/clear"},
		{"!model gpt now", true, "/model gpt now"},
		{"model gpt", true, "model gpt"},
		{"stop it", true, "stop it"},
		{"!unknown", true, "!unknown"},
		{"//clear", true, "//clear"},
		{"!", true, "!"},
		{"", true, ""},
	}
	r := offline(t)
	for _, tt := range tests {
		if got := r.asCommand(tt.text, tt.addressed); got != tt.want {
			t.Errorf("%q, %t: got %q, want %q", tt.text, tt.addressed, got, tt.want)
		}
	}
}

func TestSlashCommands(t *testing.T) {
	f := start(t, quick(), nil)
	f.make(emulator.ChannelSpec{ID: "C9", Members: []string{f.user}, WithoutBot: true})
	tests := []struct {
		channel, text string
		want          string // of the message, empty for none
		answer        string // in the acknowledgement
	}{
		{"D1", "clear", "/clear", ""},
		{"D1", "", "/help", ""},
		{"D1", "what is 1 &lt; 2?", "what is 1 < 2?", ""},
		{"C1", "status", "/status", ""},
		{"C1", "/Usage all", "/usage all", ""},
		{"C1", "clear", "", "mention me in the thread you mean"},
		{"C1", "hello there", "", "/oneclaw help"},
		{"C9", "whoami", "/whoami", ""},
	}
	for _, tt := range tests {
		t.Run(tt.channel+" "+tt.text, func(t *testing.T) {
			before := len(f.in.all())
			sent, err := f.Command(tt.channel, f.user, "/oneclaw", tt.text)
			if err != nil {
				t.Fatal(err)
			}
			f.acked(sent)
			var answer string
			f.View(func(s emulator.State) {
				e, _ := s.Envelope(sent.Envelopes[0])
				answer = string(e.Answer)
			})
			if !strings.Contains(answer, tt.answer) || (answer == "") != (tt.answer == "") {
				t.Errorf("answered %q, want %q", answer, tt.answer)
			}
			got := f.in.all()[before:]
			if tt.want == "" {
				if len(got) != 0 {
					t.Errorf("got %+v", got)
				}
				return
			}
			if len(got) != 1 || got[0].Text != tt.want || got[0].ID != sent.TriggerID || got[0].Chat != chatOf(tt.channel, "") ||
				got[0].Direct != (tt.channel == "D1") || got[0].UserName != "Ann Lee" {
				t.Errorf("got %+v", got)
			}
		})
	}
}

// What a program says in a thread may stand in its attachments alone.
func TestAlarmsOfProgramsAreQuoted(t *testing.T) {
	m := &message{BotID: "B1", Username: "Watch", TS: "1.000000", Attachments: json.RawMessage(`[{"title":"Disk full","text":"db1 &amp; db2"}]`)}
	got := identity{user: "UBOT"}.quote(m, "C1", func(id string) string { return id })
	if len(got) != 1 || got[0].Text != "Disk full\ndb1 & db2" || got[0].By != "Watch" {
		t.Errorf("%+v", got)
	}
}

// Who is named has chosen the name, and may have put a request into it.
func TestATextThatNamesOthersIsNotTheSendersAlone(t *testing.T) {
	me := identity{user: "U0", name: "claw"}
	for raw, want := range map[string]bool{
		"<@U0> when is <@U2> back?": true, "see <#C1|general>": true, "<!subteam^S1> lunch?": true, "<@U2|ann>": true,
		"<@U0> hello": false, "<!here> hello": false, "<https://a.example|a>": false, "a &lt;@U2&gt; b": false,
	} {
		if got := me.namesOthers(raw); got != want {
			t.Errorf("%q: %t", raw, got)
		}
	}
}

// A command can be given in the direct chat of two people as well, where the bot is not: what one of them says there is
// no word of the other's, and nobody talks to the bot there.
func TestTheOtherOfTwoPeopleWhoWriteToEachOtherIsNobodysOwnWords(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	bob := f.AddUser(emulator.User{ID: "U2", Name: "bob"}).ID
	both := f.make(emulator.ChannelSpec{ID: "D9", Kind: emulator.DM, Members: []string{f.user, bob}, WithoutBot: true})
	for _, tt := range []struct{ user, text, answer string }{
		{f.user, "the PIN of my bank is 4711", "I am not in this conversation"},
		{bob, "clear", "I am not in this conversation"},
		{f.user, "whoami", ""},
		{bob, "whoami", ""},
	} {
		sent, err := f.Command(both, tt.user, "/oneclaw", tt.text)
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
		f.View(func(s emulator.State) {
			e, _ := s.Envelope(sent.Envelopes[0])
			if answer := string(e.Answer); !strings.Contains(answer, tt.answer) || (answer == "") != (tt.answer == "") {
				t.Errorf("%q is answered with %q, want %q", tt.text, answer, tt.answer)
			}
		})
	}
	got := f.in.all()
	if len(got) != 2 || got[0].User != f.user || got[1].User != bob || got[0].Direct || got[1].Direct {
		t.Errorf("got %+v, want a command of each, none of them direct", got)
	}
}

// While Slack does not tell whose chat it is, a command waits for a better time rather than run for the wrong people.
func TestACommandDoesNotRunWhileItIsNotKnownWhoseChatItIs(t *testing.T) {
	t.Parallel()
	f := start(t, quick(), nil)
	f.inject(emulator.Fault{Method: channelsInfo, Times: 1, Effect: emulator.ServerError})
	for n, want := range []int{0, 1} {
		sent, err := f.Command(f.dm, f.user, "/oneclaw", "status")
		if err != nil {
			t.Fatal(err)
		}
		f.acked(sent)
		if got := f.in.all(); len(got) != want || want > 0 && !got[0].Direct {
			t.Errorf("try %d: got %+v", n, got)
		}
	}
}
