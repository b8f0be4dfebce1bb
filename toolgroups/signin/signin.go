// Package signin brings a person through a sign-in that happens in a browser: a link
// that is bound to a person and a chat, pages that say whom it is for, and a code of
// the last page that the person sends back.
//
// The server cannot tell who sits at a browser. So what it comes back with counts for nothing
// before that person has sent, in the chat that the link came from, what only that
// browser was shown.
package signin

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oneclaw/internal/redact"
	"oneclaw/storage"
)

const (
	// Lifetime is how long a link can be used, and then what its page shows.
	Lifetime = 10 * time.Minute
	// maxCode bounds a code in bytes. Google's have up to 256, others are signed tokens.
	maxCode = 4096
	// maxWrong is the wrong confirmation with which a sign-in is void.
	maxWrong = 3
)

// Early returns how long before its end a token is no longer used that lives for so long: a
// minute, or half of a short life, so that none is renewed with each call. A life of 0 is an
// unknown one.
func Early(life time.Duration) time.Duration {
	if life > 0 {
		return min(time.Minute, life/2)
	}
	return time.Minute
}

// proofPattern is what a person confirms a sign-in with.
var proofPattern = regexp.MustCompile(`^[A-Za-z2-7]{4}-[A-Za-z2-7]{4}$`)

// IsProof reports whether a text looks like what a page shows at the end.
func IsProof(text string) bool { return proofPattern.MatchString(text) }

// Mistake is an error of a sign-in that people are told in these words. "{command}"
// stands for the command that makes a new link.
type Mistake string

// Error returns the words as they stand.
func (m Mistake) Error() string { return string(m) }

// Sentence is the mistake as an answer to a person.
func (m Mistake) Sentence(command string) string {
	s := strings.ReplaceAll(string(m), "{command}", command)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// The mistakes of every sign-in.
const (
	ErrLink   = Mistake("the link is not known, was used already, or is older than ten minutes; send {command} for a new one")
	ErrDenied = Mistake("the permission was not given; nothing was connected")
	ErrEarly  = Mistake("open the link and give the permission first; the page then shows the code")
	ErrWrong  = Mistake("that is not the code that the page shows; look again")
	ErrVoid   = Mistake("that was the wrong code too often, so nothing was connected; send {command} for a new link")
	ErrPage   = Mistake("send me the code that the page shows at the end, not the address of the page")
)

// Pending is a sign-in that has begun.
type Pending struct {
	State string `json:"state"`
	Chat  string `json:"chat"`
	// Name is what the platform calls the person.
	Name string `json:"name,omitempty"`
	// Verifier is that of PKCE.
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Scopes   []string  `json:"scopes"`
	Expires  time.Time `json:"expires"`
	// Own is whatever else the sign-in has to know.
	Own json.RawMessage `json:"own,omitempty"`
	// Code is what a browser came back with, or what that was redeemed for. It counts for
	// nothing before the person has sent Proof, which the page showed there, in Chat.
	Code  string `json:"code,omitempty"`
	Proof string `json:"proof,omitempty"`
	// Wrong counts what was sent in its place.
	Wrong int `json:"wrong,omitempty"`
}

// Config is what sign-ins of one kind have in common.
type Config struct {
	// KV keeps those that have begun.
	KV storage.KV
	// Seal encrypts them.
	Seal *redact.Sealer
	// Prefix is that of their keys.
	Prefix string
	// StatePlace binds what travels through the browser to its purpose.
	StatePlace string
	// Now is the clock.
	Now func() time.Time
}

// Flows has the sign-ins of one kind. Each is named by whom and what it is for, and there
// is one under a name at a time. It may be used concurrently.
type Flows struct{ cfg Config }

// New makes a desk.
func New(cfg Config) *Flows { return &Flows{cfg: cfg} }

// Begin remembers a sign-in under a new state.
func (d *Flows) Begin(ctx context.Context, of string, p Pending) (Pending, error) {
	p.State = base64.RawURLEncoding.EncodeToString(d.cfg.Seal.Seal(d.cfg.StatePlace, []byte(of+"\x00"+rand.Text())))
	p.Verifier, p.Expires = oauth2.GenerateVerifier(), d.cfg.Now().Add(Lifetime)
	// Any: the newest link replaces the one before it.
	if err := d.put(ctx, of, p, storage.Any); err != nil {
		return Pending{}, fmt.Errorf("store the sign-in: %w", err)
	}
	return p, nil
}

func (d *Flows) put(ctx context.Context, of string, p Pending, rev storage.Revision) error {
	data, err := json.Marshal(p)
	if err != nil {
		return err
	}
	key := d.cfg.Prefix + of
	_, err = d.cfg.KV.Put(ctx, key, d.cfg.Seal.Seal(key, data), rev)
	return err
}

// Find returns a sign-in. An empty state is one of the person's own chat.
func (d *Flows) Find(ctx context.Context, of, state string) (Pending, storage.Revision, error) {
	key := d.cfg.Prefix + of
	entry, err := d.cfg.KV.Get(ctx, key)
	if errors.Is(err, storage.ErrNotFound) {
		return Pending{}, 0, ErrLink
	}
	var p Pending
	if err == nil {
		var data []byte
		if data, err = d.cfg.Seal.Open(key, entry.Value); err != nil {
			return Pending{}, 0, ErrLink
		}
		err = json.Unmarshal(data, &p)
	}
	switch {
	case err != nil:
		return Pending{}, 0, fmt.Errorf("read the sign-in: %w", err)
	case state != "" && subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1, !d.cfg.Now().Before(p.Expires):
		return Pending{}, 0, ErrLink
	}
	return p, entry.Revision, nil
}

// Started finds the sign-in that a link leads to. One that was consented to is over.
func (d *Flows) Started(ctx context.Context, state string) (of string, p Pending, err error) {
	of, ok := d.Of(state)
	if !ok {
		return "", Pending{}, ErrLink
	}
	p, _, err = d.Find(ctx, of, state)
	if err == nil && p.Code != "" {
		err = ErrLink
	}
	return of, p, err
}

// end removes a sign-in that was found, so that it is used once.
func (d *Flows) end(ctx context.Context, of string, rev storage.Revision) error {
	err := d.cfg.KV.Delete(ctx, d.cfg.Prefix+of, rev)
	if errors.Is(err, storage.ErrConflict) {
		return ErrLink
	}
	if err != nil {
		return fmt.Errorf("end the sign-in: %w", err)
	}
	return nil
}

// Take finds a sign-in and ends it.
func (d *Flows) Take(ctx context.Context, of, state string) (Pending, error) {
	p, rev, err := d.Find(ctx, of, state)
	if err == nil {
		err = d.end(ctx, of, rev)
	}
	return p, err
}

// Forget removes whatever sign-in there is.
func (d *Flows) Forget(ctx context.Context, of string) error {
	return d.cfg.KV.Delete(ctx, d.cfg.Prefix+of, storage.Any)
}

// Of is whom and what a state is for.
func (d *Flows) Of(state string) (string, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return "", false
	}
	data, err := d.cfg.Seal.Open(d.cfg.StatePlace, sealed)
	if err != nil {
		return "", false
	}
	of, _, ok := strings.Cut(string(data), "\x00")
	return of, ok
}

// Arrive keeps the code with which a browser came back, until the person confirms it in
// the chat: another person may have given the consent. It returns the sign-in with
// what has to be sent. A sign-in takes one code, so that no person replaces that of another.
// redeem, where there is one, turns the code into what is kept in its place.
func (d *Flows) Arrive(ctx context.Context, of, state, code string, redeem func(Pending) (string, error)) (Pending, error) {
	p, rev, err := d.Find(ctx, of, state)
	switch {
	case err != nil:
		return p, err
	case p.Code != "" || len(code) > maxCode:
		return p, ErrLink
	case code == "":
		return p, cmp.Or[error](d.end(ctx, of, rev), ErrDenied)
	}
	if redeem != nil {
		if code, err = redeem(p); err != nil {
			return p, d.spoilt(ctx, of, p, rev, err)
		}
	}
	random := rand.Text()
	p.Code, p.Proof, p.Expires = code, random[:4]+"-"+random[4:8], d.cfg.Now().Add(Lifetime)
	err = d.put(ctx, of, p, rev)
	if errors.Is(err, storage.ErrConflict) {
		return p, ErrLink
	}
	return p, err
}

// spoilt counts a code that could not be redeemed: a few of them end the sign-in.
func (d *Flows) spoilt(ctx context.Context, of string, p Pending, rev storage.Revision, err error) error {
	var stored error
	if p.Wrong++; p.Wrong >= maxWrong {
		stored = d.end(ctx, of, rev)
	} else {
		stored = d.put(ctx, of, p, rev)
	}
	if stored != nil && !errors.Is(stored, storage.ErrConflict) && !errors.Is(stored, ErrLink) {
		return errors.Join(err, stored)
	}
	return err
}

// Confirm ends a sign-in with what its page has shown, in the chat of its link. A few
// wrong ones make it void. before, where there is one, is called with a sign-in that was
// confirmed and that does not end where it fails.
func (d *Flows) Confirm(ctx context.Context, of, chat, proof string, before func(Pending) error) (Pending, error) {
	for {
		p, rev, err := d.Find(ctx, of, "")
		switch {
		case err != nil:
			return p, err
		case p.Chat != chat:
			return Pending{}, ErrLink
		case p.Code == "":
			return Pending{}, ErrEarly
		case subtle.ConstantTimeCompare([]byte(strings.ToUpper(proof)), []byte(p.Proof)) == 1:
			if before != nil {
				if err := before(p); err != nil {
					return p, err
				}
			}
			return p, d.end(ctx, of, rev)
		}
		if p.Wrong++; p.Wrong >= maxWrong {
			return p, cmp.Or[error](d.end(ctx, of, rev), ErrVoid)
		}
		if err = d.put(ctx, of, p, rev); err == nil {
			return Pending{}, ErrWrong
		}
		if !errors.Is(err, storage.ErrConflict) {
			return Pending{}, fmt.Errorf("count a wrong code: %w", err)
		}
	}
}

// Pasted finds the answer of a consent page in the address that a browser ended on, or in
// the query of it.
func Pasted(args string) (answer url.Values, ok bool) {
	args = Unquoted(args)
	if _, query, found := strings.Cut(args, "?"); found {
		args = query
	}
	if !strings.Contains(args, "code=") && !strings.Contains(args, "error=") {
		return nil, false
	}
	answer, err := url.ParseQuery(args)
	return answer, err == nil
}

// Unquoted is what a user pasted, without what platforms and people put around it.
func Unquoted(args string) string { return strings.Trim(strings.TrimSpace(args), "<>`\"'") }
