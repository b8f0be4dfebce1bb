package telegram

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/bridge/chats"
	"oneclaw/internal/retry"
)

const testToken = "123456:SECRET-0123456789-abcdefghij"

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

// inbox keeps what it accepts. Errors given to it are returned first.
type inbox struct {
	mu       sync.Mutex
	errs     []error
	accepted []chats.Message
	moves    [][2]chats.Chat
	calls    int
	changed  chan struct{}
}

func newInbox(errs ...error) *inbox {
	return &inbox{errs: errs, changed: make(chan struct{}, 1)}
}

func (in *inbox) Accept(_ context.Context, messages ...chats.Message) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	if len(in.errs) > 0 {
		err := in.errs[0]
		in.errs = in.errs[1:]
		return err
	}
	in.accepted = append(in.accepted, messages...)
	in.ring()
	return nil
}

func (in *inbox) Moved(_ context.Context, from, to chats.Chat) error {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.moves = append(in.moves, [2]chats.Chat{from, to})
	in.ring()
	return nil
}

func (in *inbox) ring() {
	select {
	case in.changed <- struct{}{}:
	default:
	}
}

// wait returns once fits is true of what was accepted.
func (in *inbox) wait(t *testing.T, fits func(in *inbox) bool) []chats.Message {
	t.Helper()
	for {
		in.mu.Lock()
		ok, got := fits(in), append([]chats.Message(nil), in.accepted...)
		in.mu.Unlock()
		if ok {
			return got
		}
		select {
		case <-in.changed:
		case <-t.Context().Done():
			t.Fatal("the test ended before the inbox had what it waits for")
		}
	}
}

func atLeast(n int) func(*inbox) bool {
	return func(in *inbox) bool { return len(in.accepted) >= n }
}

// transport answers calls in memory, so that the clock of a synctest bubble runs.
type transport func(ctx context.Context, method string, form url.Values) (status int, body string, err error)

func (f transport) RoundTrip(req *http.Request) (*http.Response, error) {
	var form url.Values
	if req.Body != nil {
		body, err := io.ReadAll(req.Body)
		if err = errors.Join(err, req.Body.Close()); err != nil {
			return nil, err
		}
		if form, err = url.ParseQuery(string(body)); err != nil {
			return nil, err
		}
	}
	status, body, err := f(req.Context(), path.Base(req.URL.Path), form)
	if err != nil {
		return nil, err
	}
	return &http.Response{
		StatusCode: status, Header: http.Header{}, Request: req,
		Body: io.NopCloser(strings.NewReader(body)), ContentLength: int64(len(body)),
	}, nil
}

func ok(result string) (int, string, error) { return 200, `{"ok":true,"result":` + result + `}`, nil }

func refusal(code int, text string) (int, string, error) {
	return code, fmt.Sprintf(`{"ok":false,"error_code":%d,"description":%q}`, code, text), nil
}

const me = `{"id":42,"is_bot":true,"first_name":"OneClaw","username":"oneclaw_bot"}`

// greet answers the calls at the start of a Run and leaves the rest to polls.
func greet(polls transport) transport {
	return func(ctx context.Context, method string, form url.Values) (int, string, error) {
		switch method {
		case "getMe":
			return ok(me)
		case "getWebhookInfo":
			return ok(`{"url":""}`)
		}
		return polls(ctx, method, form)
	}
}

// hang is a long poll during which nothing happens.
func hang(ctx context.Context, form url.Values) (int, string, error) {
	d, err := time.ParseDuration(form.Get("timeout") + "s")
	if err != nil {
		return refusal(400, err.Error())
	}
	if retry.Wait(ctx, d) != nil {
		return 0, "", ctx.Err()
	}
	return ok(`[]`)
}

// syncBuffer is a log that may be written while it is read.
type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

func newLog() (*syncBuffer, *slog.Logger) {
	b := &syncBuffer{}
	return b, slog.New(slog.NewTextHandler(b, &slog.HandlerOptions{Level: slog.LevelDebug}))
}

// newFake makes a platform over a transport.
func newFake(t *testing.T, over transport) (*platform, *syncBuffer) {
	t.Helper()
	logged, log := newLog()
	p, err := newPlatform(config{Settings: Settings{Token: testToken, APIURL: "http://telegram.test"}, httpClient: &http.Client{Transport: over}, logger: log})
	if err != nil {
		t.Fatal(err)
	}
	return p, logged
}

// run runs p until stop is called, which checks that Run ends without an error.
func run(t *testing.T, p *platform, in chats.Inbox) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- p.Run(ctx, in) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
	})
	return stop
}
