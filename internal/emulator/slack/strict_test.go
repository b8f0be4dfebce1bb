package slack_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"testing"
	"time"

	api "github.com/slack-go/slack"

	"oneclaw/internal/emulator/slack"
)

func TestRefusals(t *testing.T) {
	f := start(t, slack.Config{})
	f.make(slack.ChannelSpec{ID: "C2", WithoutBot: true, Members: []string{f.user}})
	f.make(slack.ChannelSpec{ID: "C3", Kind: slack.Private, WithoutBot: true, Members: []string{f.user}})
	f.make(slack.ChannelSpec{ID: "C4", Members: []string{f.user}})
	if err := f.Archive("C4"); err != nil {
		t.Fatal(err)
	}
	theirs := f.say(f.channel, "x", nil).TS
	section := func(n int) string {
		return `{"type":"section","text":{"type":"mrkdwn","text":"` + strings.Repeat("a", n) + `"}}`
	}
	button := func(label, action, value, style string) string {
		return `{"type":"button","text":{"type":"plain_text","text":"` + label + `"},"action_id":"` + action + `","value":"` + value + `","style":"` + style + `"}`
	}
	row := func(elements ...string) string {
		return `[{"type":"actions","elements":[` + strings.Join(elements, ",") + `]}]`
	}
	row26 := make([]string, 26)
	for i := range row26 {
		row26[i] = button("x", "a"+strconv.Itoa(i), "v", "primary")
	}
	type p = map[string]string
	tests := []struct {
		name, method string
		params       p
		want         string
	}{
		{"unknown method", "chat.shout", nil, "unknown_method"},
		{"bot token for sockets", "apps.connections.open", nil, "not_allowed_token_type"},
		{"app token for chat", "chat.postMessage", p{"token": slack.DefaultAppToken, "channel": "C1", "text": "x"}, "not_allowed_token_type"},
		{"wrong token", "auth.test", p{"token": "xoxb-nope"}, "invalid_auth"},
		{"no token", "auth.test", p{"token": ""}, "not_authed"},
		{"no channel", "chat.postMessage", p{"text": "x"}, "channel_not_found"},
		{"unknown channel", "chat.postMessage", p{"channel": "C9", "text": "x"}, "channel_not_found"},
		{"public channel without the bot", "chat.postMessage", p{"channel": "C2", "text": "x"}, "not_in_channel"},
		{"private channel without the bot", "chat.postMessage", p{"channel": "C3", "text": "x"}, "channel_not_found"},
		{"archived", "chat.postMessage", p{"channel": "C4", "text": "x"}, "is_archived"},
		{"no text", "chat.postMessage", p{"channel": "C1", "text": " "}, "no_text"},
		{"longest text", "chat.postMessage", p{"channel": "C1", "text": strings.Repeat("é", 40_000)}, ""},
		{"text too long", "chat.postMessage", p{"channel": "C1", "text": strings.Repeat("a", 40_001)}, "msg_too_long"},
		{"unknown thread", "chat.postMessage", p{"channel": "C1", "text": "x", "thread_ts": "1.000001"}, "thread_not_found"},
		{"longest section", "chat.postMessage", p{"channel": "C1", "blocks": "[" + section(3000) + "]"}, ""},
		{"section too long", "chat.postMessage", p{"channel": "C1", "blocks": "[" + section(3001) + "]"}, "invalid_blocks"},
		{"empty section", "chat.postMessage", p{"channel": "C1", "blocks": "[" + section(0) + "]"}, "invalid_blocks"},
		{"too many blocks", "chat.postMessage", p{"channel": "C1", "blocks": "[" + strings.Repeat(`{"type":"divider"},`, 50) + `{"type":"divider"}]`}, "invalid_blocks"},
		{"block without type", "chat.postMessage", p{"channel": "C1", "blocks": "[{}]"}, "invalid_blocks"},
		{"no blocks at all", "chat.postMessage", p{"channel": "C1", "blocks": "{"}, "invalid_blocks_format"},
		{"markdown too long", "chat.postMessage", p{"channel": "C1", "blocks": `[{"type":"markdown","text":"` + strings.Repeat("a", 12_001) + `"}]`}, "msg_blocks_too_long"},
		{"longest button", "chat.postMessage", p{"channel": "C1", "blocks": row(button(strings.Repeat("é", 75), strings.Repeat("a", 255), strings.Repeat("v", 2000), "danger"))}, ""},
		{"longest row", "chat.postMessage", p{"channel": "C1", "blocks": row(row26[:25]...)}, ""},
		{"row too long", "chat.postMessage", p{"channel": "C1", "blocks": row(row26...)}, "invalid_blocks"},
		{"empty row", "chat.postMessage", p{"channel": "C1", "blocks": row()}, "invalid_blocks"},
		{"label too long", "chat.postMessage", p{"channel": "C1", "blocks": row(button(strings.Repeat("é", 76), "a", "v", "danger"))}, "invalid_blocks"},
		{"no label", "chat.postMessage", p{"channel": "C1", "blocks": row(button("", "a", "v", "danger"))}, "invalid_blocks"},
		{"action_id too long", "chat.postMessage", p{"channel": "C1", "blocks": row(button("x", strings.Repeat("a", 256), "v", "danger"))}, "invalid_blocks"},
		{"action_id twice", "chat.postMessage", p{"channel": "C1", "blocks": row(row26[0], row26[0])}, "invalid_blocks"},
		{"value too long", "chat.postMessage", p{"channel": "C1", "blocks": row(button("x", "a", strings.Repeat("v", 2001), "danger"))}, "invalid_blocks"},
		{"unknown style", "chat.postMessage", p{"channel": "C1", "blocks": row(button("x", "a", "v", "loud"))}, "invalid_blocks"},
		{"block_id twice", "chat.postMessage", p{"channel": "C1", "blocks": `[{"type":"divider","block_id":"a"},{"type":"divider","block_id":"a"}]`}, "invalid_blocks"},
		{"to a user", "chat.postMessage", p{"channel": "U1", "text": "x"}, ""},
		{"update of theirs", "chat.update", p{"channel": "C1", "ts": theirs, "text": "x"}, "cant_update_message"},
		{"update of none", "chat.update", p{"channel": "C1", "ts": "1.1", "text": "x"}, "message_not_found"},
		{"delete of theirs", "chat.delete", p{"channel": "C1", "ts": theirs}, "cant_delete_message"},
		{"ephemeral to nobody", "chat.postEphemeral", p{"channel": "C1", "user": "U9", "text": "x"}, "user_not_in_channel"},
		{"status without thread", "assistant.threads.setStatus", p{"channel_id": "C1", "thread_ts": "1.1", "status": "x"}, "invalid_thread_ts"},
		{"unknown user", "users.info", p{"user": "U9"}, "user_not_found"},
		{"replies of no thread", "conversations.replies", p{"channel": "C1", "ts": "1.1"}, "thread_not_found"},
		{"no such reaction", "reactions.remove", p{"channel": "C1", "timestamp": theirs, "name": "eyes"}, "no_reaction"},
		{"no such file", "files.info", p{"file": "F9"}, "file_not_found"},
		{"dm with nobody", "conversations.open", p{"users": ""}, "users_list_not_supplied"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			out := f.call(tt.method, tt.params)
			if got, _ := out["error"].(string); got != tt.want || out["ok"] != (tt.want == "") {
				t.Errorf("got %v, want %q", out, tt.want)
			}
		})
	}
}

func TestScopes(t *testing.T) {
	f := start(t, slack.Config{Scopes: []string{"chat:write", "im:history"}})
	out := f.call("users.info", map[string]string{"user": f.user})
	if out["error"] != "missing_scope" || out["needed"] != "users:read" || out["provided"] != "chat:write,im:history" {
		t.Errorf("got %v", out)
	}
	if out := f.call("conversations.history", map[string]string{"channel": f.channel}); out["needed"] != "channels:history" {
		t.Errorf("got %v", out)
	}
	if sent := f.say(f.channel, "<@U0BOT> x", nil); len(sent.Events) != 0 {
		t.Errorf("events without scopes: %+v", sent)
	}
	if sent := f.say(f.dm, "x", nil); len(sent.Events) != 1 {
		t.Errorf("got %+v", sent)
	}
	f.SetScopes(slack.DefaultScopes()...)
	if out := f.call("users.info", map[string]string{"user": f.user}); out["ok"] != true {
		t.Errorf("got %v", out)
	}
	f.Revoke()
	if out := f.call("auth.test", nil); out["error"] != "token_revoked" {
		t.Errorf("got %v", out)
	}
}

func TestThreadsAndStatuses(t *testing.T) {
	f := start(t, slack.Config{})
	root := f.say(f.channel, "root", nil)
	err := f.bot.SetAssistantThreadsStatusContext(t.Context(), api.AssistantThreadsSetStatusParameters{ChannelID: f.channel, ThreadTS: root.TS, Status: "is thinking…"})
	if err != nil {
		t.Fatal(err)
	}
	f.wait(func(s slack.State) bool { return s.StatusCount() == 1 })
	_, ts, err := f.bot.PostMessageContext(t.Context(), f.channel, api.MsgOptionText("one <!here> <@U1> &lt;!channel&gt;", false), api.MsgOptionTS(root.TS))
	if err != nil {
		t.Fatal(err)
	}
	f.View(func(s slack.State) {
		if s.StatusCount() != 0 {
			t.Error("a reply leaves the status")
		}
		thread := s.Thread(f.channel, root.TS)
		if len(thread) != 2 || thread[1].TS != ts || thread[1].Thread != root.TS || s.CountAnswers("") != 1 {
			t.Errorf("thread %+v", thread)
		}
		if got := strings.Join(thread[1].Mentions, " "); got != "<!here> <@U1>" {
			t.Errorf("calls %q", got)
		}
	})
	first, more, cursor, err := f.bot.GetConversationRepliesContext(t.Context(), &api.GetConversationRepliesParameters{ChannelID: f.channel, Timestamp: root.TS, Limit: 1})
	if err != nil || !more || len(first) != 1 || first[0].Timestamp != root.TS || first[0].ReplyCount != 1 {
		t.Fatalf("got %+v, %t, %v", first, more, err)
	}
	second, more, _, err := f.bot.GetConversationRepliesContext(t.Context(), &api.GetConversationRepliesParameters{ChannelID: f.channel, Timestamp: root.TS, Limit: 1, Cursor: cursor})
	if err != nil || more || len(second) != 1 || second[0].ParentUserId != f.user || second[0].BotID != slack.BotID {
		t.Fatalf("got %+v, %t, %v", second, more, err)
	}
	if _, _, _, err := f.bot.UpdateMessageContext(t.Context(), f.channel, ts, api.MsgOptionText("two", false)); err != nil {
		t.Error(err)
	}
	if _, _, err := f.bot.DeleteMessageContext(t.Context(), f.channel, ts); err != nil {
		t.Error(err)
	}
	f.View(func(s slack.State) {
		m, ok := s.Message(f.channel, ts)
		if !ok || !m.Deleted || m.Text != "two" || len(m.Edits) != 1 || s.CountAnswers("") != 0 {
			t.Errorf("got %+v", m)
		}
	})
}

func TestRateLimit(t *testing.T) {
	now := time.Unix(1_800_000_000, 0)
	f := start(t, slack.Config{Limits: slack.Limits{MessagesPerSecond: 1}, Now: func() time.Time { return now }})
	post := func() error {
		_, _, err := f.bot.PostMessageContext(t.Context(), f.channel, api.MsgOptionText("x", false))
		return err
	}
	if err := post(); err != nil {
		t.Fatal(err)
	}
	limited, ok := post().(*api.RateLimitedError) //nolint:errorlint // it is returned as it is
	if !ok || limited.RetryAfter != time.Second {
		t.Errorf("got %v", limited)
	}
	now = now.Add(time.Second)
	if err := post(); err != nil {
		t.Error(err)
	}
}

func TestFiles(t *testing.T) {
	f := start(t, slack.Config{})
	up, err := f.bot.UploadFileContext(t.Context(), api.UploadFileParameters{
		Channel: f.channel, Filename: "a.txt", FileSize: 3, Reader: strings.NewReader("abc"), InitialComment: "look",
	})
	if err != nil {
		t.Fatal(err)
	}
	m := f.Messages(f.channel)[0]
	if len(m.Files) != 1 || m.Files[0].ID != up.ID || string(m.Files[0].Data) != "abc" || m.Text != "look" || !m.FromBot {
		t.Errorf("got %+v", m)
	}
	info, _, _, err := f.bot.GetFileInfoContext(t.Context(), up.ID, 0, 0)
	if err != nil {
		t.Fatal(err)
	}
	var got bytes.Buffer
	if err := f.bot.GetFileContext(t.Context(), info.URLPrivateDownload, &got); err != nil || got.String() != "abc" {
		t.Errorf("got %q, %v", got.String(), err)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, info.URLPrivate, nil)
	if err != nil {
		t.Fatal(err)
	}
	if code, body := f.do(req); code != 200 || !strings.Contains(body, "Login") {
		t.Errorf("without a token: %d %s", code, body)
	}
}

func TestJSONBodies(t *testing.T) {
	f := start(t, slack.Config{})
	body, err := json.Marshal(map[string]any{"channel": f.channel, "text": "x", "blocks": []any{map[string]any{"type": "divider"}}})
	if err != nil {
		t.Fatal(err)
	}
	if _, got := f.post(f.url+"chat.postMessage", "application/json", string(body)); !strings.Contains(got, "not_authed") {
		t.Errorf("got %s", got)
	}
	req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, f.url+"chat.postMessage", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json; charset=utf-8")
	req.Header.Set("Authorization", "Bearer "+f.BotToken())
	if code, got := f.do(req); code != 200 || !strings.Contains(got, `"ok":true`) {
		t.Errorf("got %d %s", code, got)
	}
}

func TestAGatewayRefusesRequestsInChunks(t *testing.T) {
	f := start(t, slack.Config{RequireLength: true})
	for _, path := range []string{"/api/chat.postMessage", "/upload/v1/F1", "/commands/1"} {
		address, err := url.JoinPath(f.url, "..", path)
		if err != nil {
			t.Fatal(err)
		}
		body := io.MultiReader(strings.NewReader(`{"channel":"C1","text":"x"}`)) // of no known length
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address, body)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+slack.DefaultBotToken)
		if status, answer := f.do(req); status != http.StatusLengthRequired {
			t.Errorf("%s: status %d, %s", path, status, answer)
		}
	}
	if got := f.Messages("C1"); len(got) != 0 {
		t.Errorf("it arrived: %+v", got)
	}
}
