package telegram_test

import (
	"bytes"
	"errors"
	"image"
	"image/png"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"

	tg "github.com/go-telegram-bot-api/telegram-bot-api/v5"
	"github.com/google/go-cmp/cmp"

	"oneclaw/internal/emulator/telegram"
)

func id(n int64) string { return strconv.FormatInt(n, 10) }

func TestHTML(t *testing.T) {
	f := start(t, telegram.Config{})
	tests := []struct {
		name, html, text string
		entities         []telegram.Entity
	}{
		{"plain", "a &lt;b&gt; &amp; &quot;c&quot; &#33; &#x1F600; &nbsp;", `a <b> & "c" ! 😀 &nbsp;`, nil},
		{"utf16", "😀 <b>b</b>", "😀 b", []telegram.Entity{{Type: "bold", Offset: 3, Length: 1}}},
		{"nested", "<b>a<i>b</i></b>", "ab", []telegram.Entity{{Type: "bold", Length: 2}, {Type: "italic", Offset: 1, Length: 1}}},
		{"language", `<pre><code class="language-go">x</code></pre>`, "x", []telegram.Entity{{Type: "pre", Length: 1, Language: "go"}}},
		{"code", "<code>x</code>", "x", []telegram.Entity{{Type: "code", Length: 1}}},
		{"link", `<a href="https://e.org/?a=1&amp;b=2">x</a>`, "x", []telegram.Entity{{Type: "text_link", Length: 1, URL: "https://e.org/?a=1&b=2"}}},
		{"bad link", `<a href="javascript:alert(1)">x</a>`, "x", nil},
		{"host without a dot", `<a href="http://localhost:3000/">x</a> <a href="http://[::1]/">y</a>`, "x y", []telegram.Entity{{Type: "text_link", Offset: 2, Length: 1, URL: "http://[::1]/"}}},
		{"bad port", `<a href="http://a.b:0/">x</a> <a href="http://a.b:65536">y</a>`, "x y", nil},
		{"bad host", `<a href="http://a^b.c">x</a> <a href="tg://a.b">y</a> <a href="http://.">z</a>`, "x y z", nil},
		{"text as link", `<a>e.org</a>`, "e.org", []telegram.Entity{{Type: "text_link", Length: 5, URL: "http://e.org/"}}},
		{"deleted", "@\u202aanna <b>\u030ab\r\u2029</b>\u0333\u033f \x01&#13;x<i>\r</i>", "@anna b  x", []telegram.Entity{{Type: "mention", Length: 5}, {Type: "bold", Offset: 6, Length: 1}}},
		{"quote", "<blockquote expandable>q</blockquote>", "q", []telegram.Entity{{Type: "expandable_blockquote", Length: 1}}},
		{"spoiler", `<span class="tg-spoiler">x</span>`, "x", []telegram.Entity{{Type: "spoiler", Length: 1}}},
		{"trimmed", "\n <b> x </b> \n", "x", []telegram.Entity{{Type: "bold", Length: 1}}},
		{"empty tag", "a<b></b>", "a", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var m sent
			f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": tt.html, "parse_mode": "HTML"}, &m)
			if m.Text != tt.text {
				t.Errorf("text = %q, want %q", m.Text, tt.text)
			}
			if diff := cmp.Diff(tt.entities, m.Entities); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestHTMLRefused(t *testing.T) {
	f := start(t, telegram.Config{})
	for html, want := range map[string]string{
		"a < b":                   `Unsupported start tag "" at byte offset 2`,
		"<p>x</p>":                `Unsupported start tag "p" at byte offset 0`,
		"<b>x":                    `Can't find end tag corresponding to start tag "b"`,
		"x</b>":                   `Unexpected end tag at byte offset 1`,
		"<b><i>x</b></i>":         `Unmatched end tag at byte offset 7, expected "</i>", found "</b>"`,
		"<b":                      `Unclosed start tag at byte offset 0`,
		"<b>x</b":                 `Unclosed end tag at byte offset 4`,
		"<span>x</span>":          `Tag "span" must have class "tg-spoiler" at byte offset 0`,
		`<a href=a/b>x</a>`:       `Unexpected end of name token at byte offset 8`,
		`<tg-emoji>x</tg-emoji>`:  `Invalid custom emoji identifier specified`,
		`<a ="x">y</a>`:           `Empty attribute name in the tag "a" at byte offset 0`,
		"&#xD800;":                `Text contains invalid Unicode characters after decoding HTML entities, check for unmatched surrogate code units`,
		"😀<b><s>x</s></b></code>": `Unexpected end tag at byte offset 19`,
	} {
		e := f.refusal("sendMessage", tg.Params{"chat_id": id(f.user), "text": html, "parse_mode": "html"})
		if want := "Bad Request: can't parse entities: " + want; e.Code != 400 || e.Message != want {
			t.Errorf("%q: got %d %q, want %q", html, e.Code, e.Message, want)
		}
	}
}

func TestRefusals(t *testing.T) {
	f := start(t, telegram.Config{})
	forum := f.chat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Forum", User: f.user, Forum: true})
	his := f.say(f.user, "mine", nil).Message
	var own sent
	f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": "hi"}, &own)
	chat, to := id(f.user), id(forum)
	button := func(b string) string { return `{"inline_keyboard":[[` + b + `]]}` }
	longLinks := strings.Repeat(`<a href="https://example.org/`+strings.Repeat("x", 170)+`">x</a> `, 60)
	tests := []struct {
		method string
		params tg.Params
		code   int
		want   string
	}{
		{"sendMessage", tg.Params{"chat_id": chat}, 400, "Bad Request: message text is empty"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": " \n"}, 400, "Bad Request: text must be non-empty"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": strings.Repeat("x", 4097)}, 400, "Bad Request: message is too long"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": strings.Repeat("😀", 2049)}, 400, "Bad Request: message is too long"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": longLinks, "parse_mode": "HTML"}, 400, "Bad Request: ENTITIES_TOO_LONG"},
		{"editMessageText", tg.Params{"chat_id": chat, "message_id": id(own.ID), "text": longLinks, "parse_mode": "HTML"}, 400, "Bad Request: ENTITIES_TOO_LONG"},
		{"sendMessage", tg.Params{"text": "x"}, 400, "Bad Request: chat_id is empty"},
		{"sendMessage", tg.Params{"chat_id": "77", "text": "x"}, 400, "Bad Request: chat not found"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "parse_mode": "bb"}, 400, "Bad Request: unsupported parse_mode"},
		{"sendMessage", tg.Params{"chat_id": to, "text": "x", "message_thread_id": "999"}, 400, "Bad Request: message thread not found"},
		{"sendMessage", tg.Params{"chat_id": to, "text": "x", "message_thread_id": "1"}, 400, "Bad Request: message thread not found"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_parameters": `{"message_id":999}`}, 400, "Bad Request: message to be replied not found"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": "{"}, 400, "Bad Request: can't parse reply keyboard markup JSON object"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(`{"text":"a"}`)}, 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(`{"text":"a","callback_data":"` + strings.Repeat("x", 65) + `"}`)}, 400, "Bad Request: BUTTON_DATA_INVALID"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(`{"text":"a","callback_data":""}`)}, 400, "Bad Request: can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(`{"text":"","callback_data":"a"}`)}, 400, "Bad Request: inline keyboard button text must be non-empty"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(`{"text":"a","callback_data":"a","style":"pink"}`)}, 400, "Bad Request: can't parse inline keyboard button: invalid button style specified"},
		{"sendMessage", tg.Params{"chat_id": chat, "text": "x", "reply_markup": button(strings.Repeat(`{"text":"a","callback_data":"a"},`, 8) + `{"text":"a","callback_data":"a"}`)}, 400, "Bad Request: BUTTON_ROW_TOO_LONG"},
		{"editMessageText", tg.Params{"chat_id": chat, "message_id": id(own.ID), "text": "<b></b>hi", "parse_mode": "HTML"}, 400, "Bad Request: message is not modified: specified new message content and reply markup are exactly the same as a current content and reply markup of the message"},
		{"editMessageText", tg.Params{"chat_id": chat, "message_id": "999", "text": "x"}, 400, "Bad Request: message to edit not found"},
		{"editMessageText", tg.Params{"chat_id": chat, "message_id": id(his), "text": "x"}, 400, "Bad Request: message can't be edited"},
		{"editMessageReplyMarkup", tg.Params{"chat_id": chat, "message_id": "999"}, 400, "Bad Request: message to edit not found"},
		{"deleteMessage", tg.Params{"chat_id": chat, "message_id": "999"}, 400, "Bad Request: message to delete not found"},
		{"sendChatAction", tg.Params{"chat_id": chat, "action": "dancing"}, 400, "Bad Request: wrong parameter action in request"},
		{"sendMessageDraft", tg.Params{"chat_id": to, "draft_id": "1", "text": "x"}, 400, "Bad Request: TEXTDRAFT_PEER_INVALID"},
		{"sendDocument", tg.Params{"chat_id": chat}, 400, "Bad Request: there is no document in the request"},
		{"setMessageReaction", tg.Params{"chat_id": chat, "message_id": id(his), "reaction": `[{"type":"emoji","emoji":"x"}]`}, 400, "Bad Request: REACTION_INVALID"},
		{"answerCallbackQuery", tg.Params{"callback_query_id": "5"}, 400, "Bad Request: query is too old and response timeout expired or query ID is invalid"},
		{"getFile", tg.Params{"file_id": "x"}, 400, "Bad Request: invalid file_id"},
		{"getChatMember", tg.Params{"chat_id": to, "user_id": "0"}, 400, "Bad Request: invalid user_id specified"},
		{"getChatAdministrators", tg.Params{"chat_id": chat}, 400, "Bad Request: there are no administrators in the private chat"},
		{"setMyCommands", tg.Params{"commands": `[{"command":"Clear","description":"x"}]`}, 400, "Bad Request: BOT_COMMAND_INVALID"},
		{"flyToTheMoon", nil, 404, "Not Found: method not found"},
	}
	for _, tt := range tests {
		if e := f.refusal(tt.method, tt.params); e.Code != tt.code || e.Message != tt.want {
			t.Errorf("%s %v:\n got %d %q\nwant %d %q", tt.method, tt.params, e.Code, e.Message, tt.code, tt.want)
		}
	}
}

func TestAcceptedAtTheEdge(t *testing.T) {
	f := start(t, telegram.Config{})
	forum := f.chat(telegram.ChatSpec{Kind: telegram.Supergroup, Title: "Forum", User: f.user, Forum: true})
	topic, err := f.AddTopic(forum, "News")
	if err != nil {
		t.Fatal(err)
	}
	var m sent
	f.call("sendMessage", tg.Params{"chat_id": id(forum), "text": "x", "message_thread_id": id(topic)}, &m)
	if m.Thread != topic || !m.IsTopic {
		t.Errorf("message in topic: %+v", m)
	}
	f.call("sendChatAction", tg.Params{"chat_id": id(forum), "message_thread_id": "1", "action": "typing"}, nil)
	f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": strings.Repeat("x", 4096)}, nil)
	f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": "<b>" + strings.Repeat("&amp;", 4096) + "</b>", "parse_mode": "HTML"}, nil)
	f.call("sendMessage", tg.Params{"chat_id": id(f.user), "text": "x", "reply_parameters": `{"message_id":999,"allow_sending_without_reply":true}`}, nil)
	f.call("sendMessageDraft", tg.Params{"chat_id": id(f.user), "draft_id": "7", "text": "typing"}, nil)
	f.View(func(s telegram.State) {
		if s.Drafts(f.user)[7].Text != "typing" {
			t.Errorf("drafts: %+v", s.Drafts(f.user))
		}
	})
}

func TestToken(t *testing.T) {
	f := start(t, telegram.Config{})
	f.bot.Token = "123456:wrong"
	if e := f.refusal("getMe", nil); e.Code != 401 || e.Message != "Unauthorized" {
		t.Errorf("got %d %q", e.Code, e.Message)
	}
	f.bot.Token = "nonsense"
	if e := f.refusal("getMe", nil); e.Code != 401 {
		t.Errorf("got %d %q", e.Code, e.Message)
	}
}

func TestPlacesTheBotCannotWriteTo(t *testing.T) {
	f := start(t, telegram.Config{})
	group := f.chat(telegram.ChatSpec{Kind: telegram.Group, Title: "Team", User: f.user})
	f.updates(nil)
	if _, err := f.SetBlocked(f.user, true); err != nil {
		t.Fatal(err)
	}
	if e := f.refusal("sendMessage", tg.Params{"chat_id": id(f.user), "text": "x"}); e.Code != 403 || e.Message != "Forbidden: bot was blocked by the user" {
		t.Errorf("blocked: %d %q", e.Code, e.Message)
	}
	super, err := f.Migrate(group, f.user)
	if err != nil {
		t.Fatal(err)
	}
	e := f.refusal("sendMessage", tg.Params{"chat_id": id(group), "text": "x"})
	if e.Code != 400 || e.MigrateToChatID != super {
		t.Errorf("migrated: %+v", e)
	}
	f.call("sendMessage", tg.Params{"chat_id": id(super), "text": "x"}, nil)
	if _, err := f.SetBotStatus(super, f.user, telegram.Kicked); err != nil {
		t.Fatal(err)
	}
	if e := f.refusal("sendMessage", tg.Params{"chat_id": id(super), "text": "x"}); e.Code != 403 || e.Message != "Forbidden: bot was kicked from the supergroup chat" {
		t.Errorf("kicked: %d %q", e.Code, e.Message)
	}
	var kinds []string
	for _, u := range f.updates(nil) {
		switch {
		case u.MyMember != nil:
			kinds = append(kinds, u.MyMember.New.Status)
		case u.Message.MigrateTo == super, u.Message.MigrateFrom == group:
			kinds = append(kinds, "migrate "+id(u.Message.Chat.ID))
		}
	}
	want := []string{"kicked", "migrate " + id(group), "migrate " + id(super), "kicked"}
	if diff := cmp.Diff(want, kinds); diff != "" {
		t.Error(diff)
	}
}

// fetch downloads a file and returns the status too.
func (f *fixture) fetch(path string) (int, string) {
	f.t.Helper()
	req, err := http.NewRequestWithContext(f.t.Context(), http.MethodGet, f.url+path, nil)
	if err != nil {
		f.t.Fatal(err)
	}
	resp, err := f.http.Do(req)
	if err != nil {
		f.t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err := errors.Join(err, resp.Body.Close()); err != nil {
		f.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func TestDownload(t *testing.T) {
	f := start(t, telegram.Config{})
	s := f.say(f.user, "a file", &telegram.SayOptions{Attachment: &telegram.Attachment{Name: "a.pdf", MIME: "application/pdf", Data: []byte("%PDF")}})
	list := f.updates(nil)
	if len(list) != 1 || list[0].ID != s.Update || list[0].Message.Caption != "a file" {
		t.Fatalf("got %+v", list)
	}
	var file struct {
		Path string `json:"file_path"`
	}
	f.call("getFile", tg.Params{"file_id": list[0].Message.Document.ID}, &file)
	if code, body := f.fetch("/file/bot" + f.Token() + "/" + file.Path); code != 200 || body != "%PDF" {
		t.Errorf("download: %d %q", code, body)
	}
	if code, _ := f.fetch("/file/bot1:x/" + file.Path); code != 401 {
		t.Errorf("wrong token: %d", code)
	}
	big := f.say(f.user, "", &telegram.SayOptions{Attachment: &telegram.Attachment{Name: "big", Data: []byte("x"), Size: 20<<20 + 1}})
	m := f.message(f.user, big.Message)
	if e := f.refusal("getFile", tg.Params{"file_id": m.File.ID}); e.Message != "Bad Request: file is too big" {
		t.Errorf("big file: %q", e.Message)
	}
}

func TestUpload(t *testing.T) {
	f := start(t, telegram.Config{})
	var picture bytes.Buffer
	if err := png.Encode(&picture, image.NewGray(image.Rect(0, 0, 4, 3))); err != nil {
		t.Fatal(err)
	}
	upload := func(method, field, caption string, data []byte) error {
		_, err := f.bot.UploadFiles(method, tg.Params{"chat_id": id(f.user), "caption": caption, "parse_mode": "HTML"},
			[]tg.RequestFile{{Name: field, Data: tg.FileBytes{Name: "x.png", Bytes: data}}})
		return err
	}
	if err := upload("sendPhoto", "photo", "", picture.Bytes()); err != nil {
		t.Error(err)
	}
	if err := upload("sendDocument", "document", "<b>c</b>", []byte("text")); err != nil {
		t.Error(err)
	}
	all := f.Messages(f.user)
	last := all[len(all)-1]
	if last.Text != "c" || last.File.Kind != telegram.KindDocument || string(last.File.Data) != "text" {
		t.Errorf("document: %+v", last)
	}
	for want, err := range map[string]error{
		"IMAGE_PROCESS_FAILED":        upload("sendPhoto", "photo", "", []byte("no picture")),
		"message caption is too long": upload("sendDocument", "document", strings.Repeat("x", 1025), []byte("x")),
		"file must be non-empty":      upload("sendDocument", "document", "", nil),
		"Request Entity Too Large":    upload("sendDocument", "document", "", make([]byte, 50<<20+1)),
	} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	if n := len(f.Messages(f.user)); n != len(all) {
		t.Errorf("a refused upload left a message: %d", n)
	}
}

func (f *fixture) message(chat, id int64) (m telegram.Message) {
	f.View(func(s telegram.State) { m, _ = s.Message(chat, id) })
	return m
}

func TestAGatewayRefusesRequestsInChunks(t *testing.T) {
	f := start(t, telegram.Config{RequireLength: true})
	body := io.MultiReader(strings.NewReader("chat_id=" + id(f.user) + "&text=x")) // of no known length
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"/bot"+f.Token()+"/sendMessage", body)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := f.http.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusLengthRequired {
		t.Errorf("status %d, %v", resp.StatusCode, err)
	}
	f.View(func(s telegram.State) {
		if n := len(s.Answers(f.user)); n != 0 {
			t.Errorf("%d messages arrived", n)
		}
	})
}
