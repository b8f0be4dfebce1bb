package telegram_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"testing"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"

	"oneclaw/internal/emulator/telegram"
)

func TestOffsetConfirms(t *testing.T) {
	f := start(t, telegram.Config{})
	var sentIDs []int64
	for _, text := range []string{"a", "b", "c"} {
		sentIDs = append(sentIDs, f.say(f.user, text, nil).Update)
	}
	if list := f.updates(tg.Params{"limit": "2"}); len(list) != 2 || list[0].ID != sentIDs[0] {
		t.Fatalf("first poll: %+v", list)
	}
	if list := f.updates(nil); len(list) != 3 {
		t.Fatalf("nothing was confirmed, yet %d are left", len(list))
	}
	if list := f.updates(tg.Params{"offset": id(sentIDs[1])}); len(list) != 2 || list[0].ID != sentIDs[1] {
		t.Fatalf("after the offset: %+v", list)
	}
	if list := f.updates(tg.Params{"offset": id(sentIDs[0])}); len(list) != 2 {
		t.Fatalf("a confirmed update came back: %+v", list)
	}
	if list := f.updates(tg.Params{"offset": id(sentIDs[2] + 1000)}); len(list) != 2 {
		t.Fatalf("an offset far in the future must be ignored: %+v", list)
	}
	if list := f.updates(tg.Params{"offset": "-1"}); len(list) != 1 || list[0].ID != sentIDs[2] {
		t.Fatalf("negative offset: %+v", list)
	}
	f.View(func(s telegram.State) {
		if !s.IsConfirmed(sentIDs[1]) || s.IsConfirmed(sentIDs[2]) || s.PendingCount() != 1 {
			t.Error("confirmed state is wrong")
		}
	})
}

func TestLongPollWakes(t *testing.T) {
	f := start(t, telegram.Config{})
	result := make(chan []got, 1)
	go func() { result <- f.updates(tg.Params{"timeout": "50"}) }()
	f.wait(telegram.State.IsPolling)
	want := f.say(f.user, "wake up", nil).Update
	if list := <-result; len(list) != 1 || list[0].ID != want {
		t.Fatalf("got %+v", list)
	}
}

func TestSecondPollerTakesOver(t *testing.T) {
	f := start(t, telegram.Config{})
	first, second := make(chan error, 1), make(chan []got, 1)
	go func() {
		_, err := f.bot.MakeRequest("getUpdates", tg.Params{"timeout": "50"})
		first <- err
	}()
	f.wait(telegram.State.IsPolling)
	go func() { second <- f.updates(tg.Params{"timeout": "50"}) }()
	var refused *tg.Error
	err := <-first
	if !errors.As(err, &refused) || refused.Code != 409 ||
		refused.Message != "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running" {
		t.Fatalf("first poller got %v", err)
	}
	f.say(f.user, "x", nil)
	if list := <-second; len(list) != 1 {
		t.Fatalf("second poller got %+v", list)
	}
	f.call("setWebhook", tg.Params{"url": "https://example.org/hook"}, nil)
	if e := f.refusal("getUpdates", nil); e.Code != 409 || !strings.Contains(e.Message, "webhook is active") {
		t.Errorf("with a webhook: %d %q", e.Code, e.Message)
	}
	f.call("deleteWebhook", tg.Params{"drop_pending_updates": "true"}, nil)
	if list := f.updates(nil); len(list) != 0 {
		t.Errorf("dropped updates came: %+v", list)
	}
}

func TestGoneClientFreesItsPlace(t *testing.T) {
	f := start(t, telegram.Config{})
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() {
		req, err := http.NewRequestWithContext(ctx, http.MethodGet, f.url+"/bot"+f.Token()+"/getUpdates?timeout=50", nil)
		if err != nil {
			done <- err
			return
		}
		resp, err := f.http.Do(req)
		if err == nil {
			err = resp.Body.Close()
		}
		done <- err
	}()
	f.wait(telegram.State.IsPolling)
	cancel()
	if err := <-done; !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	f.wait(func(s telegram.State) bool { return !s.IsPolling() })
	want := f.say(f.user, "not lost", nil).Update
	if list := f.updates(nil); len(list) != 1 || list[0].ID != want {
		t.Fatalf("got %+v", list)
	}
}

func TestCloseEndsPollsAndHangs(t *testing.T) {
	f := start(t, telegram.Config{})
	if _, err := f.Inject(telegram.Fault{Method: "getMe", Effect: telegram.Hang}); err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{}, 2)
	for _, method := range []string{"getUpdates", "getMe"} {
		go func() {
			_, _ = f.bot.MakeRequest(method, tg.Params{"timeout": "50"})
			done <- struct{}{}
		}()
	}
	f.wait(func(s telegram.State) bool { return s.IsPolling() && s.CallCount("getme") == 1 })
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	<-done
	<-done
	if err := f.WaitFor(t.Context(), func(telegram.State) bool { return false }); !errors.Is(err, telegram.ErrClosed) {
		t.Errorf("got %v", err)
	}
}

func TestAllowedUpdates(t *testing.T) {
	f := start(t, telegram.Config{})
	m := f.say(f.user, "x", nil)
	if r, err := f.React(f.user, m.Message, f.user, "👍"); err != nil || r.Update != 0 {
		t.Fatalf("a reaction came unasked: %+v %v", r, err)
	}
	f.updates(tg.Params{"offset": id(m.Update + 1), "allowed_updates": `["message_reaction","callback_query"]`})
	if s := f.say(f.user, "unwanted", nil); s.Update != 0 {
		t.Fatalf("got %+v", s)
	}
	if _, err := f.React(f.user, m.Message, f.user, "👍"); err != nil {
		t.Fatal(err)
	}
	list := f.updates(nil)
	if len(list) != 1 || list[0].Reaction.New[0].Emoji != "👍" {
		t.Fatalf("got %+v", list)
	}
	// In groups only administrators are told.
	for _, admin := range []bool{true, false} {
		group := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "Team", User: f.user, BotAdmin: admin})
		said, err := f.Say(group, f.user, "x", nil)
		if err != nil {
			t.Fatal(err)
		}
		if r, err := f.React(group, said.Message, f.user, "👎"); err != nil || (r.Update != 0) != admin {
			t.Errorf("administrator %v: got %+v, %v", admin, r, err)
		}
	}
	if _, err := f.React(f.user, m.Message, f.user, "x"); err == nil {
		t.Error("somebody reacts with a letter")
	}
}

// Privacy mode is on for every new bot: in groups it is sent what is said to it alone.
//
// Privacy mode keeps plain group messages from a Telegram bot.
func TestPrivacyMode(t *testing.T) {
	for _, tt := range []struct {
		name           string
		cfg            telegram.Config
		admin          bool
		plain, private bool
	}{
		{"with privacy mode", telegram.Config{}, false, false, true},
		{"as an administrator", telegram.Config{}, true, true, true},
		{"without privacy mode", telegram.Config{NoPrivacyMode: true}, false, true, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, tt.cfg)
			group := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "Team", User: f.user, BotAdmin: tt.admin})
			var own struct {
				ID int64 `json:"message_id"`
			}
			f.call("sendMessage", tg.Params{"chat_id": id(group), "text": "hello all"}, &own)
			seen := func(text string, opts *telegram.SayOptions) bool { return f.say(group, text, opts).Update != 0 }
			for text, want := range map[string]bool{
				"hello": tt.plain, "/help@other_bot": tt.plain, "say /help": tt.plain, "a reply": true,
				"/help": true, "/help@OneClaw_bot": true, "what, @oneclaw_bot?": true,
			} {
				var opts *telegram.SayOptions
				if text == "a reply" {
					opts = &telegram.SayOptions{ReplyTo: own.ID}
				}
				if got := seen(text, opts); got != want {
					t.Errorf("%q is sent to the bot: %t, want %t", text, got, want)
				}
			}
			if f.say(f.user, "hello", nil).Update == 0 {
				t.Error("a private message is kept from the bot")
			}
		})
	}
}

// The items of an album come one by one, often in separate polls, and one has the caption.
//
// The items of a Telegram album come as updates of their own.
func TestAlbumsComeInPieces(t *testing.T) {
	f := start(t, telegram.Config{})
	photo := telegram.Attachment{Kind: telegram.KindDocument, Name: "a.txt", Data: []byte("x")}
	album, err := f.SayAlbum(f.user, f.user, "look", photo, photo, photo)
	if err != nil {
		t.Fatal(err)
	}
	after := f.say(f.user, "behind it", nil)
	var captions []string
	for i, item := range album {
		list := f.updates(tg.Params{"offset": id(item.Update)})
		if want := 1 + i/2; len(list) != want || list[0].ID != item.Update { // the last with what follows
			t.Fatalf("poll %d brought %d updates", i, len(list))
		}
		captions = append(captions, list[0].Message.Caption)
	}
	if !slices.Equal(captions, []string{"look", "", ""}) || after.Update == 0 {
		t.Errorf("captions %q", captions)
	}
}

func TestPeople(t *testing.T) {
	f := start(t, telegram.Config{NoPrivacyMode: true})
	bob := f.AddUser(telegram.User{FirstName: "Bob"}).ID
	group := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "Team", User: f.user})
	if _, err := f.Say(group, bob, "hello", nil); err == nil {
		t.Error("a stranger wrote into the group")
	}
	s := f.say(group, "😀 @oneclaw_bot /clear@oneclaw_bot see https://e.org a@b", nil)
	e, err := f.Edit(group, s.Message, "never mind")
	if err != nil {
		t.Fatal(err)
	}
	list := f.updates(nil)
	if len(list) != 2 || list[1].ID != e.Update || list[1].Edited.Text != "never mind" {
		t.Fatalf("got %+v", list)
	}
	var kinds []string
	for _, ent := range list[0].Message.Entities {
		kinds = append(kinds, ent.Type+" "+id(int64(ent.Offset)))
	}
	if got := strings.Join(kinds, ","); got != "mention 3,bot_command 16,url 39" {
		t.Errorf("entities: %s", got)
	}
	var admins []struct {
		Status string `json:"status"`
		User   struct {
			ID int64 `json:"id"`
		} `json:"user"`
	}
	f.call("getChatAdministrators", tg.Params{"chat_id": id(group)}, &admins)
	if len(admins) != 1 || admins[0].User.ID != f.user || admins[0].Status != telegram.Creator {
		t.Errorf("admins: %+v", admins)
	}
}

func TestPress(t *testing.T) {
	f := start(t, telegram.Config{})
	var m sent
	f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": "sure?", "reply_markup": `{"inline_keyboard":[[{"text":"Yes","callback_data":"y"}]]}`}, &m)
	if _, err := f.Press(f.user, m.ID, f.user, "no such"); err == nil {
		t.Error("pressed a button that is not there")
	}
	if _, err := f.Press(f.user, m.ID, f.AddUser(telegram.User{}).ID, "y", true); err == nil {
		t.Error("somebody pressed a button in a chat they are not in")
	}
	p, err := f.Press(f.user, m.ID, f.user, "y")
	if err != nil {
		t.Fatal(err)
	}
	if list := f.updates(nil); len(list) != 1 || list[0].Callback.ID != p.Callback || list[0].Callback.Data != "y" {
		t.Fatalf("got %+v", list)
	}
	answer := tg.Params{"callback_query_id": p.Callback, "text": "done"}
	f.call("answerCallbackQuery", answer, nil)
	if e := f.refusal("answerCallbackQuery", answer); e.Code != 400 {
		t.Errorf("answered twice: %+v", e)
	}
	f.View(func(s telegram.State) {
		if q, ok := s.Callback(p.Callback); !ok || !q.Answered || q.Text != "done" {
			t.Errorf("got %+v", q)
		}
	})
	f.call("editMessageReplyMarkup", tg.Params{"chat_id": id(f.user), "message_id": id(m.ID)}, nil)
	f.call("editMessageText", tg.Params{"chat_id": id(f.user), "message_id": id(m.ID), "text": "yes"}, nil)
	got := f.message(f.user, m.ID)
	if got.Text != "yes" || got.Buttons != nil || len(got.Edits) != 2 || got.Edits[0].Buttons[0][0].Text != "Yes" {
		t.Errorf("got %+v", got)
	}
	f.call("deleteMessage", tg.Params{"chat_id": id(f.user), "message_id": id(m.ID)}, nil)
	if _, err := f.Press(f.user, m.ID, f.user, "y"); err == nil {
		t.Error("pressed under a message that is gone")
	}
	late, err := f.Press(f.user, m.ID, f.user, "y", true)
	if err != nil {
		t.Fatal(err)
	}
	list := f.updates(tg.Params{"offset": id(late.Update)})
	if q := list[0].Callback; q.Message.ID != m.ID || q.Message.Date != 0 || q.Message.Text != "" {
		t.Errorf("a press under a deleted message shows %+v", q.Message)
	}
}
