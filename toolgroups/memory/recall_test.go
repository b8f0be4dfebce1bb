package memory_test

import (
	"testing"
	"time"
)

func TestRecallFindsWhatTheSnapshotDoesNotShow(t *testing.T) {
	b := newBench(t, openStore(t))
	b.save(t, ada, "profile", "The sailing boat is called Marlin")
	began := b.now()
	b.save(t, ada, "profile", "The sailing boat has a new anchor")
	b.save(t, ada, "profile", "Likes tea")
	for _, c := range []struct {
		owner, message string
		began          time.Time
		want           int
	}{
		{ada, "what about the anchor of my sailing boat?", began, 1},
		{ada, "what about the anchor of my sailing boat?", b.now().Add(time.Hour), 0}, // all in the snapshot
		{ada, "tea", began, 1},
		{ada, "which beverage do I enjoy?", began, 1},
		{ada, "how is the weather", began, 0},
		{"telegram:2", "what about the anchor of my sailing boat?", began, 0},
	} {
		notes, err := b.Recall(t.Context(), c.owner, c.message, c.began)
		if err != nil {
			t.Fatal(err)
		}
		if len(notes) != c.want {
			t.Errorf("%s, %q: recalled %v, want %d", c.owner, c.message, notes, c.want)
		}
	}
}
