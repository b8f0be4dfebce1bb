package telegram

import (
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/internal/markdown"
)

func TestPartsLeaveRoomForNotices(t *testing.T) {
	p := &platform{}
	long := strings.Repeat("**bold 🎉** and `code` & <tag> ", 2000)
	parts := p.Render(long)
	if len(parts) < 10 {
		t.Fatalf("%d parts", len(parts))
	}
	for i, part := range parts {
		d := delivery{part: part, topicGone: true}
		d.part.Repeat = true
		if n := markdown.UTF16Len(d.text(part.Plain, plainLine)); n > maxText {
			t.Errorf("part %d has %d units with its notices, limit %d", i, n, maxText)
		}
	}
	if n := markdown.UTF16Len(chats.RepeatNotice); n > 80 {
		t.Errorf("the notice has %d units", n)
	}
}
