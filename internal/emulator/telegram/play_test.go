package telegram_test

import (
	"encoding/json"
	"testing"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/internal/emulator/telegram"
)

// What was recorded comes to the bot as it was, and can be answered.
func TestRecordedUpdatesArePlayed(t *testing.T) {
	f := start(t, telegram.Config{})
	for _, update := range []string{
		`{"update_id":1,"message":{"message_id":20,"date":5,"from":{"id":7,"first_name":"Bo"},"chat":{"id":7,"type":"private"},"text":"hi","odd":{"x":1}}}`,
		`{"update_id":2,"message":{"message_id":4,"message_thread_id":3,"date":5,"from":{"id":7},"chat":{"id":-1009,"type":"supergroup","is_forum":true},"text":"in a topic"}}`,
		`{"update_id":3,"edited_message":{"message_id":20,"date":5,"from":{"id":7},"chat":{"id":7,"type":"private"},"text":"hello"}}`,
		`{"update_id":4,"callback_query":{"id":"q1","from":{"id":7},"data":"d","message":{"message_id":20,"chat":{"id":7,"type":"private"}}}}`,
	} {
		if err := f.Play(json.RawMessage(update)); err != nil {
			t.Fatalf("%s: %v", update, err)
		}
	}
	list := f.updates(nil)
	if len(list) != 4 || list[0].Message.ID != 20 || list[3].Callback.ID != "q1" {
		t.Errorf("the bot hears %+v", list)
	}
	f.call("sendMessage", tg.Params{"chat_id": "7", "text": "yes", "reply_parameters": `{"message_id":20}`}, nil)
	f.call("sendMessage", tg.Params{"chat_id": "-1009", "message_thread_id": "3", "text": "yes"}, nil)
	f.call("answerCallbackQuery", tg.Params{"callback_query_id": "q1"}, nil)
	if all := f.Messages(7); len(all) != 2 || all[0].Text != "hello" || all[1].ID != 21 {
		t.Errorf("the chat holds %+v", all)
	}
	for _, update := range []string{`{`, `{"message":3}`, `{"message":{"message_id":1,"from":{"id":8},"chat":{"id":-5,"type":"odd"}}}`} {
		if err := f.Play(json.RawMessage(update)); err == nil {
			t.Errorf("%s is played", update)
		}
	}
}
