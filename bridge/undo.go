package bridge

import (
	"context"
	"encoding/json"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
)

// undoKind is the kind of the cards that answer a /clear and offer to undo it.
const undoKind = "undo"

const (
	undoFoot    = "_The button or /undo undoes this within ten minutes, unless a new question comes first._"
	undoneText  = "The conversation from before the /clear is back, with its tools."
	nothingText = "There is nothing to undo: no conversation was cleared here in the last ten minutes."
	askedText   = "I can no longer undo the /clear: something was asked after it, and that would be lost. " +
		"I can still find the earlier conversation when I search."
	mayNotText = "Sorry, only an administrator or the person who began this thread can do that."
)

// clearCard is the data of the card that answers a /clear.
type clearCard struct {
	// Message is the id of the /clear message, Opener the user who began the thread.
	Message string `json:"message"`
	Opener  string `json:"opener,omitempty"`
}

// offerUndo answers a /clear, with an undo button if the /clear can be undone.
func (s *interrupter) offerUndo(ctx context.Context, j *queue.Run, session conversation.Session, text string) (string, error) {
	until := session.UndoUntil()
	if !s.now().Before(until) {
		return text, nil
	}
	data, err := json.Marshal(clearCard{Message: j.Message.ID, Opener: j.Message.Opener})
	if err != nil {
		return "", err
	}
	card := interact.Card{
		Kind: undoKind, Text: text, Data: data, Expires: until,
		Choices: [][]interact.Choice{{{Label: "↩ Undo", Value: undoKind}}},
	}
	if _, ok := s.platforms[j.Message.Chat.Platform].(chats.Editor); ok {
		card.Footer = undoFoot
	}
	return s.cards.Answer(ctx, j, card)
}

// handleUndoPress enqueues an /undo, which is run in order with the messages of the chat.
func (s *interrupter) handleUndoPress(ctx context.Context, press interact.Press) (interact.Result, error) {
	var of clearCard
	if err := json.Unmarshal(press.Card.Data, &of); err != nil {
		return interact.Result{}, err
	}
	if press.Expired {
		return interact.Result{Text: press.Card.Text}, nil
	}
	m := press.Message(kindUndo, press.Token, s.now())
	m.Opener, m.Text = of.Opener, "/"+undoKind
	if !press.Direct {
		m.TargetID = of.Message // the answer replies to the /clear
	}
	if !s.adminChecker.canClear(ctx, m) {
		return interact.Result{Toast: mayNotText}, nil
	}
	return interact.Result{Close: true}, s.inserter.insert(ctx, s.inserter.New(m))
}

// undo runs an /undo, which restores the conversation from before a /clear.
func (s *interrupter) undo(ctx context.Context, j *queue.Run, _ string) (string, error) {
	m := j.Message
	if !s.adminChecker.canClear(ctx, m) {
		outbox.MakeEphemeral(j)
		return mayNotText, nil
	}
	session, err := conversation.Current(ctx, s.store, m.Chat)
	if err != nil {
		return "", err
	}
	switch {
	case session.UndoneAt == j.Seq: // by an earlier attempt
	case !j.Accepted.Before(session.UndoUntil()):
		return nothingText, nil
	case s.queue.HasPending(m.Chat, session.ClearedAt, j.Seq):
		return askedText, nil
	default:
		if begun, err := conversation.HasBegun(ctx, s.store, session.Log()); begun || err != nil {
			return askedText, err
		}
		if session, err = session.Undo(ctx, s.store, &j.Job); err != nil {
			return "", err
		}
	}
	return undoneText, j.Author(s.store).Record(ctx, "undo", session.Log())
}
