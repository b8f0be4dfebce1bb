package privacy

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/conversation"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

// Bounds of the messages that are stored and shown for a group.
const (
	// maxKept is how many messages of a chat or thread are stored; sometimes there are a few more.
	maxKept = 50
	// MaxAge is how long they are stored.
	MaxAge = 24 * time.Hour
	// MaxShown bounds how many are shown at once, maxTokens their total size.
	MaxShown  = 30
	maxTokens = 1000
	// maxText bounds one message, in characters.
	maxText = 500
	// trimInterval is the number of new messages in a chat or thread after which its surplus is deleted.
	trimInterval = 16
)

// Key prefixes: of the groups in which the bot listens, and of the messages from these groups.
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

// Observer listens in groups. The groups that want it are also kept in memory, so that messages in other
// groups cost nothing. If processes share the store, they learn of changes by [Observer.Watch], and a
// message is not stored if its group's setting has changed in the meantime.
type Observer struct {
	cfg ObserverConfig

	mu        sync.RWMutex
	groups    map[string]listening // the groups in which the bot listens
	sinceTrim map[string]int       // number of messages since the last trim, by message prefix
}

// NewObserver returns an observer that listens nowhere until [Observer.Load].
func NewObserver(cfg ObserverConfig) *Observer {
	return &Observer{cfg: cfg, groups: make(map[string]listening), sinceTrim: make(map[string]int)}
}

// group is the record of a group in which the bot listens. Since is the time of the message with the
// command, by the clock of the platform.
type group struct {
	By    string    `json:"by"`
	Since time.Time `json:"since"`
}

// listening is the cached record of such a group.
type listening struct {
	rev   storage.Revision
	since time.Time
}

func newListening(entry storage.Entry) listening {
	var g group
	_ = json.Unmarshal(entry.Value, &g) // a damaged record listens all the same
	return listening{entry.Revision, g.Since}
}

// storedMessage is a stored message.
type storedMessage struct {
	User string       `json:"user"`
	Said chats.Quoted `json:"said"`
}

func groupKey(chat chats.Chat) string { return groupPrefix + chat.WithoutThread().String() }

// messagePrefix returns the key prefix of the messages stored for a chat, or for its thread.
func messagePrefix(chat chats.Chat, thread bool) string {
	prefix := heardPrefix + chat.WithoutThread().String() + "/"
	if thread {
		prefix += chat.Thread + "/"
	}
	return prefix
}

// Load reads in which groups the bot listens.
func (o *Observer) Load(ctx context.Context) error {
	groups := make(map[string]listening)
	for entry, err := range o.cfg.Store.List(ctx, storage.Range{Prefix: groupPrefix}) {
		if err != nil {
			return fmt.Errorf("read the observed groups: %w", err)
		}
		groups[entry.Key] = newListening(entry)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.groups = groups
	return nil
}

// Watch follows the changes by other processes until ctx ends. After an error it has to be called again.
func (o *Observer) Watch(ctx context.Context) error {
	changes := o.cfg.Store.Watch(ctx, groupPrefix)
	if err := o.Load(ctx); err != nil {
		return err
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch the observed groups: %w", err)
		}
		o.applySetting(e.Entry, !e.Deleted)
	}
	return nil
}

func (o *Observer) applySetting(entry storage.Entry, on bool) {
	o.mu.Lock()
	defer o.mu.Unlock()
	switch {
	case o.groups[entry.Key].rev > entry.Revision: // the known setting is newer
	case on:
		o.groups[entry.Key] = newListening(entry)
	default:
		delete(o.groups, entry.Key)
	}
}

// WantsAmbient reports whether the bot listens in a chat.
func (o *Observer) WantsAmbient(chat chats.Chat) bool {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if len(o.groups) == 0 {
		return false
	}
	_, on := o.groups[groupKey(chat)]
	return on
}

// SetEnabled starts to listen in a group if on is true, to messages from the time at. Otherwise it
// stops, and deletes the stored messages. It reports whether this changed anything.
func (o *Observer) SetEnabled(ctx context.Context, chat chats.Chat, on bool, by string, at time.Time) (bool, error) {
	key := groupKey(chat)
	entry, err := storage.Find(ctx, o.cfg.Store, key)
	known := entry.Revision != storage.Absent
	switch {
	case err != nil:
		return false, err
	case on && known:
		o.applySetting(entry, true)
		return false, nil
	case on:
		value, err := json.Marshal(group{By: by, Since: at})
		if err != nil {
			return false, err
		}
		rev, err := o.cfg.Store.Put(ctx, key, value, storage.Absent)
		if err != nil {
			return false, fmt.Errorf("listen in %s: %w", chat, err)
		}
		o.applySetting(storage.Entry{Key: key, Value: value, Revision: rev}, true)
		return true, nil
	case known:
		if err := o.cfg.Store.Delete(ctx, key, entry.Revision); err != nil {
			return false, fmt.Errorf("stop listening in %s: %w", chat, err)
		}
		o.applySetting(entry, false)
	}
	return known, o.Drop(ctx, chat)
}

// Add stores a message that is not addressed to the bot. When it returns, the message is on disk, unless
// listening was turned off in the chat, or on after the message. A repeated message overwrites itself.
func (o *Observer) Add(ctx context.Context, m chats.Message) error {
	value, err := json.Marshal(storedMessage{User: m.User, Said: toQuoted(m)})
	if err != nil {
		return err
	}
	for {
		o.mu.RLock()
		here, on := o.groups[groupKey(m.Chat)]
		o.mu.RUnlock()
		if !on || m.Time.Before(here.since) {
			return nil
		}
		_, err := o.cfg.Store.Write(ctx, storage.Check(groupKey(m.Chat), here.rev), storage.Put(messagePrefix(m.Chat, true)+m.ID, value, storage.Any))
		if errors.Is(err, storage.ErrConflict) {
			if err = o.Load(ctx); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("store a message of %s: %w", m.Chat, err)
		}
		return o.trim(ctx, m.Chat)
	}
}

// Remove deletes a message of a chat, if it is stored. One that begins a thread was stored outside of it.
func (o *Observer) Remove(ctx context.Context, chat chats.Chat, id string) error {
	if chat.Thread == id {
		chat = chat.WithoutThread()
	}
	err := o.cfg.Store.Delete(ctx, messagePrefix(chat, true)+id, storage.Any)
	if err != nil && !errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("delete a message of %s: %w", chat, err)
	}
	return nil
}

// toQuoted returns the parts of a message that are stored: its text, forwarded messages but for the text of what the
// bot may have written, and the names of its files.
func toQuoted(m chats.Message) chats.Quoted {
	text := m.Text
	for _, q := range m.Quoted {
		if q.MayBeOwn() {
			q.Text = "(left out, as it may be your own)"
		}
		if q.Kind != chats.RefReply {
			text = strings.TrimSpace(text + "\n(passes on, by " + cmp.Or(q.By, "somebody") + ":) " + q.Text)
		}
	}
	for _, f := range m.Files {
		text = strings.TrimSpace(text + "\n(with a file: " + cmp.Or(f.Name, "without a name") + ")")
	}
	return chats.Quoted{Kind: chats.RefAmbient, ID: m.ID, By: cmp.Or(m.UserName, m.User), Text: wording.Clip(text, maxText), Time: m.Time}
}

// trim deletes surplus messages of a chat or thread, once in a while.
func (o *Observer) trim(ctx context.Context, chat chats.Chat) error {
	where := messagePrefix(chat, true)
	o.mu.Lock()
	o.sinceTrim[where]++
	due := o.sinceTrim[where] >= trimInterval
	if due {
		delete(o.sinceTrim, where)
	}
	o.mu.Unlock()
	if !due {
		return nil
	}
	all, err := o.list(ctx, where)
	if err != nil {
		return err
	}
	return o.remove(ctx, all[:max(0, len(all)-maxKept)])
}

// Recent returns the latest stored messages of a chat's thread, or outside of threads if there is none,
// the oldest first; only those after the message with the id after, unless that is empty. name returns
// the name of a user.
func (o *Observer) Recent(ctx context.Context, chat chats.Chat, after string, name func(user string) string) ([]chats.Quoted, error) {
	all, err := o.list(ctx, messagePrefix(chat, true))
	if err != nil {
		return nil, err
	}
	oldest := o.cfg.Now().Add(-MaxAge)
	var list []chats.Quoted
	for _, one := range all {
		if q := one.Said; q.Text != "" && (after == "" || compareIDs(q.ID, after) > 0) && !q.Time.Before(oldest) {
			if q.By == one.User {
				q.By = name(one.User)
			}
			list = append(list, q)
		}
	}
	return conversation.LastQuotes(list[max(0, len(list)-MaxShown):], maxTokens), nil
}

type record struct {
	storedMessage
	key string
	rev storage.Revision
}

// list returns the stored messages, the oldest first.
func (o *Observer) list(ctx context.Context, prefix string) (all []record, err error) {
	for entry, err := range o.cfg.Store.List(ctx, storage.Range{Prefix: prefix}) {
		if err != nil {
			return nil, fmt.Errorf("list stored messages: %w", err)
		}
		one := record{key: entry.Key, rev: entry.Revision}
		if err := json.Unmarshal(entry.Value, &one.storedMessage); err != nil {
			o.cfg.Log.Error("a stored message cannot be read", "key", entry.Key, "err", err)
		}
		all = append(all, one)
	}
	slices.SortStableFunc(all, func(a, b record) int {
		return cmp.Or(a.Said.Time.Compare(b.Said.Time), compareIDs(a.Said.ID, b.Said.ID))
	})
	return all, nil
}

// compareIDs compares message ids from one chat, which are increasing numbers.
func compareIDs(a, b string) int {
	return cmp.Or(cmp.Compare(len(a), len(b)), strings.Compare(a, b))
}

// Forget deletes the stored messages of a user, platform:id.
func (o *Observer) Forget(ctx context.Context, by string) error {
	platform, user, _ := strings.Cut(by, ":")
	all, err := o.list(ctx, heardPrefix+platform+":")
	if err != nil {
		return err
	}
	return o.remove(ctx, slices.DeleteFunc(all, func(one record) bool { return one.User != user }))
}

// AmbientOf returns the stored messages of a user, platform:id, by chat.
func AmbientOf(ctx context.Context, kv storage.KV, by string) (map[string][]chats.Quoted, error) {
	platform, user, _ := strings.Cut(by, ":")
	said := make(map[string][]chats.Quoted)
	for entry, err := range kv.List(ctx, storage.Range{Prefix: heardPrefix + platform + ":"}) {
		var one storedMessage
		if err != nil {
			return nil, fmt.Errorf("list stored messages: %w", err)
		}
		if json.Unmarshal(entry.Value, &one) == nil && one.User == user {
			chat, _, _ := strings.Cut(strings.TrimPrefix(entry.Key, heardPrefix), "/")
			said[chat] = append(said[chat], one.Said)
		}
	}
	return said, nil
}

// Drop deletes all stored messages of a chat.
func (o *Observer) Drop(ctx context.Context, chat chats.Chat) error {
	all, err := o.list(ctx, messagePrefix(chat, false))
	if err != nil {
		return err
	}
	return o.remove(ctx, all)
}

func (o *Observer) remove(ctx context.Context, list []record) error {
	for _, one := range list {
		// A conflict means that the message was replaced in the meantime.
		if err := o.cfg.Store.Delete(ctx, one.key, one.rev); err != nil && !errors.Is(err, storage.ErrConflict) && !errors.Is(err, storage.ErrNotFound) {
			return fmt.Errorf("delete a stored message: %w", err)
		}
	}
	return nil
}

// Move keeps the setting of a group that continues under another id. The stored messages are deleted,
// because message ids start again there.
func (o *Observer) Move(ctx context.Context, from, to chats.Chat) error {
	if entry, err := storage.Find(ctx, o.cfg.Store, groupKey(from)); err != nil || entry.Revision == storage.Absent {
		return err
	}
	if _, err := o.SetEnabled(ctx, to, true, "move", time.Time{}); err != nil {
		return err
	}
	_, err := o.SetEnabled(ctx, from, false, "move", time.Time{})
	return err
}

// Prune deletes messages that are too old.
func (o *Observer) Prune(ctx context.Context) error {
	all, err := o.list(ctx, heardPrefix)
	if err != nil {
		return err
	}
	kept, oldest := make(map[string]bool), o.cfg.Now().Add(-MaxAge)
	old := slices.DeleteFunc(all, func(one record) bool {
		keep := !one.Said.Time.Before(oldest)
		if keep {
			kept[strings.TrimSuffix(one.key, one.Said.ID)] = true
		}
		return keep
	})
	o.mu.Lock()
	maps.DeleteFunc(o.sinceTrim, func(where string, _ int) bool { return !kept[where] })
	o.mu.Unlock()
	return o.remove(ctx, old)
}
