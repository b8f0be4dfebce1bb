package bridge_test

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"
	"unicode/utf8"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/chats"
)

// Whatever comes back from a platform as the data of a button, nothing but a button of
// the card that stands there is pressed.
func FuzzPressOfACard(f *testing.F) {
	for _, seed := range []string{"", "/clear", "a-1-0", strings.Repeat("a", 26) + "-1-0", "-1--1", "\x00", "yes"} {
		f.Add(seed, uint8(0))
		f.Add(seed, uint8(3))
	}
	f.Fuzz(func(t *testing.T, data string, cut uint8) {
		v := &voter{}
		r := newHarness(t, echo, voting(v))
		r.post("a", chatOne, vote())
		shown := r.platform.wait(t, 1)[0]
		yes := shown.button(t, "Yes")
		n := int(cut) % len(yes)
		mixed := yes[:n] + data
		for i, text := range []string{data, mixed} {
			id := fmt.Sprint("p", i)
			r.accept(pressOn(shown, id, "1", text))
			known := slices.ContainsFunc(slices.Concat(shown.buttons...), func(b chats.Button) bool { return b.Data == text })
			if toast := r.platform.toast(t, id); toast == "thanks" && !known {
				t.Errorf("%q presses a button", text)
			}
		}
	})
}

// Whatever a model wants to run, the card shows all of it and nothing that is not seen.
func FuzzCardShowsWhatIsApproved(f *testing.F) {
	for _, seed := range []string{"ls", "g\u043e\u043egle.com" + strings.Repeat(" ", 40) + "x", "a\r\nb", "```\n**no**", "\u202etxt.exe", "\u200b", "\x1b[8m", "'\"\\", "\xff", " ", strings.Repeat("x ", 2000)} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, command string) {
		if !utf8.ValidString(command) || len(command) > 10_000 {
			t.Skip()
		}
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		a := agent.New(agent.Config{Model: caller(arguments)})
		w := &execTools{}
		r := w.guarded(t, func(c *bridge.Config) { c.Turns.Agent = a })
		r.accept(direct("1", "go"))
		all := r.platform.until(t, "card", func(all []sent) bool { return len(all) > 0 && all[len(all)-1].buttons != nil })
		card := strings.Join(texts(all), "\n")
		for _, c := range card {
			if c != '\n' && c != '\t' && !unicode.IsPrint(c) {
				t.Errorf("%U is on the card", c)
			}
		}
		rest := card
		for _, c := range command {
			if unicode.IsSpace(c) {
				continue
			}
			want := string(c)
			if !unicode.IsPrint(c) {
				want = fmt.Sprintf("⟨U+%04X⟩", c)
			}
			at := strings.Index(rest, want)
			if at < 0 {
				at = strings.Index(rest, fmt.Sprintf("⟨U+%04X⟩", c))
				want = fmt.Sprintf("⟨U+%04X⟩", c)
			}
			if at < 0 {
				t.Fatalf("%q of %q is not on the card", c, command)
			}
			rest = rest[at+len(want):]
		}
	})
}

// FuzzCardHidesKnownSecretsAlone has a model dress up what it wants to run: the
// card shows all of it, except for what the bot itself knows as a secret.
//
// An approval card hides nothing but known secrets.
func FuzzCardHidesKnownSecretsAlone(f *testing.F) {
	const known = "t0p-secret-of-the-bot"
	pem := "-----BEGIN PRIVATE" + " KEY-----"
	for _, seed := range []string{
		"ls", `echo "` + pem + `" >/dev/null; id > pwned.txt; echo "-----END PRIVATE` + ` KEY-----"`, pem + "aWQ7aWQ7aWQ7", "PASSWORD=id;id;id;id", "x://u:id;rm@h",
		"login " + known + "; id", "Authorization: Basic aWQ7aWQ7aWQ7", "sk" + "-aaaaaaaaaaaaaaaaaaaaaaaaaa1 id", "gh" + "p_aaaaaaa1…", "••••",
		"api_key=" + strings.Repeat("a1", 20), "```\n" + pem + "\n```", pem + strings.Repeat(" id", 1500),
	} {
		f.Add(seed)
	}
	hide := func(text string) string { return strings.ReplaceAll(text, known, "••••") }
	f.Fuzz(func(t *testing.T, command string) {
		if !utf8.ValidString(command) || len(command) > 10_000 || json.Valid([]byte(command)) {
			t.Skip() // of JSON, the card also says what it reads like
		}
		arguments, err := json.Marshal(map[string]string{"command": command})
		if err != nil {
			t.Fatal(err)
		}
		a := agent.New(agent.Config{Model: caller(arguments)})
		w := &execTools{}
		r := w.guarded(t, func(c *bridge.Config) {
			c.Turns.Agent, c.RedactCards = a, hide
			c.Redact = func(string) string { return "all of it is masked elsewhere" }
		})
		r.accept(direct("1", "go"))
		all := r.platform.until(t, "card", func(all []sent) bool { return len(all) > 0 && all[len(all)-1].buttons != nil })
		// What stands on the card is the command, character for character.
		// Blanks may be counted.
		rest := noBlanks.Replace(counted.ReplaceAllString(argument(t, all[0].text), ""))
		for _, c := range noBlanks.Replace(counted.ReplaceAllString(hide(command), "")) {
			after, ok := strings.CutPrefix(rest, string(c))
			if !ok {
				after, ok = strings.CutPrefix(rest, fmt.Sprintf("⟨U+%04X⟩", c))
			}
			if rest = after; !ok {
				t.Fatalf("%q of %q is not on the card:\n%s", c, command, all[0].text)
			}
		}
		if rest != "" {
			t.Fatalf("the card shows %q behind %q", rest, command)
		}
	})
}

// counted is how a card says how many blanks there are.
var counted = regexp.MustCompile(`⟨\d+ (space|tab|line break)s?(, \d+ (space|tab|line break)s?)*⟩`)

// noBlanks takes away all blanks.
var noBlanks = strings.NewReplacer(" ", "", "\t", "", "\n", "")

// argument is what a card shows as the value of its one argument.
func argument(t *testing.T, card string) string {
	t.Helper()
	_, rest, _ := strings.Cut(card, "**\n\n") // behind the question
	fence, rest, _ := strings.Cut(rest, "\n")
	end := strings.LastIndex(rest, "\n"+fence)
	if !strings.HasPrefix(fence, "```") || end < 0 {
		t.Fatalf("no argument on the card %q", card)
	}
	return rest[:end]
}
