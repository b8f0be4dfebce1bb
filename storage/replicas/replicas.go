// Package replicas tracks which processes share a store and which of them holds which lease, without
// comparing the clocks of different machines. A lease is a name that one replica holds at a time, such
// as a share of the chats or the right to poll a platform.
//
// Each replica regularly rewrites its member record. A replica that sees a record unchanged for the time
// to live, by its own clock, removes the record, and the leases of its owner are free. A replica that
// was presumed dead finds its record gone, drops all its leases, and joins again under another id.
//
// A lease is not a lock: a replica that was paused may believe for a moment that it holds a lease that
// another one has. A write under a lease then has to fail: by the revisions of the written records, or
// with the check that [Config].OnTaken gets, which covers the record of the lease. That record changes
// when the lease changes hands, and not with signs of life. [Replica.IsAlive] is for effects that no
// store can reject.
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
	// beatsPerTTL is how often a member record is written within a time to live.
	beatsPerTTL = 4
)

// Key prefixes.
const (
	prefix       = "replicas/"
	memberPrefix = prefix + "member/"
	leasePrefix  = prefix + "lease/"
)

// Config configures a [Replica].
type Config struct {
	// Store keeps the records. Required.
	Store storage.Store
	// Leases are the names of the leases; they must be the same for all replicas.
	Leases []string
	// Host and Version describe the replica to users.
	Host, Version string
	// Format is the newest data format that this replica knows.
	Format int
	// Check, if not nil, is called after joining, before the replica takes a lease. If it returns
	// [ErrRefused], the replica leaves and Run returns that error; any other error is retried.
	Check func(ctx context.Context) error
	// TTL is how long a member record may stay unchanged. 0 means [DefaultTTL].
	TTL time.Duration
	// OnJoin, if not nil, is called with the id under which the replica joins, before it takes a lease,
	// and again after it was presumed dead.
	OnJoin func(id string)
	// OnTaken, if not nil, is called when leases were taken, before they count as held. It gets a check
	// for each lease that conflicts once the lease is no longer held. After an error all of them are
	// released.
	OnTaken func(ctx context.Context, leases map[string]storage.Op) error
	// OnLost is called when a lease is no longer held: all work under it has to end. Required.
	OnLost func(lease string)
	// IsBusy reports whether a lease should not be released at the moment, to a replica that joins or
	// because this one retires. Nil means never.
	IsBusy func(lease string) bool
	Logger *slog.Logger // nil discards messages
}

// Member is a replica as others see it.
type Member struct {
	ID      string `json:"id"`
	Host    string `json:"host,omitempty"`
	Version string `json:"version,omitempty"`
	// Format is the newest data format that the replica knows.
	Format int       `json:"format,omitempty"`
	Since  time.Time `json:"since"` // by its own clock, for display
	Beat   uint64    `json:"beat"`
	// Retiring is set while it is releasing its leases.
	Retiring bool `json:"retires,omitempty"`
	// Leases are the leases that it holds, sorted. They are not in its record.
	Leases []string `json:"-"`
}

// Holdings describes in one line the leases that the replica holds: numbered leases as a count.
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
	if slices.Sort(list); m.Retiring {
		list = append(list, "and gives it away")
	}
	if len(list) == 0 {
		return "nothing"
	}
	return strings.Join(list, ", ")
}

// lease is the record of a lease. Owner is empty if no replica holds it.
type lease struct {
	Owner string `json:"owner,omitempty"`
}

// Replica represents this process as a replica.
type Replica struct {
	cfg Config
	log *slog.Logger
	// retiring is closed when the replica begins to release its leases.
	retiring chan struct{}
	retire   sync.Once

	mu       sync.Mutex
	id       string
	held     map[string]storage.Revision
	lastBeat time.Time // start of the last successful beat
	// everHeld are the leases that the replica holds or has held. Only the goroutine of the watch uses it.
	everHeld map[string]bool
}

// New returns a replica that has not joined.
func New(cfg Config) *Replica {
	cfg.TTL = cmp.Or(cfg.TTL, DefaultTTL)
	return &Replica{
		cfg: cfg, log: cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler)), retiring: make(chan struct{}), held: map[string]storage.Revision{}, everHeld: map[string]bool{},
	}
}

// Holds reports whether this replica may act under a lease now: it holds the lease and is alive.
func (r *Replica) Holds(name string) bool { return r.holds(name) && r.IsAlive() }

// IsAlive reports whether this replica has given a sign of life recently enough that no other replica
// can presume it dead.
func (r *Replica) IsAlive() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	// The monotonic clock stops while a machine sleeps, and the wall clock can be set back, so the
	// longer duration counts.
	now := time.Now()
	return max(now.Sub(r.lastBeat), now.Round(0).Sub(r.lastBeat.Round(0))) < r.cfg.TTL
}

// Retire makes the replica take no more leases and release those that it holds, each as soon as it is
// not busy. It continues to give signs of life.
func (r *Replica) Retire() { r.retire.Do(func() { close(r.retiring) }) }

func (r *Replica) isRetiring() bool {
	select {
	case <-r.retiring:
		return true
	default:
		return false
	}
}

// ID returns the id under which the replica has joined; empty before that.
func (r *Replica) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.id
}

// Run joins the other replicas and holds leases until ctx ends; then it releases them. It returns the error
// of [Config].Check that wraps [ErrRefused], or nil after ctx has ended.
func (r *Replica) Run(ctx context.Context) error {
	for {
		err := r.runMembership(ctx)
		r.dropAll()
		if ctx.Err() != nil {
			return nil
		}
		if errors.Is(err, ErrRefused) {
			return err
		}
		if !errors.Is(err, errDead) {
			r.log.Warn("the other replicas cannot be read; trying again", "err", err)
			select {
			case <-ctx.Done():
				return nil
			case <-time.After(r.cfg.TTL / beatsPerTTL):
			}
			continue
		}
		r.log.Warn("other replicas presumed this one dead, so it joins again", "id", r.ID())
	}
}

// ErrRefused is returned for a replica that may not join, because it does not know the data format.
var ErrRefused = errors.New("this replica may not join the others")

// errDead is returned when other replicas have removed the record of this one.
var errDead = errors.New("replicas: presumed dead")

// runMembership runs one membership of the replica: from joining until ctx ends, the store fails, or
// other replicas presume it dead.
func (r *Replica) runMembership(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	l := &membership{r: r, self: Member{ID: rand.Text(), Host: r.cfg.Host, Version: r.cfg.Version, Format: r.cfg.Format, Since: time.Now()}, seen: map[string]sighting{}}
	r.mu.Lock()
	r.id = l.self.ID
	r.mu.Unlock()
	if r.cfg.OnJoin != nil {
		r.cfg.OnJoin(l.self.ID)
	}
	if err := l.beat(ctx); err != nil {
		return err
	}
	r.log.Info("replica joined", "replica", l.self.ID)
	var running sync.WaitGroup
	defer running.Wait()
	running.Go(func() { cancel(l.keepBeating(ctx)) })
	var err error
	if r.cfg.Check != nil {
		err = r.cfg.Check(ctx)
	}
	if err == nil {
		err = l.keepWatching(ctx)
	}
	cancel(err)
	running.Wait()
	if context.Cause(ctx) != nil && !errors.Is(context.Cause(ctx), errDead) {
		l.leave()
	}
	return cmp.Or(context.Cause(ctx), err)
}

// dropAll reports all leases as lost.
func (r *Replica) dropAll() {
	r.mu.Lock()
	held := r.held
	r.held = map[string]storage.Revision{}
	r.mu.Unlock()
	for name := range held {
		r.cfg.OnLost(name)
	}
}

// List returns the replicas, in the order of their ids, for display. It includes a dead one until
// another replica has noticed.
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

// RemoveDead removes the replicas that give no sign of life within the time to live, and waits that
// long. 0 means [DefaultTTL].
func RemoveDead(ctx context.Context, kv storage.KV, ttl time.Duration) error {
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
			return fmt.Errorf("remove the record of a dead replica: %w", err)
		}
	}
	return nil
}

// WatchMembers yields signs of life, and replicas that join and leave, as events of [storage.KV].
func WatchMembers(ctx context.Context, kv storage.KV) iter.Seq2[storage.Event, error] {
	return kv.Watch(ctx, memberPrefix)
}
