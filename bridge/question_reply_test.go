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
