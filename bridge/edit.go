package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// edits are what becomes of messages that were edited after they were sent.
type edits struct {
	workers  *workers
	jobs     queue.Store
	queue    *queue.Queue
	inserter *inserter
	cards    *interact.Cards
	log      *slog.Logger
}

// amend gives a message that still waits its new text; see reconsider for the others. A job
// that waits is read without a lock, so it is replaced, never changed; the chat goes on while
// the disk is written.
func (e *edits) amend(ctx context.Context, amendment *queue.Run) error {
	edit := amendment.Message
	j, edited := e.queue.Waiting(edit.Chat, func(j *queue.Run) bool {
		// What has begun and waits for its turn again (after an approval) is on record as
		// it was.
		return e.workers.Placement(j).Said && j.From == "" && j.Message.ID == edit.ID && j.Message.User == edit.User && j.Unstarted && len(turn.Of(j).Approvals) == 0
	})
	waits, began, err := false, false, error(nil)
	if j != nil {
		waits, began, err = e.replace(ctx, j, edited, edit)
	}
	if !waits && err == nil {
		err = e.reconsider(ctx, amendment, began)
	}
	if err != nil {
		return err
	}
	return e.jobs.Discard(ctx, amendment)
}

// replace puts an edited copy of a message that waits in its place. It reports whether the
// message waited still; began says that its turn has begun meanwhile, with the former text,
// although the new one is on disk.
func (e *edits) replace(ctx context.Context, j, edited *queue.Run, edit chats.Message) (waits, began bool, err error) {
	text := edit.Text
	edited.Message.Text = text
	if len(edit.Quoted) > 0 {
		edited.Message.Quoted = edit.Quoted // it links to something else now
	}
	e.workers.decide(edited)
	err = e.jobs.Put(ctx, edited)
	if errors.Is(err, storage.ErrConflict) {
		// Its turn has begun, or an earlier try to write this reported an error.
		known, err := e.jobs.Load(ctx, edited.Key())
		if queue.IsDamaged(err) {
			return true, false, nil // its own turn meets that
		}
		switch {
		case known == nil || err != nil:
			return false, false, err
		case known.LeaseToken != edited.LeaseToken:
			return false, false, queue.ErrLost // the platform gives it to who has it
		case known.Message.Text != text:
			return false, false, nil
		}
		edited.Rev = known.Rev
	} else if errors.Is(err, storage.ErrInvalid) {
		e.log.Error("edit dropped", "job", edited.Key(), "err", err)
		return true, false, nil
	} else if err != nil {
		return false, false, err
	}
	waits = e.queue.Replace(j.Message.Chat, j, edited)
	// What is put together from pieces is read again in the write that does so.
	return waits, !waits && !e.workers.Placement(edited).Partial && e.queue.IsAnswering(j.Message.Chat, edited.Key()), nil
}

// insertUnclaimed writes an edit in the place of one that no process has claimed yet.
func (e *edits) insertUnclaimed(ctx context.Context, j *queue.Run) error {
	for {
		added, err := e.jobs.Add(ctx, j)
		if errors.Is(err, storage.ErrInvalid) {
			e.log.Error("edit dropped", "job", j.Key(), "err", err)
			return nil
		}
		if added || err != nil {
			return err
		}
		known, err := e.jobs.Load(ctx, j.Key())
		if err != nil {
			return err
		}
		if j.Rev = storage.Absent; known != nil {
			j.Rev = known.Rev
		}
	}
}

// editedText is the one answer to edits of a message that was answered.
const editedText = "You changed a message that I have already answered. If you want a new answer, please send it again as a new message."

// tell says once for a message that its edit changes nothing.
func (e *edits) tell(ctx context.Context, edit chats.Message) error {
	id, _, _ := strings.Cut(edit.ID, editMark)
	_, err := e.cards.Post(ctx, "edited/"+edit.Chat.String()+"/"+id, edit.Chat, interact.Card{ReplyTo: id, Text: editedText})
	if errors.Is(err, queue.ErrInvalid) {
		return nil
	}
	return err
}

// editMark stands in the id of a job between that of the message that was edited and what
// tells its edits apart.
const editMark = "~"

// reconsider looks after the edit of a message that does not wait any more. While its turn
// runs, the edit is a job of its own that becomes part of that; when it was answered, the user who
// wrote it is told how to ask again. What never was a message to the model stays as it was.
// Unread says that the turn runs with the text from before, whatever is on disk.
func (e *edits) reconsider(ctx context.Context, amendment *queue.Run, unread bool) error {
	edit := amendment.Message
	of := edit
	of.Kind = chats.KindText
	known, err := e.jobs.Find(ctx, queue.KeyOf(of))
	if queue.IsDamaged(err) {
		return nil
	}
	if known == nil || err != nil || known.Message.User != edit.User || e.workers.ofReceipt(known) != e.workers.byKind[chats.KindText] {
		return err
	}
	if text := strings.TrimSpace(edit.Text); text == "" || strings.HasPrefix(text, "/") {
		return nil
	}
	asked := known // the job whose turn has it
	if known.JoinedTo != "" {
		if asked, err = e.jobs.Find(ctx, known.JoinedTo); asked == nil || err != nil {
			return err
		}
	}
	mark := edit.ID + editMark
	over := !asked.Closed.IsZero() && !e.queue.Has(asked.Key())
	if !unread && !unfurls(edit, known, over) && e.isSame(edit, known, asked, "/"+mark) {
		return nil // something else about it has changed
	}
	given := edit
	given.ID, given.Kind, given.On = mark+queue.Hash(edit.Text, edit.Time.String()), turn.KindEdited, known.Key()
	if closed, err := e.jobs.Closed(ctx, queue.KeyOf(given)); closed || err != nil {
		return err // the platform gives it again
	}
	if over {
		return e.tell(ctx, edit)
	}
	return e.give(ctx, given)
}

// give has the turn that runs given an edit. What is too large would be so again.
func (e *edits) give(ctx context.Context, edit chats.Message) error {
	err := e.inserter.insert(ctx, e.inserter.New(edit))
	if errors.Is(err, storage.ErrInvalid) {
		e.log.Error("edit dropped", "job", edit.On, "err", err)
		return nil
	}
	return err
}

// isSame reports whether an edit says what its message says already.
func (e *edits) isSame(edit chats.Message, known, asked *receipts.Receipt, mark string) bool {
	return known.OwnText() == edit.Text && !e.amends(edit.Chat, asked, mark)
}

// unfurls reports whether an edit shows what a message links to only now, and in time.
func unfurls(edit chats.Message, known *receipts.Receipt, over bool) bool {
	return !over && len(edit.Quoted) > len(known.Message.Quoted)
}

// amends reports whether an edit of a message is part of a turn, or waits for it.
func (e *edits) amends(chat chats.Chat, asked *receipts.Receipt, mark string) bool {
	its := func(key string) bool { return strings.Contains(key, mark) }
	waiting, _ := e.queue.Waiting(chat, func(j *queue.Run) bool { return its(j.Key()) })
	return waiting != nil || slices.ContainsFunc(asked.Joined, its)
}
