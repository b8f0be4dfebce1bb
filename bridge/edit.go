package bridge

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/privacy"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
)

// editHandler handles edits of messages.
type editHandler struct {
	platforms map[string]chats.Platform
	workers   *workerRegistry
	jobs      queue.Store
	queue     *queue.Queue
	inserter  *inserter
	observer  *privacy.Observer
	cards     *interact.Cards
	log       *slog.Logger
}

// handleEdit gives a waiting message its new text; handleLateEdit handles the other edits. A waiting job
// is read without a lock, so it is replaced, never changed. The chat continues during the write.
func (e *editHandler) handleEdit(ctx context.Context, amendment *queue.Run) error {
	edit := amendment.Message
	j, edited := e.queue.FindWaiting(edit.Chat, func(j *queue.Run) bool {
		// A turn that has begun and waits to continue (after an approval) keeps its recorded text.
		return e.workers.Placement(j).FromUser && j.From == "" && j.Message.ID == edit.ID && j.Message.User == edit.User && j.Unstarted && len(turn.WorkOf(j).Approvals) == 0
	})
	waits, began, err := false, false, error(nil)
	if j != nil {
		waits, began, err = e.replaceWaiting(ctx, j, edited, edit)
	}
	if !waits && err == nil {
		err = e.handleLateEdit(ctx, amendment, began)
	}
	if err != nil {
		return err
	}
	return e.jobs.Discard(ctx, amendment)
}

// handleDelete ends the turn of a message that its sender has deleted, whether it runs or waits, or drops one that was
// overheard. A message that joined another's turn stays there: the rest of that turn still needs its answer.
func (e *editHandler) handleDelete(ctx context.Context, deletion *queue.Run) error {
	gone := deletion.Message
	if err := e.observer.Remove(ctx, gone.Chat, gone.ID); err != nil {
		return err
	}
	gone.Kind = chats.KindText
	known, err := e.jobs.Find(ctx, queue.KeyOf(gone))
	if err != nil && !queue.IsDamaged(err) {
		return err
	}
	if known != nil && known.Message.User == gone.User && known.JoinedTo == "" {
		e.queue.InterruptJob(e.queue.CurrentChat(gone.Chat), queue.KeyOf(gone), conversation.ErrStopped)
	}
	return e.jobs.Discard(ctx, deletion)
}

// replaceWaiting replaces a waiting message by an edited copy. waits reports whether the message still
// waited, began whether its turn has begun with the old text although the new text is stored.
func (e *editHandler) replaceWaiting(ctx context.Context, j, edited *queue.Run, edit chats.Message) (waits, began bool, err error) {
	text := edit.Text
	edited.Message.Text, edited.Message.Foreign = text, edit.Foreign
	if len(edit.Quoted) > 0 {
		edited.Message.Quoted = edit.Quoted // the link in the new text is another
	}
	if e.editsFiles(edit) {
		edited.Message.Files, edited.Message.Skipped = edit.Files, edit.Skipped
	}
	e.workers.setKind(edited)
	err = e.jobs.Put(ctx, edited)
	if errors.Is(err, storage.ErrConflict) {
		// Its turn has begun, or an earlier attempt at this write returned an error.
		known, err := e.jobs.Load(ctx, edited.Key())
		if queue.IsDamaged(err) {
			return true, false, nil // the turn of the message handles the damage
		}
		switch {
		case known == nil || err != nil:
			return false, false, err
		case known.LeaseToken != edited.LeaseToken:
			return false, false, queue.ErrLost // the platform's redelivery reaches its owner
		case known.Message.Text != text || e.changesFiles(edit, known.Receipt()):
			return false, false, nil
		}
		edited.Rev = known.Rev
	} else if errors.Is(err, storage.ErrInvalid) {
		e.log.Error("edit dropped", "job", edited.Key(), "err", err)
		return true, false, nil
	} else if err != nil {
		return false, false, err
	}
	waits = e.queue.ReplaceWaiting(j.Message.Chat, j, edited)
	// The pieces of a message are read again before the write that joins them.
	return waits, !waits && !e.workers.Placement(edited).Partial && e.queue.IsAnswering(j.Message.Chat, edited.Key()), nil
}

// insertUnclaimed replaces a message that no process has claimed yet by its edited version.
func (e *editHandler) insertUnclaimed(ctx context.Context, j *queue.Run) error {
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

// editedText is the answer to the first edit of an answered message, unansweredText to that of one without
// an answer.
const (
	editedText     = "You changed a message that I have already answered. If you want a new answer, please send it again as a new message."
	unansweredText = "You changed a message that I did not answer. If you want an answer, please send it again as a new message."
)

// isAnswered reports whether a turn that is over has an answer of which at least a part arrived. A turn that
// ended with an incident has none, even if the incident came after a part was sent. Nor is the line about a
// part that was refused an answer, nor the notice about a dead letter; that is the last part. The receipt of an
// answer is written later, that of a turn without one before the next job runs.
func isAnswered(r *receipts.Receipt) bool {
	parts := r.Answer.Parts
	switch {
	case r.Incident != "" || r.Turn.Refused:
		return false
	case r.Answer.DeadLetter != "":
		parts = parts[:max(len(parts)-1, 0)]
	case r.Closed.IsZero() || r.State == receipts.Done:
		return true
	case r.State != receipts.Failed:
		return false
	}
	return slices.ContainsFunc(parts, func(p receipts.Part) bool { return p.State == receipts.PartSent && !p.IsUndelivered() })
}

// notifyTooLate tells the sender, once for each message, that an edit came too late.
func (e *editHandler) notifyTooLate(ctx context.Context, edit chats.Message, text string) error {
	id, _, _ := strings.Cut(edit.ID, editMark)
	_, err := e.cards.Post(ctx, "edited/"+edit.Chat.String()+"/"+id, edit.Chat, interact.Card{ReplyTo: id, Text: text})
	if errors.Is(err, queue.ErrInvalid) {
		return nil
	}
	return err
}

// editMark separates the id of the edited message from the hash of the edit in the id of an edit's job.
const editMark = "~"

// handleLateEdit handles the edit of a message that no longer waits. While the turn of the message runs,
// the edit becomes a job that joins the turn. Once the message is answered, the sender is told how to
// ask again. A message that was never sent to a model stays unchanged. unread says that the turn runs
// with the old text, whatever is stored.
func (e *editHandler) handleLateEdit(ctx context.Context, amendment *queue.Run, unread bool) error { //nolint:cyclop // One case after another of what the message is now.
	edit := amendment.Message
	of := edit
	of.Kind = chats.KindText
	known, err := e.jobs.Find(ctx, queue.KeyOf(of))
	if queue.IsDamaged(err) {
		return nil
	}
	if known == nil || err != nil || known.Message.User != edit.User || e.workers.forReceipt(known) != e.workers.byKind[chats.KindText] {
		return err
	}
	question, deep := e.workers.commands.deepQuestion(edit)
	text := strings.TrimSpace(edit.Text)
	empty := text == "" && !e.changesFiles(edit, known)
	if empty || strings.HasPrefix(text, "/") && !deep || deep && question == "" && len(edit.Files)+len(edit.Quoted) == 0 {
		return nil
	}
	asked, err := e.findTurn(ctx, known)
	if asked == nil || err != nil {
		return err
	}
	mark := edit.ID + editMark
	over := !asked.Closed.IsZero() && !e.queue.Has(asked.Key())
	if !unread && !isUnfurl(edit, known, over) && e.isSame(edit, known, asked, "/"+mark) {
		return nil // only other fields have changed
	}
	given := edit
	given.ID, given.Kind, given.TargetID = mark+queue.Hash(append(refsOf(edit.Files), edit.Text, edit.Time.String())...), turn.KindEdited, known.Key()
	if deep {
		given.Text = question
	}
	if closed, err := e.jobs.HasReceipt(ctx, queue.KeyOf(given)); closed || err != nil {
		return err // the platform has delivered the edit again
	}
	switch {
	case over && isAnswered(asked):
		return e.notifyTooLate(ctx, edit, editedText)
	case over:
		return e.notifyTooLate(ctx, edit, unansweredText)
	}
	return e.steerEdit(ctx, given)
}

// findTurn returns the job whose turn includes a message.
func (e *editHandler) findTurn(ctx context.Context, known *receipts.Receipt) (*receipts.Receipt, error) {
	if known.JoinedTo == "" {
		return known, nil
	}
	return e.jobs.Find(ctx, known.JoinedTo)
}

// handleMissed tells the sender that an edit came too late for the turn that it was to join.
func (e *editHandler) handleMissed(ctx context.Context, edit chats.Message) error {
	text := editedText
	asked, err := e.jobs.Find(ctx, edit.TargetID)
	if asked != nil && err == nil {
		asked, err = e.findTurn(ctx, asked)
	}
	if err != nil && !queue.IsDamaged(err) {
		return err
	}
	if err == nil && asked != nil && !isAnswered(asked) {
		text = unansweredText
	}
	return e.notifyTooLate(ctx, edit, text)
}

// steerEdit adds an edit to the running turn. An edit that is too large is dropped.
func (e *editHandler) steerEdit(ctx context.Context, edit chats.Message) error {
	err := e.inserter.insert(ctx, e.inserter.New(edit))
	if errors.Is(err, storage.ErrInvalid) {
		e.log.Error("edit dropped", "job", edit.TargetID, "err", err)
		return nil
	}
	return err
}

// isSame reports whether an edit has the same content as its message.
func (e *editHandler) isSame(edit chats.Message, known, asked *receipts.Receipt, mark string) bool {
	return known.OwnText() == edit.Text && !e.changesFiles(edit, known) && !e.hasEdit(edit.Chat, asked, mark)
}

// editsFiles reports whether an edit carries the files of its message.
func (e *editHandler) editsFiles(edit chats.Message) bool {
	_, is := e.platforms[edit.Chat.Platform].(chats.FileEditor)
	return is
}

// changesFiles reports whether an edit replaces files of its message. The record of a message that was joined with
// others has the files of all.
func (e *editHandler) changesFiles(edit chats.Message, known *receipts.Receipt) bool {
	if !e.editsFiles(edit) {
		return false
	}
	before := refsOf(known.Message.Files)
	added := func(ref string) bool { return !slices.Contains(before, ref) }
	return slices.ContainsFunc(refsOf(edit.Files), added) || known.PieceCount == 0 && len(edit.Files) != len(before)
}

func refsOf(files []chats.Attachment) []string {
	refs := make([]string, len(files))
	for i, f := range files {
		refs[i] = f.Ref
	}
	return refs
}

// isUnfurl reports whether an edit adds the preview of a link before the message is answered.
func isUnfurl(edit chats.Message, known *receipts.Receipt, over bool) bool {
	return !over && len(edit.Quoted) > len(known.Message.Quoted)
}

// hasEdit reports whether a turn contains an edit with this mark, or such an edit waits to join it.
func (e *editHandler) hasEdit(chat chats.Chat, asked *receipts.Receipt, mark string) bool {
	its := func(key string) bool { return strings.Contains(key, mark) }
	waiting, _ := e.queue.FindWaiting(chat, func(j *queue.Run) bool { return its(j.Key()) })
	return waiting != nil || slices.ContainsFunc(asked.Joined, its)
}
