// Package access decides who may talk to the bot and with which role, and admits and removes users.
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

// KindTell is the kind of jobs that send a user a notice, before later answers in the chat.
const KindTell chats.Kind = "tell"

// Config configures a [Registry].
type Config struct {
	// Platforms are all platforms, by name.
	Platforms map[string]chats.Platform
	Log       *slog.Logger
	Now       func() time.Time
	// Store holds the people and the claim.
	Store storage.Store
	// Access is the access that the settings grant; it has to be valid.
	Access Access
	// Cards asks the owner, and shows the list of people.
	Cards Cards
	// Allowance says, for the owner, how much an admitted user may use per day; empty if there
	// is no limit.
	Allowance string
	Jobs      Jobs
	// OnRemoved, if not nil, is called with a user, platform:id, who was removed. It may be called again after an error or a
	// crash.
	OnRemoved func(ctx context.Context, user string) error
}

// Cards posts cards.
type Cards interface {
	// Post sends a card to a chat, once under its key, and returns its token.
	Post(ctx context.Context, key string, to chats.Chat, card interact.Card) (token string, err error)
	// Answer makes a card the answer of a job. On a platform without buttons, it returns the text to
	// answer with instead.
	Answer(ctx context.Context, j *queue.Run, card interact.Card) (string, error)
	// Invalidate closes an open card, with a note.
	Invalidate(ctx context.Context, token, note string) error
}

// Jobs inserts the jobs that follow from admissions and removals.
type Jobs interface {
	// Put inserts the job of a user's message, once.
	Put(ctx context.Context, m chats.Message) error
	// Tell answers a message of kind [KindTell] with a text, once. Messages that are put into its chat
	// later are answered after it.
	Tell(ctx context.Context, m chats.Message, text string) error
	// CancelUser cancels the running jobs of a removed user, platform:id.
	CancelUser(user string)
}

// Registry decides who may talk to the bot, and handles requests, admissions and removals. Its methods
// may be called concurrently.
type Registry struct {
	cfg       Config
	register  register
	strangers strangerNotices
	// changeMu is held from the read of a record until its change is stored.
	changeMu sync.Mutex
}

// New returns a registry. Until [Registry.Load] it knows only the settings.
func New(cfg Config) *Registry {
	d := &Registry{cfg: cfg, register: newRegister(cfg.Store, cfg.Log), strangers: strangerNotices{cfg.Store}}
	d.register.onRevoked = func(user string) {
		if d.Role(user) == toolgroups.RoleStranger {
			cfg.Jobs.CancelUser(user)
		}
	}
	return d
}

// Load reads the people. A damaged record admits no user.
func (d *Registry) Load(ctx context.Context) error { return d.register.load(ctx) }

// Watch applies the admissions and removals by other processes until ctx ends, including those from
// before the call. It cancels the jobs of removed users. After an error it has to be called again.
func (d *Registry) Watch(ctx context.Context) error {
	changes := d.cfg.Store.Watch(ctx, accessPrefix)
	if err := d.register.load(ctx); err != nil {
		return err
	}
	for e, err := range changes {
		if err != nil {
			return fmt.Errorf("watch people: %w", err)
		}
		d.register.applyEvent(e)
	}
	return nil
}

// Role returns the current role of a user, platform:id: the higher of what the settings grant and what
// an administrator granted in a chat.
func (d *Registry) Role(user string) toolgroups.Role {
	d.register.mu.RLock()
	defer d.register.mu.RUnlock()
	return max(d.cfg.Access.Role(user), roleByStanding[d.register.byID[user].Standing])
}

// AdminChats returns the known direct chats with the owner and with administrators who were appointed
// in a chat.
func (d *Registry) AdminChats() []chats.Chat {
	var places []chats.Chat
	for _, one := range d.register.withRole(toolgroups.RoleAdmin) {
		if one.Chat != (chats.Chat{}) {
			places = append(places, one.Chat)
		}
	}
	return places
}

// Prune deletes people without a role whose standing has expired, and old records of notices to
// strangers. It also completes admissions that were interrupted before the message of the admitted user
// was answered.
func (d *Registry) Prune(ctx context.Context) error {
	d.changeMu.Lock()
	defer d.changeMu.Unlock()
	now := d.cfg.Now()
	for _, one := range d.register.filter(func(one person) bool { return one.isExpired(now) }) {
		// A conflict means that an administrator has just decided about this person.
		if err := d.register.remove(ctx, one); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	// A crash may have come between the admission of a user and the job of their message.
	for _, one := range d.register.filter(func(one person) bool { return one.Message != nil && one.Standing.role() > toolgroups.RoleStranger }) {
		if err := d.welcome(ctx, one); err != nil && !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return d.strangers.prune(ctx, now)
}

// IsAdmitted reports whether a user, platform:id, may talk to the bot. It reads the record again before it
// returns false, because a message may arrive before the event of its author's admission by another process.
func (d *Registry) IsAdmitted(ctx context.Context, user string) (bool, error) {
	if d.Role(user) > toolgroups.RoleStranger {
		return true, nil
	}
	if err := d.register.refresh(ctx, user); err != nil {
		return false, err
	}
	return d.Role(user) > toolgroups.RoleStranger, nil
}

// Handlers returns the handlers of the registry's cards, by kind.
func (d *Registry) Handlers() map[string]interact.Handler {
	return map[string]interact.Handler{cardAdmit: d.handleAdmitPress, cardPeople: d.handlePeoplePress}
}

// FindUser returns the id of a user with any standing, or of the bot's owner if user is empty, and the
// direct chat if it is known. The id is empty if there is no such user.
func FindUser(ctx context.Context, kv storage.KV, user string) (id string, chat chats.Chat, err error) {
	r := newRegister(kv, slog.New(slog.DiscardHandler))
	if err := r.load(ctx); err != nil {
		return "", chats.Chat{}, err
	}
	one, _ := r.owner()
	if user != "" {
		one = r.find(user)
	}
	return one.User, one.Chat, nil
}
