// Package scale simulates many replicas on one store. They run the bot's own code: ownership of chats,
// watches, jobs, turns and accounts. The store counts what storage/postgres would ask of a database.
package scale

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"oneclaw/agent"
	"oneclaw/bridge"
	"oneclaw/bridge/access"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/queue"
	"oneclaw/bridge/turn"
	"oneclaw/internal/budget"
	"oneclaw/storage"
	"oneclaw/storage/bolt"
	"oneclaw/storage/postgres"
	"oneclaw/storage/replicas"
	"oneclaw/toolgroups"
)

// Simulation configures a simulation. All numbers are required.
type Simulation struct {
	// Replicas is the number of replicas, of which Lose are lost at once.
	Replicas, Lose int
	// Messages are sent, Rate a second, in any of Chats chats, to any replica.
	Chats, Messages, Rate int
	// open, if not nil, opens the store of each replica; nil means one store in a temporary file.
	open func() (storage.Store, error)
}

// report is the result of a simulation.
type report struct {
	all               figures // of the whole simulation
	message, idle     figures // for each message; for each replica and second
	shares, chats     [2]int  // the least and the most of a replica
	joined, takenOver time.Duration
	takeover          figures
}

// check returns an error for numbers that cannot be simulated.
func (s Simulation) check() error {
	switch {
	case s.Replicas < 1 || s.Chats < 1 || s.Messages < 1 || s.Rate < 1:
		return errors.New("scale: --replicas, --chats, --messages and --rate have to be at least 1")
	case s.Lose < 0 || s.Lose >= s.Replicas:
		return fmt.Errorf("scale: --lose %d: of %d replicas at least one has to stay", s.Lose, s.Replicas)
	}
	return nil
}

// Run runs the simulation and writes what it found.
func (s Simulation) Run(ctx context.Context, w io.Writer) error {
	if err := s.check(); err != nil {
		return err
	}
	found, err := s.simulate(ctx)
	if err != nil {
		return fmt.Errorf("scale: %w", err)
	}
	return s.print(w, found)
}

func (s Simulation) print(w io.Writer, found report) error {
	m, idle := found.message, found.idle
	_, err := fmt.Fprintf(w, `%d replicas, %d chats, %d messages, each accepted by any replica

for each message
  statements             %.1f (reads %.1f, writes %.1f, looks %.1f, notifications %.1f)
  rows read              %.1f
  rows written           %.1f
  log (WAL)              %.1f KB
  watched rows           %.1f
  notified replicas      %.1f
for each replica
  connections            %d
  statements a second    %.1f without messages
  watched rows a second  %.1f
  shares                 %d to %d
  chats                  %d to %d
all replicas held their shares %v after the last had begun
%d replicas lost at once
  last answer after      %v, with a time to live of %v
  statements             %.0f
  rows read              %.0f
`, s.Replicas, s.Chats, s.Messages, m.statements(), m.reads, m.writes, m.looks, m.notified, m.rowsRead, m.rowsWritten, m.walBytes/1000, m.watched, m.delivered,
		postgres.DefaultMaxConns+1, idle.statements(), idle.watched, found.shares[0], found.shares[1], found.chats[0], found.chats[1],
		found.joined.Round(10*time.Millisecond), s.Lose, found.takenOver.Round(10*time.Millisecond), replicas.DefaultTTL, found.takeover.statements(), found.takeover.rowsRead)
	return err
}

// simulatedReplica is a replica with its store.
type simulatedReplica struct {
	*bridge.Bridge
	store *countedStore
	stop  func() error
}

// simulate runs the replicas.
func (s Simulation) simulate(ctx context.Context) (found report, err error) {
	dir, err := os.MkdirTemp("", "oneclaw-scale-")
	if err != nil {
		return found, err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	if s.open == nil {
		store, err := bolt.Open(bolt.Config{Path: filepath.Join(dir, "db"), NoSync: true})
		if err != nil {
			return found, err
		}
		defer func() { err = errors.Join(err, store.Close()) }()
		s.open = func() (storage.Store, error) { return store, nil }
	}
	messages, membership, heard, platform := new(work), new(work), &listeners{byChannel: make(map[string]map[*countedStore]int)}, &silentPlatform{answered: make(chan struct{}, 1)}
	var all []*simulatedReplica
	defer func() {
		var ends errgroup.Group
		for _, r := range all {
			ends.Go(r.stop)
		}
		err = errors.Join(err, ends.Wait())
	}()
	for i := range s.Replicas {
		store, err := s.open()
		if err != nil {
			return found, err
		}
		r, err := newSimulatedReplica(ctx, filepath.Join(dir, strconv.Itoa(i)), &countedStore{Store: store, messages: messages, membership: membership, listeners: heard, told: make(map[string]time.Time)}, platform)
		if err != nil {
			return found, err
		}
		all = append(all, r)
		if err := wait(ctx, beatPause/time.Duration(s.Replicas)); err != nil { // so that they do not beat at once
			return found, err
		}
	}
	begun := time.Now()
	if err := awaitShares(ctx, all); err != nil {
		return found, err
	}
	found.joined = time.Since(begun)
	if found.shares, found.chats, err = s.distribution(ctx, all); err != nil {
		return found, err
	}

	before := messages.figures().plus(membership.figures())
	const idleTime = replicas.DefaultTTL
	if err := wait(ctx, idleTime); err != nil {
		return found, err
	}
	found.idle = messages.figures().plus(membership.figures()).per(idleTime.Seconds()*float64(s.Replicas), before)
	before = messages.figures()
	if err := s.send(ctx, all, platform, "m", s.Messages); err != nil {
		return found, err
	}
	found.message = messages.figures().per(float64(s.Messages), before)

	before, begun = messages.figures().plus(membership.figures()), time.Now()
	for _, r := range all[:s.Lose] {
		r.store.lost.Store(true)
	}
	lost := min(s.Messages, s.Rate) // messages, of which the lost replicas owned a part
	if err := s.send(ctx, all[s.Lose:], platform, "l", lost); err != nil {
		return found, err
	}
	found.takenOver = time.Since(begun)
	found.all = messages.figures().plus(membership.figures())
	found.takeover = found.all.per(1, before).per(1, found.message.times(float64(lost)))
	return found, nil
}

func (f figures) times(n float64) figures { return f.per(1/n, figures{}) }

// beatPause is the time between two beats of a replica.
const beatPause = replicas.DefaultTTL / 4

// awaitShares waits until the replicas hold all leases, and each has its part of them.
func awaitShares(ctx context.Context, all []*simulatedReplica) error {
	for {
		most, least, sum := 0, 1<<30, 0
		for _, r := range all {
			_, held := r.Replica()
			most, least, sum = max(most, held), min(least, held), sum+held
		}
		if most-least <= 1 && sum > 256 {
			return nil
		}
		if err := wait(ctx, 20*time.Millisecond); err != nil {
			return err
		}
	}
}

// distribution returns the least and the most shares and chats of a replica.
func (s Simulation) distribution(ctx context.Context, all []*simulatedReplica) (shares, owned [2]int, err error) {
	members, err := replicas.List(ctx, all[0].store.Store)
	if err != nil {
		return shares, owned, err
	}
	byShare := make(map[string]int)
	for n := range s.Chats {
		key := queue.NewNotice(chatOf(n), "").Key
		byShare[strings.TrimSuffix(strings.TrimPrefix(key, queue.NoticePrefix), "/")]++
	}
	var counts, chatCounts []int
	for _, m := range members {
		count, chatCount := 0, 0
		for _, lease := range m.Leases {
			if share, ok := strings.CutPrefix(lease, "chats/"); ok {
				count, chatCount = count+1, chatCount+byShare[share]
			}
		}
		counts, chatCounts = append(counts, count), append(chatCounts, chatCount)
	}
	return [2]int{slices.Min(counts), slices.Max(counts)}, [2]int{slices.Min(chatCounts), slices.Max(chatCounts)}, nil
}

func chatOf(n int) chats.Chat { return chats.Chat{Platform: silent, ID: strconv.Itoa(n + 1)} }

// send gives n messages to random replicas of all, and waits until the messages are answered.
func (s Simulation) send(ctx context.Context, all []*simulatedReplica, platform *silentPlatform, prefix string, n int) error {
	want := platform.count.Load() + int64(n)
	var accepting errgroup.Group
	begun := time.Now()
	for i := range n {
		if err := wait(ctx, time.Until(begun.Add(time.Second*time.Duration(i)/time.Duration(s.Rate)))); err != nil {
			return err
		}
		chat := chatOf(rand.IntN(s.Chats))
		m := chats.Message{Chat: chat, ID: prefix + strconv.Itoa(i), Kind: chats.KindText, User: chat.ID, UserName: "Ann", Direct: true, Text: "What should I cook on Sunday for four people?", Time: time.Now()}
		accepting.Go(func() error { return all[rand.IntN(len(all))].Accept(ctx, m) })
	}
	if err := accepting.Wait(); err != nil {
		return err
	}
	for platform.count.Load() < want {
		select {
		case <-platform.answered:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

func wait(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// newSimulatedReplica starts a replica.
func newSimulatedReplica(ctx context.Context, dir string, store *countedStore, platform *silentPlatform) (*simulatedReplica, error) {
	ledger, err := budget.Open(budget.Config{Now: time.Now, Store: store, Prices: budget.KnownPrices()})
	if err != nil {
		return nil, err
	}
	tools, err := toolgroups.NewRegistry(toolgroups.RegistryConfig{})
	if err != nil {
		return nil, err
	}
	b, err := bridge.New(bridge.Config{
		Store: store, DataDir: dir, Platforms: []chats.Platform{platform}, Access: access.Access{Allow: []string{"*"}},
		Limits: bridge.Limits{DrainTimeout: -1}, Sharing: queue.Sharing{Enabled: true},
		Turns: turn.Settings{
			SeparateTurns: true, // each message has its own answer
			Agent:         agent.New(agent.Config{}), Tools: func() *toolgroups.Registry { return tools },
			Profile: func(_ context.Context, scope toolgroups.Scope, _ turn.Purpose) (turn.Profile, error) {
				charges := ledger.NewTurn()
				return turn.Profile{Charges: charges, Model: charges.Model(silentModel{}, budget.Payer{User: scope.User, Chat: scope.Chat}, "openai", "gpt-5-mini")}, nil
			},
		},
	})
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	var ended error
	running.Go(func() { ended = b.Run(ctx) })
	return &simulatedReplica{b, store, func() error {
		cancel()
		running.Wait()
		closed := ledger.Close()
		if store.lost.Load() {
			return nil
		}
		return errors.Join(ended, closed)
	}}, nil
}

const silent = "silent"

// silentPlatform is a platform that counts what is sent.
type silentPlatform struct {
	count    atomic.Int64
	answered chan struct{} // has a token after each answer
}

func (*silentPlatform) Name() string { return silent }

func (*silentPlatform) Run(ctx context.Context, _ chats.Inbox) error {
	<-ctx.Done()
	return nil
}

func (*silentPlatform) Render(markdown string) []chats.Part {
	return []chats.Part{{Text: markdown}}
}

func (p *silentPlatform) Send(context.Context, chats.Address, chats.Part) (string, error) {
	n := p.count.Add(1)
	select {
	case p.answered <- struct{}{}:
	default:
	}
	return strconv.FormatInt(n, 10), nil
}

// silentModel is a model that answers at once.
type silentModel struct{}

func (silentModel) Complete(context.Context, agent.Request, func(agent.Delta)) (agent.Reply, error) {
	return agent.Reply{Text: "A roast with potatoes, carrots and a gravy takes two hours and feeds four.", Usage: agent.Usage{Input: 1800, Output: 40}}, nil
}
