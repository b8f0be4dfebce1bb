package telegram_test

import (
	"net/http"
	"strings"
	"testing"

	"oneclaw/internal/emulator/telegram"
)

// A request that the service would ignore in part, or take otherwise than it is meant, is seen by the
// test that makes it.
func TestWhatTheBotAPIDoesNotKnowIsAnErrorAtTheEnd(t *testing.T) {
	for query, want := range map[string]string{
		"chat_id=1001&text=x":                           "",
		"chat_id=1001&text=5&disable_notification=true": "",
		"chat_id=1001&text=x&reply_to=3":                "reply_to",
		"chat_id=1001&text=x&protect_content=maybe":     "protect_content",
	} {
		s, err := telegram.New(telegram.Config{})
		if err != nil {
			t.Fatal(err)
		}
		address, err := s.Start(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		s.AddUser(telegram.User{ID: 1001, FirstName: "Ann"})
		if _, err := s.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: 1001}); err != nil {
			t.Fatal(err)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, address+"/bot"+s.Token()+"/sendMessage", strings.NewReader(query))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		if err := resp.Body.Close(); err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: status %d, %v", query, resp.StatusCode, err)
		}
		err = s.Close()
		if (want == "") != (err == nil) || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s ends with %v, want %q", query, err, want)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
