package telegram

import (
	"net/http"
	"strings"
	"testing"

	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
)

// FuzzMarkupOfAnswers sends whatever a model may write to a strict server, which must take
// every part with its markup: nothing is refused, nothing falls back to plain text.
func FuzzMarkupOfAnswers(f *testing.F) {
	for _, text := range []string{
		"**bold _it ~~gone `code [link](https://a.test", "<b>one</b> <i>two <u>three</b>", "a < b && c > d; x <y> z &amp; &lt;",
		"```go\nx := \"<a>\" &y", "````\n```\ninner\n```\n````", "| a | b |\n|---|---|\n| `x|y` | **z** |", "> quote\n> > deep\n\n1. one\n   - two",
		"@ann [u](tg://user?id=1) <!channel>", "\x00\x1b\u2028\xff 👩‍👩‍👧‍👦", "[a](javascript:x) [b](https://a.test/?q=\"1\"&b=<2>)", "***a** b* __c_ d_", "```\xcc", "[a]: http://b.test @ann",
		"[x](http://localhost:3000/d) @\u202aann @&#13;ann",
	} {
		f.Add(text)
	}
	s, err := emulator.New(emulator.Config{MaxMessages: 10})
	if err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: inMemory(s)}})
	if err != nil {
		f.Fatal(err)
	}
	ann := s.AddUser(emulator.User{}).ID
	if _, err := s.AddChat(emulator.ChatSpec{Kind: emulator.Private, User: ann}); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, part := range p.Render(text[:min(len(text), 20_000)]) {
			part.Repeat = len(text)%2 == 0
			if _, err := p.Send(t.Context(), to(ann, 0, 0), part); err != nil {
				t.Fatalf("refused: %v\n%q", err, part.Text)
			}
			list := s.Messages(ann)
			sent := list[len(list)-1]
			if sent.HTML == "" && strings.TrimSpace(part.Text) != "" {
				t.Fatalf("went out plain: %q", part.Text)
			}
			for _, e := range sent.Entities {
				if e.Type == "mention" || e.Type == "text_mention" {
					t.Fatalf("%+v calls somebody in %q", e, sent.Text)
				}
			}
		}
	})
}
