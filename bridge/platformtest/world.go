package platformtest

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"log/slog"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/receipts"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/toolgroups"
)

// patience bounds a wait; it only ends in a test that fails.
const patience = 20 * time.Second

// world is a harness with a bot in it that can be stopped and started.
type world struct {
	t       testing.TB
	harness Harness
	store   *hookedStore
	cfg     bridge.Config
	// think is the agent: it gets what users said in the conversation and answers the last message. It
	// is set before start.
	think thought
	// see, if not nil, is the agent instead of think, for tests that look at more than words.
	see func(agent.Turn) string
	// reads returns what the agent reads of a message.
	reads func(agent.Message) string
	// roams allows messages of the bot in places that were not opened.
	roams bool
	// speak, if not nil, is the agent, and its answer is shown while it is made.
	speak func(ctx context.Context, said []string, show func(piece string)) string

	// act, if not nil, runs before the agent answers.
	act func(ctx context.Context, observe func(agent.Event))

	// wrap, if not nil, wraps each adapter for the bridge.
	wrap func(chats.Platform) chats.Platform

	opened map[Place]bool
	// received gets a value each time a bridge has stopped receiving.
	received chan struct{}
	stop     func()
	fences   int
}

type thought func(ctx context.Context, said []string) string

func newWorld(t testing.TB, harness Harness) *world {
	t.Helper()
	registry, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "db"), NoSync: true})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, harness: harness, store: &hookedStore{Store: engine}, think: echo, reads: func(m agent.Message) string { return m.Text }, opened: map[Place]bool{}, received: make(chan struct{}, 1), stop: func() {}}
	w.cfg = bridge.Config{
		Store: w.store, Turns: turn.Settings{Agent: w, SeparateTurns: true, Tools: func() *toolgroups.Registry { return registry }}, DataDir: t.TempDir(), Limits: bridge.Limits{DrainTimeout: -1},
		Logger: slog.New(listener{slog.NewTextHandler(t.Output(), nil), w.received}),
	}
	return w
}

// listener is a log handler that notices when a bridge has stopped receiving.
type listener struct {
	slog.Handler
	received chan<- struct{}
}

func (l listener) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == bridge.NoMoreReceived {
		select {
		case l.received <- struct{}{}:
		default:
		}
	}
	return l.Handler.Handle(ctx, record)
}

// close stops everything that the world has started.
func (w *world) close() {
	w.stop()
	if err := w.store.Close(); err != nil {
		w.t.Error(err)
	}
}

// start runs a new adapter and a new bridge on the store.
func (w *world) start() {
	w.t.Helper()
	platform := w.harness.Adapter()
	if w.wrap != nil {
		platform = w.wrap(platform)
	}
	w.cfg.Platforms = []chats.Platform{platform}
	w.cfg.Access = access.Access{Allow: []string{platform.Name() + ":" + w.harness.Member, platform.Name() + ":" + w.harness.Admin}}
	b, err := bridge.New(w.cfg)
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	w.stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Errorf("Run: %v", err)
		}
	})
}

// Run implements the agent.
func (w *world) Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		var said []string
		for _, m := range turn.History {
			if m.Role == agent.RoleUser {
				said = append(said, w.reads(m))
			}
		}
		text := ""
		switch {
		case w.see != nil:
			text = w.see(turn)
		case w.speak == nil:
			text = w.think(ctx, said)
		default:
			if w.act != nil {
				w.act(ctx, turn.Observe)
			}
			turn.Observe(agent.Event{Request: &agent.RequestEvent{}})
			text = w.speak(ctx, said, func(piece string) { turn.Observe(agent.Event{Delta: &agent.Delta{Text: piece}}) })
		}
		if err := context.Cause(ctx); err != nil {
			yield(agent.Message{}, err)
			return
		}
		yield(agent.Message{Role: agent.RoleAssistant, Text: text, Final: true}, nil)
	}
}

// recall is the message that asks for what was said before.
const recall = "What did I say?"

func echo(_ context.Context, said []string) string {
	before, last := said[:len(said)-1], said[len(said)-1]
	if last == recall {
		return recalled(before...)
	}
	return reply(last)
}

func reply(text string) string { return "re: " + text }

func recalled(texts ...string) string { return "You said: " + strings.Join(texts, "; ") + "." }

// gate is an agent that holds back answers to messages that begin with "slow" until it is opened.
type gate struct {
	reached chan string
	open    chan struct{}
}

func newGate() *gate { return &gate{reached: make(chan string, 64), open: make(chan struct{})} }

func (g *gate) think(ctx context.Context, said []string) string {
	if last := said[len(said)-1]; strings.HasPrefix(last, "slow") {
		g.reached <- last
		select {
		case <-g.open:
		case <-ctx.Done():
		}
	}
	return echo(ctx, said)
}

// until waits for something that is not a change of the service.
func until[T any](t testing.TB, what string, c <-chan T) {
	t.Helper()
	timeout := time.NewTimer(patience)
	defer timeout.Stop()
	select {
	case <-c:
	case <-timeout.C:
		t.Fatalf("waited in vain for %s", what)
	}
}

func (w *world) open(kind Kind, by string) Place {
	w.t.Helper()
	place := w.harness.Open(kind, by)
	w.opened[place] = true
	return place
}

// everywhere opens one place of each kind, and a second thread.
func (w *world) everywhere() []Place {
	w.t.Helper()
	var places []Place
	for _, kind := range []Kind{Direct, Shared, Thread, Thread} {
		places = append(places, w.open(kind, w.harness.Member))
	}
	return places
}

// say sends a message of the member.
func (w *world) say(in Place, text string) {
	w.t.Helper()
	w.harness.Say(in, w.harness.Member, text)
}

// await returns the first view for which enough returns true.
func (w *world) await(what string, enough func(View) bool) View {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), patience)
	defer cancel()
	var last View
	err := w.harness.Await(ctx, func(v View) bool {
		last = v
		return enough(v)
	})
	if err != nil {
		w.t.Fatalf("waited in vain for %s: %v\nshown are %.800s", what, err, fmt.Sprintf("%+v", last))
	}
	return last
}

// look returns the present view.
func (w *world) look() View {
	w.t.Helper()
	return w.await("a look", func(View) bool { return true })
}

func (v View) in(place Place) []Shown {
	return slices.DeleteFunc(slices.Clone(v.Messages), func(s Shown) bool { return s.Place != place })
}

// shown waits for n messages in a place and returns all.
func (w *world) shown(place Place, n int) []Shown {
	w.t.Helper()
	return w.await(fmt.Sprintf("%d messages in %s", n, place), func(v View) bool { return len(v.in(place)) >= n }).in(place)
}

// settled returns the messages of a place once everything said there is answered: it waits for the
// answer to one more message, which is left out.
func (w *world) settled(place Place) []Shown {
	w.t.Helper()
	w.fences++
	text := fmt.Sprintf("fence %d", w.fences)
	w.say(place, text)
	isFence := func(s Shown) bool { return strings.Contains(s.Text, reply(text)) }
	all := w.await("the answer to "+text, func(v View) bool { return slices.ContainsFunc(v.in(place), isFence) }).in(place)
	return slices.DeleteFunc(all, func(s Shown) bool { return strings.Contains(s.Text, "fence ") })
}

// noStrays checks that the bot has written only where users did.
func (w *world) noStrays() {
	w.t.Helper()
	if w.t.Failed() || w.roams {
		return
	}
	for _, s := range w.look().Messages {
		if !w.opened[s.Place] {
			w.t.Errorf("nobody wrote in %s, yet there stands %q", s.Place, s.Text)
		}
	}
}

// want checks the messages of a place: each once, in this order, unmarked.
func (w *world) want(got []Shown, want ...string) {
	w.t.Helper()
	if got := texts(got); !slices.Equal(got, want) {
		w.t.Errorf("there stands %q, want %q", got, want)
	}
}

func texts(shown []Shown) []string {
	var list []string
	for _, s := range shown {
		list = append(list, strings.TrimSpace(s.Text))
	}
	return list
}

func marked(s Shown) bool { return strings.Contains(s.Text, chats.RepeatNotice) }

// record is an open job as stored.
type record struct {
	queue.Job

	Work turn.Work `json:"work"`
}

// hookedStore lets a test intercept writes of jobs.
type hookedStore struct {
	storage.Store

	mu   sync.Mutex // guards hook
	hook func(ctx context.Context, j record, write func() error) error
}

// onJob sets the hook for writes of open jobs; nil for none.
func (s *hookedStore) onJob(hook func(ctx context.Context, j record, write func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Put implements [storage.KV].
func (s *hookedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	var j record
	if hook == nil || json.Unmarshal(value, &j) != nil || j.State != receipts.Open {
		return s.Store.Put(ctx, key, value, rev)
	}
	err = hook(ctx, j, func() error {
		got, err = s.Store.Put(ctx, key, value, rev)
		return err
	})
	return got, err
}

// Write implements [storage.Store].
func (s *hookedStore) Write(ctx context.Context, ops ...storage.Op) (got storage.Revision, err error) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	write := func() error {
		got, err = s.Store.Write(ctx, ops...)
		return err
	}
	for _, op := range ops {
		var j record
		if hook != nil && json.Unmarshal(op.Value, &j) == nil && j.State == receipts.Open {
			return got, hook(ctx, j, write)
		}
	}
	return got, write()
}

// isSending reports whether a job is written because a part is being sent.
func isSending(j record) bool {
	return slices.ContainsFunc(j.Work.Parts, func(p receipts.Part) bool { return p.State == receipts.PartSending })
}
