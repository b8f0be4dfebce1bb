package bridge_test

import (
	"strings"
	"testing"
)

// TestHelpBeginsWithWhatPeopleAskFor: seven examples, and the commands one step further.
func TestHelpBeginsWithWhatPeopleAskFor(t *testing.T) {
	t.Parallel()
	r := newHarness(t, echo)
	r.accept(direct("1", "/help"), direct("2", "/help more"), direct("3", "/help MORE"))
	said := r.platform.wait(t, 3)
	if n := strings.Count(said[0].text, "\n- “"); n != 7 {
		t.Errorf("%d examples in %q", n, said[0].text)
	}
	if strings.Contains(said[0].text, "/whoami") {
		t.Errorf("commands are in %q", said[0].text)
	}
	for _, all := range said[1:] {
		if !strings.Contains(all.text, "- /whoami – ") || !strings.Contains(all.text, "- /clear – ") || strings.Contains(all.text, "/people –") {
			t.Errorf("all commands are %q", all.text)
		}
	}
}
