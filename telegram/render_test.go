package telegram

import (
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

func TestB04RendererFailure(t *testing.T) {
	p := &Platform{}
	text := "# a < b & **c**\n" + strings.Repeat("line 🎉 of text\n", 800)
	for name, with := range map[string]func(string, int) []markdown.Part{
		"panics":  func(string, int) []markdown.Part { panic("renderer") },
		"nothing": func(string, int) []markdown.Part { return nil },
	} {
		t.Run(name, func(t *testing.T) {
			parts := render(text, with)
			if len(parts) < 3 {
				t.Fatalf("%d parts", len(parts))
			}
			var plain []string
			for _, part := range parts {
				plain = append(plain, part.Plain)
			}
			if got := strings.Join(plain, "\n"); got != strings.TrimSpace(text) {
				t.Error("the text has changed")
			}
			if !strings.HasPrefix(parts[0].Text, "# a &lt; b &amp; **c**") {
				t.Errorf("not escaped: %.40q", parts[0].Text)
			}
		})
	}
	if got := p.Render("  \n"); len(got) != 0 {
		t.Errorf("nothing was rendered as %v", got)
	}
}

func TestPlainPartsKeepTheLimit(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.String().Draw(t, "text") + strings.Repeat(rapid.StringN(0, 20, -1).Draw(t, "piece"), rapid.IntRange(0, 50).Draw(t, "times"))
		limit := rapid.IntRange(2, 200).Draw(t, "limit")
		got := ""
		for _, part := range plainParts(text, limit) {
			if n := utf16Len(part.Plain); n > limit || n == 0 || !utf8.ValidString(part.Plain) {
				t.Fatalf("part of %d units with limit %d: %q", n, limit, part.Plain)
			}
			got += part.Plain
		}
		// Names are broken with an invisible character.
		squeeze := func(s string) string { return strings.ReplaceAll(strings.Join(strings.Fields(s), ""), "\u200b", "") }
		if squeeze(got) != squeeze(text) {
			t.Fatalf("lost something of %q: %q", text, got)
		}
	})
}

func TestD06PartsLeaveRoomForNotices(t *testing.T) {
	p := &Platform{}
	long := strings.Repeat("**bold 🎉** and `code` & <tag> ", 2000)
	parts := p.Render(long)
	if len(parts) < 10 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		d := delivery{part: part, moved: true}
		d.part.Repeat = true
		if n := utf16Len(d.text(part.Plain, plainLine)); n > maxText {
			t.Errorf("part %d has %d units with its notices, limit %d", i, n, maxText)
		}
	}
	if n := utf16Len(chats.RepeatNotice); n > 80 {
		t.Errorf("the notice has %d units", n)
	}
}
