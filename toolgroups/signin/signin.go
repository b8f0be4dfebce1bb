// Package signin guides a user through a sign-in in a browser: a link bound to a user and a
// chat, pages that say whom it is for, and a code on the last page that the user sends back.
//
// The server cannot tell who uses a browser. So the authorization code that it returns counts
// only after the user has sent, in the chat of the link, the code that only that browser was
// shown.
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
	// Lifetime is how long a link, and then the code on its page, can be used.
	Lifetime = 10 * time.Minute
	// maxCode bounds an authorization code in bytes. Google's have up to 256, others are signed
	// tokens.
	maxCode = 4096
	// maxWrong is the number of wrong confirmations that end a sign-in.
	maxWrong = 3
)

// RenewBefore returns how long before its end a token with this lifetime is renewed: a minute, or half
// of a short lifetime, so that none is renewed with each call. 0 means an unknown lifetime.
func RenewBefore(life time.Duration) time.Duration {
	if life > 0 {
		return min(time.Minute, life/2)
	}
	return time.Minute
}

// proofPattern matches the code that confirms a sign-in.
var proofPattern = regexp.MustCompile(`^[A-Za-z2-7]{4}-[A-Za-z2-7]{4}$`)

// IsProof reports whether a text looks like a confirmation code.
func IsProof(text string) bool { return proofPattern.MatchString(text) }

// Mistake is an error of a sign-in that is shown to users as it is. "{command}" stands for the
// command that makes a new link.
type Mistake string

// Error returns the text unchanged.
func (m Mistake) Error() string { return string(m) }

// Sentence returns the mistake as an answer, with the command filled in.
func (m Mistake) Sentence(command string) string {
	s := strings.ReplaceAll(string(m), "{command}", command)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// The mistakes common to all sign-ins.
const (
	ErrLink   = Mistake("the link is not known, was used already, or is older than ten minutes; send {command} for a new one")
	ErrDenied = Mistake("the permission was not given; nothing was connected")
	ErrEarly  = Mistake("open the link and give the permission first; the page then shows the code")
	ErrWrong  = Mistake("that is not the code that the page shows; look again")
	ErrVoid   = Mistake("that was the wrong code too often, so nothing was connected; send {command} for a new link")
	ErrPage   = Mistake("send me the code that the page shows at the end, not the address of the page")
)

// Pending is a sign-in in progress.
type Pending struct {
	State string `json:"state"`
	Chat  string `json:"chat"`
	// Name is the user's name on the platform.
	Name string `json:"name,omitempty"`
	// Verifier is the PKCE verifier.
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Scopes   []string  `json:"scopes"`
	Expires  time.Time `json:"expires"`
	// Extra is data of the kind of sign-in.
	Extra json.RawMessage `json:"own,omitempty"`
	// Code is the browser's authorization code, or what it was redeemed for. It counts only after
	// the user has sent Proof, which the page showed, in Chat.
	Code  string `json:"code,omitempty"`
	Proof string `json:"proof,omitempty"`
	// Wrong counts the wrong confirmations.
	Wrong int `json:"wrong,omitempty"`
}

// Config configures [Flows].
type Config struct {
	// KV stores the sign-ins in progress.
	KV storage.KV
	// Seal encrypts them.
	Seal *redact.Sealer
	// Prefix begins their keys.
	Prefix string
	// StatePlace binds the state parameter to its purpose.
	StatePlace string
	// Now is the clock.
	Now func() time.Time
}

// Flows holds the sign-ins of one kind. A sign-in is named by its user and purpose, and a new
// one replaces the old. It may be used concurrently.
type Flows struct{ cfg Config }

// New returns flows that have no state of their own.
func New(cfg Config) *Flows { return &Flows{cfg: cfg} }

// Begin stores a sign-in under a new state.
func (d *Flows) Begin(ctx context.Context, of string, p Pending) (Pending, error) {
	p.State = base64.RawURLEncoding.EncodeToString(d.cfg.Seal.Seal(d.cfg.StatePlace, []byte(of+"\x00"+rand.Text())))
	p.Verifier, p.Expires = oauth2.GenerateVerifier(), d.cfg.Now().Add(Lifetime)
	// Any: the newest link replaces the previous one.
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

// Find returns a sign-in. An empty state means the one of the user's own chat.
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

// FindByState finds the sign-in of a link. One that has a code already is not found.
func (d *Flows) FindByState(ctx context.Context, state string) (of string, p Pending, err error) {
	of, ok := d.NameOfState(state)
	if !ok {
		return "", Pending{}, ErrLink
	}
	p, _, err = d.Find(ctx, of, state)
	if err == nil && p.Code != "" {
		err = ErrLink
	}
	return of, p, err
}

// end deletes a sign-in that was found, so that it is used once.
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

// Take finds a sign-in and deletes it.
func (d *Flows) Take(ctx context.Context, of, state string) (Pending, error) {
	p, rev, err := d.Find(ctx, of, state)
	if err == nil {
		err = d.end(ctx, of, rev)
	}
	return p, err
}

// Forget deletes the sign-in, if any.
func (d *Flows) Forget(ctx context.Context, of string) error {
	return d.cfg.KV.Delete(ctx, d.cfg.Prefix+of, storage.Any)
}

// NameOfState returns the name of the sign-in that a state belongs to.
func (d *Flows) NameOfState(state string) (string, bool) {
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

// StoreCode stores the authorization code that a browser returned until the user confirms it in the
// chat, because another person may have consented. It returns the sign-in with the confirmation
// code. A sign-in takes one code, so that a second one cannot replace it. redeem, if not nil, exchanges
// the code for what is stored instead.
func (d *Flows) StoreCode(ctx context.Context, of, state, code string, redeem func(Pending) (string, error)) (Pending, error) {
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
			return p, d.countFailedRedeem(ctx, of, p, rev, err)
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

// countFailedRedeem counts a code that could not be redeemed: a few of them end the sign-in.
func (d *Flows) countFailedRedeem(ctx context.Context, of string, p Pending, rev storage.Revision, err error) error {
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

// Confirm ends a sign-in with the code of its page, in the chat of its link. A few wrong codes
// end it too. before, if not nil, is called with the confirmed sign-in, which is kept if before
// fails.
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

// ParsePastedAnswer finds the answer of a consent page in the address at which a browser ended, or in its
// query.
func ParsePastedAnswer(args string) (answer url.Values, ok bool) {
	args = TrimQuotes(args)
	if _, query, found := strings.Cut(args, "?"); found {
		args = query
	}
	if !strings.Contains(args, "code=") && !strings.Contains(args, "error=") {
		return nil, false
	}
	answer, err := url.ParseQuery(args)
	return answer, err == nil
}

// TrimQuotes returns what a user pasted, without surrounding quotes and brackets.
func TrimQuotes(args string) string { return strings.Trim(strings.TrimSpace(args), "<>`\"'") }
