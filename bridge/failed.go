package bridge

import (
	"cmp"
	"context"
	"encoding/json"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/outbox"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
)

// failedKind are the cards that tell of a failed turn.
const failedKind = "failed"

// What the buttons of such a card do.
const (
	chooseAgain   = "again"
	chooseDetails = "details"
)

// tryAgainText is what the button says in the name of who presses it: the question stands in the
// conversation.
const tryAgainText = "Please try again."

// goneText is told who asks again for what a /clear has taken out of the conversation.
const goneText = "This conversation was cleared. Please ask me again."

// failedTurn is what the card of a failed turn knows of it.
type failedTurn struct {
	// Message is the id of what was not answered.
	Message  string `json:"message"`
	Incident string `json:"incident"`
	// Log is that of the conversation.
	Log string `json:"log"`
}

var (
	againChoice   = interact.Choice{Label: "Try again", Value: chooseAgain, Style: chats.StylePrimary}
	detailsChoice = interact.Choice{Label: "Details", Value: chooseDetails}
)

// Failed implements [turn.Host]: the incident stands behind a button, and in the text where no card
// can be written.
func (r turnHost) Failed(ctx context.Context, j *queue.Run, told string, again bool) string {
	plain := turn.WithIncident(told, j.Incident)
	if _, ok := r.platforms[j.Message.Chat.Platform].(chats.Editor); !ok {
		return plain
	}
	session, err := conversation.Current(ctx, r.store, j.Message.Chat)
	if err != nil {
		return plain
	}
	data, err := json.Marshal(failedTurn{Message: cmp.Or(j.Message.On, j.Message.ID), Incident: j.Incident, Log: session.Log()})
	if err != nil {
		return plain
	}
	choices := []interact.Choice{detailsChoice}
	if again && turn.TaskOf(j) == nil {
		choices = []interact.Choice{againChoice, detailsChoice}
	}
	if _, err = r.cards.Answer(ctx, j, interact.Card{
		Kind: failedKind, Text: outbox.WithHeading(j, told), Data: data, Choices: [][]interact.Choice{choices},
	}); err != nil {
		r.log.Warn("a failed turn is told without buttons", "job", j.Key(), "err", err)
		outbox.Of(j).Card = ""
		return plain
	}
	return ""
}

// pressedFailed asks once more, or shows under which incident the log has the cause.
func (r turnHost) pressedFailed(ctx context.Context, press interact.Press) (interact.Result, error) {
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
		session, err := conversation.Current(ctx, r.store, press.Place)
		if err != nil {
			return interact.Result{}, err
		}
		if session.Log() != of.Log {
			return interact.Result{Toast: goneText, Close: true}, nil
		}
		m := press.Message(chats.KindText, press.Token, r.now())
		m.Text, m.On = tryAgainText, of.Message
		return interact.Result{Close: true}, r.inserter.insert(ctx, r.inserter.New(m))
	}
	return interact.Result{Text: press.Card.Text}, nil
}
