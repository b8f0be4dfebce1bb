package outbox

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/storage"
)

// Preview is the message that shows an answer while it is made. It is recorded before the message is
// sent.
type Preview struct {
	// Token is in the data of its button. Users cannot guess it.
	Token string `json:"token"`
	// ChatID is the id of its chat.
	ChatID string `json:"in"`
	// ID is the platform's id of the message; empty until that is known. A preview found without one
	// after a crash may stay unfinished forever.
	ID string `json:"id,omitempty"`
	// Shown is the Markdown that it shows of the answer, with secrets masked.
	Shown string `json:"said,omitempty"`
}

// OpenPreview returns the preview of an answer that has not replaced it yet; nil if there is none that
// could be edited.
func (d *Delivery) OpenPreview() *Preview {
	p := d.Preview
	if p == nil || p.ID == "" {
		return nil
	}
	for _, part := range slices.Backward(d.Parts) {
		if part.Edit == p.ID { // the last of them counts
			if part.State == receipts.PartSent {
				return nil
			}
			break
		}
	}
	return p
}

// KindPreview is the kind of jobs that end a preview whose answer does not come.
const KindPreview chats.Kind = "preview"

// stopPrefix begins the data of the buttons of previews. Card data never begins so.
const stopPrefix = "stop:"

// StopButtons returns the buttons of a preview.
func (p *Preview) StopButtons() [][]chats.Button {
	return [][]chats.Button{{{Label: "⏹ Stop", Data: stopPrefix + p.Token}}}
}

// StopToken returns the token of the preview whose stop button was pressed; empty for anything else.
func StopToken(m chats.Message) string {
	if n := len(stopPrefix); m.Kind == chats.KindPress && len(m.Text) > n && m.Text[:n] == stopPrefix {
		return m.Text[n:]
	}
	return ""
}

// setPreview stores the preview of an open job while the turn runs, if holder still holds the job, and
// returns the record's new revision. See [queue.Store.Check].
func setPreview(ctx context.Context, jobs queue.Store, key, holder string, p *Preview) (storage.Revision, error) {
	for {
		j, err := jobs.Load(ctx, key)
		switch {
		case err != nil:
			return 0, err
		case j == nil || j.LeaseToken != holder:
			return 0, fmt.Errorf("%s: %w", key, queue.ErrLost)
		}
		Of(j).Preview = p
		if err = jobs.Put(ctx, j); !errors.Is(err, storage.ErrConflict) {
			return j.Rev, err
		}
	}
}
