package telegram_test

import (
	"testing"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/internal/emulator/telegram"
)

// TestAPastIsRestored takes a message with a button from one server to the next, where it
// is pressed and edited, and what follows gets new ids.
func TestAPastIsRestored(t *testing.T) {
	f := start(t, telegram.Config{})
	f.say(f.user, "shall we?", nil)
	f.call("sendMessage", tg.Params{
		"chat_id": id(f.user), "text": "<b>sure</b>?", "parse_mode": "HTML",
		"reply_markup": `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`,
	}, nil)
	past := telegram.Past{Messages: f.Messages(f.user), LastMessage: 40, LastUpdate: 500_000_100}

	next := start(t, telegram.Config{})
	if err := next.Restore(past); err != nil {
		t.Fatal(err)
	}
	if list := next.updates(nil); len(list) != 0 {
		t.Errorf("the bot hears %+v", list)
	}
	card := past.Messages[1]
	p, err := next.Press(next.user, card.ID, next.user, "y")
	if err != nil || p.Update != 500_000_101 {
		t.Fatalf("%+v, %v", p, err)
	}
	next.call("editMessageText", tg.Params{"chat_id": id(next.user), "message_id": id(card.ID), "text": "yes"}, nil)
	if got := next.message(next.user, card.ID); got.Text != "yes" || got.Edits[0].Text != "sure?" {
		t.Errorf("got %+v", got)
	}
	if m := next.say(next.user, "well", nil); m.Message != 41 {
		t.Errorf("the next message has the id %d", m.Message)
	}
	if err := next.Restore(past); err == nil {
		t.Error("what happened is restored over what happens")
	}
	other := start(t, telegram.Config{})
	if err := other.Restore(telegram.Past{Messages: []telegram.Message{{Chat: 5, ID: 1, FromBot: true}}}); err == nil {
		t.Error("a message is restored in a chat that does not exist")
	}
}
