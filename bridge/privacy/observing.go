package privacy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Bounds of what is stored and shown of a group.
const (
	// Kept is how many messages of a place are stored; sometimes there are a few more.
	Kept = 50
	// Age is how long they are stored.
	Age = 24 * time.Hour
	// Shown bounds how many are shown at once, Tokens their size.
	Shown  = 30
	Tokens = 1000
	// maxText bounds one message, in characters.
	maxText = 500
	// trimmed is after how many new messages a place is trimmed.
	trimmed = 16
)

// Key prefixes: of the groups in which the bot listens, and of the messages from there.
const (
	groupPrefix = "observe/"
	heardPrefix = "heard/"
)

// ObserverConfig configures an [Observer]. All fields are required.
type ObserverConfig struct {
	Store storage.Store
	Log   *slog.Logger
	Now   func() time.Time
}

// Observer listens in groups. Which groups want it is also kept in memory, so that others cost nothing;
// if processes share the store, they learn of changes by [Observer.Watch], and a message is not stored
// if its group's setting has changed meanwhile.
type Observer struct {
	cfg ObserverConfig

	mu     sync.RWMutex
	groups map[string]storage.Revision // groups in which it listens
	heard  map[string]int              // messages of a place since it was trimmed
}

// NewObserver returns an observer that listens nowhere until [Observer.Load].
func NewObserver(cfg ObserverConfig) *Observer {
	return &Observer{cfg: cfg, groups: make(map[string]storage.Revision), heard: make(map[string]int)}
}

// group is the record of a group in which the bot listens.
type group struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// heard is a stored message.
type heard struct {
	User string       `json:"user"`
	Said chats.Quoted `json:"said"`
}

func keyOf(chat chats.Chat) string { return groupPrefix + chat.WithoutThread().String() }

// place returns the key prefix of what was heard in a chat, or in its thread.
func place(chat chats.Chat, thread bool) string {
	prefix := heardPrefix + chat.WithoutThread().String() + "/"
	if thread {
		prefix += chat.Thread + "/"
	}
	return prefix
}

// Load reads in which groups it listens.
func (o *Observer) Load(ctx context.Context) error {
	groups := make(map[string]storage.Revision)
	for entry, err := range o.cfg.Store.List(ctx, storage.Range{Prefix: groupPrefix}) {
		if err != nil {
			return fmt.Errorf("read in which groups the bot listens: %w", err)
		}
		groups[entry.Key] = entry.Revision
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = groups
	return nil
}

// Watch follows the changes of other processes, until ctx ends. After an error it has to be called
// again.
func (o *Observer) Watch(ctx context.Context) error {
	changes := o.cfg.Store.Watch(ctx, groupPrefix)
	if err := o.Load(ctx); err != nil {
		return err
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch in which groups the bot listens: %w", err)
		}
		o.learn(e.Key, e.Revision, !e.Deleted)
	}
	return nil
}

func (o *Observer) learn(key string, rev storage.Revision, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if on {
		o.groups[key] = max(o.groups[key], rev)
	} else if o.groups[key] <= rev {
		delete(o.groups, key)
	}
}

// WantsAmbient reports whether it listens in a chat.
func (o *Observer) WantsAmbient(chat chats.Chat) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if len(o.groups) == 0 {
		return false
	}
	_, on := o.groups[keyOf(chat)]
	return on
}

// SetEnabled starts to listen in a group, or stops and deletes what was heard. It reports whether that
// changes anything.
func (o *Observer) SetEnabled(ctx context.Context, chat chats.Chat, on bool, by string) (bool, error) {
	key := keyOf(chat)
	entry, err := o.cfg.Store.Get(ctx, key)
	known := err == nil
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return false, fmt.Errorf("look whether the bot listens in %s: %w", chat, err)
	}
	switch {
	case on && known:
		o.learn(key, entry.Revision, true)
		return false, nil
	case on:
		value, err := json.Marshal(group{By: by, Since: o.cfg.Now()})
		if err != nil {
			return false, err
		}
		rev, err := o.cfg.Store.Put(ctx, key, value, storage.Absent)
		if err != nil {
			return false, fmt.Errorf("listen in %s: %w", chat, err)
		}
		o.learn(key, rev, true)
		return true, nil
	case known:
		if err := o.cfg.Store.Delete(ctx, key, entry.Revision); err != nil {
			return false, fmt.Errorf("stop listening in %s: %w", chat, err)
		}
		o.learn(key, entry.Revision, false)
	}
	return known, o.Drop(ctx, chat)
}

// Add stores a message that is not addressed to the bot. When it returns, the message is on disk,
// unless the chat has turned listening off. A repeated message overwrites itself.
func (o *Observer) Add(ctx context.Context, m chats.Message) error {
	value, err := json.Marshal(heard{User: m.User, Said: said(m)})
	if err != nil {
		return err
	}
	for {
		o.mu.RLock()
		rev, on := o.groups[keyOf(m.Chat)]
		o.mu.RUnlock()
		if !on {
			return nil
		}
		_, err := o.cfg.Store.Write(ctx, storage.Check(keyOf(m.Chat), rev), storage.Put(place(m.Chat, true)+m.ID, value, storage.Any))
		if errors.Is(err, storage.ErrConflict) {
			if err = o.Load(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("keep what was said in %s: %w", m.Chat, err)
		}
		return o.trim(ctx, m.Chat)
	}
}

// said returns what is stored of a message: its text, forwarded messages, and the names of its files.
func said(m chats.Message) chats.Quoted {
	text := m.Text
	for _, q := range m.Quoted {
		if q.How != chats.PointReply {
			text = strings.TrimSpace(text + "\n(passes on, by " + cmp.Or(q.By, "somebody") + ":) " + q.Text)
		}
	}
	for _, f := range m.Files {
		text = strings.TrimSpace(text + "\n(with a file: " + cmp.Or(f.Name, "without a name") + ")")
	}
	return chats.Quoted{How: chats.PointHeard, ID: m.ID, By: cmp.Or(m.UserName, m.User), Text: wording.Clip(text, maxText), Time: m.Time}
}

// trim deletes surplus messages of a place, now and then.
func (o *Observer) trim(ctx context.Context, chat chats.Chat) error {
	where := place(chat, true)
	o.mu.Lock()
	o.heard[where]++
	due := o.heard[where] >= trimmed
	if due {
		delete(o.heard, where)
	}
	o.mu.Unlock()
	if !due {
		return nil
	}
	all, err := o.list(ctx, where)
	if err != nil {
		return err
	}
	return o.remove(ctx, all[:max(0, len(all)-Kept)])
}

// Recent returns the latest messages of a chat and its thread, after the message with the id after
// unless that is empty, the oldest first. name returns the name of a user.
func (o *Observer) Recent(ctx context.Context, chat chats.Chat, after string, name func(user string) string) ([]chats.Quoted, error) {
	all, err := o.list(ctx, place(chat, true))
	if err != nil {
		return nil, err
	}
	oldest := o.cfg.Now().Add(-Age)
	var list []chats.Quoted
	for _, one := range all {
		if q := one.Said; q.Text != "" && (after == "" || compare(q.ID, after) > 0) && !q.Time.Before(oldest) {
			if q.By == one.User {
				q.By = name(one.User)
			}
			list = append(list, q)
		}
	}
	return conversation.LastQuotes(list[max(0, len(list)-Shown):], Tokens), nil
}

type record struct {
	heard
	key string
	rev storage.Revision
}

// list returns what was heard, the oldest first.
func (o *Observer) list(ctx context.Context, prefix string) (all []record, err error) {
	for entry, err := range o.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list what was heard: %w", err)
		}
		one := record{key: entry.Key, rev: entry.Revision}
		if err := json.Unmarshal(entry.Value, &one.heard); err != nil {
			o.cfg.Log.Error("what was heard cannot be read", "key", entry.Key, "err", err)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b record) int {
		return cmp.Or(a.Said.Time.Compare(b.Said.Time), compare(a.Said.ID, b.Said.ID))
	})
	return all, nil
}

// compare compares message ids of one chat: they are growing numbers.
func compare(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Forget deletes what was heard of a user, platform:id.
func (o *Observer) Forget(ctx context.Context, by string) error {
	platform, user, _ := strings.Cut(by, ":")
	all, err := o.list(ctx, heardPrefix+platform+":")
	if err != nil {
		return err
	}
	return o.remove(ctx, slices.DeleteFunc(all, func(one record) bool { return one.User != user }))
}

// AmbientOf returns what is stored of a user, platform:id, by chat.
func AmbientOf(ctx context.Context, kv storage.KV, by string) (map[string][]chats.Quoted, error) {
	platform, user, _ := strings.Cut(by, ":")
	said := make(map[string][]chats.Quoted)
	for entry, err := range kv.List(ctx, storage.Range{Prefix: heardPrefix + platform + ":"}) {
		var one heard
		if err != nil {
			return nil, fmt.Errorf("list what was heard: %w", err)
		}
		if json.Unmarshal(entry.Value, &one) == nil && one.User == user {
			chat, _, _ := strings.Cut(strings.TrimPrefix(entry.Key, heardPrefix), "/")
			said[chat] = append(said[chat], one.Said)
		}
	}
	return said, nil
}

// Drop deletes all that was heard in a chat.
func (o *Observer) Drop(ctx context.Context, chat chats.Chat) error {
	all, err := o.list(ctx, place(chat, false))
	if err != nil {
		return err
	}
	return o.remove(ctx, all)
}

func (o *Observer) remove(ctx context.Context, list []record) error {
	for _, one := range list {
		// A conflict means that another message was heard later.
		if err := o.cfg.Store.Delete(ctx, one.key, one.rev); err != nil && !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("forget what was heard: %w", err)
		}
	}
	return nil
}

// Move keeps the setting of a group that continues under another id. What was heard is deleted, because
// message ids start again there.
func (o *Observer) Move(ctx context.Context, from, to chats.Chat) error {
	if _, err := o.cfg.Store.Get(ctx, keyOf(from)); errors.Is(err, storage.ErrNotFound) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look whether the bot listens in %s: %w", from, err)
	}
	if _, err := o.SetEnabled(ctx, to, true, "move"); err != nil {
		return err
	}
	_, err := o.SetEnabled(ctx, from, false, "move")
	return err
}

// Prune deletes messages that are too old.
func (o *Observer) Prune(ctx context.Context) error {
	all, err := o.list(ctx, heardPrefix)
	if err != nil {
		return err
	}
	oldest := o.cfg.Now().Add(-Age)
	return o.remove(ctx, slices.DeleteFunc(all, func(one record) bool { return !one.Said.Time.Before(oldest) }))
}
