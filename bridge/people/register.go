package people

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// standing is what was decided in a chat about somebody, or is still to be decided.
type standing string

// The standings. Those without a role end at a time.
const (
	isOwner standing = "owner"
	isAdmin standing = "admin"
	isUser  standing = "user"
	// hasAsked: a card asks the owner about them.
	hasAsked standing = "asked"
	// isRefused: somebody decided against them; the owner is not asked again yet.
	isRefused standing = "refused"
)

var roles = map[standing]toolgroups.Role{
	isOwner: toolgroups.RoleOwner, isAdmin: toolgroups.RoleAdmin, isUser: toolgroups.RoleUser,
}

func (s standing) role() toolgroups.Role { return roles[s] }

// person is somebody with a standing. The zero value is nobody.
type person struct {
	User     string   `json:"user"` // platform:id
	Name     string   `json:"name,omitempty"`
	Standing standing `json:"standing"`
	// By decided that. It is empty for whoever claimed the bot.
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since"`
	// Until ends a standing without a role.
	Until time.Time `json:"until,omitzero"`
	// Chat is their direct chat with the bot, if it is known.
	Chat chats.Chat `json:"chat,omitzero"`
	// Card is the token of the card about them.
	Card string `json:"card,omitempty"`
}

// maxName bounds names in texts.
const maxName = 40

// writer returns who wrote a message in a direct chat, with a standing.
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

// register keeps people in a KV and in memory. It alone changes these records while the
// program runs, both together, so a look-up costs no read and is never old. Whoever changes
// it holds [Desk.changing].
type register struct {
	kv storage.KV

	mu   sync.RWMutex
	byID map[string]person
}

// load reads all people whose records are whole.
func (r *register) load(ctx context.Context, log *slog.Logger) error {
	byID := make(map[string]person)
	for entry, err := range r.kv.List(ctx, storage.Range{Prefix: accessPrefix}) {
		if err != nil {
			return fmt.Errorf("read who may talk to the bot: %w", err)
		}
		var one person
		err := json.Unmarshal(entry.Value, &one)
		if _, id, _ := strings.Cut(one.User, ":"); err != nil || id == "" || entry.Key != accessPrefix+one.User {
			log.Error("a damaged record of a person lets nobody in", "key", entry.Key, "err", err)
			continue
		}
		byID[one.User] = one
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID = byID
	return nil
}

func (r *register) find(user string) person {
	r.mu.RLock()
	defer r.mu.RUnlock()
	return r.byID[user]
}

func (r *register) with(role toolgroups.Role) []person {
	return r.all(func(one person) bool { return one.Standing.role() >= role })
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

func (r *register) owner() (person, bool) {
	owners := r.with(toolgroups.RoleOwner)
	if len(owners) == 0 {
		return person{}, false
	}
	return owners[0], true
}

// put stores a person. They are on disk and in effect when put returns nil; after an error
// they are not in effect before the next start.
func (r *register) put(ctx context.Context, one person) error {
	if _, err := jobs.Write(ctx, r.kv, accessPrefix+one.User, one, storage.Any); err != nil {
		return err
	}
	r.set(one)
	return nil
}

func (r *register) set(one person) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.byID[one.User] = one
}

// bar refuses somebody, in memory first: they are out even if the write fails.
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
