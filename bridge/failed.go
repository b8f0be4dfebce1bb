package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"strings"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
)

// failedKind is the kind of the cards about failed turns.
const failedKind = "failed"

// Values of the buttons on these cards.
const (
	chooseAgain   = "again"
	chooseDetails = "details"
)

// tryAgainText is the message that the retry button sends for the user who presses it. The question is
// in the conversation already.
const tryAgainText = "Please try again."

// goneText answers a retry after a /clear, because the new conversation lacks the question.
const goneText = "This conversation was cleared. Please ask me again."

// failedTurn is the data of the card about a failed turn, or about a call of a turn that a restart cut off.
type failedTurn struct {
	// Message is the id of the unanswered message.
	Message  string `json:"message"`
	Incident string `json:"incident"`
	// Log is the conversation's log.
	Log string `json:"log"`
	// Deep says that the message was for the strong model.
	Deep bool `json:"deep,omitempty"`
	// HeldOthers and ReadOthers are those of the turn, from which another try takes them over: what it was shown may be gone.
	HeldOthers bool `json:"held_others,omitempty"`
	ReadOthers bool `json:"read_others,omitempty"`
	// Again is the message that the retry button sends; empty means tryAgainText.
	Again string `json:"again,omitempty"`
}

func newFailedTurn(j *queue.Run, log string) failedTurn {
	w := turn.WorkOf(j)
	return failedTurn{Message: j.Message.ReplyTarget(), Incident: j.Incident, Log: log, Deep: w.Deep, HeldOthers: w.HeldOthers, ReadOthers: w.ReadOthers}
}

var (
	againChoice   = interact.Choice{Label: "Try again", Value: chooseAgain, Style: chats.StylePrimary}
	detailsChoice = interact.Choice{Label: "Details", Value: chooseDetails}
)

// FailureAnswer implements [turn.Host]. The answer is a card with a button that shows the incident, or a
// text with the incident if no card can be stored.
func (r turnHost) FailureAnswer(ctx context.Context, j *queue.Run, told string, again bool) string {
	plain := turn.WithIncident(told, j.Incident)
	if _, ok := r.platforms[j.Message.Chat.Platform].(chats.Editor); !ok {
		return plain
	}
	session, err := conversation.Current(ctx, r.store, j.Message.Chat)
	if err != nil {
		return plain
	}
	data, err := json.Marshal(newFailedTurn(j, session.Log()))
	if err != nil {
		return plain
	}
	choices := []interact.Choice{detailsChoice}
	if again && turn.TaskOf(j) == nil {
		choices = []interact.Choice{againChoice, detailsChoice}
	}
	if _, err = r.cards.Answer(ctx, j, interact.Card{
		Kind: failedKind, Text: outbox.WithHeading(j, told), QuotedUser: j.Message.SenderID(), Data: data, Choices: [][]interact.Choice{choices},
	}); err != nil {
		r.log.Warn("failure notice sent without buttons", "job", j.Key(), "err", err)
		outbox.DeliveryOf(j).CardToken = ""
		return plain
	}
	return ""
}

// handleFailurePress repeats the question, or shows the incident under which the cause is logged.
func (r turnHost) handleFailurePress(ctx context.Context, press interact.Press) (interact.Result, error) {
	var of failedTurn
	if err := json.Unmarshal(press.Card.Data, &of); err != nil {
		return interact.Result{}, err
	}
	switch press.Choice {
	case chooseDetails:
		result := interact.Result{Text: turn.WithIncident(press.Card.Text, of.Incident), Close: true}
		if press.Card.Choices[0][0] == againChoice {
			result.Choices, result.Close = [][]interact.Choice{{againChoice}}, false
		}
		return result, nil
	case chooseAgain:
		if press.User != press.Card.QuotedUser && !press.ForChat && !press.Direct {
			return interact.Result{Toast: "Only the person who asked can have this tried again."}, nil // it would run as another's
		}
		session, err := conversation.Current(ctx, r.store, press.Place)
		if err != nil {
			return interact.Result{}, err
		}
		if session.Log() != of.Log {
			return interact.Result{Toast: goneText, Close: true}, nil
		}
		m := press.Message(chats.KindText, press.Token, r.now())
		if press.ForChat { // the turn has the rights of who asked, and not those of whoever presses for them
			m.User, m.UserName = strings.TrimPrefix(press.Card.QuotedUser, m.Chat.Platform+":"), ""
		}
		m.Text, m.TargetID = cmp.Or(of.Again, tryAgainText), of.Message
		if of.Deep {
			m.Text = "/" + turn.DeepCommand + " " + m.Text
		}
		j := r.inserter.New(m)
		w := turn.WorkOf(j)
		w.HeldOthers, w.ReadOthers = of.HeldOthers, of.ReadOthers
		return interact.Result{Close: true}, r.inserter.insert(ctx, j)
	}
	return interact.Result{Text: press.Card.Text}, nil
}
