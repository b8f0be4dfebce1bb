package signin

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"oneclaw/bridge/audit"
	"oneclaw/internal/wording"
	"oneclaw/storage"
)

const (
	prefix = "admin/seat/"
	// maxName bounds the name of an administrator, in characters.
	maxName = 64
)

// browserSession is the record of an administrator: a link, and sessions, the oldest first.
type browserSession struct {
	User string `json:"user"`
	Name string `json:"name,omitempty"`
	// Link is the hash of the newest link until it is used, LinkUntil its end.
	Link      string    `json:"link,omitempty"`
	LinkUntil time.Time `json:"link_until,omitzero"`
	Sessions  []sitting `json:"sessions,omitempty"`

	rev storage.Revision
	// from is where the request comes from that changes it; for the audit.
	from string
}

// sitting is a session in the store.
type sitting struct {
	Hash  string    `json:"hash"`
	Since time.Time `json:"since"`
	// Seen is when the last request of a person came, to the minute.
	Seen time.Time `json:"seen"`
}

// seenEvery is how exactly the store knows when a session was last used.
const seenEvery = time.Minute

func (s sitting) over(now time.Time) bool {
	return !now.Before(s.Since.Add(SessionAge)) || !now.Before(s.Seen.Add(IdleAge))
}

// find returns the place of a session that is not over, or -1.
func (s *browserSession) find(secret string, now time.Time) int {
	sum := hash("session", secret)
	return slices.IndexFunc(s.Sessions, func(one sitting) bool {
		return subtle.ConstantTimeCompare([]byte(one.Hash), []byte(sum)) == 1 && !one.over(now)
	})
}

// opens reports whether the secret of a link is that of this seat.
func (s *browserSession) opens(secret string, now time.Time) bool {
	return s.Link != "" && now.Before(s.LinkUntil) && subtle.ConstantTimeCompare([]byte(s.Link), []byte(hash("link", secret))) == 1
}

// The beginnings of tokens. internal/redact knows them.
const (
	linkMark    = "oclink_"
	sessionMark = "ocseat_"
)

// token is a secret together with whose it is.
func token(mark, user, secret string) string {
	return mark + base64.RawURLEncoding.EncodeToString([]byte(user)) + "." + secret
}

var tokenPattern = regexp.MustCompile(`^([A-Za-z0-9_-]{1,400})\.([A-Z2-7]{26})$`)

// untoken takes a token apart.
func untoken(mark, text string) (user, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, mark)
	parts := tokenPattern.FindStringSubmatch(rest)
	if !ok || parts == nil {
		return "", "", false
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[1])
	return string(name), parts[2], err == nil
}

func (d *SignIn) read(ctx context.Context, user string) (browserSession, error) {
	one := browserSession{User: user, rev: storage.Absent}
	entry, err := d.cfg.Store.Get(ctx, prefix+user)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return one, nil
	case err != nil:
		return one, fmt.Errorf("read the sessions of an administrator: %w", err)
	}
	if err := json.Unmarshal(entry.Value, &one); err != nil || one.User != user {
		d.cfg.Logger.Error("a damaged record of sessions lets nobody in", "key", entry.Key, "err", err)
		one = browserSession{User: user}
	}
	one.rev = entry.Revision
	return one, nil
}

var (
	// errUnchanged tells change to write nothing.
	errUnchanged = errors.New("door: unchanged")
	// errNo says that a link or a session does not count.
	errNo = errors.New("door: not let in")
)

// maxConflicts bounds how often a change is tried again because of others.
const maxConflicts = 20

// change has f change a seat and writes it, together with what f says for the audit; again
// where another request was faster.
func (d *SignIn) change(ctx context.Context, user string, f func(*browserSession) (action string, err error)) error {
	for range maxConflicts {
		one, err := d.read(ctx, user)
		if err != nil {
			return err
		}
		action, err := f(&one)
		if errors.Is(err, errUnchanged) {
			return nil
		}
		if err != nil {
			return err
		}
		if err = d.write(ctx, &one, action); !errors.Is(err, storage.ErrConflict) {
			return err
		}
	}
	return errors.New("change sessions: others change them all the time")
}

// write stores a seat, and in the same step the audit entry.
func (d *SignIn) write(ctx context.Context, one *browserSession, action string) error {
	now := d.cfg.Now()
	op := storage.Delete(prefix+one.User, one.rev)
	if len(one.Sessions) > 0 || one.Link != "" {
		data, err := json.Marshal(one)
		if err != nil {
			return fmt.Errorf("encode sessions: %w", err)
		}
		op = storage.Put(prefix+one.User, data, one.rev)
	} else if one.rev == storage.Absent {
		return nil
	}
	ops := []storage.Op{op}
	if action != "" {
		entry, err := audit.Op("door-"+rand.Text(), audit.Entry{At: now, Action: action, By: one.User, Name: one.Name, Chat: audit.Page, About: one.from})
		if err != nil {
			return err
		}
		ops = append(ops, entry)
	}
	if _, err := d.cfg.Store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("store sessions: %w", err)
	}
	return nil
}

// Link makes the link of an administrator, in the place of the one before it.
func (d *SignIn) Link(ctx context.Context, user, name string) (string, error) {
	ticket, err := d.ticket(ctx, user, name)
	return d.link(ticket), err
}

func (d *SignIn) link(ticket string) string { return d.site.base + enterPath + "/" + ticket }

// ticket makes what a link ends with.
func (d *SignIn) ticket(ctx context.Context, user, name string) (string, error) {
	secret := rand.Text()
	err := d.change(ctx, user, func(one *browserSession) (string, error) {
		one.Name = wording.OneLine(name, maxName)
		one.Link, one.LinkUntil = hash("link", secret), d.cfg.Now().Add(LinkAge)
		return "", nil
	})
	return token(linkMark, user, secret), err
}

// peek returns the seat that a link opens, which it still does afterwards.
func (d *SignIn) peek(ctx context.Context, link string) (browserSession, string, error) {
	user, secret, ok := untoken(linkMark, link)
	if !ok || !d.cfg.Admin(user) {
		return browserSession{}, "", errNo
	}
	one, err := d.read(ctx, user)
	if err == nil && !one.opens(secret, d.cfg.Now()) {
		err = errNo
	}
	return one, secret, err
}

// signIn takes a link and returns the token of the session that it makes.
func (d *SignIn) signIn(ctx context.Context, link, from string) (string, error) {
	user, secret, ok := untoken(linkMark, link)
	if !ok || !d.cfg.Admin(user) {
		return "", errNo
	}
	session := rand.Text()
	err := d.change(ctx, user, func(one *browserSession) (string, error) {
		now := d.cfg.Now()
		if !one.opens(secret, now) {
			return "", errNo
		}
		one.Link, one.LinkUntil, one.from = "", time.Time{}, from
		one.Sessions = slices.DeleteFunc(one.Sessions, func(s sitting) bool { return s.over(now) })
		one.Sessions = append(one.Sessions, sitting{Hash: hash("session", session), Since: now, Seen: now})
		one.Sessions = one.Sessions[max(0, len(one.Sessions)-MaxSessions):]
		return "sign-in", nil
	})
	return token(sessionMark, user, session), err
}

// session returns that of a token, which is used where a person asks. Of a person who is no
// administrator any more all end.
func (d *SignIn) session(ctx context.Context, text string, used bool) (Session, error) {
	user, secret, ok := untoken(sessionMark, text)
	if !ok {
		return Session{}, errNo
	}
	if !d.cfg.Admin(user) {
		if one, err := d.read(ctx, user); err == nil && one.find(secret, d.cfg.Now()) < 0 {
			return Session{}, errNo
		}
		return Session{}, errors.Join(errNo, d.SignOut(ctx, user, "sign-out (no administrator any more)"))
	}
	one, err := d.read(ctx, user)
	if err != nil {
		return Session{}, err
	}
	now := d.cfg.Now()
	i := one.find(secret, now)
	if i < 0 {
		return Session{}, errNo
	}
	found := one.Sessions[i]
	if used && now.Sub(found.Seen) >= seenEvery {
		one.Sessions[i].Seen = now
		// After a conflict another request of these minutes has told.
		if err := d.write(ctx, &one, ""); err != nil && !errors.Is(err, storage.ErrConflict) {
			return Session{}, err
		}
	}
	return Session{User: user, Name: one.Name, CSRF: hash("csrf", secret), Since: found.Since, Until: found.Since.Add(SessionAge)}, nil
}

// leave ends the session of a token.
func (d *SignIn) leave(ctx context.Context, text, from string) error {
	user, secret, ok := untoken(sessionMark, text)
	if !ok {
		return nil
	}
	return d.change(ctx, user, func(one *browserSession) (string, error) {
		i := one.find(secret, d.cfg.Now())
		if i < 0 {
			return "", errUnchanged
		}
		one.Sessions, one.from = slices.Delete(one.Sessions, i, i+1), from
		return "sign-out", nil
	})
}

// SignOut ends all sessions of an administrator and their link. The action is what the audit says of it.
func (d *SignIn) SignOut(ctx context.Context, user, action string) error {
	return d.change(ctx, user, func(one *browserSession) (string, error) {
		if one.rev == storage.Absent {
			return "", errUnchanged
		}
		if len(one.Sessions) == 0 {
			action = ""
		}
		one.Link, one.LinkUntil, one.Sessions = "", time.Time{}, nil
		return action, nil
	})
}
