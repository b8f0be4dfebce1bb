package telegram

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
)

// inMemory carries requests to a handler without a network, so that the clock of a
// synctest bubble runs.
func inMemory(h http.Handler) http.RoundTripper {
	return roundTrip(func(req *http.Request) (resp *http.Response, err error) {
		defer func() {
			if p := recover(); p != nil {
				resp, err = nil, errors.New("connection broken")
			}
		}()
		var body strings.Builder
		if req.Body != nil {
			if _, err := io.Copy(&body, req.Body); err != nil {
				return nil, err
			}
			if err := req.Body.Close(); err != nil {
				return nil, err
			}
		}
		in := httptest.NewRequestWithContext(req.Context(), req.Method, req.URL.String(), strings.NewReader(body.String()))
		in.Header = req.Header
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, in)
		resp = rec.Result()
		resp.Request = req
		return resp, nil
	})
}

// flooded is a platform whose emulator has flood control, inside a bubble.
func flooded(t *testing.T, limits *emulator.Limits) *emulated {
	t.Helper()
	s, err := emulator.New(emulator.Config{Limits: limits})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: inMemory(s)}})
	if err != nil {
		t.Fatal(err)
	}
	st := &emulated{Server: s, p: p, ann: s.AddUser(emulator.User{FirstName: "Ann"}).ID}
	st.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: st.ann})
	return st
}

// deliver sends texts one after another and tries each until it is sent, as the bridge
// does.
func (s *emulated) deliver(ctx context.Context, to chats.Address, texts []string) error {
	for _, text := range texts {
		for {
			_, err := s.p.Send(ctx, to, chats.Part{Text: text})
			var failure *chats.SendError
			if err == nil {
				break
			}
			if !errors.As(err, &failure) || failure.Outcome != chats.Later || retry.Wait(ctx, max(time.Second/2, failure.RetryAfter)) != nil {
				return err
			}
		}
	}
	return nil
}

func lines(name string, n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("%s %02d", name, i))
	}
	return list
}

// stands returns the messages of one sequence in a chat.
func (s *emulated) stands(chat int64, name string) (list []string) {
	for _, m := range s.answers(chat) {
		if strings.HasPrefix(m.Text, name+" ") {
			list = append(list, m.Text)
		}
	}
	return list
}

type sequence struct {
	to    chats.Address
	chat  int64
	name  string
	count int
}

// deliverAll runs sequences side by side and checks that all arrives, once and in order.
func (s *emulated) deliverAll(t *testing.T, all []sequence) (messages int) {
	t.Helper()
	var sends sync.WaitGroup
	for _, l := range all {
		messages += l.count
		sends.Go(func() {
			if err := s.deliver(t.Context(), l.to, lines(l.name, l.count)); err != nil {
				t.Errorf("%s: %v", l.name, err)
			}
		})
	}
	sends.Wait()
	for _, l := range all {
		if got := s.stands(l.chat, l.name); !slices.Equal(got, lines(l.name, l.count)) {
			t.Errorf("in %s there stands %q", l.name, got)
		}
	}
	return messages
}

// TestAStormOfFloodRefusalsLosesNothing has the bot say more than Telegram lets pass, in groups with one
// and with several topics and in private chats, at the rates of the hosted service.
func TestAStormOfFloodRefusalsLosesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, emulator.ServiceLimits())
		forum := s.chat(t, emulator.ChatSpec{Kind: emulator.Supergroup, Forum: true, User: s.ann})
		all := []sequence{{to(s.ann, 0, 0), s.ann, "private", 40}}
		for i := range 3 {
			topic, err := s.AddTopic(forum, "T")
			if err != nil {
				t.Fatal(err)
			}
			all = append(all, sequence{to(forum, topic, 0), forum, fmt.Sprint("topic", i), 25})
		}
		group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, User: s.ann})
		all = append(all, sequence{to(group, 0, 0), group, "group", 60})
		messages := s.deliverAll(t, all)
		s.View(func(st emulator.State) {
			refused := st.CallCount("sendmessage") - messages
			if refused == 0 || refused > messages/4 {
				t.Errorf("%d of %d messages were refused: want the few that it takes to learn the pace", refused, messages)
			}
		})
	})
}

// TestNothingDuringAPenalty has one conversation alone, so that no message can be
// under way while another is refused.
func TestNothingDuringAPenalty(t *testing.T) {
	for kind, spec := range map[string]emulator.ChatSpec{"group": {Kind: emulator.Group}, "private": {Kind: emulator.Private}} {
		t.Run(kind, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := flooded(t, emulator.ServiceLimits())
				spec.User = s.AddUser(emulator.User{}).ID
				chat := s.chat(t, spec)
				messages := s.deliverAll(t, []sequence{{to(chat, 0, 0), chat, "sequence", 120}})
				s.View(func(st emulator.State) {
					refused := st.CallCount("sendmessage") - messages
					if refused == 0 || refused > messages/10 || st.PenaltyAttempts() != 0 {
						t.Errorf("%d of %d messages were refused, %d of them during a penalty", refused, messages, st.PenaltyAttempts())
					}
				})
			})
		})
	}
}

// TestOnlyItsChat checks that nothing goes to a chat during its penalty, and that no
// other chat feels it.
func TestOnlyItsChat(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		bob := s.AddUser(emulator.User{}).ID
		s.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: bob})
		card := strconv.FormatInt(s.card(t, to(s.ann, 0, 0)), 10)
		s.inject(t, emulator.Fault{Method: "sendMessage", Chat: s.ann, Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 3600})
		attempts := map[string]func() error{
			"send": func() error {
				_, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "hi"})
				return err
			},
			"file": func() error {
				_, err := s.p.SendFile(t.Context(), to(s.ann, 0, 0), out("a.txt", "", []byte("x")))
				return err
			},
			"edit": func() error { return s.p.Edit(t.Context(), to(s.ann, 0, 0), card, chats.Part{Text: "done"}) },
		}
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "first"}); err == nil {
			t.Fatal("the flood is not there")
		}
		time.Sleep(time.Minute)
		calls := func() (n int) {
			s.View(func(st emulator.State) {
				n = st.CallCount("sendmessage") + st.CallCount("senddocument") + st.CallCount("editmessagetext") + st.CallCount("sendchataction")
			})
			return n
		}
		before := calls()
		for name, try := range attempts {
			var got *chats.SendError
			if err := try(); !errors.As(err, &got) || got.Outcome != chats.Later || got.RetryAfter != 59*time.Minute {
				t.Errorf("%s during the penalty = %v", name, err)
			}
		}
		if err := s.p.SetTyping(t.Context(), to(s.ann, 0, 0), true); err != nil {
			t.Errorf("Typing = %v", err)
		}
		if n := calls() - before; n != 0 {
			t.Errorf("%d calls during the penalty", n)
		}
		begin := time.Now()
		if err := s.deliver(t.Context(), to(bob, 0, 0), lines("bob", 100)); err != nil || !time.Now().Equal(begin) {
			t.Errorf("another chat waited for %v: %v", time.Since(begin), err)
		}
		time.Sleep(59 * time.Minute)
		if err := s.deliver(t.Context(), to(s.ann, 0, 0), lines("ann", 5)); err != nil {
			t.Error(err)
		}
		if got := s.stands(s.ann, "ann"); !slices.Equal(got, lines("ann", 5)) {
			t.Errorf("after the penalty there stands %q", got)
		}
	})
}

// TestALimitOverAllChatsIsKept floods Telegram as a whole: then every chat goes slower.
func TestALimitOverAllChatsIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, &emulator.Limits{Overall: 8})
		var all []sequence
		for i := range 25 {
			user := s.AddUser(emulator.User{}).ID
			s.chat(t, emulator.ChatSpec{Kind: emulator.Private, User: user})
			all = append(all, sequence{to(user, 0, 0), user, fmt.Sprint("sequence", i), 6})
		}
		messages := s.deliverAll(t, all)
		s.View(func(st emulator.State) {
			if refused := st.CallCount("sendmessage") - messages; refused > messages/2 {
				t.Errorf("%d refusals of %d messages: the pace is not learnt", refused, messages)
			}
		})
	})
}

// TestPaceIsForgotten checks that a chat is not held back for what was long ago.
func TestPaceIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		s.inject(t, emulator.Fault{Method: "sendMessage", Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 40})
		group := s.chat(t, emulator.ChatSpec{Kind: emulator.Group, User: s.ann})
		if err := s.deliver(t.Context(), to(group, 0, 0), lines("after", 10)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		begin := time.Now()
		if err := s.deliver(t.Context(), to(group, 0, 0), lines("long after", 100)); err != nil || !time.Now().Equal(begin) {
			t.Errorf("an hour later 100 messages took %v: %v", time.Since(begin), err)
		}
	})
}

// TestNoSignWhileMessagesWait checks that a sign of work is left out where a message
// waits, and that a refused sign holds messages back as well.
func TestNoSignWhileMessagesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		s.inject(t, emulator.Fault{Method: "sendChatAction", Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 30})
		if err := s.p.SetTyping(t.Context(), to(s.ann, 0, 0), true); err == nil {
			t.Fatal("the flood is not there")
		}
		var got *chats.SendError
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "hi"}); !errors.As(err, &got) || got.RetryAfter != 30*time.Second {
			t.Errorf("Send after a sign was refused = %v", err)
		}
		time.Sleep(30 * time.Second)
		for range 2 {
			if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "hi"}); err != nil {
				t.Error(err)
			}
		}
		if err := s.p.SetTyping(t.Context(), to(s.ann, 0, 0), true); err != nil {
			t.Error(err)
		}
		s.View(func(st emulator.State) {
			if n := st.CallCount("sendchataction"); n != 1 {
				t.Errorf("%d signs, want the one that was refused", n)
			}
		})
	})
}

// TestTheOwnerIsCheckedAfterTheWait: another process answers while a message waits for flood control. The message
// is not sent any more.
func TestTheOwnerIsCheckedAfterTheWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		s.inject(t, emulator.Fault{Method: "sendMessage", Chat: s.ann, Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 5})
		if _, err := s.p.Send(t.Context(), to(s.ann, 0, 0), chats.Part{Text: "first"}); err == nil {
			t.Fatal("the flood is not there")
		}
		refused, errLost := time.Now(), errors.New("another process answers")
		ctx := chats.WithPrecondition(t.Context(), func() error {
			if time.Since(refused) < 3*time.Second {
				return nil
			}
			return errLost
		})
		_, err := s.p.Send(ctx, to(s.ann, 0, 0), chats.Part{Text: "second"})
		var failure *chats.SendError
		if !errors.As(err, &failure) || failure.Outcome != chats.Later || !errors.Is(err, errLost) {
			t.Errorf("Send = %v, want the error of the precondition", err)
		}
		if waited := time.Since(refused); waited < 5*time.Second {
			t.Errorf("Send waited for %v, want the five seconds of the penalty", waited)
		}
		if got := s.answers(s.ann); len(got) != 0 {
			t.Errorf("there stands %+v", got)
		}
	})
}
