package slack

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/turn"
	emulator "oneclaw/internal/emulator/slack"
	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// notes keep what one platform after another has kept.
type notes struct {
	storage.KV

	mu    sync.Mutex
	state map[string]storage.Entry
	last  storage.Revision
	err   error
}

func (n *notes) Get(_ context.Context, key string) (storage.Entry, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	entry, ok := n.state[key]
	if !ok && n.err == nil {
		return storage.Entry{}, storage.ErrNotFound
	}
	return entry, n.err
}

func (n *notes) Put(_ context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	switch {
	case n.err != nil:
		return 0, n.err
	case rev != storage.Any && rev != n.state[key].Revision:
		return 0, storage.ErrConflict
	}
	if n.state == nil {
		n.state = map[string]storage.Entry{}
	}
	n.last++
	n.state[key] = storage.Entry{Key: key, Value: slices.Clone(value), Revision: n.last}
	return n.last, nil
}

func (n *notes) Delete(_ context.Context, key string, rev storage.Revision) error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if rev != n.state[key].Revision {
		return storage.ErrConflict
	}
	delete(n.state, key)
	return n.err
}

func (n *notes) List(_ context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	return func(yield func(storage.Entry, error) bool) {
		for key, entry := range n.copy() {
			if strings.HasPrefix(key, r.Prefix) && !yield(entry, nil) {
				return
			}
		}
	}
}

// fail has the store fail while err is set.
func (n *notes) fail(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.err = err
}

func (n *notes) copy() map[string]storage.Entry {
	n.mu.Lock()
	defer n.mu.Unlock()
	return maps.Clone(n.state)
}

func (n *notes) replace(state map[string]storage.Entry) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.state = state
}

// deaf is a workspace that delivers nothing while it is, and never again.
func deaf() emulator.Config {
	cfg := quick()
	cfg.AckTimeout, cfg.RetryDelays = 100*time.Millisecond, []time.Duration{}
	return cfg
}

// lose has the events of a workspace be lost, until the returned function is called.
func (f *fixture) lose() (hear func()) {
	f.t.Helper()
	id, err := f.Inject(emulator.Fault{Method: "envelope", Effect: emulator.Hang})
	if err != nil {
		f.t.Fatal(err)
	}
	return func() { f.Remove(id) }
}

// echo answers each message with its text.
type echo struct{}

func (echo) Run(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		question := turn.History[len(turn.History)-1]
		yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + question.Text, Final: true}, nil)
	}
}

// answers are what the bot said everywhere, sorted.
func (f *fixture) answers() []string {
	var all []string
	f.View(func(s emulator.State) {
		for _, channel := range s.Channels() {
			for _, m := range s.Answers(channel) {
				all = append(all, m.Text)
			}
		}
	})
	slices.Sort(all)
	return all
}

func TestWhatASocketMissedIsAnsweredOnce(t *testing.T) {
	t.Parallel()
	f := setup(t, deaf(), nil)
	f.bridged(echo{})
	root := f.say(f.channel, "<@U0BOT> one", nil)
	f.wait(func(s emulator.State) bool { return s.CountAnswers("") == 1 })
	f.acked(root)

	hear := f.lose()
	f.inject(emulator.Fault{Method: "apps.connections.open", Times: 2, Effect: emulator.ServerError})
	missed := []emulator.Sent{
		f.say(f.dm, "two", nil),
		f.say(f.channel, "three", &emulator.SayOptions{Thread: root.TS}),
		f.say(f.channel, "<@U0BOT> four", nil),
		f.say(f.channel, "lunch?", nil),
	}
	f.BreakSockets()
	f.wait(func(s emulator.State) bool { return s.CountAnswers("") == 4 })
	hear()
	// Events that come late after all meet the same messages.
	f.wait(func(s emulator.State) bool {
		for _, sent := range missed {
			for _, id := range sent.Envelopes {
				if e, _ := s.Envelope(id); e.State != emulator.Lost {
					return false
				}
			}
		}
		return true
	})
	f.Redeliver()
	f.acked(missed...)
	f.acked(f.say(f.dm, "five", nil))
	f.wait(func(s emulator.State) bool { return s.CountAnswers("") == 5 })
	if diff := cmp.Diff([]string{"re: five", "re: four", "re: one", "re: three", "re: two"}, f.answers()); diff != "" {
		t.Errorf("answers (-want +got):\n%s", diff)
	}
}

func TestBackfillAfterARestart(t *testing.T) {
	var back atomic.Int64
	cfg := deaf()
	cfg.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	kept := &notes{}
	back.Store(int64(2 * time.Hour))
	f := start(t, cfg, func(c *config) { c.kv = kept })
	root := f.say(f.channel, "<@U0BOT> an old thread", nil)
	quiet := f.say(f.channel, "a thread without the bot", nil)
	f.acked(root, quiet)
	back.Store(0)
	f.Disconnect("refresh_requested")
	f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 2 })
	f.acked(f.say(f.channel, "a sign of life two hours later", nil))
	before := len(f.in.all())
	f.stop()

	f.lose()
	var want []string
	for i := range 3 * missedPageSize / 2 {
		f.say(f.dm, "message "+strconv.Itoa(i), nil)
		want = append(want, "message "+strconv.Itoa(i))
	}
	f.say(f.dm, "/stop", nil)
	f.say(f.channel, "a reply", &emulator.SayOptions{Thread: root.TS})
	f.say(f.channel, "not for the bot", &emulator.SayOptions{Thread: quiet.TS})
	begun := f.say(f.channel, "lunch?", nil)
	f.say(f.channel, "<@U0BOT> what do you say?", &emulator.SayOptions{Thread: begun.TS})
	want = append(want, "a reply", "what do you say?")

	p, err := newPlatform(config{
		Settings: Settings{BotToken: redact.Secret(f.BotToken()), AppToken: redact.Secret(f.AppToken()), APIURL: f.url}, httpClient: f.client, kv: kept,
		logger: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	f.p = p
	f.run()
	var got []string
	for _, m := range f.in.wait(t, before+len(want))[before:] {
		got = append(got, m.Text)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	f.stop()
	if since, _ := p.progress.Gap(); !since.IsZero() {
		t.Errorf("the gap since %v is not filled", since)
	}
}

// Threads in which the bot takes part are searched however many there are.
func TestBackfillSearchesAllThreadsOfTheBot(t *testing.T) {
	f := start(t, deaf(), func(c *config) { c.kv = &notes{} })
	root := f.say(f.channel, "<@U0BOT> the first thread", nil)
	f.acked(root)
	for range maxThreads {
		f.acked(f.say(f.channel, "<@U0BOT> another thread", nil))
	}
	f.lose()
	f.say(f.channel, "a reply", &emulator.SayOptions{Thread: root.TS})
	f.BreakSockets()
	f.in.waitFor(t, "a reply")
}

func TestBackfillTellsOfAThreadWithTooManyReplies(t *testing.T) {
	f := setup(t, quick(), nil)
	f.p.progress.RecordAlive()
	f.SetScopes("chat:write") // nothing is delivered
	root := f.say(f.channel, "<@U0BOT> a thread", nil)
	for i := range maxMissed + 2*missedPageSize {
		f.say(f.channel, fmt.Sprint("reply ", i), &emulator.SayOptions{Thread: root.TS})
	}
	f.SetScopes(emulator.DefaultScopes()...)
	f.run()
	f.in.waitFor(t, fmt.Sprint("reply ", maxMissed+missedPageSize-2)) // the last of a page: the first has the root, too
	f.stop()
	if log := f.log.String(); !strings.Contains(log, "too many replies") {
		t.Errorf("the log does not say that some are missing:\n%s", log)
	}
}

func TestBackfillOnlyWhereSomethingMayBeMissing(t *testing.T) {
	f := start(t, quick(), func(c *config) { c.kv = &notes{} })
	f.acked(f.say(f.dm, "the first start", nil))
	f.Disconnect("refresh_requested")
	f.wait(func(s emulator.State) bool { return s.OpenedSockets() >= 2 })
	f.acked(f.say(f.dm, "a new socket takes over", nil))
	f.stop()
	f.View(func(s emulator.State) {
		if n := s.CallCount("users.conversations") + s.CallCount("conversations.history"); n != 0 {
			t.Errorf("%d calls for messages that are not missing", n)
		}
	})
}

func TestBackfillSurvivesTrouble(t *testing.T) {
	t.Parallel()
	f := start(t, deaf(), nil)
	f.make(emulator.ChannelSpec{ID: "C7", Kind: emulator.Private, Members: []string{f.user}})
	f.make(emulator.ChannelSpec{ID: "C8", Kind: emulator.Private, Members: []string{f.user}})
	f.acked(f.say(f.dm, "one", nil))
	f.lose()
	f.say("C7", "<@U0BOT> secret", nil)
	f.say("C8", "<@U0BOT> secret", nil)
	f.say(f.channel, "<@U0BOT> two", nil)
	f.say(f.dm, "three", nil)
	f.SetScopes(slices.DeleteFunc(emulator.DefaultScopes(), func(s string) bool {
		return s == "groups:history" || s == "mpim:read"
	})...)
	f.in.mu.Lock()
	f.in.errs = []error{errors.New("disk full")}
	f.in.mu.Unlock()
	for _, fault := range []emulator.Fault{
		{Method: "users.conversations", Times: 1, Effect: emulator.CutBefore},
		{Method: "conversations.history", Times: 1, Effect: emulator.TooManyRequests, RetryAfter: 1},
		{Method: "conversations.history", Times: 1, Effect: emulator.ServerError},
		{Method: "conversations.history", Times: 1, Effect: emulator.CutAfter},
	} {
		f.inject(fault)
	}
	f.BreakSockets()
	seen := func() (texts []string) {
		for _, m := range f.in.all() {
			if !slices.Contains(texts, m.Text) {
				texts = append(texts, m.Text)
			}
		}
		return texts
	}
	for n := 2; len(seen()) < 3; n++ {
		f.in.wait(t, n)
	}
	if diff := cmp.Diff([]string{"one", "three", "two"}, seen()); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
	f.stop()
	for _, scope := range []string{"scope=mpim:read", "scope=groups:history"} {
		if n := strings.Count(f.log.String(), scope); n != 1 {
			t.Errorf("the log names %s %d times", scope, n)
		}
	}
}

func TestWhatCouldNotBeStoredWhileSlackDeliveredIsFetched(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) *fixture{
		"socket": func(t *testing.T) *fixture { return setup(t, deaf(), nil) },
		"posted": posted,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := open(t)
			f.run()
			f.in.fail(errors.New("disk full"))
			missed := []emulator.Sent{
				f.say(f.dm, "one", nil),
				f.say(f.channel, "<@U0BOT> two", nil),
			}
			f.wait(func(s emulator.State) bool {
				for _, sent := range missed {
					if e, _ := s.Envelope(sent.Envelopes[0]); e.State != emulator.Lost {
						return false
					}
				}
				return true
			})
			f.in.fail(nil)
			f.in.waitFor(t, "one")
			f.in.waitFor(t, "two")
			f.stop()
			var texts []string
			for _, m := range f.in.all() {
				texts = append(texts, m.Text)
			}
			slices.Sort(texts)
			if diff := cmp.Diff([]string{"one", "two"}, slices.Compact(texts)); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestPostedEventsForWhichThereWasNoRoomAreFetched(t *testing.T) {
	f := posted(t)
	f.run()
	f.acked(f.say(f.dm, "one", nil))
	r, gate := f.p.receiver.Load(), make(chan struct{})
	for range maxAccepting {
		r.queues.enqueue(t.Context(), "hanging", func() { <-gate })
	}
	hear := f.lose()
	missed := f.say(f.dm, "two", nil)
	body := fmt.Appendf(nil, `{"type":"event_callback","team_id":%q,"event":{"type":"message","channel":%q,"channel_type":"im","user":%q,"text":"two","ts":%q}}`,
		f.Team(), f.dm, f.user, missed.TS)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // Slack has closed the connection
	req := httptest.NewRequestWithContext(ctx, http.MethodPost, "/slack/events", bytes.NewReader(body))
	maps.Copy(req.Header, f.SignatureHeaders(body, time.Now()))
	req.Header.Set("Content-Type", "application/json")
	f.p.Events().ServeHTTP(httptest.NewRecorder(), req)
	close(gate)
	f.in.waitFor(t, "two")
	hear()
}

// A start whose store cannot be read does not overwrite up to when messages had arrived.
func TestBackfillAfterAStartThatCouldNotReadTheMarks(t *testing.T) {
	t.Parallel()
	var back atomic.Int64
	cfg := deaf()
	cfg.Now = func() time.Time { return time.Now().Add(-time.Duration(back.Load())) }
	kept := &notes{}
	back.Store(int64(2 * time.Hour))
	f := start(t, cfg, func(c *config) { c.kv = kept })
	f.acked(f.say(f.dm, "one", nil))
	f.stop()
	f.lose()
	back.Store(int64(time.Hour))
	missed := f.say(f.dm, "two", nil)

	back.Store(0)
	kept.fail(errors.New("disk full"))
	again := f.twin(kept, nil)
	again.run()
	f.wait(func(s emulator.State) bool { e, _ := s.Envelope(missed.Envelopes[0]); return e.State == emulator.Lost })
	kept.fail(nil)
	again.stop()

	last := f.twin(kept, nil)
	last.run()
	for n := 1; !slices.ContainsFunc(last.in.all(), func(m chats.Message) bool { return m.Text == "two" }); n++ {
		last.in.wait(t, n)
	}
}

func TestMarksThatCannotBeKept(t *testing.T) {
	kept := &notes{err: errors.New("disk full")}
	f := start(t, quick(), func(c *config) { c.kv = kept })
	f.acked(f.say(f.dm, "one", nil))
	f.stop()
	if log := f.log.String(); !strings.Contains(log, "cannot load the cursor") || !strings.Contains(log, "cannot save the cursor") {
		t.Errorf("the log does not say it:\n%s", log)
	}
}

// bridged runs a bridge with an agent over the platform.
func (f *fixture) bridged(a turn.Agent) {
	f.t.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(f.t.TempDir(), "db"), NoSync: true})
	if err != nil {
		f.t.Fatal(err)
	}
	reg, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		f.t.Fatal(err)
	}
	b, err := bridge.New(bridge.Config{
		Store: store, Turns: turn.Settings{Agent: a, SeparateTurns: true, Tools: func() *toolgroups.Registry { return reg }}, Platforms: []chats.Platform{f.p},
		Access: access.Access{Allow: []string{"*"}}, DataDir: f.t.TempDir(), Logger: slog.New(slog.NewTextHandler(f.log, nil)),
	})
	if err != nil {
		f.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	f.t.Cleanup(func() {
		cancel()
		if err := errors.Join(<-done, store.Close()); err != nil {
			f.t.Error(err)
		}
	})
	f.wait(func(s emulator.State) bool { return s.ActiveSockets() > 0 })
}
