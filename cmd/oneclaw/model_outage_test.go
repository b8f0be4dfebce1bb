package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/agent/openai"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// away is a model that repeats the last message that it is asked, and is gone between two moments:
// nobody takes the connection, or, if it hangs, nobody answers.
type away struct {
	hangs    bool
	from, to time.Time

	mu     sync.Mutex
	perSec map[time.Time]int
	now    int // requests under way
	most   int
}

// RoundTrip implements http.RoundTripper.
func (a *away) RoundTrip(req *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	at := time.Now()
	a.perSec[at.Truncate(time.Second)]++
	a.now++
	a.most = max(a.most, a.now)
	a.mu.Unlock()
	defer func() {
		a.mu.Lock()
		a.now--
		a.mu.Unlock()
	}()
	gone := !at.Before(a.from) && at.Before(a.to)
	if gone && a.hangs {
		<-req.Context().Done()
		return nil, context.Cause(req.Context())
	}
	if gone {
		return nil, errors.New("connection refused")
	}
	var asked struct {
		Messages []struct{ Content string } `json:"messages"`
	}
	if err := json.Unmarshal(body, &asked); err != nil {
		return nil, err
	}
	timer := time.NewTimer(time.Second) // that a model takes
	defer timer.Stop()
	<-timer.C
	// What was not answered stands above it, in the same message.
	last := asked.Messages[len(asked.Messages)-1].Content
	text, err := json.Marshal("re: " + last[strings.LastIndex(last, "message "):])
	if err != nil {
		return nil, err
	}
	stream := fmt.Sprintf("data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":%s},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n", text)
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: io.NopCloser(strings.NewReader(stream)), Request: req,
	}, nil
}

// peak is the most requests of a second between two moments.
func (a *away) peak(from, to time.Time) (most int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for at, n := range a.perSec {
		if !at.Before(from) && at.Before(to) {
			most = max(most, n)
		}
	}
	return most
}

// wall is a platform that shows what it is given.
type wall struct {
	mu    sync.Mutex
	shown map[string][]string
}

func (w *wall) Name() string { return "wall" }

func (w *wall) Run(ctx context.Context, _ chats.Inbox) error {
	<-ctx.Done()
	return nil
}

func (w *wall) Render(markdown string) []chats.Part { return []chats.Part{{Text: markdown}} }

func (w *wall) Send(_ context.Context, to chats.Address, part chats.Part) (string, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.shown[to.Chat.ID] = append(w.shown[to.Chat.ID], part.Text)
	return fmt.Sprint(len(w.shown[to.Chat.ID])), nil
}

// TestAModelThatIsGoneForTenMinutes has thirty people write every half minute
// while the model is gone for ten minutes. Everybody gets one answer to each message, in
// order: from the model, or a sentence that says what to do. When it is back, it is asked
// no more than by one message of each chat at once.
func TestAModelThatIsGoneForTenMinutes(t *testing.T) {
	t.Parallel()
	for name, hangs := range map[string]bool{"nobody takes the connection": false, "nobody answers": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { outlastModel(t, hangs) })
		})
	}
}

func outlastModel(t *testing.T, hangs bool) {
	const people, each = 30, 40
	model := &away{hangs: hangs, perSec: map[time.Time]int{}, from: time.Now().Add(2 * time.Minute), to: time.Now().Add(12 * time.Minute)}
	page := &wall{shown: map[string][]string{}}
	b, stop := bridgeOn(t, model, page)
	for n := range each {
		for chat := range people {
			err := b.Accept(t.Context(), chats.Message{
				Chat: chats.Chat{Platform: page.Name(), ID: fmt.Sprint(chat)}, ID: fmt.Sprint(n), Kind: chats.KindText,
				User: fmt.Sprint(chat), Direct: true, Text: fmt.Sprint("message ", n), Time: time.Now(),
			})
			if err != nil {
				t.Fatal(err)
			}
			let(time.Second)
		}
	}
	let(time.Hour)
	stop()
	begun := model.from.Add(-2 * time.Minute)
	told := 0
	for chat := range people {
		answers := page.shown[fmt.Sprint(chat)]
		if len(answers) != each {
			t.Fatalf("chat %d got %d answers, want %d: %q", chat, len(answers), each, answers)
		}
		for n, text := range answers {
			switch {
			case strings.Contains(text, "I could not reach the language model. Please try again in a minute."):
				told++
			case text != fmt.Sprint("re: message ", n):
				t.Errorf("chat %d got %q for message %d", chat, text, n)
			}
		}
		if last := answers[each-1]; last != fmt.Sprint("re: message ", each-1) {
			t.Errorf("long after the model is back, chat %d got %q", chat, last)
		}
	}
	before, back := model.peak(begun, model.from), model.peak(model.to, model.to.Add(time.Minute))
	t.Logf("%d of %d messages were told to try again; requests a second at most %d before and %d in the minute after; %d at once",
		told, people*each, before, back, model.most)
	if told == 0 {
		t.Error("nobody was told")
	}
	if model.most > people {
		t.Errorf("%d requests at once for %d chats", model.most, people)
	}
	// Pauses have a random part: a few chats may meet in a second, a herd may not.
	if !hangs && back > people/5 {
		t.Errorf("when it was back, it was asked %d times in a second by %d chats, and %d times before", back, people, before)
	}
}

// bridgeOn is a bridge with a model and a platform.
func bridgeOn(t *testing.T, model http.RoundTripper, page chats.Platform) (*bridge.Bridge, func()) {
	t.Helper()
	client, err := openai.New(openai.Config{BaseURL: "http://model.test/v1", Model: "m", HTTPClient: &http.Client{Transport: model}})
	if err != nil {
		t.Fatal(err)
	}
	answering := agent.New(agent.Config{Model: client})
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Store: store, Turns: turn.Settings{Agent: answering, Tools: func() *toolgroups.Registry { return registry }},
		Platforms: []chats.Platform{page}, Access: access.Access{Allow: []string{"*"}}, DataDir: t.TempDir(),
		Logger: slog.New(slog.DiscardHandler),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	return b, func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			t.Error(err)
		}
	}
}

// let lets time pass in a synctest bubble.
func let(d time.Duration) { <-time.NewTimer(d).C }
