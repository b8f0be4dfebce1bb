package slack

import (
	"bytes"
	"context"
	"flag"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"oneclaw/bridge/chats"
	"oneclaw/internal/cache"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
	"oneclaw/slack/shared"
	"oneclaw/storage"
)

func TestMain(m *testing.M) {
	_ = flag.Set("test.parallel", "8") // they wait more than they compute
	goleak.VerifyTestMain(m)
}

// inbox keeps what it accepts. Its errors are returned first.
type inbox struct {
	mu       sync.Mutex
	errs     []error
	down     error // where set, it is returned
	accepted []chats.Message
	calls    int
	changed  chan struct{}
	// before, where set, is called before a message is accepted.
	before func(chats.Message)
}

func newInbox() *inbox { return &inbox{changed: make(chan struct{}, 1)} }

func (in *inbox) Accept(_ context.Context, messages ...chats.Message) error {
	if in.before != nil {
		in.before(messages[0])
	}
	in.mu.Lock()
	defer in.mu.Unlock()
	in.calls++
	if in.down != nil {
		return in.down
	}
	if len(in.errs) > 0 {
		err := in.errs[0]
		in.errs = in.errs[1:]
		return err
	}
	in.accepted = append(in.accepted, messages...)
	select {
	case in.changed <- struct{}{}:
	default:
	}
	return nil
}

// fail has the inbox accept nothing while err is set.
func (in *inbox) fail(err error) {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.down = err
}

func (in *inbox) Moved(context.Context, chats.Chat, chats.Chat) error { return nil }

// Command implements [chats.CommandInbox].
func (in *inbox) Command(name string) (chats.CommandInfo, bool) {
	return chats.CommandInfo{Name: name, NeedsThread: name == "clear" || name == "stop"},
		slices.Contains([]string{"clear", "stop", "help", "model", "status", "tools", "usage", "whoami"}, name)
}

func (in *inbox) all() []chats.Message {
	in.mu.Lock()
	defer in.mu.Unlock()
	return append([]chats.Message(nil), in.accepted...)
}

// wait returns once n messages were accepted.
func (in *inbox) wait(t *testing.T, n int) []chats.Message {
	t.Helper()
	timeout := time.After(patience)
	for {
		if got := in.all(); len(got) >= n {
			return got
		}
		select {
		case <-in.changed:
		case <-timeout:
			t.Fatalf("only %d of %d messages came", len(in.all()), n)
		}
	}
}

// waitFor waits for a message with a text; others may come more than once.
func (in *inbox) waitFor(t *testing.T, text string) {
	t.Helper()
	timeout := time.After(patience)
	for !slices.ContainsFunc(in.all(), func(m chats.Message) bool { return m.Text == text }) {
		select {
		case <-in.changed:
		case <-timeout:
			t.Fatalf("%q did not come: %+v", text, in.all())
		}
	}
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

// fixture is a platform in a workspace with Ann, her DM and a channel.
type fixture struct {
	*emulator.Server
	t      *testing.T
	p      *platform
	in     *inbox
	log    *syncBuffer
	client *http.Client
	// settings are the platform's.
	settings Settings
	url      string
	user     string
	dm       string
	channel  string
	stop     func()
}

// patience bounds what is waited for that comes at once unless something is wrong.
const patience = 3 * time.Minute

// quick is a workspace that does not let tests wait, and delivers nothing again for being late.
func quick() emulator.Config {
	return emulator.Config{Delivery: emulator.Delivery{AckTimeout: patience, RetryDelays: []time.Duration{0, 0, 0, 0, 0}, PingInterval: 20 * time.Millisecond}}
}

// setup makes a workspace and a platform that does not run yet.
func setup(t *testing.T, cfg emulator.Config, change func(*config)) *fixture {
	t.Helper()
	cfg.RequireLength = true
	s, err := emulator.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	address, err := s.Start(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{Server: s, t: t, in: newInbox(), log: &syncBuffer{}, url: address}
	f.user = s.AddUser(emulator.User{ID: "U1", Name: "ann", RealName: "Ann Lee"}).ID
	f.dm = f.make(emulator.ChannelSpec{ID: "D1", Kind: emulator.DM, Members: []string{f.user}})
	f.channel = f.make(emulator.ChannelSpec{ID: "C1", Name: "general", Members: []string{f.user}})
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 32}}
	f.client = client
	config := config{
		Settings: Settings{BotToken: redact.Secret(s.BotToken()), AppToken: redact.Secret(s.AppToken()), APIURL: address}, httpClient: client, pingTimeout: 10 * time.Second,
		logger: slog.New(slog.NewTextHandler(f.log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	if change != nil {
		change(&config)
	}
	f.settings = config.Settings
	if f.p, err = newPlatform(config); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		client.CloseIdleConnections()
	})
	return f
}

// start is setup with a platform that runs and is connected.
func start(t *testing.T, cfg emulator.Config, change func(*config)) *fixture {
	t.Helper()
	f := setup(t, cfg, change)
	f.run()
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
	return f
}

// run runs the platform until stop is called, which checks that Run ends without
// an error.
func (f *fixture) run() {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- f.p.Run(ctx, f.in) }()
	f.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			f.t.Errorf("Run: %v", err)
		}
	})
	f.t.Cleanup(f.stop)
}

// forget has the platform know no more than after a restart.
func (f *fixture) forget(kv storage.KV) {
	f.p.threads = cache.New[chats.Chat, thread](maxCached)
	f.p.progress = shared.NewProgress(kv, &f.p.api.clock)
}

func (f *fixture) make(spec emulator.ChannelSpec) string {
	f.t.Helper()
	id, err := f.AddChannel(spec)
	if err != nil {
		f.t.Fatal(err)
	}
	return id
}

func (f *fixture) say(channel, text string, opts *emulator.SayOptions) emulator.Sent {
	f.t.Helper()
	sent, err := f.Say(channel, f.user, text, opts)
	if err != nil {
		f.t.Fatal(err)
	}
	return sent
}

func (f *fixture) inject(fault emulator.Fault) {
	f.t.Helper()
	if _, err := f.Inject(fault); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fixture) wait(cond func(emulator.State) bool) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.t.Context(), patience)
	defer cancel()
	if err := f.WaitFor(ctx, cond); err != nil {
		f.t.Fatalf("%v\n%s", err, f.log)
	}
}

func (f *fixture) acked(sent ...emulator.Sent) {
	f.t.Helper()
	f.wait(func(s emulator.State) bool {
		for _, one := range sent {
			if !s.AllAcked(one.Envelopes...) {
				return false
			}
		}
		return true
	})
}

func (f *fixture) send(chat chats.Chat, part chats.Part) (ts string, err error) {
	f.t.Helper()
	return f.p.Send(f.t.Context(), chats.Address{Chat: chat}, part)
}

func chatOf(channel, thread string) chats.Chat {
	return chats.Chat{Platform: platformName, ID: channel, Thread: thread}
}

// noSecrets fails where one of the secrets stands in a text.
func (f *fixture) noSecrets(text string) {
	f.t.Helper()
	for _, secret := range []string{f.BotToken(), f.AppToken(), f.SigningSecret(), "ticket-"} {
		if strings.Contains(text, secret) {
			f.t.Errorf("%q is told in:\n%s", secret, text)
		}
	}
}
