// Package replicas says which processes share a store and which of them holds which lease,
// without comparing clocks of different machines. A lease is a name that one replica holds
// at a time, such as a share of the chats or the right to poll a platform.
//
// Each replica writes its member record again and again. A replica that sees that a record has not
// changed for the time to live, by a clock of its own, removes it; its leases are free then.
// A replica that was taken for dead finds its record gone, drops everything, and joins anew
// under another id.
//
// A lease is not a lock: a replica that is paused may believe for a moment that it holds what
// another has. A replica that writes under a lease has to write in a way that fails then: by the
// revisions of what is written, or with the check that [Config].Taken gets, which is about the
// record of the lease. That changes when the lease changes hands, and at no sign of life.
// [Replica.Alive] is for what no store can refuse.
package replicas

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/storage"
)

// Defaults of [Config].
const (
	DefaultTTL = 10 * time.Second
	// beats is how often in a time to live a member record is written.
	beats = 4
)

// Keys of the store.
const (
	prefix       = "replicas/"
	memberPrefix = prefix + "member/"
	leasePrefix  = prefix + "lease/"
)

// Config is what a [Replica] is made of.
type Config struct {
	Store storage.Store
	// Leases are the names that there are; all replicas have to know the same.
	Leases []string
	// Host and Version are for people.
	Host, Version string
	// Format is the newest format of the data that this one knows.
	Format int
	// Check, if not nil, is called when the replica has joined, before it takes a lease. With
	// [ErrRefused] the replica leaves and Run returns that, with another error it tries again.
	Check func(ctx context.Context) error
	// TTL is how long a member record may stay unchanged. 0 means [DefaultTTL].
	TTL time.Duration
	// Begin is told the id under which the replica joins, before it takes a lease, and
	// again after it was taken for dead.
	Begin func(id string)
	// Taken is called when leases were taken, before they count as held, with a check for each
	// that is a conflict once it is not held any more. With an error all of them are given back.
	Taken func(ctx context.Context, leases map[string]storage.Op) error
	// Lost is called when a lease is no longer held: all work under it has to end.
	Lost func(lease string)
	// Busy reports whether a lease should not be given away just now, to a replica that joins
	// or because this one retires. Nil means never.
	Busy   func(lease string) bool
	Logger *slog.Logger // nil discards
}

// Member is a replica as others see it.
type Member struct {
	ID      string `json:"id"`
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	// Format is the newest format of the data that it knows.
	Format int       `json:"format,omitempty"`
	Since  time.Time `json:"since"` // by its own clock, for people
	Beat   uint64    `json:"beat"`
	// Retires says that it gives away what it holds.
	Retires bool `json:"retires,omitempty"`
	// Leases are what it holds, sorted. They are not in its record.
	Leases []string `json:"-"`
}

// Holdings says in a line what the replica holds: how many of what has numbers.
func (m Member) Holdings() string {
	var list []string
	count := map[string]int{}
	for _, lease := range m.Leases {
		kind, number, _ := strings.Cut(lease, "/")
		if strings.Trim(number, "0123456789") != "" || number == "" {
			list = append(list, lease)
			continue
		}
		count[kind]++
	}
	for kind, n := range count {
		list = append(list, fmt.Sprintf("%d shares of %s", n, kind))
	}
	if slices.Sort(list); m.Retires {
		list = append(list, "and gives it away")
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// lease is the record of a lease. Owner is empty where no replica holds it.
type lease struct {
	Owner string `json:"owner,omitempty"`
}

// Replica is this process among others.
type Replica struct {
	cfg Config
	log *slog.Logger
	// retiring is closed when the replica gives away what it holds.
	retiring chan struct{}
	retire   sync.Once

	mu     sync.Mutex
	id     string
	held   map[string]storage.Revision
	beaten time.Time // when the last good beat began
	// had are the leases that it holds or has held; its loop alone uses it.
	had map[string]bool
}

// New returns a replica that has not joined.
func New(cfg Config) *Replica {
	cfg.TTL = cmp.Or(cfg.TTL, DefaultTTL)
	return &Replica{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), retiring: make(chan struct{}), held: map[string]storage.Revision{}, had: map[string]bool{},
	}
}

// Holds reports whether this replica may act under a lease now: it holds it, and is alive.
func (r *Replica) Holds(name string) bool { return r.holds(name) && r.Alive() }

// Alive reports whether this replica has proved to be alive recently enough that no other can
// have taken it for dead.
func (r *Replica) Alive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The monotonic clock stands still while a machine sleeps, and the other can be set back: the
	// longer time counts.
	now := time.Now()
	return max(now.Sub(r.beaten), now.Round(0).Sub(r.beaten.Round(0))) < r.cfg.TTL
}

// Retire has the replica take no more leases and give away those it holds, each as soon as it
// is not busy. It goes on to give signs of life.
func (r *Replica) Retire() { r.retire.Do(func() { close(r.retiring) }) }

func (r *Replica) retires() bool {
	select {
	case <-r.retiring:
		return true
	default:
		return false
	}
}

// ID is the id under which the replica has joined; empty before it did.
func (r *Replica) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Run joins the others and holds leases until ctx ends; then it gives them back.
func (r *Replica) Run(ctx context.Context) error {
	for {
		err := r.live(ctx)
		r.dropAll()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if !errors.Is(err, errDead) {
			r.log.Warn("the store cannot be asked who else is there; trying again", "err", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(r.cfg.TTL / beats):
			}
			continue
		}
		r.log.Warn("other replicas took this one for dead, so it joins anew", "id", r.ID())
	}
}

// ErrRefused says that a replica may not join, because it does not know the format of the
// data.
var ErrRefused = errors.New("this replica may not join the others")

// errDead says that others removed the record of this replica.
var errDead = errors.New("replicas: taken for dead")

// live is one life of a replica: from joining until ctx ends, the store fails, or others take
// it for dead.
func (r *Replica) live(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &life{r: r, self: Member{ID: rand.Text(), Host: r.cfg.Host, Version: r.cfg.Version, Format: r.cfg.Format, Since: time.Now()}, seen: map[string]sight{}}
	r.mu.Lock()
	r.id = l.self.ID
	r.mu.Unlock()
	if r.cfg.Begin != nil {
		r.cfg.Begin(l.self.ID)
	}
	if err := l.beat(ctx); err != nil {
		return err
	}
	r.log.Info("replica joined", "replica", l.self.ID)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { cancel(l.beatOn(ctx)) })
	var err error
	if r.cfg.Check != nil {
		err = r.cfg.Check(ctx)
	}
	if err == nil {
		err = l.watchOn(ctx)
	}
	cancel(err)
	running.Wait()
	if context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), errDead) {
		l.leave()
	}
	return cmp.Or(context.Cause(ctx), err)
}

// dropAll tells that no lease is held any more.
func (r *Replica) dropAll() {
	r.mu.Lock()
	held := r.held
	r.held = map[string]storage.Revision{}
	r.mu.Unlock()
	for name := range held {
		r.cfg.Lost(name)
	}
}

// List returns the replicas that there are, in the order of their ids, for people: one that
// has died is in it until another notices.
func List(ctx context.Context, kv storage.KV) ([]Member, error) {
	var members []Member
	leases := map[string][]string{}
	for entry, err := range kv.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list replicas: %w", err)
		}
		if name, ok := cutPrefix(entry.Key, leasePrefix); ok {
			owner := decodeLease(entry.Value).Owner
			leases[owner] = append(leases[owner], name)
			continue
		}
		var m Member
		if err := json.Unmarshal(entry.Value, &m); err != nil {
			return nil, fmt.Errorf("read %s: %w", entry.Key, err)
		}
		members = append(members, m)
	}
	for i := range members {
		members[i].Leases = slices.Sorted(slices.Values(leases[members[i].ID]))
	}
	return members, nil
}

// Bury removes the replicas that give no sign of life within the time to live, which it waits
// for. 0 means [DefaultTTL].
func Bury(ctx context.Context, kv storage.KV, ttl time.Duration) error {
	seen := map[string]storage.Revision{}
	for entry, err := range kv.List(ctx, storage.Range{Prefix: memberPrefix}) {
		if err != nil {
			return fmt.Errorf("list replicas: %w", err)
		}
		seen[entry.Key] = entry.Revision
	}
	if len(seen) == 0 {
		return nil
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(cmp.Or(ttl, DefaultTTL)):
	}
	for key, rev := range seen {
		if err := kv.Delete(ctx, key, rev); err != nil && !errors.Is(err, storage.ErrConflict) {
			return fmt.Errorf("remove a replica that is dead: %w", err)
		}
	}
	return nil
}

// WatchMembers tells of signs of life, and of replicas that come and go, as [storage.KV] does.
func WatchMembers(ctx context.Context, kv storage.KV) iter.Seq2[storage.Event, error] {
	return kv.Watch(ctx, memberPrefix)
}
