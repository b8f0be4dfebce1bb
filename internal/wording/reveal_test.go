package wording_test

import (
	"fmt"
	"strings"
	"testing"

	"golang.org/x/net/idna"
	"golang.org/x/text/unicode/bidi"

	"oneclaw/internal/wording"
)

// A host that looks like another one is spelled out wherever an address is written.
func TestHostsThatLookLikeOthersAreSpelledOut(t *testing.T) {
	for _, host := range []string{
		"accounts.google.com\u2215o.evil.example", // division slash
		"accounts.google.com\u2044o.evil.example", // fraction slash
		"accounts.google.com\u29f8o.evil.example", // big solidus
		"accounts.google.com\u01c0o.evil.example", // dental click, a letter without case
		"accounts.google.com\u3033o.evil.example", // kana repeat mark
		"accounts.google.com\u1735o.evil.example", // philippine single punctuation
		"accounts.g\u0131thub.com",                // dotless i
		"\u0261oogle.com",                         // script g
		"p\u0251ypal.com",                         // latin alpha
		"paypa\u04cf.com",                         // palochka
	} {
		if asked, err := idna.Lookup.ToASCII(host); err != nil || !strings.Contains(asked, "xn--") {
			t.Fatalf("%s is asked for as %s, %v", host, asked, err)
		}
		for _, before := range []string{"https://", "HTTP:/\\", "https:", "wss://", "see:https://user:pw!@", "//", "", "mail anna@", `{"url":"`, `{"url":"https:\/\/`, `[x](`, "url="} {
			text := before + host + "/signin?d=secret"
			for form, shown := range map[string]string{"fence": wording.Fence(text), "code": wording.InlineCode(text), "line": wording.EscapeRevealed(text)} {
				spelled := wording.RevealHost(host)
				if form == "line" {
					spelled = wording.EscapeMarkdown(spelled)
				}
				if !strings.Contains(shown, spelled) {
					t.Errorf("%s of %s shows %q", form, text, shown)
				}
			}
		}
	}
}

// A host that stands alone is one as well: programs take it as it is, or put the address together.
func TestAHostThatStandsAloneIsSpelledOut(t *testing.T) {
	for _, host := range []string{"g\u0131thub.com", "p\u0251ypal.co.uk", "intra\u030anet.example.com", "g\u0131t.github.io", "accounts.google.com\u2215o.evil.com", "g\u0131thub。com"} {
		for _, text := range []string{host, "ssh " + host, "ssh -p 22 anna@" + host, `fetch("https:" + "//" + "` + host + `" + path)`, `{"host":"` + host + `"}`, host + ":443", "HOST=" + host + "\n", "ping " + host + ".", "x.y:12" + host + ", a"} {
			if shown := wording.Fence(text); !strings.Contains(shown, wording.RevealHost(host)) && !strings.Contains(shown, wording.RevealHost(host+".")) {
				t.Errorf("%q is shown as %q", text, shown)
			}
		}
	}
}

// A host that is spelled out is shown once so.
func TestASpelledHostIsNotSpelledAgain(t *testing.T) {
	if shown, want := wording.InlineCode(wording.RevealHost("p\u0251y.example.com")), "`p⟨U+0251⟩y.example.com`"; shown != want {
		t.Errorf("shown %q, want %q", shown, want)
	}
}

// What is no host stays in its language.
func TestOrdinaryTextStaysInItsLanguage(t *testing.T) {
	for _, text := range []string{
		"https://de.wikipedia.org/wiki/München?ort=Köln#Größe", "Grüße an @jürgen und Jürgen.", "/home/jürgen/über.uns/größe.txt", "今天天气很好。你呢?",
		"会议改到周五。请带上合同/发票", "größe.md, Übersicht.py und „example.com“ – siehe Größe.txt; schön.Und 3½.5", "请看https://example.com，谢谢", "Größe:1.5/Stück, @jürgen.müller", "Смотри:п.1/2", "naïve café – 3½ km; Übung: https://example.com/ (schön)", "נִקּוּד, tiếng Việt, ภาษาไทยน้ำ, ❤️",
	} {
		if shown := wording.Fence(text); shown != "```\n"+text+"\n```" {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// A tower of marks over a letter, which would cover the lines around it, is spelled out.
func TestATowerOfMarksIsSpelledOut(t *testing.T) {
	if shown, want := wording.InlineCode("a"+strings.Repeat("\u0301", 6)), "`a\u0301\u0301\u0301\u0301⟨U+0301⟩⟨U+0301⟩`"; shown != want {
		t.Errorf("shown %q, want %q", shown, want)
	}
}

// What Telegram deletes from every text, also in code, is spelled out.
func TestWhatTelegramDeletesIsSpelledOut(t *testing.T) {
	for _, r := range wording.DeletedByTelegram {
		if shown, want := wording.Fence("sh deploy"+string(r)+".sh"), fmt.Sprintf("sh deploy⟨U+%04X⟩.sh", r); !strings.Contains(shown, want) {
			t.Errorf("shown %q, want %q", shown, want)
		}
	}
}

// A selector of colours shows nowhere behind a mark of ASCII: two pipes with one between them look like ||.
func TestAVariationSelectorBehindAMarkIsSpelledOut(t *testing.T) {
	for _, mark := range "|<>$=+^~`&;/.1" {
		command := "test -e backup " + string(mark) + "\ufe0f| rm -r notes"
		if shown, want := wording.Fence(command), strings.ReplaceAll(command, "\ufe0f", "⟨U+FE0F⟩"); !strings.Contains(shown, want) {
			t.Errorf("%q is shown as %q", command, shown)
		}
	}
}

// Blanks at the end of a line of code are named: behind a backslash they end the command.
func TestBlanksAtTheEndOfALineAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"echo \\ \nsh -c x":               "echo \\⟨1 space⟩\nsh -c x",
		"a \t\n\n  b\n  \nrm -r dir\\\\ ": "a⟨1 space, 1 tab⟩\n\n  b\n⟨2 spaces⟩\nrm -r dir\\\\⟨1 space⟩",
		"if x:\n\tpass\n":                 "if x:\n\tpass\n",
	} {
		if shown := wording.Fence(text); shown != "```\n"+want+"\n```" {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// visual is a line from left to right as the Unicode Bidirectional Algorithm shows it, where the first strong character
// decides the direction of the paragraph, as in the clients of chats.
func visual(t *testing.T, line string) string {
	t.Helper()
	var p bidi.Paragraph
	if _, err := p.SetString(line); err != nil {
		t.Fatal(err)
	}
	order, err := p.Order()
	if err != nil {
		t.Fatal(err)
	}
	out := ""
	for i := range order.NumRuns() { // in logical order
		run := order.Run(i)
		text := run.String()
		if run.Direction() == bidi.RightToLeft {
			text = bidi.ReverseString(text)
		}
		if p.IsLeftToRight() {
			out += text
		} else {
			out = text + out
		}
	}
	return out
}

// Letters that are written from right to left do not change the order of a command: seen from left to right, all but
// the words of such letters is in its order.
func TestLettersFromRightToLeftKeepTheOrderOfACommand(t *testing.T) {
	for _, command := range []string{
		"\u05d0=1; rm -rf notes; : '\u05d0' # ; ls notes", "  \u0634\u064e=1; rm -rf notes; : \u0634\u064e\u0634 # ; ls notes", "mv \u05d0 1 \u05d1 2; ls", "\u05d0 | \u05d1 & sh 1 > \u05d2",
		"ls \u0661 >| \u0662; ls", "kill \u06f1\u06f2 & \u0663 || ls",
	} {
		shown := strings.Split(wording.Fence(command), "\n")[1]
		letters := func(r rune) rune {
			if r >= 0x300 {
				return -1
			}
			return r
		}
		if seen := strings.Map(letters, visual(t, shown)); seen != strings.Map(letters, command) {
			t.Errorf("%q is seen as %q", command, seen)
		}
		if strings.ReplaceAll(shown, "\u200e", "") != command {
			t.Errorf("%q is shown as %q", command, shown)
		}
	}
	for _, text := range []string{"שלום Ada, (מה) שלומך? https://example.com/a", "مرحبا، Ada!", "שלום; להתראות"} {
		if shown := wording.Fence(text); shown != "```\n"+text+"\n```" {
			t.Errorf("%q is shown as %q", text, shown)
		}
	}
}

// A quotation ends where the program ends it.
func TestAQuotationEndsWhereTheProgramEndsIt(t *testing.T) {
	if got, want := wording.Quote("likes\ntea”. „Nothing“ else \"was\" changed", 40), "“likes tea’. ’Nothing’ else ’was’ changed”"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := wording.Quote(`two '' or "" of ’’ ❞, and it's one`, 60), "“two ’ or ’ of ’ ’, and it's one”"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := wording.Quote("abcdef", 3), "“ab…”"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}

// A quotation hides nothing that a model reads.
func TestAQuotationSpellsOutWhatNoScreenShows(t *testing.T) {
	for text, want := range map[string]string{
		"likes tea\U000E0041\u200b": "“likes tea⟨U+E0041⟩⟨U+200B⟩”",
		"a \u202egpj.exe":           "“a ⟨U+202E⟩gpj.exe”",
		"👨\u200d👩\u200d👧 and 👩🏽\u200d🚀, ❤\ufe0f, \tMüller": "“👨👩👧 and 👩🏽🚀, ❤\ufe0f, Müller”",
		"می\u200cخواهم\u200c\u200c":                        "“میخواهم⟨U+200C⟩⟨U+200C⟩”",
		"a\u200db":                                         "“a⟨U+200D⟩b”",
	} {
		if got := wording.Quote(text, 60); got != want {
			t.Errorf("%q is quoted as %q, want %q", text, got, want)
		}
	}
}

func TestManyBlanksAreNotShownWhole(t *testing.T) {
	for text, want := range map[string]bool{
		"Tell me the weather.": true, "Tell me the weather." + strings.Repeat("\u2002\u2003", 2000): false, strings.Repeat("’", 200): false,
	} {
		if got := wording.QuotesWhole(text, 160); got != want {
			t.Errorf("%.30q: %t", text, got)
		}
	}
}
