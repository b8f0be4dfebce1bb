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

// adminRecord is the record of an administrator: a link, and sessions, the oldest first.
type adminRecord struct {
	User string `json:"user"`
	Name string `json:"name,omitempty"`
	// Link is the hash of the newest unused link, LinkUntil its expiry.
	Link      string          `json:"link,omitempty"`
	LinkUntil time.Time       `json:"link_until,omitzero"`
	Sessions  []storedSession `json:"sessions,omitempty"`

	rev storage.Revision
	// source is the address from which a request changes the record, for the audit.
	source string
}

// storedSession is a session with the hash of its secret.
type storedSession struct {
	Hash  string    `json:"hash"`
	Since time.Time `json:"since"`
	// Seen is the time of the last request that a user caused, to the minute.
	Seen time.Time `json:"seen"`
}

// seenPrecision is the precision of Seen.
const seenPrecision = time.Minute

func (s storedSession) hasExpired(now time.Time) bool {
	return !now.Before(s.Since.Add(SessionAge)) || !now.Before(s.Seen.Add(IdleAge))
}

// sessionIndex returns the index of a current session, or -1.
func (s *adminRecord) sessionIndex(secret string, now time.Time) int {
	sum := hashSecret("session", secret)
	return slices.IndexFunc(s.Sessions, func(one storedSession) bool {
		return subtle.ConstantTimeCompare([]byte(one.Hash), []byte(sum)) == 1 && !one.hasExpired(now)
	})
}

// matchesLink reports whether secret belongs to the current link.
func (s *adminRecord) matchesLink(secret string, now time.Time) bool {
	return s.Link != "" && now.Before(s.LinkUntil) && subtle.ConstantTimeCompare([]byte(s.Link), []byte(hashSecret("link", secret))) == 1
}

// The prefixes of tokens, which internal/redact knows.
const (
	linkMark    = "oclink_"
	sessionMark = "ocseat_"
)

// encodeToken returns the token of a user with a secret, which begins with mark.
func encodeToken(mark, user, secret string) string {
	return mark + base64.RawURLEncoding.EncodeToString([]byte(user)) + "." + secret
}

// tokenPattern does not bound the name: counting to 400 would take as much memory as all else of signing in.
var tokenPattern = regexp.MustCompile(`^([A-Za-z0-9_-]+)\.([A-Z2-7]{26})$`)

// maxToken is the maximum length of a token without its mark.
const maxToken = 400 + len(".") + 26

// splitToken returns the user and the secret in a token that begins with mark; ok is false if the text
// is no such token.
func splitToken(mark, text string) (user, secret string, ok bool) {
	rest, ok := strings.CutPrefix(text, mark)
	if !ok || len(rest) > maxToken {
		return "", "", false
	}
	parts := tokenPattern.FindStringSubmatch(rest)
	if parts == nil {
		return "", "", false
	}
	name, err := base64.RawURLEncoding.DecodeString(parts[1])
	return string(name), parts[2], err == nil
}

func (svc *Service) readRecord(ctx context.Context, user string) (adminRecord, error) {
	one, rev, err := storage.Load[adminRecord](ctx, svc.cfg.Store, prefix+user)
	if rev == storage.Absent {
		return adminRecord{User: user}, err
	}
	if err != nil || one.User != user {
		svc.cfg.Logger.Error("a damaged record of sessions is ignored", "key", prefix+user, "err", err)
		one = adminRecord{User: user}
	}
	one.rev = rev
	return one, nil
}

// errInvalid is returned for an invalid link or session.
var errInvalid = errors.New("signin: invalid link or session")

// updateRecord changes a record with f and writes it together with an audit entry of the action that
// f returns; "" for none. If another request has changed the record meanwhile, it starts again.
func (svc *Service) updateRecord(ctx context.Context, user string, f func(*adminRecord) (action string, err error)) error {
	return storage.Retry(ctx, func() error {
		one, err := svc.readRecord(ctx, user)
		if err != nil {
			return err
		}
		action, err := f(&one)
		if err != nil {
			return err
		}
		return svc.writeRecord(ctx, &one, action)
	})
}

// writeRecord stores a record together with an audit entry of action; "" for none. It deletes a
// record without sessions and link.
func (svc *Service) writeRecord(ctx context.Context, one *adminRecord, action string) error {
	now := svc.cfg.Now()
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
		entry, err := audit.AppendOp("door-"+rand.Text(), audit.Entry{At: now, Action: action, By: one.User, Name: one.Name, Chat: audit.PageChat, About: one.source})
		if err != nil {
			return err
		}
		ops = append(ops, entry)
	}
	if _, err := svc.cfg.Store.Write(ctx, ops...); err != nil {
		return fmt.Errorf("store sessions: %w", err)
	}
	return nil
}

func (svc *Service) linkURL(ticket string) string { return svc.site.baseURL + enterPath + "/" + ticket }

// createTicket creates the last part of a link, which replaces the previous one.
func (svc *Service) createTicket(ctx context.Context, user, name string) (string, error) {
	secret := rand.Text()
	err := svc.updateRecord(ctx, user, func(one *adminRecord) (string, error) {
		one.Name = wording.OneLine(name, maxName)
		one.Link, one.LinkUntil = hashSecret("link", secret), svc.cfg.Now().Add(LinkAge)
		return "", nil
	})
	return encodeToken(linkMark, user, secret), err
}

// findLink returns the record to which a link belongs, without using the link up.
func (svc *Service) findLink(ctx context.Context, link string) (adminRecord, string, error) {
	user, secret, ok := splitToken(linkMark, link)
	if !ok || !svc.cfg.IsAdmin(user) {
		return adminRecord{}, "", errInvalid
	}
	one, err := svc.readRecord(ctx, user)
	if err == nil && !one.matchesLink(secret, svc.cfg.Now()) {
		err = errInvalid
	}
	return one, secret, err
}

// signIn uses a link up and returns the token of the new session.
func (svc *Service) signIn(ctx context.Context, link, from string) (string, error) {
	user, secret, ok := splitToken(linkMark, link)
	if !ok || !svc.cfg.IsAdmin(user) {
		return "", errInvalid
	}
	session := rand.Text()
	err := svc.updateRecord(ctx, user, func(one *adminRecord) (string, error) {
		now := svc.cfg.Now()
		if !one.matchesLink(secret, now) {
			return "", errInvalid
		}
		one.Link, one.LinkUntil, one.source = "", time.Time{}, from
		one.Sessions = slices.DeleteFunc(one.Sessions, func(s storedSession) bool { return s.hasExpired(now) })
		one.Sessions = append(one.Sessions, storedSession{Hash: hashSecret("session", session), Since: now, Seen: now})
		one.Sessions = one.Sessions[max(0, len(one.Sessions)-MaxSessions):]
		return "sign-in", nil
	})
	return encodeToken(sessionMark, user, session), err
}

// dropLink uses a link up without a new session.
func (svc *Service) dropLink(ctx context.Context, link string) error {
	user, secret, _ := splitToken(linkMark, link)
	return svc.updateRecord(ctx, user, func(one *adminRecord) (string, error) {
		if !one.matchesLink(secret, svc.cfg.Now()) {
			return "", storage.ErrUnchanged
		}
		one.Link, one.LinkUntil = "", time.Time{}
		return "", nil
	})
}

// findSession returns the session of a token. If the user is no longer an administrator, all their sessions end.
func (svc *Service) findSession(ctx context.Context, text string) (Session, error) {
	user, secret, ok := splitToken(sessionMark, text)
	if !ok {
		return Session{}, errInvalid
	}
	if !svc.cfg.IsAdmin(user) {
		if one, err := svc.readRecord(ctx, user); err == nil && one.sessionIndex(secret, svc.cfg.Now()) < 0 {
			return Session{}, errInvalid
		}
		return Session{}, errors.Join(errInvalid, svc.SignOut(ctx, user, "sign-out (no administrator any more)"))
	}
	one, err := svc.readRecord(ctx, user)
	if err != nil {
		return Session{}, err
	}
	now := svc.cfg.Now()
	i := one.sessionIndex(secret, now)
	if i < 0 {
		return Session{}, errInvalid
	}
	if now.Sub(one.Sessions[i].Seen) >= seenPrecision {
		one.Sessions[i].Seen = now
		// After a conflict another request of this minute has stored it.
		if err := svc.writeRecord(ctx, &one, ""); err != nil && !errors.Is(err, storage.ErrConflict) {
			return Session{}, err
		}
	}
	return Session{User: user, Name: one.Name, CSRF: hashSecret("csrf", secret)}, nil
}

// endSession ends the session of a token.
func (svc *Service) endSession(ctx context.Context, text, from string) error {
	user, secret, ok := splitToken(sessionMark, text)
	if !ok {
		return nil
	}
	return svc.updateRecord(ctx, user, func(one *adminRecord) (string, error) {
		i := one.sessionIndex(secret, svc.cfg.Now())
		if i < 0 {
			return "", storage.ErrUnchanged
		}
		one.Sessions, one.source = slices.Delete(one.Sessions, i, i+1), from
		return "sign-out", nil
	})
}

// SignOut ends all sessions and the link of an administrator. action is for the audit.
func (svc *Service) SignOut(ctx context.Context, user, action string) error {
	return svc.updateRecord(ctx, user, func(one *adminRecord) (string, error) {
		if one.rev == storage.Absent {
			return "", storage.ErrUnchanged
		}
		if len(one.Sessions) == 0 {
			action = ""
		}
		one.Link, one.LinkUntil, one.Sessions = "", time.Time{}, nil
		return action, nil
	})
}
