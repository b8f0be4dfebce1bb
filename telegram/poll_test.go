package telegram

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

const hello = `{"update_id":7,"message":{"message_id":1,"from":{"id":5,"first_name":"Ann"},"chat":{"id":5,"type":"private"},"date":1700000000,"text":"hello"}}`

// clock notes when calls were made.
type clock struct {
	mu sync.Mutex
	at []time.Time
}

func (c *clock) tick() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = append(c.at, time.Now())
}

func (c *clock) gaps() (gaps []time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := 1; i < len(c.at); i++ {
		gaps = append(gaps, c.at[i].Sub(c.at[i-1]))
	}
	return gaps
}

func TestNetworkDownBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls clock
		p, logged := newFake(t, func(context.Context, string, url.Values) (int, string, error) {
			calls.tick()
			return 0, "", errors.New("connection refused")
		})
		stop := run(t, p, newInbox())
		time.Sleep(20 * time.Minute)
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "connection refused") {
			t.Errorf("Health after an outage = %v, want the cause", err)
		}
		stop()
		gaps := calls.gaps()
		if len(gaps) < 15 || len(gaps) > 60 {
			t.Errorf("%d calls in 20 minutes without network, want a few", len(gaps)+1)
		}
		for i, g := range gaps {
			if g < minBackOff || g > maxBackOff {
				t.Errorf("pause %d is %v, want %v to %v", i, g, minBackOff, maxBackOff)
			}
		}
		if last := gaps[len(gaps)-1]; last < 20*time.Second {
			t.Errorf("the last pause is %v: it does not grow", last)
		}
		if !strings.Contains(logged.String(), "cannot be reached") {
			t.Error("the outage is not in the log")
		}
	})
}

func TestWrongTokenEndsRun(t *testing.T) {
	for name, answer := range map[string]func() (int, string, error){
		"revoked": func() (int, string, error) { return refusal(401, "Unauthorized") },
		"unknown": func() (int, string, error) { return refusal(404, "Not Found") },
	} {
		t.Run(name, func(t *testing.T) {
			var calls clock
			p, _ := newFake(t, func(context.Context, string, url.Values) (int, string, error) {
				calls.tick()
				return answer()
			})
			err := p.Run(t.Context(), newInbox())
			if err == nil || !strings.Contains(err.Error(), "TELEGRAM_BOT_TOKEN") {
				t.Errorf("Run = %v, want an error that names TELEGRAM_BOT_TOKEN", err)
			}
			if len(calls.at) != 1 {
				t.Errorf("%d calls, want 1", len(calls.at))
			}
		})
	}
}

func TestPollsObeyTheServer(t *testing.T) {
	tests := map[string]struct {
		answer   func() (int, string, error)
		from, to time.Duration
	}{
		"429": {func() (int, string, error) {
			return 429, `{"ok":false,"error_code":429,"description":"Too Many Requests: retry after 77","parameters":{"retry_after":77}}`, nil
		}, 77 * time.Second, 77 * time.Second},
		"502 page":       {func() (int, string, error) { return 502, "<html>502</html>", nil }, minBackOff, maxBackOff},
		"500":            {func() (int, string, error) { return refusal(500, "Internal Server Error") }, minBackOff, maxBackOff},
		"token revoked":  {func() (int, string, error) { return refusal(401, "Unauthorized") }, minBackOff, maxBackOff},
		"not a result":   {func() (int, string, error) { return 200, `{"ok":true,"result":{}}`, nil }, minBackOff, maxBackOff},
		"empty at once":  {func() (int, string, error) { return ok(`[]`) }, emptyPause, emptyPause},
		"without any id": {func() (int, string, error) { return ok(`[{},3,"x"]`) }, minBackOff, maxBackOff},
		"refused": {
			func() (int, string, error) { return 0, "", errors.New("connection refused") }, minBackOff,
			maxBackOff,
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var polls clock
				p, _ := newFake(t, greet(func(context.Context, string, url.Values) (int, string, error) {
					polls.tick()
					return tt.answer()
				}))
				stop := run(t, p, newInbox())
				time.Sleep(5 * time.Minute)
				stop()
				if len(polls.at) < 2 {
					t.Fatal("polled once only")
				}
				for _, g := range polls.gaps() {
					if g < tt.from || g > tt.to {
						t.Errorf("pause of %v, want %v to %v", g, tt.from, tt.to)
					}
				}
			})
		})
	}
}

func TestConflictIsWaitedOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls clock
		var over atomic.Bool
		p, logged := newFake(t, greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) {
			polls.tick()
			if !over.Load() {
				return refusal(409, "Conflict: terminated by other getUpdates request; make sure that only one bot instance is running")
			}
			return hang(ctx, form)
		}))
		if p.Health() == nil {
			t.Error("healthy before Run")
		}
		stop := run(t, p, newInbox())
		time.Sleep(2 * time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health after two minutes of conflict = %v, want patience", err)
		}
		time.Sleep(2 * time.Minute)
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "another program polls") {
			t.Errorf("Health after four minutes of conflict = %v", err)
		}
		for _, g := range polls.gaps() {
			if g < defaultConflictWait || g > defaultConflictWait*5/4 {
				t.Errorf("pause of %v, want %v and up to a quarter more", g, defaultConflictWait)
			}
		}
		if n := strings.Count(logged.String(), "another process polls"); n != 1 {
			t.Errorf("the conflict is in the log %d times, want once", n)
		}
		over.Store(true)
		time.Sleep(2 * time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health after the conflict = %v", err)
		}
		stop()
	})
}

func TestHealthSeesASilentStall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFake(t, greet(func(ctx context.Context, _ string, _ url.Values) (int, string, error) {
			<-ctx.Done() // a connection that has died without a word
			return 0, "", ctx.Err()
		}))
		stop := run(t, p, newInbox())
		time.Sleep(time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health after a minute = %v", err)
		}
		time.Sleep(4 * time.Minute)
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "no poll") {
			t.Errorf("Health after five minutes without an answer = %v", err)
		}
		stop()
	})
}

func TestOffsetMovesOnlyAfterAccept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var offsets []string
		p, _ := newFake(t, greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) {
			offsets = append(offsets, form.Get("offset"))
			if form.Get("offset") == "8" {
				return hang(ctx, form)
			}
			return ok("[" + hello + "]")
		}))
		full := errors.New("disk full")
		in := newInbox(full, full)
		stop := run(t, p, in)
		time.Sleep(500 * time.Millisecond)
		synctest.Wait()
		if err := p.Health(); !errors.Is(err, full) {
			t.Errorf("Health while nothing is kept = %v, want the cause", err)
		}
		time.Sleep(time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health = %v", err)
		}
		stop()
		if want := []string{"", "", "", "8", "8"}; !slices.Equal(offsets, want) {
			t.Errorf("offsets %q, want %q", offsets, want)
		}
		if len(in.accepted) != 1 || in.calls != 3 {
			t.Errorf("accepted %v in %d calls, want one message in the third", in.accepted, in.calls)
		}
	})
}

func TestUndecodableUpdateBlocksNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bad := `{"update_id":6,"message":{"message_id":"six","chat":[]}}`
		later := `{"update_id":8,"callback_query":7}`
		var offset string
		p, logged := newFake(t, greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) {
			if offset = form.Get("offset"); offset != "" {
				return hang(ctx, form)
			}
			return ok("[" + bad + "," + hello + "," + later + "]")
		}))
		in := newInbox()
		stop := run(t, p, in)
		time.Sleep(time.Second)
		stop()
		if offset != "9" || len(in.accepted) != 1 || in.accepted[0].Text != "hello" {
			t.Errorf("offset %q, accepted %v", offset, in.accepted)
		}
		for _, want := range []string{"update_id=6", "update_id=8"} {
			if !strings.Contains(logged.String(), want) {
				t.Errorf("the log does not say %s", want)
			}
		}
	})
}

func TestAWebhookFromBeforeIsRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var methods []string
		set := true
		p, logged := newFake(t, func(ctx context.Context, method string, form url.Values) (int, string, error) {
			methods = append(methods, method)
			switch method {
			case "getMe":
				return ok(me)
			case "getWebhookInfo":
				return ok(`{"url":"https://old.example/hook"}`)
			case "deleteWebhook":
				set = false
				return ok(`true`)
			}
			if set {
				return refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
			}
			return hang(ctx, form)
		})
		stop := run(t, p, newInbox())
		time.Sleep(time.Second)
		stop()
		if want := []string{"getMe", "getUpdates", "getWebhookInfo", "deleteWebhook", "getUpdates"}; !slices.Equal(methods, want) {
			t.Errorf("calls %v, want %v", methods, want)
		}
		if !strings.Contains(logged.String(), "webhook") {
			t.Error("no warning in the log")
		}
	})
}

// A server of one's own may not tell of webhooks, and a slow answer costs no time.
func TestPollsDoNotWaitForNewsOfAWebhook(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, _ := newFake(t, func(ctx context.Context, method string, form url.Values) (int, string, error) {
			switch method {
			case "getMe":
				return ok(me)
			case "getUpdates":
				if form.Get("offset") == "" {
					return ok("[" + hello + "]")
				}
				return hang(ctx, form)
			}
			return refusal(500, "Internal Server Error")
		})
		in := newInbox()
		stop := run(t, p, in)
		synctest.Wait()
		if len(in.accepted) != 1 {
			t.Errorf("accepted %v", in.accepted)
		}
		stop()
	})
}

// A webhook that is set while the bot polls is another program's: an operator has to decide.
func TestAWebhookThatIsSetMeanwhileIsNotRemoved(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		polls, removed := 0, false
		p, _ := newFake(t, func(ctx context.Context, method string, _ url.Values) (int, string, error) {
			switch method {
			case "getMe":
				return ok(me)
			case "getWebhookInfo":
				return ok(`{"url":"https://other.example/hook"}`)
			case "deleteWebhook":
				removed = true
				return ok(`true`)
			}
			if polls++; polls == 1 {
				return ok(`[]`)
			}
			return refusal(409, "Conflict: can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook first")
		})
		stop := run(t, p, newInbox())
		time.Sleep(10 * time.Minute)
		if err := p.Health(); removed || err == nil || !strings.Contains(err.Error(), "other.example") {
			t.Errorf("removed: %v, Health = %v", removed, err)
		}
		stop()
	})
}

func TestMoveKeepsItsPlaceAmongMessages(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		moved := `{"update_id":8,"message":{"message_id":2,"from":{"id":5,"first_name":"Ann"},"chat":{"id":-9,"type":"group"},"date":1700000000,"migrate_to_chat_id":-1009}}`
		p, _ := newFake(t, greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) {
			if form.Get("offset") != "" {
				return hang(ctx, form)
			}
			return ok("[" + hello + "," + moved + "," + strings.Replace(hello, `:7`, `:9`, 1) + "]")
		}))
		in := newInbox()
		stop := run(t, p, in)
		time.Sleep(time.Second)
		stop()
		if in.calls != 2 || len(in.accepted) != 2 || len(in.moves) != 1 {
			t.Fatalf("%d calls, %d messages, %d moves", in.calls, len(in.accepted), len(in.moves))
		}
		if from, to := in.moves[0][0].String(), in.moves[0][1].String(); from != "telegram:-9" || to != "telegram:-1009" {
			t.Errorf("moved from %s to %s", from, to)
		}
	})
}
