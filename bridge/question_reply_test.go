package bridge_test

import (
	"strings"
	"sync"
	"testing"

	"oneclaw/toolgroups"
)

// While the question of a server waits to be shown, a reply to another message of the bot may not be its answer: it
// is shown, and leaves with a press.
func TestAReplyToAnotherMessageDoesNotLeaveWhileAQuestionWaitsToBeShown(t *testing.T) {
	c := &curious{asks: form(toolgroups.Field{Name: "n", Title: "Name", Type: toolgroups.FieldText, Required: true})}
	r := c.rig(t)
	r.accept(direct("0", "hello"))
	old := r.platform.wait(t, 1)[0]
	held, release := make(chan struct{}), make(chan struct{})
	var once sync.Once
	r.platform.hold = func() { once.Do(func() { close(held) }); <-release }
	r.accept(direct("1", "run x"))
	<-held
	r.accept(reply(direct("2", "my salary is 99000"), old))
	close(release)
	all := r.platform.until(t, "an end", func(all []sent) bool {
		for _, m := range all {
			if strings.Contains(m.text, "99000") {
				return true
			}
		}
		return false
	})
	for _, m := range all {
		if strings.HasPrefix(m.text, "accept ") {
			t.Errorf("what was said to the bot went to the server: %q", m.text)
		}
	}
}

// An answer that holds words of others is shown, and leaves with a press.
func TestAnAnswerWithWordsOfOthersIsShownBeforeItLeaves(t *testing.T) {
	t.Parallel()
	c := &curious{asks: form(toolgroups.Field{Name: "who", Title: "Who", Type: toolgroups.FieldText, Required: true})}
	r := c.rig(t)
	r.accept(direct("1", "run x"))
	card := r.platform.wait(t, 1)[0]
	r.accept(byOthers(reply(direct("2", "ask Mallory"), card)))
	card = r.platform.until(t, "a look at the answer", func(all []sent) bool { return strings.Contains(all[0].text, "Nothing has left yet.") })[0]
	if !strings.Contains(card.text, "- Who: ask Mallory") {
		t.Errorf("card %q", card.text)
	}
	r.accept(pressOn(card, "send", "1", card.button(t, "Send")))
	if got := r.platform.wait(t, 2)[1].text; got != `accept {"who":"ask Mallory"} foreign` {
		t.Errorf("answer %q", got)
	}
}
