package queue

import (
	"context"
	"crypto/rand"
	"fmt"
	"hash/fnv"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/storage"
	"oneclaw/storage/replicas"
)

const (
	// shares is the number of shares: with a hundred replicas each has two or three. With more a
	// takeover would take longer, with fewer the load would be uneven.
	shares      = 256
	sharePrefix = "chats/"
)

// Leader is the lease of the leader, which does what has to be done once and not by each replica.
const Leader = "housekeeping"

// Sharing configures how a process shares its store with others; the zero value means not at all.
type Sharing struct {
	On bool
	// Host and Version describe the process to users.
	Host, Version string
	// Format and Check are as in [replicas.Config].
	Format int
	Check  func(ctx context.Context) error
	// TTL is how long a process may be silent before others take over its chats. 0 means
	// [replicas.DefaultTTL].
	TTL time.Duration
}

// ChatFilter reports whether a chat is selected.
type ChatFilter func(chat chats.Chat) bool

// AllChats selects all chats.
func AllChats(chats.Chat) bool { return true }

// Chats are the chats that processes share.
type Chats interface {
	// Home returns the chat to which a chat has moved, or the chat itself.
	Home(chat chats.Chat) chats.Chat
	// Take takes over the open jobs in some chats, with the tokens of leases that are about to begin.
	// Once they have, begin is called.
	Take(ctx context.Context, in ChatFilter, token func(chats.Chat) string) (begin func(), err error)
	// Lost is called when this process no longer owns some chats.
	Lost(in ChatFilter)
	// Busy reports whether a job runs in some chats.
	Busy(in ChatFilter) bool
}

// LeasesConfig configures [Leases].
type LeasesConfig struct {
	Sharing
	Store storage.Store
	// Leases are further leases besides [Leader] and the shares.
	Leases []string
	// Chats are the chats that the shares cover.
	Chats  Chats
	Logger *slog.Logger
}

// Leases know which chats this process owns.
type Leases struct {
	// Token returns the token of the lease under which this process owns a chat; empty if another
	// process does, or none. A process that works alone has one token.
	Token func(chat chats.Chat) string
	// SafeToken returns the Token if this process has proved recently enough to be alive, so that no
	// other can own the chat, and otherwise "".
	SafeToken func(chat chats.Chat) string
	// OwnsSafely reports whether certainly no other process owns a job now. It is for effects that no
	// store can reject, such as requests to a platform. Nil if this one works alone.
	OwnsSafely func(j *Run) bool
	// Fence returns the check that conflicts unless the lease with a token is in force. Nil if this
	// process works alone.
	Fence func(token string) storage.Op

	cfg     LeasesConfig
	replica *replicas.Replica // nil in a process that works alone

	mu     sync.Mutex
	tokens map[string]string     // by lease
	fences map[string]storage.Op // by token, set before a lease begins
	// changed is closed, and replaced, when a lease is acquired or lost.
	changed chan struct{}
}

// NewLeases returns leases. If the store is shared, this process owns no chat yet.
func NewLeases(cfg LeasesConfig) *Leases {
	o := &Leases{cfg: cfg, tokens: make(map[string]string), fences: make(map[string]storage.Op), changed: make(chan struct{})}
	if !cfg.On {
		alone := rand.Text()
		o.Token = func(chats.Chat) string { return alone }
		o.SafeToken = o.Token
		return o
	}
	o.Token, o.SafeToken, o.OwnsSafely, o.Fence = o.token, o.safeToken, o.ownsSafely, o.fence
	leases := append([]string{Leader}, cfg.Leases...)
	for i := range shares {
		leases = append(leases, share(uint32(i)))
	}
	o.replica = replicas.New(replicas.Config{
		Store: cfg.Store, Leases: leases, Host: cfg.Host, Version: cfg.Version, Format: cfg.Format, Check: cfg.Check, TTL: cfg.TTL,
		Taken: o.taken, Lost: o.lost, Busy: func(lease string) bool { return cfg.Chats.Busy(o.in(lease)) }, Logger: cfg.Logger,
	})
	return o
}

// Shared reports whether other processes may work with the same store.
func (o *Leases) Shared() bool { return o.replica != nil }

// Replica returns the id of this replica, and how many leases it holds; empty if it works alone.
func (o *Leases) Replica() (id string, leases int) {
	if !o.Shared() {
		return "", 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.replica.ID(), len(o.tokens)
}

func (o *Leases) token(chat chats.Chat) string {
	lease := o.leaseOf(chat)
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens[lease]
}

// Owns reports whether this process certainly owns a chat: one that was paused must not take back what
// others own by now.
func (o *Leases) Owns(chat chats.Chat) bool { return o.SafeToken(chat) != "" }

func (o *Leases) safeToken(chat chats.Chat) string {
	if !o.replica.Alive() {
		return ""
	}
	return o.Token(chat)
}

func (o *Leases) ownsSafely(j *Run) bool {
	return o.replica.Alive() && o.Token(j.Message.Chat) == j.LeaseToken
}

func (o *Leases) fence(token string) storage.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	if fence, ok := o.fences[token]; ok {
		return fence
	}
	return storage.Check(replicas.Prefix+"over", 1) // there is no such key
}

func share(n uint32) string { return fmt.Sprintf("%s%03d", sharePrefix, n%shares) }

func (o *Leases) leaseOf(chat chats.Chat) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(o.cfg.Chats.Home(chat).WithoutThread().String())) // never fails
	return share(h.Sum32())
}

// in selects the chats of some leases.
func (o *Leases) in(leases ...string) ChatFilter {
	some := make(map[string]bool, len(leases))
	for _, lease := range leases {
		some[lease] = true
	}
	return func(chat chats.Chat) bool { return some[o.leaseOf(chat)] }
}

// Run holds leases until ctx ends. A process that works alone takes over all chats and returns.
func (o *Leases) Run(ctx context.Context) error {
	if o.replica != nil {
		return o.replica.Run(ctx)
	}
	begin, err := o.cfg.Chats.Take(ctx, AllChats, o.Token)
	if err == nil {
		begin()
	}
	return err
}

// Retire releases the chats in which nothing runs at once, the others as soon as nothing does.
func (o *Leases) Retire() {
	if o.replica != nil {
		o.replica.Retire()
	}
}

func (o *Leases) taken(ctx context.Context, leases map[string]storage.Op) (err error) {
	tokens := make(map[string]string, len(leases))
	var taken []string
	o.mu.Lock()
	for lease, fence := range leases {
		tokens[lease] = rand.Text()
		o.fences[tokens[lease]] = fence
		if strings.HasPrefix(lease, sharePrefix) {
			taken = append(taken, lease)
		}
	}
	o.mu.Unlock()
	begin := func() {}
	if len(taken) > 0 {
		begin, err = o.cfg.Chats.Take(ctx, o.in(taken...), func(chat chats.Chat) string { return tokens[o.leaseOf(chat)] })
	}
	o.mu.Lock()
	if err == nil {
		maps.Copy(o.tokens, tokens)
		o.tell()
	} else {
		for _, token := range tokens {
			delete(o.fences, token)
		}
	}
	o.mu.Unlock()
	if err == nil {
		begin()
	}
	return err
}

func (o *Leases) lost(lease string) {
	o.mu.Lock()
	delete(o.fences, o.tokens[lease])
	delete(o.tokens, lease)
	o.tell()
	o.mu.Unlock()
	if strings.HasPrefix(lease, sharePrefix) {
		o.cfg.Chats.Lost(o.in(lease))
	}
}

func (o *Leases) tell() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// WhileHeld runs do whenever this process holds a lease. It returns when ctx ends, or when do returns
// while the lease is held.
func (o *Leases) WhileHeld(ctx context.Context, lease string, do func(context.Context) error) error {
	if o.replica == nil {
		return do(ctx)
	}
	for ctx.Err() == nil {
		if o.await(ctx, lease, true) != nil {
			break
		}
		held, lost := context.WithCancel(ctx)
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if o.await(held, lease, false) == nil {
				lost()
			}
		}()
		err := do(held)
		still := held.Err() == nil
		lost()
		<-ended
		if still {
			return err
		}
	}
	return nil
}

// Holds reports whether this process holds a lease; one that works alone holds all.
func (o *Leases) Holds(lease string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.replica == nil || o.tokens[lease] != ""
}

// await waits until a lease is held, or is not.
func (o *Leases) await(ctx context.Context, lease string, held bool) error {
	for {
		o.mu.Lock()
		is, changed := o.tokens[lease] != "", o.changed
		o.mu.Unlock()
		if is == held {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
