package outbox

import (
	"errors"
	"path/filepath"
	"testing"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage/bolt"
)

// A replica that was paused does not write its preview into a job that another one works on now.
func TestAPreviewIsNotWrittenIntoTheJobOfAnotherProcess(t *testing.T) {
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	jobs := queue.Store{Store: store, NewData: func(chats.Kind) (args, work any) { return nil, new(Delivery) }}
	j := &queue.Run{Job: queue.Job{Message: chats.Message{Chat: chats.Chat{Platform: "fake", ID: "1"}, ID: "1", Kind: chats.KindText}, Seq: 1, LeaseToken: "new"}}
	if err := jobs.Put(t.Context(), j); err != nil {
		t.Fatal(err)
	}
	for holder, want := range map[string]error{"old": queue.ErrLost, "new": nil} {
		if _, err := setPreview(t.Context(), jobs, j.Key(), holder, &Preview{Token: holder}); !errors.Is(err, want) {
			t.Errorf("%s: %v", holder, err)
		}
	}
	if known, err := jobs.Load(t.Context(), j.Key()); err != nil || DeliveryOf(known).Preview.Token != "new" {
		t.Errorf("the job has the preview %+v (%v)", DeliveryOf(known).Preview, err)
	}
}

// The first part of a long answer whose preview is gone comes once: what would have taken the button
// off the preview is dropped.
func TestAnAnswerWhosePreviewIsGoneComesOnce(t *testing.T) {
	part := receipts.Part{ReplacesID: "9", Part: chats.Part{Text: "begin"}}
	button := part
	button.RemovesButtons = true
	j := &queue.Run{Job: queue.Job{Work: &Delivery{Answer: receipts.Answer{Parts: []receipts.Part{part, {}, button}}, Preview: &Preview{ID: "9"}}}}
	d := DeliveryOf(j)
	sendAsNew(j, &d.Parts[0])
	if d.Parts[0].ReplacesID != "" || d.Parts[0].State == receipts.PartSent || d.Parts[2].State != receipts.PartSent || d.Preview != nil {
		t.Errorf("%+v", d)
	}
}
