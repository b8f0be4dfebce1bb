package search

import (
	"slices"
	"strings"
	"testing"
	"unicode"

	"github.com/google/go-cmp/cmp"

	"oneclaw/toolgroups/search/meaning"
)

// indexedWords are the words of a text as they are indexed.
func indexedWords(text string) (out []string) {
	for _, w := range splitWords(text) {
		for _, p := range w.parts {
			out = append(out, meaning.Stem(p))
		}
		if len(w.parts) != 1 {
			out = append(out, meaning.Stem(w.text))
		}
	}
	return out
}

func TestTokens(t *testing.T) {
	for text, want := range map[string][]string{
		"":                          nil,
		"...":                       nil,
		"send an e-mail":            {"send", "an", "e", "mail"},
		"scheduling schedules":      {"schedul", "schedul"},
		"TempoMCP_retrieveWorklogs": {"tempo", "mcp", "tempomcp", "retriev", "worklog", "retrieveworklog"},
		"HTTPServer":                {"http", "server", "httpserver"},
		"gmail.users-drafts:list":   {"gmail", "user", "draft", "list"},
		"mp3 s3 ec2":                {"mp3", "s3", "ec2"},
		"ride2":                     {"ride", "2", "ride2"},
		"Adriel's don't l'hotel":    {"adriel", "don", "l", "hotel"},
		"Café ÜBER naïve":           {"cafe", "uber", "naiv"},
		"Погода в Москве":           {"погода", "в", "москве"},
		"北京天气":                      {"北京", "京天", "天气"},
		"天":                         {"天"},
		"東京のweather情報":              {"東京", "京の", "weather", "情報"},
		"날씨 알려줘":                    {"날씨", "알려", "려줘"},
		"हिन्दी":                    {"हिन्दी"},
		"ＦＵＬＬ width":                {"full", "width"},
		"bad\xffutf8":               {"bad", "utf8"},
	} {
		if diff := cmp.Diff(want, indexedWords(text)); diff != "" {
			t.Errorf("%q: %s", text, diff)
		}
	}
}

func FuzzTokens(f *testing.F) {
	for _, seed := range []string{"getHTTPUrl2", "it's \"quoted\" text", "北京 Погода", "a\x00b\xff", strings.Repeat("aB", 50), "'''", "“a”"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		tokens := indexedWords(text)
		if again := indexedWords(text); !slices.Equal(tokens, again) {
			t.Errorf("%q: %q, then %q", text, tokens, again)
		}
		for _, token := range tokens {
			if token == "" || strings.ContainsFunc(token, unicode.IsSpace) {
				t.Errorf("%q gives the token %q", text, token)
			}
		}
		// Whatever has a token can be found by it.
		x := newIndex([]document{{name: "n", description: text}, {name: "other"}})
		if r := x.search(text, 3); len(tokens) > 0 && len(r.hits) == 0 {
			t.Errorf("%q is not found by itself", text)
		}
	})
}
