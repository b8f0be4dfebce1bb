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
	"oneclaw/internal/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// standing is the decision about a user, or the fact that it is pending.
type standing string

// The standings. Those without a role expire.
const (
	standingOwner standing = "owner"
	standingAdmin standing = "admin"
	standingUser  standing = "user"
	// standingAsked: a card asks the owner about the user.
	standingAsked standing = "asked"
	// standingRefused: an administrator refused or removed the user, and the owner is not asked again
	// for a while.
	standingRefused standing = "refused"
)

var roleByStanding = map[standing]toolgroups.Role{
	standingOwner: toolgroups.RoleOwner, standingAdmin: toolgroups.RoleAdmin, standingUser: toolgroups.RoleUser,
}

func (s standing) role() toolgroups.Role { return roleByStanding[s] }

// person is a user with a standing. The zero value stands for an unknown user.
type person struct {
	User     string   `json:"user"` // platform:id
	Name     string   `json:"name,omitempty"`
	Standing standing `json:"standing"`
	// By is the user who made that decision; empty for the owner of the bot, and while the decision is
	// pending.
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
	// deleted is set if the record was deleted, by version rev or after it.
	deleted bool
}

// maxName bounds names in texts, in characters.
const maxName = 40

// newPerson returns the author of a message in a direct chat, with a standing.
func newPerson(m chats.Message, as standing, now time.Time) person {
	return person{
		User: m.SenderID(), Name: wording.OneLine(m.UserName, maxName), Standing: as, Since: now,
		Chat: chats.Chat{Platform: m.Chat.Platform, ID: m.Chat.ID},
	}
}

func (p person) isExpired(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// hasAsked reports whether the person waits for a decision.
func (p person) hasAsked(now time.Time) bool { return p.Standing == standingAsked && !p.isExpired(now) }

func (p person) displayName() string {
	if p.Name == "" {
		return "`" + p.User + "`"
	}
	return wording.InlineCode(p.Name) + " (`" + p.User + "`)"
}

const accessPrefix = "access/"

// register keeps people in a KV and in memory, so that a look-up needs no read. Callers that change a
// person hold [Registry.changeMu] and pass the record on which they decided; memory has the change when
// the call returns. Changes by other processes arrive through [Registry.Watch], or as conflicts, after
// which the caller reads again.
type register struct {
	kv  storage.KV
	log *slog.Logger
	// onRevoked is called with a user whose role another process has lowered or revoked.
	onRevoked func(user string)

	mu sync.RWMutex
	// byID includes deleted people, so that an answer of the store from before the deletion is known to be older.
	byID map[string]person
}

func newRegister(kv storage.KV, log *slog.Logger) register {
	return register{kv: kv, log: log, onRevoked: func(string) {}, byID: make(map[string]person)}
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
		r.applyEvent(storage.Event{Entry: entry})
		delete(before, strings.TrimPrefix(entry.Key, accessPrefix))
	}
	for user, one := range before {
		r.drop(user, one.rev)
	}
	return nil
}

// applyEvent applies a change of a record, unless a newer version is known. A damaged record admits no
// user.
func (r *register) applyEvent(e storage.Event) {
	user := strings.TrimPrefix(e.Key, accessPrefix)
	one := person{deleted: e.Deleted}
	if !e.Deleted {
		err := json.Unmarshal(e.Value, &one)
		if _, id, _ := strings.Cut(one.User, ":"); err != nil || id == "" || user != one.User {
			r.log.Error("the record of a person is damaged, so it admits no user", "key", e.Key, "err", err)
			one = person{}
		}
	}
	one.rev = e.Revision
	r.mu.Lock()
	known := r.byID[user]
	newer := e.Revision > known.rev
	if newer {
		r.byID[user] = one
	}
	r.mu.Unlock()
	if newer && one.Standing.role() < known.Standing.role() {
		r.onRevoked(user)
	}
}

// drop forgets a person whose record was deleted, unless a newer version is known.
func (r *register) drop(user string, rev storage.Revision) {
	r.mu.Lock()
	known := r.byID[user]
	if known.rev != rev || rev == storage.Absent {
		r.mu.Unlock()
		return
	}
	r.byID[user] = person{rev: rev, deleted: true}
	r.mu.Unlock()
	if known.Standing.role() > toolgroups.RoleStranger {
		r.onRevoked(user)
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
		r.applyEvent(storage.Event{Entry: entry})
	}
	return nil
}

// find returns a person; User is empty if the person is unknown.
func (r *register) find(user string) person {
	r.mu.RLock()
	defer r.mu.RUnlock()
	if one := r.byID[user]; !one.deleted {
		return one
	}
	return person{}
}

func (r *register) withRole(role toolgroups.Role) []person {
	return r.filter(func(one person) bool { return one.Standing.role() >= role })
}

// filter returns the people for whom pass returns true, the highest role first, then the oldest.
func (r *register) filter(pass func(person) bool) []person {
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
	owners := r.withRole(toolgroups.RoleOwner)
	if len(owners) == 0 {
		return person{}, false
	}
	return owners[0], true
}

// put stores a person over the revision that one has. When it returns nil, the change is on disk and in
// effect. After an error, a change that was stored all the same takes effect at the next read.
func (r *register) put(ctx context.Context, one *person) error {
	rev, err := storage.Save(ctx, r.kv, accessPrefix+one.User, one, one.rev)
	if err != nil {
		return r.refreshAfterConflict(ctx, one.User, err)
	}
	one.rev = rev
	r.set(one.User, *one)
	return nil
}

// refreshAfterConflict returns the error of a failed change. After a conflict, it first updates memory
// from the store.
func (r *register) refreshAfterConflict(ctx context.Context, user string, err error) error {
	if errors.Is(err, storage.ErrConflict) {
		return errors.Join(err, r.refresh(ctx, user))
	}
	return err
}

// set applies a change by this process, unless a newer version is known: others may have changed the record again before
// the store's answer arrived here.
func (r *register) set(user string, one person) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if one.rev >= r.byID[user].rev {
		r.byID[user] = one
	}
}

// revoke refuses a person. It changes memory first, so that the refusal holds even if the write fails.
func (r *register) revoke(ctx context.Context, one person, by string, now time.Time) error {
	one.Standing, one.By, one.Until, one.Message = standingRefused, by, now.Add(refusalAge), nil
	r.set(one.User, one)
	return r.put(ctx, &one)
}

// remove deletes a person. It changes memory first, so that the removal holds even if the write fails.
func (r *register) remove(ctx context.Context, one person) error {
	r.set(one.User, person{rev: one.rev, deleted: true})
	if err := r.kv.Delete(ctx, accessPrefix+one.User, one.rev); err != nil {
		return r.refreshAfterConflict(ctx, one.User, fmt.Errorf("remove person %s: %w", one.User, err))
	}
	return nil
}
