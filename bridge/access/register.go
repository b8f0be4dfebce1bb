package access

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
	"oneclaw/bridge/queue"
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// standing is the decision about a user, or that one is pending.
type standing string

// The standings. Those without a role expire.
const (
	isOwner standing = "owner"
	isAdmin standing = "admin"
	isUser  standing = "user"
	// hasAsked: a card asks the owner about the user.
	hasAsked standing = "asked"
	// isRefused: an administrator refused the user; the owner is not asked again yet.
	isRefused standing = "refused"
)

var roles = map[standing]toolgroups.Role{
	isOwner: toolgroups.RoleOwner, isAdmin: toolgroups.RoleAdmin, isUser: toolgroups.RoleUser,
}

func (s standing) role() toolgroups.Role { return roles[s] }

// person is a user with a standing. The zero value is no user.
type person struct {
	User     string   `json:"user"` // platform:id
	Name     string   `json:"name,omitempty"`
	Standing standing `json:"standing"`
	// By made that decision. It is empty for the owner of the bot.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	// Until is when a standing without a role expires.
	Until time.Time `json:"until,omitzero"`
	// Chat is the user's direct chat with the bot, if known.
	Chat chats.Chat `json:"chat,omitzero"`
	// Card is the token of the card about the user.
	Card string `json:"card,omitempty"`
	// Message is the message with which the user asked, until it is answered.
	Message *chats.Message `json:"message,omitempty"`

	rev storage.Revision
	// gone says that version rev was a deletion.
	gone bool
}

// maxName bounds names in texts, in characters.
const maxName = 40

// writer returns the author of a message in a direct chat, with a standing.
func writer(m chats.Message, as standing, now time.Time) person {
	return person{
		User: m.By(), Name: wording.OneLine(m.UserName, maxName), Standing: as, Since: now,
		Chat: chats.Chat{Platform: m.Chat.Platform, ID: m.Chat.ID},
	}
}

func (p person) over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

func (p person) title() string {
	if p.Name == "" {
		return "`" + p.User + "`"
	}
	return wording.Code(p.Name) + " (`" + p.User + "`)"
}

const accessPrefix = "access/"

// register keeps people in a KV and in memory, so that a look-up needs no read. Each change is based on
// the record that the decision was based on, by the caller that holds [Registry.changing]; memory has
// it when the change returns. Changes of other processes arrive through [Registry.Watch], and as
// conflicts: then the deciding caller reads again.
type register struct {
	kv    storage.KV
	log   *slog.Logger
	alone bool
	// removed is called with a user whose role another process has revoked.
	removed func(user string)

	mu   sync.RWMutex
	byID map[string]person // includes deleted versions if other processes write
}

func newRegister(kv storage.KV, log *slog.Logger) register {
	return register{kv: kv, log: log, alone: true, removed: func(string) {}, byID: make(map[string]person)}
}

// load reads all people whose records are intact.
func (r *register) load(ctx context.Context) error {
	r.mu.RLock()
	before := maps.Clone(r.byID)
	r.mu.RUnlock()
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: accessPrefix}) {
		if err != nil {
			return fmt.Errorf("read who may talk to the bot: %w", err)
		}
		r.learn(storage.Event{Entry: entry})
		delete(before, strings.TrimPrefix(entry.Key, accessPrefix))
	}
	for user, one := range before {
		r.drop(user, one.rev)
	}
	return nil
}

// learn applies a record that was written, unless a newer one is known. A damaged record admits no
// user.
func (r *register) learn(e storage.Event) {
	user := strings.TrimPrefix(e.Key, accessPrefix)
	one := person{}
	if !e.Deleted {
		err := json.Unmarshal(e.Value, &one)
		if _, id, _ := strings.Cut(one.User, ":"); err != nil || id == "" || user != one.User {
			r.log.Error("a damaged record of a person lets nobody in", "key", e.Key, "err", err)
			one = person{}
		}
	}
	one.rev = e.Revision
	r.mu.Lock()
	known := r.byID[user]
	newer := e.Revision > known.rev
	switch {
	case newer && e.Deleted:
		delete(r.byID, user)
	case newer:
		r.byID[user] = one
	}
	r.mu.Unlock()
	if newer && one.Standing.role() < known.Standing.role() {
		r.removed(user)
	}
}

// drop forgets a person whose record was deleted, unless something newer is known.
func (r *register) drop(user string, rev storage.Revision) {
	r.mu.Lock()
	known := r.byID[user]
	if known.rev != rev {
		r.mu.Unlock()
		return
	}
	delete(r.byID, user)
	r.mu.Unlock()
	if known.Standing.role() > toolgroups.RoleStranger {
		r.removed(user)
	}
}

// refresh reads a person's record from the store.
func (r *register) refresh(ctx context.Context, user string) error {
	r.mu.RLock()
	known := r.byID[user].rev
	r.mu.RUnlock()
	entry, err := r.kv.Get(ctx, accessPrefix+user)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		r.drop(user, known)
	case err != nil:
		return fmt.Errorf("read person %s: %w", user, err)
	default:
		r.learn(storage.Event{Entry: entry})
	}
	return nil
}

// find returns a person; User is empty if the person is unknown.
func (r *register) find(user string) person {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if one := r.byID[user]; !one.gone {
		return one
	}
	return person{}
}

func (r *register) with(role toolgroups.Role) []person {
	return r.all(func(one person) bool { return one.Standing.role() >= role })
}

// all returns the people that pass accepts, the highest role first, then the oldest.
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

func (r *register) owner() (person, bool) {
	owners := r.with(toolgroups.RoleOwner)
	if len(owners) == 0 {
		return person{}, false
	}
	return owners[0], true
}

// put stores a person over the version that they have. When it returns nil, the change is on disk and
// in effect; after an error it is not in effect until the next start or read.
func (r *register) put(ctx context.Context, one *person) error {
	rev, err := queue.Write(ctx, r.kv, accessPrefix+one.User, one, one.rev)
	if err != nil {
		return r.again(ctx, one.User, err)
	}
	one.rev = rev
	r.set(*one)
	return nil
}

// again returns the error of a failed change. After a conflict it has updated memory from the store.
func (r *register) again(ctx context.Context, user string, err error) error {
	if errors.Is(err, storage.ErrConflict) {
		return errors.Join(err, r.refresh(ctx, user))
	}
	return err
}

func (r *register) set(one person) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[one.User] = one
}

// revoke refuses a person, in memory first, so that it holds even if the write fails.
func (r *register) revoke(ctx context.Context, one person, by string, now time.Time) error {
	one.Standing, one.By, one.Until, one.Message = isRefused, by, now.Add(refusedAge), nil
	r.set(one)
	return r.put(ctx, &one)
}

// remove deletes a person, in memory first, so that it holds even if the write fails.
func (r *register) remove(ctx context.Context, one person) error {
	r.mu.Lock()
	if delete(r.byID, one.User); !r.alone {
		r.byID[one.User] = person{rev: one.rev, gone: true}
	}
	r.mu.Unlock()
	if err := r.kv.Delete(ctx, accessPrefix+one.User, one.rev); err != nil {
		return r.again(ctx, one.User, fmt.Errorf("remove person %s: %w", one.User, err))
	}
	return nil
}
