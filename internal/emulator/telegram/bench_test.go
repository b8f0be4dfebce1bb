package telegram_test

import (
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"oneclaw/internal/emulator/telegram"
)

// BenchmarkSendMessage is the path of a bot's answer, without the network, over 500
// chats.
func BenchmarkSendMessage(b *testing.B) {
	s, err := telegram.New(telegram.Config{MaxMessages: 100})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	ids := make([]int64, 500)
	for i := range ids {
		ids[i] = s.AddUser(telegram.User{}).ID
		if _, err := s.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: ids[i]}); err != nil {
			b.Fatal(err)
		}
	}
	text := "<b>Answer</b>: " + strings.Repeat("some words with <i>form</i> ", 20)
	var next atomic.Int64
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			chat := strconv.FormatInt(ids[int(next.Add(1))%len(ids)], 10)
			body := `{"chat_id":` + chat + `,"parse_mode":"HTML","text":"` + text + `"}`
			r := httptest.NewRequestWithContext(b.Context(), http.MethodPost, "/bot"+s.Token()+"/sendMessage", strings.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			s.ServeHTTP(w, r)
			if w.Code != http.StatusOK {
				b.Fatal(w.Body.String())
			}
		}
	})
}

// BenchmarkUpdate is the path of a person's message: said, polled, confirmed.
func BenchmarkUpdate(b *testing.B) {
	s, err := telegram.New(telegram.Config{MaxMessages: 100})
	if err != nil {
		b.Fatal(err)
	}
	defer func() {
		if err := s.Close(); err != nil {
			b.Fatal(err)
		}
	}()
	user := s.AddUser(telegram.User{}).ID
	if _, err := s.AddChat(telegram.ChatSpec{Kind: telegram.Private, User: user}); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	var last int64
	for b.Loop() {
		sent, err := s.Say(user, user, "hello there", nil)
		if err != nil {
			b.Fatal(err)
		}
		r := httptest.NewRequestWithContext(b.Context(), http.MethodGet, "/bot"+s.Token()+"/getUpdates?offset="+strconv.FormatInt(last+1, 10), nil)
		s.ServeHTTP(httptest.NewRecorder(), r)
		last = sent.Update
	}
}
