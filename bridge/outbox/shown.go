package outbox

import (
	"context"
	"fmt"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Preview describes the message that shows an answer while it is generated. It is recorded before the
// message is sent.
type Preview struct {
	// Token is part of the data of the stop button. Users cannot guess it.
	Token string `json:"token"`
	// ChatID is the id of the message's chat.
	ChatID string `json:"in"`
	// ID is the platform's id of the message; empty until it is known. If it is still empty after a
	// crash, the message may stay unfinished forever.
	ID string `json:"id,omitempty"`
	// Shown is the shown part of the answer, as Markdown with secrets masked.
	Shown string `json:"said,omitempty"`
}

// OpenPreview returns the preview if the answer has not replaced it yet; nil if there is no preview that
// could be edited.
func (d *Delivery) OpenPreview() *Preview {
	p := d.Preview
	if p == nil || p.ID == "" {
		return nil
	}
	for _, part := range slices.Backward(d.Parts) {
		if part.ReplacesID == p.ID { // the last part of the preview counts
			if part.State == receipts.PartSent {
				return nil
			}
			break
		}
	}
	return p
}

// KindPreview is the kind of jobs that mark a preview without an answer as ended.
const KindPreview chats.Kind = "preview"

// stopPrefix begins the data of the buttons of previews. The data of cards never begins with it.
const stopPrefix = "stop:"

// stopButtons returns the buttons of a preview.
func (p *Preview) stopButtons() [][]chats.Button {
	return [][]chats.Button{{{Label: "⏹ Stop", Data: stopPrefix + p.Token}}}
}

// StopToken returns the token of the preview whose stop button was pressed; empty for anything else.
func StopToken(m chats.Message) string {
	if n := len(stopPrefix); m.Kind == chats.KindPress && len(m.Text) > n && m.Text[:n] == stopPrefix {
		return m.Text[n:]
	}
	return ""
}

// setPreview stores the preview of an open job while its turn runs, if the job still has the lease token
// holder. It returns the job as it is stored now. See [queue.Store.Refresh].
func setPreview(ctx context.Context, jobs queue.Store, key, holder string, p *Preview) (j *queue.Run, err error) {
	err = storage.Retry(ctx, func() (err error) {
		switch j, err = jobs.Load(ctx, key); {
		case err != nil:
			return err
		case j == nil || j.LeaseToken != holder:
			return fmt.Errorf("%s: %w", key, queue.ErrLost)
		}
		DeliveryOf(j).Preview = p
		return jobs.Put(ctx, j)
	})
	return j, err
}
