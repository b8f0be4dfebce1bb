package queue

import (
	"context"
	"crypto/rand"
	"fmt"
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
	// shares is the number of shares: of a hundred replicas, each has two or three. With more shares a
	// takeover would take longer, with fewer the load would be uneven.
	shares      = 256
	sharePrefix = "chats/"
)

// Leader is the lease of the leader, the replica that does the work that only one may do.
const Leader = "housekeeping"

// Sharing configures how a process shares its store with others. The zero value means that it does not.
type Sharing struct {
	Enabled bool
	// Host and Version describe the process to users.
	Host, Version string
	// Format and Check are as in [replicas.Config].
	Format int
	Check  func(ctx context.Context) error
	// TTL is how long a process may go without renewing its leases before others take over its chats. 0
	// means [replicas.DefaultTTL].
	TTL time.Duration
}

// ChatFilter reports whether a chat is selected.
type ChatFilter func(chat chats.Chat) bool

// AllChats selects all chats.
func AllChats(chats.Chat) bool { return true }

// TakeoverHandler takes over chats when this process acquires or loses leases.
type TakeoverHandler interface {
	// CurrentChat returns the chat to which a chat has moved, or the chat itself.
	CurrentChat(chat chats.Chat) chats.Chat
	// TakeOver takes over the open jobs in some chats, with the tokens of leases that are about to
	// begin. Its result begin is called once the leases have begun.
	TakeOver(ctx context.Context, in ChatFilter, token func(chats.Chat) string) (begin func(), err error)
	// OnLost is called when this process no longer owns the selected chats.
	OnLost(in ChatFilter)
	// IsBusy reports whether a job runs in the selected chats.
	IsBusy(in ChatFilter) bool
}

// LeaseHolderConfig configures [LeaseHolder].
type LeaseHolderConfig struct {
	Sharing
	Store storage.Store
	// Leases are further leases besides [Leader] and the shares.
	Leases []string
	// Takeover is called when leases of chats begin and end.
	Takeover TakeoverHandler
	Logger   *slog.Logger
}

// LeaseHolder holds the leases of this process, and knows which chats it owns.
type LeaseHolder struct {
	// Token returns the token of the lease under which this process owns a chat; empty if this process
	// does not own the chat. A process that works alone has one token.
	Token func(chat chats.Chat) string
	// SafeToken returns the Token if this process has renewed its leases recently enough that no other
	// process can own the chat, and otherwise "".
	SafeToken func(chat chats.Chat) string
	// OwnsSafely reports whether certainly no other process owns a job now. It is for effects that the
	// store cannot reject, such as requests to a platform. Nil if this process works alone.
	OwnsSafely func(j *Run) bool
	// Fence returns an operation that makes a write fail with ErrConflict unless the lease with the given
	// token is in force. Nil if this process works alone.
	Fence func(token string) storage.Op

	cfg     LeaseHolderConfig
	replica *replicas.Replica // nil in a process that works alone

	mu     sync.Mutex
	tokens map[string]string     // by lease
	fences map[string]storage.Op // by token, set before a lease begins
	// changed is closed, and replaced, when a lease is acquired or lost.
	changed chan struct{}
}

// NewLeaseHolder returns a holder. If the store is shared, it owns no chat until Run.
func NewLeaseHolder(cfg LeaseHolderConfig) *LeaseHolder {
	o := &LeaseHolder{cfg: cfg, tokens: make(map[string]string), fences: make(map[string]storage.Op), changed: make(chan struct{})}
	if !cfg.Enabled {
		alone := rand.Text()
		o.Token = func(chats.Chat) string { return alone }
		o.SafeToken = o.Token
		return o
	}
	o.Token, o.SafeToken, o.OwnsSafely, o.Fence = o.token, o.safeToken, o.ownsSafely, o.fence
	leases := append([]string{Leader}, cfg.Leases...)
	for i := range shares {
		leases = append(leases, shareLease(uint32(i)))
	}
	o.replica = replicas.New(replicas.Config{
		Store: cfg.Store, Leases: leases, Host: cfg.Host, Version: cfg.Version, Format: cfg.Format, Check: cfg.Check, TTL: cfg.TTL,
		OnTaken: o.handleTaken, OnLost: o.handleLost, IsBusy: func(lease string) bool { return cfg.Takeover.IsBusy(o.chatsUnder(lease)) }, Logger: cfg.Logger,
	})
	return o
}

// Shared reports whether other processes may work with the same store.
func (o *LeaseHolder) Shared() bool { return o.replica != nil }

// Replica returns the id of this replica and the number of its leases; zero values without sharing.
func (o *LeaseHolder) Replica() (id string, leases int) {
	if !o.Shared() {
		return "", 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.replica.ID(), len(o.tokens)
}

func (o *LeaseHolder) token(chat chats.Chat) string {
	lease := o.leaseOf(chat)
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tokens[lease]
}

// Owns reports whether this process certainly owns a chat at the time of the call. If the process is
// paused after that, another may own the chat.
func (o *LeaseHolder) Owns(chat chats.Chat) bool { return o.SafeToken(chat) != "" }

func (o *LeaseHolder) safeToken(chat chats.Chat) string {
	if !o.replica.IsAlive() {
		return ""
	}
	return o.Token(chat)
}

func (o *LeaseHolder) ownsSafely(j *Run) bool {
	return o.replica.IsAlive() && o.Token(j.Message.Chat) == j.LeaseToken
}

func (o *LeaseHolder) fence(token string) storage.Op {
	o.mu.Lock()
	defer o.mu.Unlock()
	if fence, ok := o.fences[token]; ok {
		return fence
	}
	return storage.Check(replicas.Prefix+"over", 1) // there is no such key
}

func shareLease(n uint32) string { return fmt.Sprintf("%s%03d", sharePrefix, n%shares) }

func (o *LeaseHolder) leaseOf(chat chats.Chat) string {
	return shareOf(o.cfg.Takeover.CurrentChat(chat))
}

// chatsUnder selects the chats of some leases.
func (o *LeaseHolder) chatsUnder(leases ...string) ChatFilter {
	some := make(map[string]bool, len(leases))
	for _, lease := range leases {
		some[lease] = true
	}
	return func(chat chats.Chat) bool { return some[o.leaseOf(chat)] }
}

// Run holds leases until ctx ends. A process that works alone takes over all chats and returns.
func (o *LeaseHolder) Run(ctx context.Context) error {
	if o.replica != nil {
		return o.replica.Run(ctx)
	}
	begin, err := o.cfg.Takeover.TakeOver(ctx, AllChats, o.Token)
	if err == nil {
		begin()
	}
	return err
}

// Retire releases the chats in which no job runs, and the others as soon as their jobs have ended.
func (o *LeaseHolder) Retire() {
	if o.replica != nil {
		o.replica.Retire()
	}
}

func (o *LeaseHolder) handleTaken(ctx context.Context, leases map[string]storage.Op) (err error) {
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
		begin, err = o.cfg.Takeover.TakeOver(ctx, o.chatsUnder(taken...), func(chat chats.Chat) string { return tokens[o.leaseOf(chat)] })
	}
	o.mu.Lock()
	if err == nil {
		maps.Copy(o.tokens, tokens)
		o.notifyChanged()
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

func (o *LeaseHolder) handleLost(lease string) {
	o.mu.Lock()
	delete(o.fences, o.tokens[lease])
	delete(o.tokens, lease)
	o.notifyChanged()
	o.mu.Unlock()
	if strings.HasPrefix(lease, sharePrefix) {
		o.cfg.Takeover.OnLost(o.chatsUnder(lease))
	}
}

func (o *LeaseHolder) notifyChanged() {
	close(o.changed)
	o.changed = make(chan struct{})
}

// WhileHeld runs do whenever this process holds a lease. It returns when ctx ends, or when do returns
// while the lease is held.
func (o *LeaseHolder) WhileHeld(ctx context.Context, lease string, do func(context.Context) error) error {
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

// Holds reports whether this process holds a lease. A process that works alone holds all.
func (o *LeaseHolder) Holds(lease string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.replica == nil || o.tokens[lease] != ""
}

// await waits until this process holds a lease, or, if held is false, until it does not.
func (o *LeaseHolder) await(ctx context.Context, lease string, held bool) error {
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
