package telegram

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/bridge/chats"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
)

// twin is a second bot with the same token, as another process with a data directory of
// its own.
func (s *emulated) twin(t *testing.T) (*platform, *syncBuffer) {
	t.Helper()
	logged, log := newLog()
	p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: inMemory(s)}, logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return p, logged
}

func (in *inbox) texts() (list []string) {
	in.mu.Lock()
	defer in.mu.Unlock()
	for _, m := range in.accepted {
		list = append(list, m.Text)
	}
	return list
}

// TestTwoPollersOfOneToken runs two bots of one token for a quarter of an hour, while
// somebody writes.
func TestTwoPollersOfOneToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		inboxes := []*inbox{newInbox(), newInbox()}
		var bots []*platform
		var logs []*syncBuffer
		var stops []func()
		for _, in := range inboxes {
			p, logged := s.twin(t)
			bots, logs = append(bots, p), append(logs, logged)
			stop := run(t, p, in)
			defer stop()
			stops = append(stops, stop)
			time.Sleep(5 * time.Second)
		}
		said := map[string]bool{}
		complaints := 0
		for i := range 45 {
			text := strconv.Itoa(i)
			said[text] = true
			s.say(t, s.ann, text, nil)
			time.Sleep(20 * time.Second)
			for _, p := range bots {
				if err := p.Health(); err != nil && strings.Contains(err.Error(), "another program polls with this token") {
					complaints++
				}
			}
		}
		if complaints == 0 || !strings.Contains(logs[0].String()+logs[1].String(), "another program polls with this token") {
			t.Errorf("in a quarter of an hour nobody says that there are two: %v, %v", bots[0].Health(), bots[1].Health())
		}
		stops[1]()
		time.Sleep(5 * time.Minute)
		for i, in := range inboxes {
			got := in.texts()
			for _, text := range got {
				delete(said, text)
			}
			slices.Sort(got)
			if twice := len(got) - len(slices.Compact(got)); twice != 0 {
				t.Errorf("bot %d was given %d messages twice", i, twice)
			}
		}
		if len(said) != 0 {
			t.Errorf("nobody was given %v", said)
		}
		if err := bots[0].Health(); err != nil {
			t.Errorf("Health, alone again = %v", err)
		}
	})
}

// TestWebhookIsNamed has another program set a webhook while the bot runs.
func TestWebhookIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := flooded(t, nil)
		p, logged := s.twin(t)
		in := newInbox()
		stop := run(t, p, in)
		defer stop()
		time.Sleep(time.Second)
		if err := p.api.call(t.Context(), "setWebhook", map[string]string{"url": "https://hooks.example/SECRET-path"}, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health after two minutes = %v, want patience", err)
		}
		s.say(t, s.ann, "are you there?", nil)
		time.Sleep(3 * time.Minute)
		if err := p.Health(); err == nil || !strings.Contains(err.Error(), "a webhook to hooks.example is set") || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("Health after five minutes = %v", err)
		}
		if n := strings.Count(logged.String(), "hooks.example"); n == 0 || strings.Contains(logged.String(), "SECRET") {
			t.Errorf("the log names the webhook %d times:\n%s", n, logged)
		}
		if err := p.api.call(t.Context(), "deleteWebhook", nil, nil); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Minute)
		if err := p.Health(); err != nil {
			t.Errorf("Health after the webhook = %v", err)
		}
		if got := in.texts(); !slices.Equal(got, []string{"are you there?"}) {
			t.Errorf("accepted %q", got)
		}
	})
}

func TestHealthSaysWhy(t *testing.T) {
	forever := func(ctx context.Context, _ string, _ url.Values) (int, string, error) {
		<-ctx.Done()
		return 0, "", ctx.Err()
	}
	down := func(context.Context, string, url.Values) (int, string, error) {
		return 0, "", errors.New("connection refused")
	}
	quiet := greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) { return hang(ctx, form) })
	busy := greet(func(context.Context, string, url.Values) (int, string, error) { return ok("[" + hello + "]") })
	for name, tt := range map[string]struct {
		over  transport
		stuck bool
		after time.Duration
		want  string // empty for healthy
	}{
		"connecting":           {forever, false, time.Second, "connecting"},
		"down from the start":  {down, false, time.Second, "cannot be reached: check TELEGRAM_API_URL and the network: telegram: getMe: connection refused"},
		"quiet":                {quiet, false, time.Hour, ""},
		"down for a while":     {greet(down), false, time.Minute, ""},
		"down":                 {greet(down), false, 5 * time.Minute, "no poll has succeeded for"},
		"nothing can be kept":  {busy, true, 5 * time.Minute, "messages have waited for 5m0s to be kept"},
		"kept, then long work": {busy, true, time.Minute, ""},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				p, logged := newFake(t, tt.over)
				stop := run(t, p, inboxFunc(func(ctx context.Context) error {
					if tt.stuck {
						<-ctx.Done()
					}
					return ctx.Err()
				}))
				defer stop()
				time.Sleep(tt.after)
				synctest.Wait()
				err := p.Health()
				if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
					t.Errorf("Health = %v, want %q", err, tt.want)
				}
				time.Sleep(watchInterval)
				synctest.Wait()
				if said := strings.Contains(logged.String(), `"telegram is not ready" platform=telegram`); said != (err != nil && tt.after > time.Minute) {
					t.Errorf("the log says that it is not ready: %v; it is: %v", said, err)
				}
			})
		})
	}
}

type inboxFunc func(ctx context.Context) error

func (f inboxFunc) Accept(ctx context.Context, _ ...chats.Message) error { return f(ctx) }

func (inboxFunc) Moved(context.Context, chats.Chat, chats.Chat) error { return nil }

// TestAMachineThatSleptPollsAnew has the clock on the wall jump, as it does when a laptop wakes up:
// the poll that slept as well is given up and made anew at once. A clock that is set back
// disturbs nothing.
func TestAMachineThatSleptPollsAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var polls atomic.Int64
		p, logged := newFake(t, greet(func(ctx context.Context, _ string, form url.Values) (int, string, error) {
			if polls.Add(1) == 1 {
				<-ctx.Done() // the other side forgot it while the machine slept
				return 0, "", ctx.Err()
			}
			if form.Get("offset") != "" {
				return hang(ctx, form)
			}
			return ok("[" + hello + "]")
		}))
		var jump atomic.Int64
		real := p.readClocks
		p.readClocks = func() (time.Time, time.Duration) {
			wall, running := real()
			return wall.Add(time.Duration(jump.Load())), running
		}
		in := newInbox()
		stop := run(t, p, in)
		defer stop()
		time.Sleep(2 * watchInterval)
		jump.Store(int64(-8 * time.Hour))
		time.Sleep(2 * watchInterval)
		if got := in.texts(); polls.Load() != 1 || len(got) != 0 {
			t.Errorf("a clock that was set back gave %d polls and %q", polls.Load(), got)
		}
		jump.Store(int64(time.Hour))
		time.Sleep(watchInterval)
		synctest.Wait()
		if got := in.texts(); !slices.Equal(got, []string{"hello"}) {
			t.Errorf("after the machine woke up %q was accepted, in %d polls", got, polls.Load())
		}
		if err := p.Health(); err != nil {
			t.Errorf("Health = %v", err)
		}
		if n := strings.Count(logged.String(), "connecting again"); n != 1 {
			t.Errorf("it is in the log %d times, want once", n)
		}
	})
}

// TestHalfOpenConnection puts a connection that has died in silence between the bot
// and the emulator: what is written to it vanishes. The bot's own client is used.
func TestHalfOpenConnection(t *testing.T) {
	t.Parallel()
	s := newEmulated(t)
	link := newLink(t, s.url)
	p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: link.url}, pollTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	p.pollMargin = 200 * time.Millisecond
	in := newInbox()
	stop := run(t, p, in)
	defer stop()
	s.until(t, func(st emulator.State) bool { return st.IsPolling() })
	link.sever()
	s.say(t, s.ann, "hello?", nil)
	if got := in.wait(t, atLeast(1)); got[0].Text != "hello?" {
		t.Errorf("accepted %+v", got)
	}
}

// link is a way to a server whose connections can die in silence.
type link struct {
	url  string
	mu   sync.Mutex // guards dead
	dead []chan struct{}
}

func newLink(t *testing.T, to string) *link {
	t.Helper()
	ln, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := &link{url: "http://" + ln.Addr().String()}
	var all sync.WaitGroup
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() {
		cancel()
		_ = ln.Close()
		all.Wait()
	})
	all.Go(func() {
		for {
			near, err := ln.Accept()
			if err != nil {
				return
			}
			all.Go(func() { l.carry(ctx, near, strings.TrimPrefix(to, "http://")) })
		}
	})
	return l
}

// carry passes bytes both ways until the connection is severed: from then on it only
// swallows them.
func (l *link) carry(ctx context.Context, near net.Conn, address string) {
	defer func() { _ = near.Close() }()
	var d net.Dialer
	far, err := d.DialContext(ctx, "tcp", address)
	if err != nil {
		return
	}
	dead := make(chan struct{})
	l.mu.Lock()
	l.dead = append(l.dead, dead)
	l.mu.Unlock()
	gone := context.AfterFunc(ctx, func() { _, _ = near.Close(), far.Close() })
	defer gone()
	var both sync.WaitGroup
	pass := func(from net.Conn, to io.Writer) {
		_, _ = io.Copy(unlessDead{to, dead}, from)
		_ = far.Close()
		select {
		case <-dead:
		default:
			_ = near.Close()
		}
	}
	both.Go(func() { pass(near, far) })
	both.Go(func() { pass(far, near) })
	both.Wait()
}

// sever lets all connections that there are die.
func (l *link) sever() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, dead := range l.dead {
		close(dead)
	}
	l.dead = nil
}

// unlessDead writes to a connection, or nowhere once it is dead.
type unlessDead struct {
	io.Writer
	dead chan struct{}
}

func (w unlessDead) Write(p []byte) (int, error) {
	select {
	case <-w.dead:
		return len(p), nil
	default:
		return w.Writer.Write(p)
	}
}
