// Package people knows who may talk to the bot and what they may do, and lets people in and
// removes them.
package people

import (
	"context"
	"sync"
	"time"

	"oneclaw/bridge/cards"
	"oneclaw/bridge/chats"
	"oneclaw/bridge/jobs"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// Config is what a [Desk] is made of.
type Config struct {
	jobs.Shared
	// Store keeps the people and the claim.
	Store storage.KV
	// Access is what the settings say; it has to be valid.
	Access Access
	// Cards asks the owner, and shows the list of people.
	Cards *cards.Desk
	// Allowance is what the owner reads about who is let in: what they may use a day. Empty
	// where nothing bounds them.
	Allowance string
	// Expel ends what runs for a removed user, platform:id.
	Expel func(user string)
}

// Desk is where people ask to be let in, and where they are let in and removed. Its methods
// may be called concurrently.
type Desk struct {
	cfg       Config
	register  register
	strangers strangers
	// changing is held from the look at a record until its change is stored.
	changing sync.Mutex
}

// New returns a desk. Until [Desk.Load] it knows the settings alone.
func New(cfg Config) *Desk {
	return &Desk{
		cfg:       cfg,
		register:  register{kv: cfg.Store, byID: make(map[string]person)},
		strangers: strangers{told: make(map[note]time.Time)},
	}
}

// Load reads the people who were let in before. A record that cannot be read lets nobody in.
func (d *Desk) Load(ctx context.Context) error { return d.register.load(ctx, d.cfg.Log) }

// Role returns what a user, platform:id, may do now: what the settings allow or what
// somebody allowed in a chat, whichever is more.
func (d *Desk) Role(user string) toolgroups.Role {
	d.register.mu.RLock()
	defer d.register.mu.RUnlock()
	return max(d.cfg.Access.Role(user), roles[d.register.byID[user].Standing])
}

// AdminChats returns the chats in which the bot is alone with its owner or with an
// administrator who was made one in a chat, as far as it knows those chats.
func (d *Desk) AdminChats() []chats.Chat {
	var places []chats.Chat
	for _, one := range d.register.with(toolgroups.RoleAdmin) {
		if one.Chat != (chats.Chat{}) {
			places = append(places, one.Chat)
		}
	}
	return places
}

// Prune forgets people without a role whose time is over.
func (d *Desk) Prune(ctx context.Context) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	now := d.cfg.Now()
	for _, one := range d.register.all(func(one person) bool { return one.over(now) }) {
		if err := d.register.remove(ctx, one.User); err != nil {
			return err
		}
	}
	return nil
}

// Handlers handle the presses of the desk's cards, by kind.
func (d *Desk) Handlers() map[string]cards.Handler {
	return map[string]cards.Handler{cardAdmit: d.decide, cardPeople: d.pressed}
}
