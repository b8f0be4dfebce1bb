package bridge_test

import (
	"strings"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
)

// hellos counts the introductions in a chat.
func hellos(all []sent, chat chats.Chat) (n int) {
	for _, m := range all {
		if m.to.Chat == chat && strings.HasPrefix(m.text, "Hello!") {
			n++
		}
	}
	return n
}

// TestTheBotIntroducesItselfOnceInAChat: not again when it is added again, after a restart, after a crash between the
// card and its record, or under the new id of a chat that has moved.
func TestTheBotIntroducesItselfOnceInAChat(t *testing.T) {
	t.Parallel()
	r := newHarness(t, nil)
	group, other, moved := chats.Chat{Platform: "fake", ID: "-1"}, chats.Chat{Platform: "fake", ID: "-2"}, chats.Chat{Platform: "fake", ID: "-3"}
	added := func(chat chats.Chat) {
		t.Helper()
		if err := r.bridge.Added(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
	}
	added(group)
	added(chats.Chat{Platform: "fake", ID: "-1", Thread: "5"})
	r.restart()
	added(group)
	known, err := storage.Find(t.Context(), r.cfg.Store, "introduced/"+group.String())
	if err != nil || known.Revision == storage.Absent {
		t.Fatalf("nothing is recorded: %v", err)
	}
	if err := r.cfg.Store.Delete(t.Context(), known.Key, known.Revision); err != nil { // as if the first call had not come so far
		t.Fatal(err)
	}
	added(group)
	if err := r.bridge.Moved(t.Context(), group, moved); err != nil {
		t.Fatal(err)
	}
	added(other)
	all := r.platform.until(t, "introduction", func(all []sent) bool { return hellos(all, other) > 0 })
	if n := hellos(all, group); n != 1 {
		t.Errorf("%d introductions", n)
	}
}
