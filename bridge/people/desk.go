// Package people knows who may talk to the bot and what they may do, and lets people in and
// removes them.
package people

import (
	"context"
	"log/slog"
	"strings"
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
	// Store keeps the people and the claim.
	Store storage.KV
	// Access is what the settings say; people who are let in from a chat come on top.
	Access Access
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Post sends a card, once for each key, and returns the token of the card under that
	// key. It returns [cards.ErrNoButtons] or [jobs.ErrInvalid] for a chat that can never
	// show it.
	Post func(ctx context.Context, key string, to chats.Chat, card cards.Card) (token string, err error)
	// Void ends an open card with a note that says why.
	Void func(ctx context.Context, token, note string) error
	// Answer answers a command with a card and returns what the command returns.
	Answer func(ctx context.Context, j *jobs.Job, card cards.Card) (string, error)
	// Expel ends what runs for a removed user, platform:id.
	Expel func(user string)
	// Logger takes the log.
	Logger *slog.Logger
	// Now is the clock.
	Now func() time.Time
}

// Desk is where people ask to be let in, and where they are let in and removed. Its methods
// may be called concurrently.
type Desk struct {
	cfg       Config
	log       *slog.Logger
	register  register
	strangers strangers
	// changing is held from the look at a record until its change is stored.
	changing sync.Mutex
}

// New checks the settings and returns a desk. It knows them alone until [Desk.Load].
func New(cfg Config) (*Desk, error) {
	if err := cfg.Access.Validate(); err != nil {
		return nil, err
	}
	return &Desk{
		cfg: cfg, log: cfg.Logger,
		register:  register{kv: cfg.Store, byID: make(map[string]person)},
		strangers: strangers{told: make(map[note]time.Time)},
	}, nil
}

// Load reads the people who were let in before. A record that cannot be read lets nobody in.
func (d *Desk) Load(ctx context.Context) error { return d.register.load(ctx, d.log) }

// Role returns what a user, platform:id, may do now: what the settings allow or what
// somebody allowed in a chat, whichever is more.
func (d *Desk) Role(user string) toolgroups.Role {
	return max(d.configured(user), d.register.find(user).Standing.role())
}

// configured returns what the settings allow a user.
func (d *Desk) configured(user string) toolgroups.Role {
	platform, id, _ := strings.Cut(user, ":")
	return d.cfg.Access.Role(platform, id)
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
