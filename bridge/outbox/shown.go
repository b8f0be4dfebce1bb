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

// Preview is the message in which an answer is shown while it is made. It is on record from
// before the message is sent.
type Preview struct {
	// Token stands in the data of its button. No user can guess it.
	Token string `json:"token"`
	// ChatID is the id of the chat where it stands.
	ChatID string `json:"in"`
	// ID is the platform's id of the message; empty until that is known. What is found
	// without one after a crash may stand there unfinished for ever.
	ID string `json:"id,omitempty"`
	// Shown is what it shows of the answer, in Markdown, with secrets masked.
	Shown string `json:"said,omitempty"`
}

// OpenPreview returns the preview of an answer that has not become that; nil where there is none
// that could be changed.
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

// stopSign begins the data of the buttons of previews. No data of a card begins so.
const stopSign = "stop:"

// StopButtons is the button of a preview.
func (p *Preview) StopButtons() [][]chats.Button {
	return [][]chats.Button{{{Label: "⏹ Stop", Data: stopSign + p.Token}}}
}

// StopToken returns the token of the preview under which a button to stop was pressed; empty for
// what is no such press.
func StopToken(m chats.Message) string {
	if n := len(stopSign); m.Kind == chats.KindPress && len(m.Text) > n && m.Text[:n] == stopSign {
		return m.Text[n:]
	}
	return ""
}

// setPreview writes the preview of an open job beside the turn, as long as the job
// is that holder's, and returns the revision that it has then. See [queue.Store.Check].
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
