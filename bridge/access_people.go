package bridge

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"oneclaw/agent"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/bridge/wording"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// standing is what has become of somebody who is not in the configured lists.
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

// person is somebody whom the bot was told about in a chat.
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

// over reports whether a standing has ended.
func (p person) over(now time.Time) bool { return !p.Until.IsZero() && !now.Before(p.Until) }

// title is how a person is called in a text in Markdown.
func (p person) title() string {
	if p.Name == "" {
		return "`" + p.User + "`"
	}
	return wording.Code(p.Name) + " (`" + p.User + "`)"
}

const accessPrefix = "access/"

// people are those who were let in from a chat, kept in a KV and in memory. The bridge
// is the one owner of these records while it runs: it changes both together, so that a
// look-up costs no read and is never old.
type people struct {
	kv storage.KV
	// changing is held from reading a record to having stored what became of it.
	changing sync.Mutex

	mu   sync.RWMutex
	byID map[string]person
}

// decodePerson reads a record; one that is not whole stands for nobody.
func decodePerson(entry storage.Entry) (person, error) {
	var one person
	if err := json.Unmarshal(entry.Value, &one); err != nil {
		return person{}, fmt.Errorf("decode person: %w", err)
	}
	if one.User == "" || accessPrefix+one.User != entry.Key {
		return person{}, errors.New("decode person: the record is of somebody else")
	}
	return one, nil
}

// load reads all. A record that can not be read lets nobody in.
func (p *people) load(ctx context.Context, log *slog.Logger) error {
	byID := make(map[string]person)
	for entry, err := range p.kv.List(ctx, storage.Range{Prefix: accessPrefix}) {
		if err != nil {
			return fmt.Errorf("read who may talk to the bot: %w", err)
		}
		one, err := decodePerson(entry)
		if err != nil {
			log.Error("record of a person can not be read and counts as none", "key", entry.Key, "err", err)
			continue
		}
		byID[one.User] = one
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID = byID
	return nil
}

// find returns what is known of a user, platform:id.
func (p *people) find(user string) (person, bool) {
	p.mu.RLock()
	defer p.mu.RUnlock()
	one, ok := p.byID[user]
	return one, ok
}

// all returns everybody who passes, the highest role first, then the oldest.
func (p *people) all(pass func(person) bool) []person {
	p.mu.RLock()
	var found []person
	for _, one := range p.byID {
		if pass(one) {
			found = append(found, one)
		}
	}
	p.mu.RUnlock()
	slices.SortFunc(found, func(a, b person) int {
		return cmp.Or(cmp.Compare(b.Standing.role(), a.Standing.role()), a.Since.Compare(b.Since), cmp.Compare(a.User, b.User))
	})
	return found
}

// owner returns who owns the bot.
func (p *people) owner() (person, bool) {
	owners := p.all(func(one person) bool { return one.Standing == isOwner })
	if len(owners) == 0 {
		return person{}, false
	}
	return owners[0], true
}

// put stores a person. It is on disk and in effect when put returns nil; after an error
// it is not in effect before the next start. Changing is held.
func (p *people) put(ctx context.Context, one person) error {
	data, err := json.Marshal(one)
	if err != nil {
		return fmt.Errorf("encode person %s: %w", one.User, err)
	}
	if _, err := p.kv.Put(ctx, accessPrefix+one.User, data, storage.Any); err != nil {
		return fmt.Errorf("store person %s: %w", one.User, err)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.byID[one.User] = one
	return nil
}

// remove forgets a person, in memory first: whatever becomes of the write, they are out.
// Changing is held.
func (p *people) remove(ctx context.Context, user string) error {
	p.mu.Lock()
	delete(p.byID, user)
	p.mu.Unlock()
	if err := p.kv.Delete(ctx, accessPrefix+user, storage.Any); err != nil {
		return fmt.Errorf("remove person %s: %w", user, err)
	}
	return nil
}

// bar takes away what somebody was given, in memory first: whatever becomes of the
// write, they are out. Changing is held.
func (p *people) bar(ctx context.Context, one person, by string, now time.Time) error {
	one.Standing, one.By, one.Until = isRefused, by, now.Add(refusedAge)
	p.mu.Lock()
	p.byID[one.User] = one
	p.mu.Unlock()
	return p.put(ctx, one)
}

// prune forgets those whose standing gave no role and has ended.
func (p *people) prune(ctx context.Context, now time.Time) error {
	p.changing.Lock()
	defer p.changing.Unlock()
	for _, one := range p.all(func(one person) bool { return one.over(now) }) {
		if err := p.remove(ctx, one.User); err != nil {
			return err
		}
	}
	return nil
}

// roleOf is what a user may do now: the higher of what the settings give and what was
// given in a chat.
func (b *Bridge) roleOf(platform, user string) toolgroups.Role {
	configured := b.cfg.Access.Role(platform, user)
	one, known := b.people.find(platform + ":" + user)
	if !known || user == "" {
		return configured
	}
	return max(configured, one.Standing.role())
}

// role is what the sender of a message may do now.
func (b *Bridge) role(m chats.Message) toolgroups.Role { return b.roleOf(m.Chat.Platform, m.User) }

// AdminChats returns the chats in which the bot is alone with its owner or with one of the
// administrators who were made such in a chat, as far as it knows those chats.
func (b *Bridge) AdminChats() []chats.Chat {
	var places []chats.Chat
	for _, one := range b.people.all(func(one person) bool { return one.Standing.role() >= toolgroups.RoleAdmin }) {
		if one.Chat != (chats.Chat{}) && !slices.Contains(places, one.Chat) {
			places = append(places, one.Chat)
		}
	}
	return places
}

// errBarred is the cause with which the turn of somebody is cancelled who was removed.
var errBarred = errors.New("bridge: its user was removed")

// barred reports whether a job must not run because of whose it is: what its user may do
// counts now, not when it was accepted. Notices are for everybody, and so is a claim;
// cards look by themselves who presses.
func (b *Bridge) barred(j *jobs.Job) bool {
	if b.role(j.Message) > toolgroups.RoleStranger {
		return false
	}
	b.log.Warn("not answered: its user may not talk to the bot any more",
		"job", j.Key(), "user", j.Message.Chat.Platform+":"+j.Message.User)
	return true
}

// permit is the gate of a turn: a tool runs only while the sender may still use it,
// whatever they could do when the turn began.
func (b *Bridge) permit(m chats.Message) agent.Gate {
	return func(_ context.Context, _ toolgroups.Call, tool toolgroups.Tool) (agent.Decision, error) {
		if role := b.role(m); role == toolgroups.RoleStranger || role < tool.Role {
			return agent.Decision{Verdict: agent.Deny, Reason: "the user may not use this tool any more"}, nil
		}
		return agent.Decision{Verdict: agent.Allow}, nil
	}
}
