package telegram_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"unicode/utf16"

	"oneclaw/internal/emulator/telegram"
)

// FuzzHTML sends any text as HTML: it is accepted with entities that lie inside it,
// or refused.
func FuzzHTML(f *testing.F) {
	for _, seed := range []string{
		`<b>x</b> &lt; &#x1F600; <a href="https://e.org">y</a>`, `<pre><code class="language-go">z</code></pre>`,
		"<b <i>", `<a href='`, "&#;&#x;&", "</", " <b>\n</b> ", "<a =>", "<blockquote expandable>q</blockquote>",
	} {
		f.Add(seed)
	}
	s, err := telegram.New(telegram.Config{MaxMessages: 10})
	if err != nil {
		f.Fatal(err)
	}
	user := s.AddUser(telegram.User{}).ID
	if _, err := s.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: user}); err != nil {
		f.Fatal(err)
	}
	f.Cleanup(func() {
		if err := s.Close(); err != nil {
			f.Error(err)
		}
	})
	f.Fuzz(func(t *testing.T, html string) {
		form := url.Values{"chat_id": {id(user)}, "parse_mode": {"HTML"}, "text": {html}}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/bot"+s.Token()+"/sendMessage", strings.NewReader(form.Encode()))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code == http.StatusBadRequest {
			return
		}
		var answer struct {
			Result sent `json:"result"`
		}
		if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil || w.Code != http.StatusOK {
			t.Fatalf("status %d: %s", w.Code, w.Body)
		}
		size := len(utf16.Encode([]rune(answer.Result.Text)))
		for _, e := range answer.Result.Entities {
			if e.Offset < 0 || e.Length <= 0 || e.Offset+e.Length > size {
				t.Errorf("entity %+v outside of %d units", e, size)
			}
		}
	})
}
