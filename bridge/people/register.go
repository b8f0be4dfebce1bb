package people

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
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// standing is what the bot was told in a chat about somebody.
type standing string

// The standings. Those that give no role end at a time.
const (
	isOwner standing = "owner"
	isAdmin standing = "admin"
	isUser  standing = "user"
	// hasAsked: the owner has a card about them.
	hasAsked standing = "asked"
	// isRefused: the owner has decided against them, and is not asked again yet.
	isRefused standing = "refused"
)

func (s standing) role() toolgroups.Role {
	switch s {
	case isOwner:
		return toolgroups.RoleOwner
	case isAdmin:
		return toolgroups.RoleAdmin
	case isUser:
		return toolgroups.RoleUser
	}
	return toolgroups.RoleStranger
}

// person is somebody whom the bot was told about in a chat. The zero value is nobody.
type person struct {
	// User is platform:id.
	User string `json:"user"`
	Name string `json:"name,omitempty"`
	// Standing is what they are.
	Standing standing `json:"standing"`
	// By is who decided that; empty for who claimed the bot.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	// Until ends a standing that gives no role.
	Until time.Time `json:"until,omitzero"`
	// Chat is where the bot talks to them alone.
	Chat chats.Chat `json:"chat,omitzero"`
	// Card is the token of the card about them.
	Card string `json:"card,omitempty"`
}

// maxName bounds what a text repeats of a name.
const maxName = 40

// writer is the person who wrote a message in a direct chat.
func writer(m chats.Message, as standing, now time.Time) person {
	return person{
		User: m.By(), Name: wording.OneLine(m.UserName, maxName), Standing: as, Since: now,
		Chat: chats.Chat{Platform: m.Chat.Platform, ID: m.Chat.ID},
	}
}

// over reports whether a standing has ended.
func (p person) over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// title names a person in Markdown.
func (p person) title() string {
	if p.Name == "" {
		return "`" + p.User + "`"
	}
	return wording.Code(p.Name) + " (`" + p.User + "`)"
}

const accessPrefix = "access/"

// register keeps people in a KV and in memory. It alone changes these records while the
// program runs, both together: a look costs no read and is never old. Who changes it holds
// [Desk.changing].
type register struct {
	kv storage.KV

	mu   sync.RWMutex
	byID map[string]person
}

func decodePerson(entry storage.Entry) (person, error) {
	var one person
	if err := json.Unmarshal(entry.Value, &one); err != nil {
		return person{}, fmt.Errorf("decode person: %w", err)
	}
	if accessPrefix+one.User != entry.Key || strings.HasSuffix(one.User, ":") || one.User == "" {
		return person{}, errors.New("decode person: the record is of somebody else")
	}
	return one, nil
}

// load reads all people but those whose records cannot be read.
func (r *register) load(ctx context.Context, log *slog.Logger) error {
	byID := make(map[string]person)
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: accessPrefix}) {
		if err != nil {
			return fmt.Errorf("read who may talk to the bot: %w", err)
		}
		one, err := decodePerson(entry)
		if err != nil {
			log.Error("a record of a person cannot be read and lets nobody in", "key", entry.Key, "err", err)
			continue
		}
		byID[one.User] = one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID = byID
	return nil
}

// find returns what is known of a user; nobody where nothing is.
func (r *register) find(user string) person {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[user]
}

// all returns everybody who passes, the highest role first, then the oldest.
func (r *register) all(pass func(person) bool) []person {
	r.mu.RLock()
	var found []person
	for _, one := range r.byID {
		if pass(one) {
			found = append(found, one)
		}
	}
	r.mu.RUnlock()
	slices.SortFunc(found, func(a, b person) int {
		return cmp.Or(cmp.Compare(b.Standing.role(), a.Standing.role()), a.Since.Compare(b.Since), cmp.Compare(a.User, b.User))
	})
	return found
}

// owner returns who owns the bot.
func (r *register) owner() (person, bool) {
	owners := r.all(func(one person) bool { return one.Standing == isOwner })
	if len(owners) == 0 {
		return person{}, false
	}
	return owners[0], true
}

// put stores a person. They are on disk and in effect when put returns nil; after an error
// they are not in effect before the next start.
func (r *register) put(ctx context.Context, one person) error {
	data, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encode person %s: %w", one.User, err)
	}
	if _, err := r.kv.Put(ctx, accessPrefix+one.User, data, storage.Any); err != nil {
		return fmt.Errorf("store person %s: %w", one.User, err)
	}
	r.set(one)
	return nil
}

func (r *register) set(one person) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[one.User] = one
}

// bar takes away what somebody was given, in memory first: they are out even if the write
// fails.
func (r *register) bar(ctx context.Context, one person, by string, now time.Time) error {
	one.Standing, one.By, one.Until = isRefused, by, now.Add(refusedAge)
	r.set(one)
	return r.put(ctx, one)
}

// remove forgets a person, in memory first: they are out even if the write fails.
func (r *register) remove(ctx context.Context, user string) error {
	r.mu.Lock()
	delete(r.byID, user)
	r.mu.Unlock()
	if err := r.kv.Delete(ctx, accessPrefix+user, storage.Any); err != nil {
		return fmt.Errorf("remove person %s: %w", user, err)
	}
	return nil
}
