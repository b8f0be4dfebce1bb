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

// patience bounds a wait; only a failing test waits that long. It is shorter than a send may take, so
// that a test fails if an adapter hangs.
const patience = 50 * time.Second

// world is a harness with a bot in it that can be stopped and started.
type world struct {
	t       testing.TB
	harness Harness
	store   *hookedStore
	cfg     bridge.Config
	// respond is the agent: it gets what users said in the conversation and answers the last message. It
	// is set before start.
	respond responder
	// respondToTurn, if not nil, is the agent instead of respond, for tests that look at more than
	// words.
	respondToTurn func(agent.Turn) string
	// textOf returns the text of a message that the agent reads.
	textOf func(agent.Message) string
	// allowStrays allows messages from the bot in places that were not opened.
	allowStrays bool
	// stream, if not nil, is the agent instead of respond, and its answer is shown while it is
	// generated.
	stream func(ctx context.Context, said []string, show func(piece string)) string

	// beforeAnswer, if not nil, runs before stream.
	beforeAnswer func(ctx context.Context, observe func(agent.Event))

	// wrap, if not nil, wraps each adapter for the bridge.
	wrap func(chats.Platform) chats.Platform

	opened map[Place]bool
	// received gets a value each time a bridge has stopped receiving.
	received chan struct{}
	stop     func()
	markers  int
}

type responder func(ctx context.Context, said []string) string

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
	w := &world{t: t, harness: harness, store: &hookedStore{Store: engine}, respond: echo, textOf: func(m agent.Message) string { return m.Text }, opened: map[Place]bool{}, received: make(chan struct{}, 1), stop: func() {}}
	w.cfg = bridge.Config{
		Store: w.store, Turns: turn.Settings{Agent: w, SeparateTurns: true, Tools: func() *toolgroups.Registry { return registry }}, DataDir: t.TempDir(), Limits: bridge.Limits{DrainTimeout: -1},
		Logger: slog.New(drainNotifier{slog.NewTextHandler(t.Output(), nil), w.received}),
	}
	return w
}

// drainNotifier is a log handler that sends on received when a bridge logs that it has stopped
// receiving.
type drainNotifier struct {
	slog.Handler
	received chan<- struct{}
}

func (l drainNotifier) Handle(ctx context.Context, record slog.Record) error {
	if record.Message == bridge.NoMoreReceived {
		select {
		case l.received <- struct{}{}:
		default:
		}
	}
	return l.Handler.Handle(ctx, record)
}

// close stops the bot and closes the store.
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

// Run implements [turn.Agent].
func (w *world) Run(ctx context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		var said []string
		for _, m := range turn.History {
			if m.Role == agent.RoleUser {
				said = append(said, w.textOf(m))
			}
		}
		text := ""
		switch {
		case w.respondToTurn != nil:
			text = w.respondToTurn(turn)
		case w.stream == nil:
			text = w.respond(ctx, said)
		default:
			if w.beforeAnswer != nil {
				w.beforeAnswer(ctx, turn.Observe)
			}
			turn.Observe(agent.Event{Request: &agent.RequestEvent{}})
			text = w.stream(ctx, said, func(piece string) { turn.Observe(agent.Event{Delta: &agent.Delta{Text: piece}}) })
		}
		if err := context.Cause(ctx); err != nil {
			yield(agent.Message{}, err)
			return
		}
		yield(agent.Message{Role: agent.RoleAssistant, Text: text, Final: true}, nil)
	}
}

// recall is the message that asks what the user has said before.
const recall = "What did I say?"

func echo(_ context.Context, said []string) string {
	before, last := said[:len(said)-1], said[len(said)-1]
	if last == recall {
		return recallReply(before...)
	}
	return reply(last)
}

func reply(text string) string { return "re: " + text }

func recallReply(texts ...string) string { return "You said: " + strings.Join(texts, "; ") + "." }

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

// waitFor waits for an event that is not a change of the service.
func waitFor[T any](t testing.TB, what string, c <-chan T) {
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

// openAll opens one place of each kind, and a second thread.
func (w *world) openAll() []Place {
	w.t.Helper()
	var places []Place
	for _, kind := range []Kind{Direct, Shared, thread, thread} {
		places = append(places, w.open(kind, w.harness.Member))
	}
	return places
}

// say sends a message from the member.
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

// view returns the current view.
func (w *world) view() View {
	w.t.Helper()
	return w.await("a look", func(View) bool { return true })
}

func (v View) inPlace(place Place) []Shown {
	return slices.DeleteFunc(slices.Clone(v.Messages), func(s Shown) bool { return s.Place != place })
}

// awaitShown waits for n messages in a place and returns all of them.
func (w *world) awaitShown(place Place, n int) []Shown {
	w.t.Helper()
	return w.await(fmt.Sprintf("%d messages in %s", n, place), func(v View) bool { return len(v.inPlace(place)) >= n }).inPlace(place)
}

// awaitSettled returns the messages of a place once all messages there are answered. It sends one more
// message and waits for the answer to it. Answers to such messages are not included.
func (w *world) awaitSettled(place Place) []Shown {
	w.t.Helper()
	w.markers++
	text := fmt.Sprintf("fence %d", w.markers)
	w.say(place, text)
	isFence := func(s Shown) bool { return strings.Contains(s.Text, reply(text)) }
	all := w.await("the answer to "+text, func(v View) bool { return slices.ContainsFunc(v.inPlace(place), isFence) }).inPlace(place)
	return slices.DeleteFunc(all, func(s Shown) bool { return strings.Contains(s.Text, "fence ") })
}

// wantNoStrays checks that the bot has written only in places that the test has opened.
func (w *world) wantNoStrays() {
	w.t.Helper()
	if w.t.Failed() || w.allowStrays {
		return
	}
	for _, s := range w.view().Messages {
		if !w.opened[s.Place] {
			w.t.Errorf("no user wrote in %s, but the bot sent %q", s.Place, s.Text)
		}
	}
}

// want checks the messages of a place: each appears once, in this order, unmarked.
func (w *world) want(got []Shown, want ...string) {
	w.t.Helper()
	if got := texts(got); !slices.Equal(got, want) {
		w.t.Errorf("shown: %q, want %q", got, want)
	}
}

func texts(shown []Shown) []string {
	var list []string
	for _, s := range shown {
		list = append(list, strings.TrimSpace(s.Text))
	}
	return list
}

func isMarked(s Shown) bool { return strings.Contains(s.Text, chats.RepeatNotice) }

// jobRecord is an open job as stored.
type jobRecord struct {
	queue.Job

	Work turn.Work `json:"work"`
}

// hookedStore lets a test intercept writes of jobs.
type hookedStore struct {
	storage.Store

	mu   sync.Mutex // guards hook
	hook func(ctx context.Context, j jobRecord, write func() error) error
}

// onJob sets the hook for writes of open jobs; nil for none.
func (s *hookedStore) onJob(hook func(ctx context.Context, j jobRecord, write func() error) error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.hook = hook
}

// Put implements [storage.KV].
func (s *hookedStore) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (got storage.Revision, err error) {
	s.mu.Lock()
	hook := s.hook
	s.mu.Unlock()
	var j jobRecord
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
		var j jobRecord
		if hook != nil && json.Unmarshal(op.Value, &j) == nil && j.State == receipts.Open {
			return got, hook(ctx, j, write)
		}
	}
	return got, write()
}

// isSending reports whether the record says that a part is being sent.
func isSending(j jobRecord) bool {
	return slices.ContainsFunc(j.Work.Parts, func(p receipts.Part) bool { return p.State == receipts.PartSending })
}
