package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/internal/retry"
	"oneclaw/storage"
)

// gather makes one message of a job and its pieces, before its turn begins. From then on no
// more of them become part of it: what comes later is written while its turn runs. It goes on
// after a /stop, which then ends all of them, and tries again after an error. It reports false
// where the job is not this process's any more or is given up, or the bridge shuts down.
func (e *executor) gather(ctx context.Context, j *queue.Run, t *attempts) bool {
	for pauses := retry.New(minRetry, e.completer.maxRetry); ; {
		err := e.gatherOnce(j)
		if err == nil {
			return true
		}
		if e.completer.lost(j, err) || e.attemptFailed(ctx, j, t, receipts.Failed, err) {
			return false
		}
		if t.told {
			return true
		}
		wait := pauses.Next(0)
		e.log.Error("the pieces of a message cannot be put together, trying again", "job", j.Key(), "wait", wait, "err", err)
		if retry.Wait(e.queue.Context(), wait) != nil {
			return false
		}
	}
}

func (e *executor) gatherOnce(j *queue.Run) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(e.queue.Context()), queue.WriteTimeout)
	defer cancel()
	if err := e.jobs.Resolve(ctx, j); err != nil {
		return err
	}
	pieces, _, err := e.jobs.Reload(ctx, j.Pieces)
	if err != nil {
		return err
	}
	if e.workers.Place(j).Partial || len(pieces) > 0 {
		one := *j
		one.Message, one.PieceCount, one.OwnLength = turn.MergePieces(j.Message, pieces), 1+len(pieces), len(j.Message.Text)
		ops, err := e.jobs.Joining(&one, pieces, e.now())
		if err == nil {
			one.Rev, err = e.store.Write(ctx, ops...)
		}
		if err != nil {
			for _, some := range append(pieces, j) {
				some.PossiblyJoined = true
			}
			return err
		}
		j.Message, j.PieceCount, j.OwnLength, j.Rev = one.Message, one.PieceCount, one.OwnLength, one.Rev
		for _, piece := range pieces {
			j.Joined = append(j.Joined, piece.Key())
		}
	}
	for _, piece := range j.Pieces {
		e.queue.Remove(piece.Key())
	}
	j.Pieces = nil
	return nil
}

// editedText is the one answer to edits of a message that was answered.
const editedText = "You changed a message that I have answered already. To have me answer it as it is now, send it again as a new message."

// tellEdited says once for a message that its edit changes nothing.
func (in *intake) tellEdited(ctx context.Context, edit chats.Message) error {
	id, _, _ := strings.Cut(edit.ID, editMark)
	_, err := in.cards.Post(ctx, "edited/"+edit.Chat.String()+"/"+id, edit.Chat, interact.Card{ReplyTo: id, Text: editedText})
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
func (in *intake) reconsider(ctx context.Context, amendment *queue.Run, unread bool) error {
	edit := amendment.Message
	of := edit
	of.Kind = chats.KindText
	known, err := in.jobs.Find(ctx, queue.KeyOf(of))
	if queue.IsDamaged(err) {
		return nil
	}
	if known == nil || err != nil || known.Message.User != edit.User || in.workers.ofReceipt(known) != in.workers.byKind[chats.KindText] {
		return err
	}
	if text := strings.TrimSpace(edit.Text); text == "" || strings.HasPrefix(text, "/") {
		return nil
	}
	asked := known // the job whose turn has it
	if known.JoinedTo != "" {
		if asked, err = in.jobs.Find(ctx, known.JoinedTo); asked == nil || err != nil {
			return err
		}
	}
	mark := edit.ID + editMark
	over := !asked.Closed.IsZero() && !in.lanes.Has(asked.Key())
	if !unread && !unfurls(edit, known, over) && in.isSame(edit, known, asked, "/"+mark) {
		return nil // something else about it has changed
	}
	given := edit
	given.ID, given.Kind, given.On = mark+queue.Hash(edit.Text, edit.Time.String()), turn.KindEdited, known.Key()
	if closed, err := in.jobs.Closed(ctx, queue.KeyOf(given)); closed || err != nil {
		return err // the platform gives it again
	}
	if over {
		return in.tellEdited(ctx, edit)
	}
	return in.give(ctx, given)
}

// give has the turn that runs given an edit. What is too large would be so again.
func (in *intake) give(ctx context.Context, edit chats.Message) error {
	err := in.inserter.insert(ctx, in.inserter.New(edit))
	if errors.Is(err, storage.ErrInvalid) {
		in.log.Error("edit dropped", "job", edit.On, "err", err)
		return nil
	}
	return err
}

// isSame reports whether an edit says what its message says already.
func (in *intake) isSame(edit chats.Message, known, asked *receipts.Receipt, mark string) bool {
	return known.OwnText() == edit.Text && !in.amends(edit.Chat, asked, mark)
}

// unfurls reports whether an edit shows what a message links to only now, and in time.
func unfurls(edit chats.Message, known *receipts.Receipt, over bool) bool {
	return !over && len(edit.Quoted) > len(known.Message.Quoted)
}

// amends reports whether an edit of a message is part of a turn, or waits for it.
func (in *intake) amends(chat chats.Chat, asked *receipts.Receipt, mark string) bool {
	its := func(key string) bool { return strings.Contains(key, mark) }
	waiting, _ := in.lanes.Waiting(chat, func(j *queue.Run) bool { return its(j.Key()) })
	return waiting != nil || slices.ContainsFunc(asked.Joined, its)
}
