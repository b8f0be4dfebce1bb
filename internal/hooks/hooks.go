// Package hooks takes webhooks in: a chat has addresses to which other programs post, and
// what they post becomes a task of that chat.
//
// A delivery is answered with success only once it is on disk, and comes a second time to
// nothing where its sender names it: the name is in the key of the task. The sender has
// to know the secret of the hook, which is kept encrypted and shown once, on a page, never in
// the chat.
package hooks

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/receipts"
	"oneclaw/internal/cache"
	"oneclaw/internal/redact"
	"oneclaw/storage"
)

// Config is what [Hooks] are made of.
type Config struct {
	// Store keeps the hooks.
	Store storage.KV
	// SecretKey encrypts their secrets.
	SecretKey []byte
	// PublicURL is where this program is reached from outside. Without one there are no hooks.
	PublicURL string
	// Submit has a task answered in its chat: that of the bridge.
	Submit func(ctx context.Context, s bridge.Submission) error
	// Redact, if not nil, masks secrets in what a hook brings.
	Redact func(text string) string
	// MaxBody bounds a delivery in bytes. 0 means 128 KiB.
	MaxBody int64
	// MaxHooks bounds the hooks of an owner. 0 means 20.
	MaxHooks int
	// Logger, if nil, discards.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Hooks are the webhooks of all chats.
type Hooks struct {
	cfg    Config
	sealer *redact.Sealer
	// warned are the hooks of which the log has told something lately; see seldom.
	warned *cache.Cache[string, struct{}]
}

// New makes them.
func New(cfg Config) (*Hooks, error) {
	if cfg.Store == nil || cfg.Submit == nil {
		return nil, errors.New("hooks: a store and a place to submit tasks to are needed")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	cfg.MaxBody = cmp.Or(cfg.MaxBody, 128<<10)
	cfg.MaxHooks = cmp.Or(cfg.MaxHooks, 20)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	return &Hooks{cfg: cfg, sealer: sealer, warned: cache.New[string, struct{}](100)}, nil
}

// hook is an address to which others post.
type hook struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Task is what is to be done with what it brings.
	Task string `json:"task"`
	// Owner, Chat, User and Direct are as in the scope of the command that made it.
	Owner   string    `json:"owner"`
	Chat    string    `json:"chat"`
	User    string    `json:"user"`
	Direct  bool      `json:"direct,omitempty"`
	Created time.Time `json:"created"`
	// Secret is encrypted, for the key of the record.
	Secret []byte `json:"secret"`
	// Page is the hash of what opens the page with the secret, until it was shown, and
	// PageUntil when that is over.
	Page      string    `json:"page,omitempty"`
	PageUntil time.Time `json:"page_until,omitzero"`
	// Count is how many deliveries are over, Last when the last of them was, LastKey which
	// it was, and Outcome what became of it.
	Count   int       `json:"count,omitempty"`
	Last    time.Time `json:"last,omitzero"`
	LastKey string    `json:"last_key,omitempty"`
	Outcome string    `json:"outcome,omitempty"`

	rev storage.Revision
}

const prefix = "hook/"

func keyOf(id string) string { return prefix + id }

// newID returns an id that cannot be guessed.
func newID() string { return strings.ToLower(rand.Text()) }

// idPattern is what is looked up; the rest of what people post to is nowhere.
var idPattern = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

// errDamaged says that a record does not decode.
var errDamaged = errors.New("hooks: a damaged record")

// find returns a hook; storage.ErrNotFound where there is none.
func (h *Hooks) find(ctx context.Context, id string) (hook, error) {
	if !idPattern.MatchString(id) {
		return hook{}, storage.ErrNotFound
	}
	entry, err := h.cfg.Store.Get(ctx, keyOf(id))
	if err != nil {
		return hook{}, fmt.Errorf("read hook: %w", err)
	}
	return decode(entry)
}

func decode(entry storage.Entry) (hook, error) {
	one := hook{rev: entry.Revision}
	if err := json.Unmarshal(entry.Value, &one); err != nil {
		return hook{}, fmt.Errorf("%w: %s: %w", errDamaged, entry.Key, err)
	}
	return one, nil
}

func (h *Hooks) write(ctx context.Context, one hook) error {
	data, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encode hook: %w", err)
	}
	if _, err := h.cfg.Store.Put(ctx, keyOf(one.ID), data, one.rev); err != nil {
		return fmt.Errorf("store hook: %w", err)
	}
	return nil
}

var (
	// errUnchanged tells change to write nothing, errRemoved to remove the hook.
	errUnchanged = errors.New("hooks: unchanged")
	errRemoved   = errors.New("hooks: removed")
)

// maxConflicts bounds how often a change is tried again because of others.
const maxConflicts = 20

// change reads a hook, has f change it and writes it, again where another writer was faster.
func (h *Hooks) change(ctx context.Context, id string, f func(*hook) error) error {
	for range maxConflicts {
		one, err := h.find(ctx, id)
		if err != nil {
			return err
		}
		switch err = f(&one); {
		case err == nil:
			err = h.write(ctx, one)
		case errors.Is(err, errRemoved):
			err = h.cfg.Store.Delete(ctx, keyOf(id), one.rev)
		case errors.Is(err, errUnchanged):
			return nil
		}
		if !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return errors.New("change hook: others change it all the time")
}

// of returns the hooks of an owner, the oldest first.
func (h *Hooks) of(ctx context.Context, owner string) ([]hook, error) {
	return h.those(ctx, func(one hook) bool { return one.Owner == owner })
}

func (h *Hooks) those(ctx context.Context, which func(hook) bool) ([]hook, error) {
	var all []hook
	for entry, err := range h.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list hooks: %w", err)
		}
		one, err := decode(entry)
		if err != nil {
			h.cfg.Logger.Error("webhook cannot be read and is left alone", "err", err)
		} else if which(one) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b hook) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Move gives the hooks of a chat to the one as which it goes on.
func (h *Hooks) Move(ctx context.Context, from, owner string, to chats.Chat) error {
	all, err := h.of(ctx, from)
	if err != nil {
		return err
	}
	for _, one := range all {
		err := h.change(ctx, one.ID, func(one *hook) error {
			chat, err := chats.ParseChat(one.Chat)
			if err != nil {
				return err
			}
			chat.ID = to.ID
			one.Owner, one.Chat = owner, chat.String()
			return nil
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Forget removes the hooks that a user, as platform:id, has made, or that are theirs.
func (h *Hooks) Forget(ctx context.Context, user string) error {
	all, err := h.those(ctx, madeBy(user))
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := h.change(ctx, one.ID, func(*hook) error { return errRemoved }); err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Done records what became of a delivery; other tasks are none of its business. After a
// crash it may be told again.
func (h *Hooks) Done(ctx context.Context, r bridge.TaskResult) error {
	id, ok := hookOf(r.Key)
	if !ok {
		return nil
	}
	outcome := "answered"
	switch {
	case r.State == receipts.Revoked:
		outcome = "not run: the author of the webhook may no longer talk to me"
	case r.Refused:
		outcome = "not answered: no budget was left"
	case r.Incident != "":
		outcome = "no answer, incident " + r.Incident
	case r.Silent:
		outcome = "nothing to tell"
	case r.MessageID == "":
		outcome = "not delivered"
	}
	err := h.change(ctx, id, func(one *hook) error {
		if one.LastKey == r.Key {
			return errUnchanged
		}
		one.Count++
		one.Last, one.LastKey, one.Outcome = h.cfg.Now(), r.Key, outcome
		return nil
	})
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, errDamaged) {
		return nil // it must not keep the task from being closed
	}
	return err
}
