package platformtest

import (
	"context"
	"slices"
	"time"

	"oneclaw/bridge/chats"
)

var _ chats.Acknowledger = (*adapter)(nil)

// React implements [Reactor].
func (m *memory) React(in Place, by, message string, good, back bool) {
	chat, err := chats.ParseChat(string(in))
	if err != nil {
		m.t.Fatal(err)
	}
	says := map[[2]bool]chats.Feedback{{true, false}: chats.FeedbackGood, {true, true}: chats.FeedbackNotGood, {false, false}: chats.FeedbackBad, {false, true}: chats.FeedbackNotBad}
	m.change(func() {
		m.updates = append(m.updates, chats.NewFeedback(chat.WithoutThread(), message, by, says[[2]bool{good, back}], time.Now()))
	})
}

// Acknowledge implements [chats.Acknowledger].
func (a *adapter) Acknowledge(_ context.Context, _ chats.Chat, id string, on bool) error {
	switch {
	case on && a.has("puts signs on nothing"), !on && a.has("leaves its signs"), !on && a.restarted && a.has("leaves the signs of others"):
		return nil
	}
	a.m.change(func() {
		a.m.view.Acknowledged = slices.DeleteFunc(slices.Clone(a.m.view.Acknowledged), func(one string) bool { return one == id })
		if on {
			a.m.view.Acknowledged = append(a.m.view.Acknowledged, id)
		}
	})
	return nil
}
