// Package access decides who may talk to the bot and what they may do, and lets people in and
// removes them.
package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"oneclaw/bridge/chats"
	"oneclaw/bridge/interact"
	"oneclaw/bridge/queue"
	"oneclaw/storage"
	"oneclaw/toolgroups"
)

// KindTell is the kind of jobs that tell a user something, before what is answered later in the
// chat.
const KindTell chats.Kind = "tell"

// Config is what a [Registry] is made of.
type Config struct {
	// Platforms are all there are, by name.
	Platforms map[string]chats.Platform
	// Alone says that no other process works with the store.
	Alone bool
	Log   *slog.Logger
	Now   func() time.Time
	// Store keeps the people and the claim.
	Store storage.Store
	// Access is what the settings say; it has to be valid.
	Access Access
	// Cards asks the owner, and shows the list of people.
	Cards Cards
	// Allowance is what the owner reads about who is let in: what they may use a day. Empty
	// where nothing bounds them.
	Allowance string
	Jobs      Jobs
}

// Cards ask people.
type Cards interface {
	// Post sends a card to a chat, once under its key, and returns its token.
	Post(ctx context.Context, key string, to chats.Chat, card interact.Card) (token string, err error)
	// Answer answers a job with a card.
	Answer(ctx context.Context, j *queue.Run, card interact.Card) (string, error)
	// Invalidate closes a card that is open still, with a note.
	Invalidate(ctx context.Context, token, note string) error
}

// Jobs are those that follow from who is let in and removed.
type Jobs interface {
	// Put has the message of a user carried out, once.
	Put(ctx context.Context, m chats.Message) error
	// Tell answers a message of kind [KindTell] with a text, once. What is put later for its
	// chat is answered behind that.
	Tell(ctx context.Context, m chats.Message, text string) error
	// Expel ends what runs here for a removed user, platform:id.
	Expel(user string)
}

// Registry is where people ask to be let in, and where they are let in and removed. Its methods
// may be called concurrently.
type Registry struct {
	cfg       Config
	register  register
	strangers strangers
	// changing is held from the look at a record until its change is stored.
	changing sync.Mutex
}

// New returns a registry. Until [Registry.Load] it knows the settings alone.
func New(cfg Config) *Registry {
	d := &Registry{cfg: cfg, register: newRegister(cfg.Store, cfg.Log)}
	d.strangers = &memory{told: make(map[note]time.Time)}
	if !cfg.Alone {
		d.register.alone, d.strangers = false, &peopleList{store: cfg.Store}
	}
	d.register.removed = func(user string) {
		if d.Role(user) == toolgroups.RoleStranger {
			cfg.Jobs.Expel(user)
		}
	}
	return d
}

// Load reads the people who were let in before. A record that cannot be read lets no user in.
func (d *Registry) Load(ctx context.Context) error { return d.register.load(ctx) }

// Watch learns of whom other processes let in or remove, until ctx ends, beginning with what
// was missed. What runs here for a user who is removed ends. An error means that it has to
// be called again.
func (d *Registry) Watch(ctx context.Context) error {
	changes := d.cfg.Store.Watch(ctx, accessPrefix)
	if err := d.register.load(ctx); err != nil {
		return err
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch who may talk to the bot: %w", err)
		}
		d.register.learn(e)
	}
	return nil
}

// look makes sure that a user is known as they are now, before it is decided about them.
func (d *Registry) look(ctx context.Context, user string) error {
	if d.cfg.Alone {
		return nil
	}
	return d.register.refresh(ctx, user)
}

// Role returns what a user, platform:id, may do now: what the settings allow or what
// an administrator allowed in a chat, whichever is more.
func (d *Registry) Role(user string) toolgroups.Role {
	d.register.mu.RLock()
	defer d.register.mu.RUnlock()
	return max(d.cfg.Access.Role(user), roles[d.register.byID[user].Standing])
}

// AdminChats returns the chats in which the bot is alone with its owner or with an
// administrator who was made one in a chat, as far as it knows those chats.
func (d *Registry) AdminChats() []chats.Chat {
	var places []chats.Chat
	for _, one := range d.register.with(toolgroups.RoleAdmin) {
		if one.Chat != (chats.Chat{}) {
			places = append(places, one.Chat)
		}
	}
	return places
}

// Prune forgets people without a role whose time is over, and which strangers were told what
// long ago. It has answered what people wrote who were let in, where that was cut off.
func (d *Registry) Prune(ctx context.Context) error {
	d.changing.Lock()
	defer d.changing.Unlock()
	now := d.cfg.Now()
	for _, one := range d.register.all(func(one person) bool { return one.over(now) }) {
		// After a conflict an administrator has just decided about them.
		if err := d.register.remove(ctx, one); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	// A crash may have come between letting a user in and the job of what they asked.
	for _, one := range d.register.all(func(one person) bool { return one.Message != nil && one.Standing.role() > toolgroups.RoleStranger }) {
		if err := d.welcome(ctx, one); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return (&peopleList{store: d.cfg.Store}).prune(ctx, now)
}

// Knows reports whether a user, platform:id, may talk to the bot. Where other processes let people
// in, it looks again before it says no: what they wrote may be here before who wrote it is known.
func (d *Registry) Knows(ctx context.Context, user string) (bool, error) {
	if d.Role(user) > toolgroups.RoleStranger {
		return true, nil
	}
	if err := d.look(ctx, user); err != nil {
		return false, err
	}
	return d.Role(user) > toolgroups.RoleStranger, nil
}

// Handlers handle the presses of the desk's cards, by kind.
func (d *Registry) Handlers() map[string]interact.Handler {
	return map[string]interact.Handler{cardAdmit: d.decide, cardPeople: d.pressed}
}
