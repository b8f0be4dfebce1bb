package slack

import (
	"fmt"
	"slices"
	"testing"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/slack"
)

// What was missed is handed on in its order, and of too much the newest.
func TestLiveC03MissedMessagesComeInTheirOrder(t *testing.T) {
	f := setup(t, quick(), nil)
	f.p.reach.alive = f.p.reach.clock.now()
	f.SetScopes("chat:write") // nothing is delivered
	var want []string
	for i := range maxMissed + 150 {
		want = append(want, fmt.Sprint(i))
		f.say(f.dm, want[i], nil)
	}
	f.SetScopes(emulator.DefaultScopes()...)
	f.run()
	var got []string
	for _, m := range f.in.wait(t, maxMissed) {
		got = append(got, m.Text)
	}
	if !slices.Equal(got, want[len(want)-maxMissed:]) {
		t.Errorf("%d messages came, the first is %s and the last %s, in order: %t", len(got), got[0], got[len(got)-1], slices.IsSorted(ids(f.in.all())))
	}
}

func ids(messages []chats.Message) (list []string) {
	for _, m := range messages {
		list = append(list, m.ID)
	}
	return list
}
