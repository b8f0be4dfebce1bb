package wording_test

import (
	"strings"
	"testing"

	"golang.org/x/net/idna"

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

// What is no host stays in its language.
func TestOrdinaryTextStaysInItsLanguage(t *testing.T) {
	for _, text := range []string{
		"https://de.wikipedia.org/wiki/München?ort=Köln#Größe", "Grüße an @jürgen und Jürgen.", "/home/jürgen/über.uns/größe.txt", "今天天气很好。你呢?",
		"会议改到周五。请带上合同/发票", "请看https://example.com，谢谢", "Größe:1.5/Stück, @jürgen.müller", "Смотри:п.1/2", "naïve café – 3½ km; Übung: https://example.com/ (schön)", "נִקּוּד, tiếng Việt, ภาษาไทยน้ำ, ❤️",
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
