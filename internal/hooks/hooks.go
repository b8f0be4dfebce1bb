// Package hooks receives webhooks: a chat has addresses to which other programs post, and each
// delivery becomes a task in that chat.
//
// A delivery is acknowledged only once it is stored. If its sender names deliveries, a repeated
// one has no effect: the name is part of the task's key. The sender has to know the secret of
// the hook, which is stored encrypted and shown once, on a page, never in the chat.
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

// Config configures [Hooks].
type Config struct {
	// Store stores the hooks.
	Store storage.KV
	// SecretKey encrypts the hooks' secrets.
	SecretKey []byte
	// PublicURL is the external address. Without one no hooks are made.
	PublicURL string
	// Submit submits a task to the bridge.
	Submit func(ctx context.Context, s bridge.Submission) error
	// ForgetFiles deletes the files of an owner. It is called with that of a hook's runs when the hook is removed.
	ForgetFiles func(ctx context.Context, owner string) error
	// ApprovalHosts are the hosts that all runs may open; see [bridge.Config]. Chats are told that there are some, not which.
	ApprovalHosts []string
	// Redact, if not nil, masks secrets in deliveries.
	Redact func(text string) string
	// maxBody bounds a delivery in bytes. 0 means 128 KiB.
	maxBody int64
	// MaxHooks bounds the hooks of an owner. 0 means 20.
	MaxHooks int
	// Logger may be nil.
	Logger *slog.Logger
	// Now is the clock. Required.
	Now func() time.Time
}

// Hooks manages the webhooks of all chats.
type Hooks struct {
	cfg    Config
	sealer *redact.Sealer
	// warned has the hooks that were logged recently; see logSeldom.
	warned *cache.Cache[string, struct{}]
}

// New checks the configuration and returns the webhooks.
func New(cfg Config) (*Hooks, error) {
	if cfg.Store == nil || cfg.Submit == nil || cfg.ForgetFiles == nil || cfg.Now == nil {
		return nil, errors.New("hooks: Store, Submit, ForgetFiles and Now are required")
	}
	sealer, err := redact.NewSealer(cfg.SecretKey, "webhooks")
	if err != nil {
		return nil, fmt.Errorf("hooks: %w", err)
	}
	cfg.PublicURL = strings.TrimRight(cfg.PublicURL, "/")
	cfg.maxBody = cmp.Or(cfg.maxBody, 128<<10)
	cfg.MaxHooks = cmp.Or(cfg.MaxHooks, 20)
	cfg.Logger = cmp.Or(cfg.Logger, slog.New(slog.DiscardHandler))
	if cfg.Redact == nil {
		cfg.Redact = func(text string) string { return text }
	}
	return &Hooks{cfg: cfg, sealer: sealer, warned: cache.New[string, struct{}](100)}, nil
}

// hook is the record of a webhook.
type hook struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Task is the instruction for each delivery.
	Task string `json:"task"`
	// Owner, Chat, User and Direct are from the scope of the command that made it.
	Owner   string    `json:"owner"`
	Chat    string    `json:"chat"`
	User    string    `json:"user"`
	Direct  bool      `json:"direct,omitempty"`
	Created time.Time `json:"created"`
	// Secret is encrypted, bound to the key of the record.
	Secret []byte `json:"secret"`
	// PageTokenHash is the hash of the token in the link to the secret, until the secret was shown.
	// PageUntil is when the link expires.
	PageTokenHash string    `json:"page,omitempty"`
	PageUntil     time.Time `json:"page_until,omitzero"`
	// Deliveries counts completed deliveries. LastDelivery is the time of the last one, LastKey its
	// key, and Outcome its outcome.
	Deliveries   int       `json:"count,omitempty"`
	LastDelivery time.Time `json:"last,omitzero"`
	LastKey      string    `json:"last_key,omitempty"`
	Outcome      string    `json:"outcome,omitempty"`

	rev storage.Revision
}

const prefix = "hook/"

func keyOf(id string) string { return prefix + id }

// filesOwner returns the owner of the files of a hook's runs. No chat has it.
func filesOwner(id string) string { return "webhook:" + id }

// newID returns an id that cannot be guessed.
func newID() string { return strings.ToLower(rand.Text()) }

// idPattern matches ids; other addresses are not looked up.
var idPattern = regexp.MustCompile(`^[a-z0-9]{1,64}$`)

// errDamaged is returned for a record that cannot be decoded.
var errDamaged = errors.New("hooks: a damaged record")

// find returns a hook, or storage.ErrNotFound.
func (h *Hooks) find(ctx context.Context, id string) (hook, error) {
	if !idPattern.MatchString(id) {
		return hook{}, storage.ErrNotFound
	}
	entry, err := h.cfg.Store.Get(ctx, keyOf(id))
	if err != nil {
		return hook{}, fmt.Errorf("read hook: %w", err)
	}
	return decodeHook(entry)
}

func decodeHook(entry storage.Entry) (hook, error) {
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

// errRemoved makes update delete the hook.
var errRemoved = errors.New("hooks: removed")

// update reads a hook, changes it with f and writes it. It tries again if another writer was
// faster.
func (h *Hooks) update(ctx context.Context, id string, f func(*hook) error) error {
	return storage.Retry(ctx, func() error {
		one, err := h.find(ctx, id)
		if err != nil {
			return err
		}
		switch err = f(&one); {
		case err == nil:
			return h.write(ctx, one)
		case errors.Is(err, errRemoved):
			return h.cfg.Store.Delete(ctx, keyOf(id), one.rev)
		}
		return err
	})
}

// ownedBy returns the hooks of an owner, the oldest first.
func (h *Hooks) ownedBy(ctx context.Context, owner string) ([]hook, error) {
	return h.filter(ctx, func(one hook) bool { return one.Owner == owner })
}

func (h *Hooks) filter(ctx context.Context, which func(hook) bool) ([]hook, error) {
	var all []hook
	for entry, err := range h.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list hooks: %w", err)
		}
		one, err := decodeHook(entry)
		if err != nil {
			h.cfg.Logger.Error("webhook cannot be decoded and is skipped", "err", err)
		} else if which(one) {
			all = append(all, one)
		}
	}
	slices.SortStableFunc(all, func(a, b hook) int { return a.Created.Compare(b.Created) })
	return all, nil
}

// Move moves the hooks of a shared chat, platform:id, to the chat that continues it.
func (h *Hooks) Move(ctx context.Context, from, to string) error {
	all, err := h.ownedBy(ctx, from)
	if err != nil {
		return err
	}
	for _, one := range all {
		err := h.update(ctx, one.ID, func(one *hook) error {
			chat, err := chats.ParseChat(one.Chat)
			if err != nil {
				return err
			}
			_, chat.ID, _ = strings.Cut(to, ":")
			one.Owner, one.Chat = to, chat.String()
			return nil
		})
		if err != nil && !errors.Is(err, storage.ErrNotFound) {
			return err
		}
	}
	return nil
}

// Forget deletes the hooks that a user, as platform:id, has made or owns.
func (h *Hooks) Forget(ctx context.Context, user string) error {
	all, err := h.filter(ctx, madeBy(user))
	if err != nil {
		return err
	}
	for _, one := range all {
		if err := h.delete(ctx, one.ID); err != nil {
			return err
		}
	}
	return nil
}

// delete deletes a hook with the files of its runs: first, so that a crash leaves the record by which they are found, and
// once more for a run that has written some meanwhile. A run that has begun goes on; [Hooks.RecordOutcome] deletes its.
func (h *Hooks) delete(ctx context.Context, id string) error {
	if err := h.cfg.ForgetFiles(ctx, filesOwner(id)); err != nil {
		return err
	}
	if err := h.update(ctx, id, func(*hook) error { return errRemoved }); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return h.cfg.ForgetFiles(ctx, filesOwner(id))
}

// Stands reports whether a delivery that has not begun may begin: its webhook has not been removed. Other tasks may.
func (h *Hooks) Stands(ctx context.Context, key string) (bool, error) {
	id, ok := hookID(key)
	if !ok {
		return true, nil
	}
	_, err := h.find(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// RecordOutcome records the outcome of a delivery, and ignores other tasks. After a crash it may be
// called again for the same delivery.
func (h *Hooks) RecordOutcome(ctx context.Context, r bridge.TaskResult) error {
	id, ok := hookID(r.Key)
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
	err := h.update(ctx, id, func(one *hook) error {
		if one.LastKey == r.Key {
			return storage.ErrUnchanged
		}
		one.Deliveries++
		one.LastDelivery, one.LastKey, one.Outcome = h.cfg.Now(), r.Key, outcome
		return nil
	})
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return h.cfg.ForgetFiles(ctx, filesOwner(id)) // the run may have written some since its webhook was removed
	case errors.Is(err, errDamaged):
		return nil // a damaged record must not keep the task open
	}
	return err
}
