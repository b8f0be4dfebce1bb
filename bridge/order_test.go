package bridge_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
	"oneclaw/toolgroups"
)

// chance draws how long things take, for all who share it.
type chance struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (c *chance) below(n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rng.IntN(n)
}

// moment is mostly short, at times long.
func (c *chance) moment() time.Duration {
	switch n := c.below(100); {
	case n < 60:
		return time.Duration(c.below(3000)) * time.Microsecond
	case n < 97:
		return time.Duration(c.below(60)) * time.Millisecond
	}
	return time.Duration(c.below(600)) * time.Millisecond
}

// linger waits, by the clock of the test.
func linger(d time.Duration) {
	timer := time.NewTimer(d)
	<-timer.C
}

// far is a store that some process reaches over a network: each step takes a moment, is held
// up while the process is paused, and fails when it was killed.
type far struct {
	storage.Store
	chance *chance

	mu     sync.Mutex
	killed bool
	paused chan struct{} // nil while it is not
}

var errKilled = errors.New("killed")

func (f *far) step() error {
	for waited := false; ; waited = true {
		f.mu.Lock()
		killed, paused := f.killed, f.paused
		f.mu.Unlock()
		switch {
		case killed:
			return errKilled
		case paused != nil:
			<-paused
		case waited:
			return nil
		}
		linger(f.chance.moment())
	}
}

// around does something between two steps.
func around[T any](f *far, do func() (T, error)) (got T, err error) {
	if err = f.step(); err != nil {
		return got, err
	}
	got, err = do()
	if killed := f.step(); killed != nil {
		err = killed
	}
	return got, err
}

func (f *far) Get(ctx context.Context, key string) (storage.Entry, error) {
	return around(f, func() (storage.Entry, error) { return f.Store.Get(ctx, key) })
}

func (f *far) Put(ctx context.Context, key string, value []byte, rev storage.Revision) (storage.Revision, error) {
	return around(f, func() (storage.Revision, error) { return f.Store.Put(ctx, key, value, rev) })
}

func (f *far) Write(ctx context.Context, ops ...storage.Op) (storage.Revision, error) {
	return around(f, func() (storage.Revision, error) { return f.Store.Write(ctx, ops...) })
}

func (f *far) Delete(ctx context.Context, key string, rev storage.Revision) error {
	_, err := around(f, func() (struct{}, error) { return struct{}{}, f.Store.Delete(ctx, key, rev) })
	return err
}

func (f *far) List(ctx context.Context, r storage.Range) iter.Seq2[storage.Entry, error] {
	all, err := around(f, func() (all []storage.Entry, err error) {
		for entry, err := range f.Store.List(ctx, r) {
			if err != nil {
				return nil, err
			}
			all = append(all, entry)
		}
		return all, nil
	})
	return func(yield func(storage.Entry, error) bool) {
		for _, entry := range all {
			if !yield(entry, nil) {
				return
			}
		}
		if err != nil {
			yield(storage.Entry{}, err)
		}
	}
}

func (f *far) Watch(ctx context.Context, prefixes ...string) iter.Seq2[storage.Event, error] {
	changes := f.Store.Watch(ctx, prefixes...)
	return func(yield func(storage.Event, error) bool) {
		for e, err := range changes {
			if killed := f.step(); killed != nil {
				err = killed
			}
			if !yield(e, err) || err != nil {
				return
			}
		}
	}
}

func (f *far) pause() {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.paused == nil {
		f.paused = make(chan struct{})
	}
}

func (f *far) goOn(killed bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.killed = f.killed || killed
	if f.paused != nil {
		close(f.paused)
		f.paused = nil
	}
}

// member is a process of a guild.
type member struct {
	far    *far
	bridge *bridge.Bridge
	end    func()
	ended  chan struct{}
}

// guild is some processes on one store, with all that people wrote to them.
type guild struct {
	chance   *chance
	store    storage.Store
	platform *platform
	folder   string
	turns    turn.Settings
	log      io.Writer

	mu      sync.Mutex
	members []*member
}

const ttlOfGuild = 2 * time.Second

func (c *guild) join(place int) {
	m := &member{far: &far{Store: c.store, chance: c.chance}, ended: make(chan struct{})}
	b, err := bridge.New(bridge.Config{
		Store: m.far, Turns: c.turns, Platforms: []chats.Platform{c.platform}, Access: access.Access{Allow: []string{"*"}},
		DataDir: c.folder, Limits: bridge.Limits{DrainTimeout: -1}, Sharing: queue.Sharing{Enabled: true, TTL: ttlOfGuild, Host: fmt.Sprint(place)},
		Logger: slog.New(slog.NewTextHandler(c.log, nil)).With("place", place),
	})
	if err != nil {
		panic(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	m.bridge, m.end = b, cancel
	go func() {
		defer close(m.ended)
		_ = b.Run(ctx)
	}()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.members[place] = m
}

func (c *guild) at(place int) *member {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[place]
}

// strike has something happen to a process.
func (c *guild) strike(what string, place int) {
	m := c.at(place)
	switch what {
	case "kill":
		m.far.goOn(true)
		m.end()
		<-m.ended
		c.sleep(3000)
		c.join(place)
	case "end":
		m.end()
		<-m.ended
		c.sleep(1000)
		c.join(place)
	case "pause":
		m.far.pause()
		c.sleep(6000)
		m.far.goOn(false)
	}
}

func (c *guild) sleep(milliseconds int) {
	linger(time.Duration(c.chance.below(milliseconds)) * time.Millisecond)
}

// say has somebody write messages in a chat, each when the one before it was accepted. One
// that is not accepted is given to another process, perhaps with the one before it.
func (c *guild) say(chat string, messages, pace int) {
	for n := 1; n <= messages; n++ {
		c.sleep(pace)
		for {
			m := c.at(c.chance.below(len(c.members)))
			given := []chats.Message{in(chat, fmt.Sprint(n), fmt.Sprint(n))}
			if n > 1 && c.chance.below(4) == 0 {
				given = append([]chats.Message{in(chat, fmt.Sprint(n-1), fmt.Sprint(n-1))}, given...)
			}
			ctx, cancel := context.WithTimeout(context.Background(), time.Duration(200+c.chance.below(3000))*time.Millisecond)
			err := m.bridge.Accept(ctx, given...)
			cancel()
			if err == nil {
				break
			}
			c.sleep(100)
		}
	}
}

// asked are the ids of the questions in the conversation of a chat.
func (c *guild) asked(chat string) (ids []int) {
	session, err := conversation.Current(context.Background(), c.store, chats.Chat{Platform: "fake", ID: chat})
	if err != nil {
		panic(err)
	}
	for m, err := range conversation.Messages(context.Background(), c.store, session.Log()) {
		if err != nil {
			panic(err)
		}
		if m.Role == agent.RoleUser {
			id, _ := strconv.Atoi(m.Text)
			ids = append(ids, id)
		}
	}
	return ids
}

// answered are the numbers of the messages that were answered in a chat, each where it was
// answered first.
func (c *guild) answered(chat string) (ids []int) {
	for _, s := range c.platform.shown() {
		id, err := strconv.Atoi(strings.TrimPrefix(s.text, "re: "))
		if s.to.Chat.ID == chat && err == nil && !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// open are the jobs that are not over.
func (c *guild) open() (all []string) {
	for e, err := range c.store.List(context.Background(), storage.Range{Prefix: queue.OpenPrefix}) {
		all = append(all, fmt.Sprintf("%s is open: %s %v", e.Key, e.Value, err))
	}
	return all
}

// lengthy answers with what the last question says, now and then with calls of tools before.
func (c *guild) lengthy(_ context.Context, turn agent.Turn) iter.Seq2[agent.Message, error] {
	return func(yield func(agent.Message, error) bool) {
		last := turn.History[len(turn.History)-1]
		for i, m := range slices.Backward(turn.History) {
			if m.Role == agent.RoleUser {
				last = turn.History[i]
				break
			}
		}
		for n := range c.chance.below(3) {
			id := fmt.Sprint(n)
			if !yield(agent.Message{Role: agent.RoleAssistant, Calls: []agent.Call{{ID: id, Name: "read_file", Arguments: "{}"}}}, nil) {
				return
			}
			linger(c.chance.moment())
			if !yield(agent.Message{Role: agent.RoleTool, CallID: id, Text: "content"}, nil) {
				return
			}
		}
		linger(c.chance.moment())
		yield(agent.Message{Role: agent.RoleAssistant, Text: "re: " + last.Text, Final: true}, nil)
	}
}

// script is what happens to a guild, and how much is said meanwhile in each chat.
type script struct {
	seed                    uint64
	members, messages, pace int
	events                  []strike
}

// strike is something that happens to one of them, so many milliseconds after the one before.
type strike struct {
	after, place int
	what         string
}

func drawScript(seed uint64) script {
	rng := rand.New(rand.NewPCG(seed, 0)) //nolint:gosec // the seed has to make the same script
	s := script{seed: seed, members: 2 + rng.IntN(2), messages: 3 + rng.IntN(23), pace: []int{10, 100, 400}[rng.IntN(3)]}
	for range 1 + rng.IntN(4) {
		s.events = append(s.events, strike{after: rng.IntN(3000), place: rng.IntN(s.members), what: []string{"kill", "end", "pause"}[rng.IntN(3)]})
	}
	return s
}

// play plays a script and returns what is wrong in the end.
func (s script) play(t *testing.T) (wrong []string) {
	tools := registry(t)
	c := &guild{
		chance: &chance{rng: rand.New(rand.NewPCG(s.seed, 1))}, store: openStore(t, filepath.Join(t.TempDir(), "db")), platform: newPlatform(),
		folder: t.TempDir(), members: make([]*member, s.members), log: t.Output(),
	}
	c.turns = turn.Settings{Agent: thinker(c.lengthy), Tools: func() *toolgroups.Registry { return tools }, SeparateTurns: true}
	for place := range c.members {
		c.join(place)
	}
	linger(ttlOfGuild)
	var all sync.WaitGroup
	chats := []string{"7", "8", "9", "10"}
	for _, chat := range chats {
		all.Go(func() { c.say(chat, s.messages, s.pace) })
	}
	for _, e := range s.events {
		linger(time.Duration(e.after) * time.Millisecond)
		c.strike(e.what, e.place)
	}
	all.Wait()
	var want []int
	for n := range s.messages {
		want = append(want, n+1)
	}
	waits := func(chat string) bool { return len(c.answered(chat)) < len(want) }
	for range 300 {
		if linger(2 * time.Second); !slices.ContainsFunc(chats, waits) && len(c.open()) == 0 {
			break
		}
	}
	for _, chat := range chats {
		if got := c.asked(chat); !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("in %s was asked %v", chat, got))
		}
		if got := c.answered(chat); !slices.Equal(got, want) {
			wrong = append(wrong, fmt.Sprintf("in %s was answered %v", chat, got))
		}
	}
	for _, m := range c.members {
		m.end()
		<-m.ended
	}
	return append(wrong, c.open()...)
}

// scriptsVariable says how many scripts are played.
const scriptsVariable = "TEST_ONECLAW_SCRIPTS"

// TestChatsKeepTheirOrder has some processes share a store, in which every step takes a moment,
// while people write in four chats, to any of them, and processes are killed, end, are paused
// and come back. Every message has to be asked and answered once, in the order in which they
// were accepted, whoever accepted them and whoever answered there then.
func TestChatsKeepTheirOrder(t *testing.T) {
	t.Parallel()
	count := 5
	if n, err := strconv.Atoi(os.Getenv(scriptsVariable)); err == nil && n > 0 {
		count = n
	}
	for range count {
		s := drawScript(rand.Uint64()) //nolint:gosec // as above
		synctest.Test(t, func(t *testing.T) {
			for _, wrong := range s.play(t) {
				t.Errorf("%+v: %s", s, wrong)
			}
		})
		if t.Failed() {
			return
		}
	}
}

// An owner claims one of some jobs and loses the chat: that one does not come behind the
// others, which were written before it was taken.
func TestAJobThatWasClaimedKeepsItsPlace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, hold := &faulty{}, make(chan struct{})
		var other *harness
		var written atomic.Int32
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			if !strings.HasSuffix(ops[0].Key, "/1/text") || written.Add(1) != 2 {
				return do()
			}
			other.accept(in("7", "2", "two"))
			other.accept(in("7", "3", "three"))
			rev, err := do()
			<-hold
			return rev, err
		}
		all := newSeveral(t, 2, echo, inStore(store))
		_, other = all.sides(t, "7")
		other.accept(in("7", "1", "one"))
		pass(t, 1)
		all.dead(t)
		pass(t, 30)
		close(hold)
		pass(t, 30)
		all.inOrder(t, "re: one", "re: two", "re: three")
		all.stop(t)
	})
}

// A command fails and is tried again, which rewrites its record. After a restart it is still before the
// message behind it, which it would drop otherwise.
func TestACommandThatFailsKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		fails := func(key string) error {
			if broken.Load() && strings.HasPrefix(key, "session/") {
				return errFaulty
			}
			return nil
		}
		r := newHarness(t, echo, func(c *bridge.Config) {
			c.Store = &faulty{Store: c.Store, put: fails, write: func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
				for _, op := range ops {
					if err := fails(op.Key); err != nil {
						return 0, err
					}
				}
				return do()
			}}
		})
		broken.Store(true)
		r.accept(direct("1", "/clear"), direct("2", "hello"))
		pass(t, 5)
		r.stop()
		broken.Store(false)
		r.start()
		pass(t, 10)
		if got := r.platform.texts(); len(got) != 2 || !strings.Contains(got[0], "cleared") || strings.Contains(got[0], "dropped") || got[1] != "re: hello" {
			t.Errorf("answers: %q", got)
		}
		r.stop()
	})
}

// A process becomes the owner of a chat while it is given a message again that waits there: it
// does not go before the one in front of it.
func TestAMessageThatIsGivenAgainKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var broken atomic.Bool
		store := &faulty{list: func(prefix string) error {
			if broken.Load() && prefix == queue.OpenPrefix+"fake:7/" {
				return errFaulty
			}
			return nil
		}}
		var owner *harness
		var written atomic.Int32
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			if strings.HasSuffix(ops[0].Key, "/2/text") && written.Add(1) == 2 {
				owner.stop()
				pass(t, 30)
				broken.Store(false)
			}
			return do()
		}
		all := newSeveral(t, 2, echo, inStore(store))
		var other *harness
		owner, other = all.sides(t, "7")
		broken.Store(true) // nothing is taken
		other.accept(in("7", "1", "one"))
		other.accept(in("7", "2", "two"))
		other.accept(in("7", "2", "two"), in("7", "3", "three"))
		pass(t, 30)
		all.inOrder(t, "re: one", "re: two", "re: three")
		all.stop(t)
	})
}

// whilePaused fails the writes by which a process proves that it is alive.
func whilePaused(paused *atomic.Bool) func(key string) error {
	return func(key string) error {
		if paused.Load() && strings.HasPrefix(key, replicas.Prefix) {
			return errFaulty
		}
		return nil
	}
}

// The only process is paused while it accepts a message, and proves to be alive before it has
// accepted the next one: that one does not go before the first.
func TestAMessageThatMeetsAPausedReplicaKeepsItsPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused atomic.Bool
		var written atomic.Int32
		store := &faulty{put: whilePaused(&paused)}
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			rev, err := do()
			if strings.HasPrefix(ops[0].Key, queue.OpenPrefix+"fake:7/") {
				if n := written.Add(1); n <= 2 {
					paused.Store(n == 1)
					linger(replicas.DefaultTTL + time.Second)
				}
			}
			return rev, err
		}
		all := newSeveral(t, 1, echo, inStore(store))
		all[0].accept(in("7", "1", "one"), in("7", "2", "two"))
		pass(t, 30)
		all.inOrder(t, "re: one", "re: two")
		all.stop(t)
	})
}

// The only process loses a chat and gets it back while it takes the first of some messages that
// were accepted: it takes the others behind that one.
func TestAMessageIsTakenBeforeTheNextWhereItsChatWasLostMeanwhile(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var paused atomic.Bool
		var written atomic.Int32
		store := &faulty{put: whilePaused(&paused)}
		store.write = func(ops []storage.Op, do func() (storage.Revision, error)) (storage.Revision, error) {
			if strings.HasSuffix(ops[0].Key, "/1/text") && written.Add(1) == 2 {
				paused.Store(true)
				if err := replicas.RemoveDead(t.Context(), store.Store, 0); err != nil {
					t.Error(err)
				}
				paused.Store(false)
				linger(5 * time.Second) // it joins anew
			}
			return do()
		}
		all := newSeveral(t, 1, echo, inStore(store))
		paused.Store(true)
		linger(replicas.DefaultTTL + time.Second)
		all[0].accept(in("7", "1", "one"), in("7", "2", "two")) // it does not know whether they are its own
		paused.Store(false)
		pass(t, 60)
		all.inOrder(t, "re: one", "re: two")
		all.stop(t)
	})
}

// inStore has bridges use a store around the one that the first of them has.
func inStore(store *faulty) func(*bridge.Config) {
	return func(cfg *bridge.Config) {
		if store.Store == nil {
			store.Store = cfg.Store
		}
		cfg.Store = store
	}
}

// inOrder checks that texts were the last ones that were sent, in this order and by one of all.
func (s several) inOrder(t *testing.T, want ...string) {
	t.Helper()
	for _, r := range s {
		if got := r.platform.texts(); len(got) >= len(want) && slices.Equal(got[len(got)-len(want):], want) {
			return
		}
	}
	t.Errorf("sent: %q", s.texts())
}
