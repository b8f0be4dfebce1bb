package telegram

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	emulator "oneclaw/internal/emulator/telegram"
	"oneclaw/internal/redact"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// echo answers at once with what was said last.
type echo struct{}

func (echo) Run(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		said := turn.History[len(turn.History)-1].Text
		yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + said, Final: true}, nil)
	}
}

// refusals counts, by chat, the messages that a server refuses with 429.
type refusals struct {
	http.Handler
	mu sync.Mutex // guards by
	by map[string]int
}

func (c *refusals) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	noted := &noted{ResponseWriter: w}
	c.Handler.ServeHTTP(noted, r)
	form, err := url.ParseQuery(string(body))
	if err == nil && noted.code == http.StatusTooManyRequests && path.Base(r.URL.Path) == "sendMessage" {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.by[form.Get("chat_id")]++
	}
}

type noted struct {
	http.ResponseWriter
	code int
}

func (n *noted) WriteHeader(code int) {
	n.code = code
	n.ResponseWriter.WriteHeader(code)
}

// runBridge runs a real bridge that lets everybody in on a platform.
func runBridge(t *testing.T, p *platform) (stop func()) {
	t.Helper()
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Store: store, Turns: turn.Settings{Agent: echo{}, SeparateTurns: true, Tools: func() *toolgroups.Registry { return registry }}, Platforms: []chats.Platform{p}, DataDir: t.TempDir(),
		Access: access.Access{Allow: []string{"telegram:*"}},
		Limits: bridge.Limits{DrainTimeout: -1, Concurrency: bridge.Concurrency{MaxWaitingMember: 1000}},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	}
}

// TestStormThroughTheBridge has people in three groups write more than the bot may
// answer there, and one person elsewhere who must not notice. All is real but the clock,
// the network and the model.
func TestStormThroughTheBridge(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const each = 45
		s := flooded(t, &emulator.Limits{PerChat: 1, Burst: 5, PerGroup: 20})
		count := &refusals{Handler: s.Server, by: map[string]int{}}
		p, err := newPlatform(config{Settings: Settings{Token: redact.Secret(s.Token()), APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: inMemory(count)}})
		if err != nil {
			t.Fatal(err)
		}
		stop := runBridge(t, p)
		defer stop()
		var groups []int64
		var want []string
		for range 3 {
			groups = append(groups, s.chat(t, emulator.ChatSpec{Kind: emulator.Group, User: s.ann}))
		}
		for i := range each {
			text := fmt.Sprintf("question %02d", i)
			want = append(want, "re: "+text)
			for _, group := range groups {
				s.say(t, group, "@oneclaw_bot "+text, nil)
			}
		}
		for i := range 12 {
			time.Sleep(10 * time.Second)
			s.say(t, s.ann, strconv.Itoa(i), nil)
			s.until(t, func(st emulator.State) bool { return st.CountAnswers(s.ann) == i+1 })
		}
		for _, group := range groups {
			s.until(t, func(st emulator.State) bool { return st.CountAnswers(group) >= each })
		}
		time.Sleep(time.Hour) // for what should not come
		for _, group := range groups {
			var got []string
			for _, m := range s.answers(group) {
				got = append(got, m.Text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("in group %d there stands %q", group, got)
			}
			if n := count.by[strconv.FormatInt(group, 10)]; n == 0 || n > each/5 {
				t.Errorf("%d of %d answers in group %d were refused", n, each, group)
			}
		}
		if n := count.by[strconv.FormatInt(s.ann, 10)]; n != 0 {
			t.Errorf("%d answers in the chat beside were refused", n)
		}
		s.View(func(st emulator.State) {
			if st.PenaltyAttempts() != 0 {
				t.Errorf("%d messages were sent during a penalty", st.PenaltyAttempts())
			}
		})
	})
}
