package interact

import (
	"testing"
	"time"

	"oneclaw/bridge/chats"
)

// A reaction to a card stands for a button only if the card says so, is open, has not changed, and is not shown to one
// person alone.
func TestWhichCardsTakeReactions(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name   string
		change func(*StoredCard)
		data   string
		hint   string
	}{
		{"open", func(*StoredCard) {}, "t-1-1", "Or react: 👍, ✅ or ❤ is **Yes**."},
		{"its text has changed", func(c *StoredCard) { c.Version, c.Progress = 3, 2 }, "t-1-1", "Or react: 👍, ✅ or ❤ is **Yes**."},
		{"its buttons have changed", func(c *StoredCard) { c.Version = 2 }, "", ""},
		{"closed", func(c *StoredCard) { c.ClosedAt = time.Unix(1, 0) }, "", ""},
		{"for one person", func(c *StoredCard) { c.Ephemeral = true }, "", ""},
		{"where no reactions are reported", func(c *StoredCard) { c.Reactions = false }, "", ""},
	} {
		kept := &StoredCard{Token: "t", Version: 1, Reactions: true, Card: Card{Choices: [][]Choice{{{Label: "Later"}, {Label: "Yes", Reaction: chats.FeedbackGood}}}}}
		tt.change(kept)
		if got := kept.dataFor(chats.FeedbackGood); got != tt.data || kept.dataFor(chats.FeedbackBad)+kept.dataFor("") != "" || kept.reactionHint() != tt.hint {
			t.Errorf("%s: pressed %q, said %q", tt.name, got, kept.reactionHint())
		}
	}
}
