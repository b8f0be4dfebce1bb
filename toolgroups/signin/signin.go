// Package signin guides a user through a sign-in in a browser: a link bound to a user and a
// chat, pages that name the user, and a code on the last page that the user sends to the bot.
//
// The server does not know who uses a browser. So it uses the authorization code from a browser
// only after the user has sent the confirmation code, which only that browser was shown, in the
// chat of the link.
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
	// Lifetime is the time for which a link, and then the code on its page, can be used.
	Lifetime = 10 * time.Minute
	// maxCode bounds an authorization code in bytes. Codes from Google have up to 256 bytes, those
	// from other services can be signed tokens.
	maxCode = 4096
	// maxWrongCodes is the number of wrong confirmation codes that end a sign-in.
	maxWrongCodes = 3
)

// RenewBefore returns how long before it expires a token with this lifetime is renewed: a minute, or
// half of a short lifetime, so that no token is renewed with each call. 0 means an unknown lifetime.
func RenewBefore(life time.Duration) time.Duration {
	if life > 0 {
		return min(time.Minute, life/2)
	}
	return time.Minute
}

// proofPattern matches the code that confirms a sign-in. It has no vowels: "real-time" is a message.
var proofPattern = regexp.MustCompile(`(?i)^[b-df-hj-np-tv-xz2-7]{4}-[b-df-hj-np-tv-xz2-7]{4}$`)

// IsProof reports whether a text looks like a confirmation code.
func IsProof(text string) bool { return proofPattern.MatchString(text) }

// UserError is an error of a sign-in whose text is shown to users. "{command}" stands for the
// command that makes a new link.
type UserError string

// Error returns the text unchanged.
func (m UserError) Error() string { return string(m) }

// Sentence returns the error as an answer to the user, with the command filled in.
func (m UserError) Sentence(command string) string {
	s := strings.ReplaceAll(string(m), "{command}", command)
	return strings.ToUpper(s[:1]) + s[1:] + "."
}

// The errors common to all sign-ins.
const (
	ErrInvalidLink          = UserError("the link is not known, was used already, or is older than ten minutes; send {command} for a new one")
	ErrDenied               = UserError("the permission was not given; nothing was connected")
	errNoPermissionYet      = UserError("open the link and give the permission first; the page then shows the code")
	errWrongCode            = UserError("that is not the code that the page shows; look again")
	ErrTooManyWrongCodes    = UserError("that was the wrong code too often, so nothing was connected; send {command} for a new link")
	ErrAddressInsteadOfCode = UserError("send me the code that the page shows at the end, not the address of the page")
)

// Pending is a sign-in in progress.
type Pending struct {
	State string `json:"state"`
	Chat  string `json:"chat"`
	// Name is the user's name on the platform.
	Name string `json:"name,omitempty"`
	// Verifier is the PKCE verifier.
	Verifier    string    `json:"verifier"`
	RedirectURL string    `json:"redirect"`
	Scopes      []string  `json:"scopes"`
	ExpiresAt   time.Time `json:"expires"`
	// Extra is data that depends on the kind of sign-in.
	Extra json.RawMessage `json:"own,omitempty"`
	// Code is the authorization code from the browser, or the result of redeeming it. It is used only
	// after the user has sent Proof, which the page shows, in Chat.
	Code  string `json:"code,omitempty"`
	Proof string `json:"proof,omitempty"`
	// WrongCodes is the number of wrong confirmation codes.
	WrongCodes int `json:"wrong,omitempty"`
}

// Config configures [FlowStore].
type Config struct {
	// KV stores the sign-ins in progress.
	KV storage.KV
	// Sealer encrypts them.
	Sealer *redact.Sealer
	// Prefix is the prefix of their keys.
	Prefix string
	// StateContext binds the encrypted state parameter to its purpose.
	StateContext string
	// Now returns the current time.
	Now func() time.Time
}

// FlowStore stores the sign-ins of one kind. The name of a sign-in consists of its user and
// purpose; a new sign-in replaces an old one. It may be used concurrently.
type FlowStore struct{ cfg Config }

// New makes a store. It has no state besides that in [Config].KV.
func New(cfg Config) *FlowStore { return &FlowStore{cfg: cfg} }

// Begin stores a sign-in under its name with a new state, verifier and time of expiry, and returns it.
// replaced is the sign-in before, if any.
func (d *FlowStore) Begin(ctx context.Context, name string, p Pending) (begun, replaced Pending, err error) {
	p.State = base64.RawURLEncoding.EncodeToString(d.cfg.Sealer.Seal(d.cfg.StateContext, []byte(name+"\x00"+rand.Text())))
	p.Verifier, p.ExpiresAt = oauth2.GenerateVerifier(), d.cfg.Now().Add(Lifetime)
	err = storage.Retry(ctx, func() (err error) {
		var rev storage.Revision
		replaced, rev, err = d.read(ctx, name)
		if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, redact.ErrUnreadable) {
			return err
		}
		return d.store(ctx, name, p, rev)
	})
	if err != nil {
		return Pending{}, Pending{}, fmt.Errorf("store the sign-in: %w", err)
	}
	return p, replaced, nil
}

func (d *FlowStore) store(ctx context.Context, name string, p Pending, rev storage.Revision) error {
	_, err := SaveSealed(ctx, d.cfg.KV, d.cfg.Sealer, d.cfg.Prefix+name, p, rev)
	return err
}

// read returns a sign-in by its name, expired or not. Errors are those of [LoadSealed].
func (d *FlowStore) read(ctx context.Context, name string) (Pending, storage.Revision, error) {
	return LoadSealed[Pending](ctx, d.cfg.KV, d.cfg.Sealer, d.cfg.Prefix+name)
}

// LoadSealed reads and decrypts a value. Errors: storage.ErrNotFound, and [redact.ErrUnreadable] with the
// revision.
func LoadSealed[T any](ctx context.Context, kv storage.KV, sealer *redact.Sealer, key string) (value T, rev storage.Revision, err error) {
	entry, err := kv.Get(ctx, key)
	if err != nil {
		return value, storage.Absent, err
	}
	data, err := sealer.Open(key, entry.Value)
	if err != nil || json.Unmarshal(data, &value) != nil {
		return *new(T), entry.Revision, redact.ErrUnreadable
	}
	return value, entry.Revision, nil
}

// SaveSealed encrypts a value and stores it, if the key still has the revision rev.
func SaveSealed(ctx context.Context, kv storage.KV, sealer *redact.Sealer, key string, value any, rev storage.Revision) (storage.Revision, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return storage.Absent, err
	}
	return kv.Put(ctx, key, sealer.Seal(key, data), rev)
}

// Find returns a sign-in by its name. A state that is not empty must be that of the sign-in. It returns
// [ErrInvalidLink] if there is no such sign-in or it has expired.
func (d *FlowStore) Find(ctx context.Context, name, state string) (Pending, storage.Revision, error) {
	p, rev, err := d.read(ctx, name)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, redact.ErrUnreadable):
		return Pending{}, 0, ErrInvalidLink
	case err != nil:
		return Pending{}, 0, fmt.Errorf("read the sign-in: %w", err)
	case state != "" && subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1, !d.cfg.Now().Before(p.ExpiresAt):
		return Pending{}, 0, ErrInvalidLink
	}
	return p, rev, nil
}

// FindByState finds the sign-in of a link. It does not find one that already has a code.
func (d *FlowStore) FindByState(ctx context.Context, state string) (name string, p Pending, err error) {
	name, ok := d.NameOfState(state)
	if !ok {
		return "", Pending{}, ErrInvalidLink
	}
	p, _, err = d.Find(ctx, name, state)
	if err == nil && p.Code != "" {
		err = ErrInvalidLink
	}
	return name, p, err
}

// deleteFlow deletes a sign-in at a revision, so that it is used once.
func (d *FlowStore) deleteFlow(ctx context.Context, name string, rev storage.Revision) error {
	err := d.cfg.KV.Delete(ctx, d.cfg.Prefix+name, rev)
	if errors.Is(err, storage.ErrConflict) {
		return ErrInvalidLink
	}
	if err != nil {
		return fmt.Errorf("delete the sign-in: %w", err)
	}
	return nil
}

// Take finds a sign-in and deletes it.
func (d *FlowStore) Take(ctx context.Context, name, state string) (Pending, error) {
	p, rev, err := d.Find(ctx, name, state)
	if err == nil {
		err = d.deleteFlow(ctx, name, rev)
	}
	return p, err
}

// Discard deletes the sign-in, if any, and returns it.
func (d *FlowStore) Discard(ctx context.Context, name string) (Pending, error) {
	p, _, err := d.read(ctx, name)
	if errors.Is(err, storage.ErrNotFound) {
		return Pending{}, nil
	}
	if err != nil && !errors.Is(err, redact.ErrUnreadable) {
		return Pending{}, err
	}
	return p, d.cfg.KV.Delete(ctx, d.cfg.Prefix+name, storage.Any)
}

// DiscardExpired deletes the sign-in if it has expired, and returns it; otherwise it returns the zero
// value.
func (d *FlowStore) DiscardExpired(ctx context.Context, name string) (Pending, error) {
	p, rev, err := d.read(ctx, name)
	if err != nil || d.cfg.Now().Before(p.ExpiresAt) {
		return Pending{}, err
	}
	if err := d.deleteFlow(ctx, name, rev); err != nil {
		return Pending{}, err
	}
	return p, nil
}

// NameOfState returns the name of the sign-in that a state belongs to.
func (d *FlowStore) NameOfState(state string) (string, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return "", false
	}
	data, err := d.cfg.Sealer.Open(d.cfg.StateContext, sealed)
	if err != nil {
		return "", false
	}
	name, _, ok := strings.Cut(string(data), "\x00")
	return name, ok
}

// StoreCode stores the authorization code that a browser returned, until the user confirms it in
// the chat, because another person may have consented. It returns the sign-in with the
// confirmation code. A sign-in accepts one authorization code, so that a second one cannot replace
// the first. redeem, if not nil, exchanges the code for a value that is stored instead.
func (d *FlowStore) StoreCode(ctx context.Context, name, state, code string, redeem func(Pending) (string, error)) (Pending, error) {
	p, rev, err := d.Find(ctx, name, state)
	switch {
	case err != nil:
		return p, err
	case p.Code != "" || len(code) > maxCode:
		return p, ErrInvalidLink
	case code == "":
		return p, cmp.Or[error](d.deleteFlow(ctx, name, rev), ErrDenied)
	}
	if redeem != nil {
		if code, err = redeem(p); err != nil {
			return p, d.countFailedRedeem(ctx, name, p, rev, err)
		}
	}
	random := strings.NewReplacer("A", "", "E", "", "I", "", "O", "", "U", "", "Y", "").Replace(rand.Text() + rand.Text())
	p.Code, p.Proof, p.ExpiresAt = code, random[:4]+"-"+random[4:8], d.cfg.Now().Add(Lifetime)
	err = d.store(ctx, name, p, rev)
	if errors.Is(err, storage.ErrConflict) {
		return p, ErrInvalidLink
	}
	return p, err
}

// countFailedRedeem counts a code that could not be redeemed. maxWrongCodes of them end the sign-in.
func (d *FlowStore) countFailedRedeem(ctx context.Context, name string, p Pending, rev storage.Revision, err error) error {
	var stored error
	if p.WrongCodes++; p.WrongCodes >= maxWrongCodes {
		stored = d.deleteFlow(ctx, name, rev)
	} else {
		stored = d.store(ctx, name, p, rev)
	}
	if stored != nil && !errors.Is(stored, storage.ErrConflict) && !errors.Is(stored, ErrInvalidLink) {
		return errors.Join(err, stored)
	}
	return err
}

// isSameChat reports whether two chats, platform:id[:thread], are the same or threads of the same: who began a sign-in in
// a chat may send the code in a thread of it.
func isSameChat(a, b string) bool {
	within := func(chat string) string {
		parts := strings.SplitN(chat, ":", 3)
		return strings.Join(parts[:min(len(parts), 2)], ":")
	}
	return within(a) == within(b)
}

// Awaits reports whether a sign-in waits in a chat for the code that its page shows, and whether code is that code.
func (d *FlowStore) Awaits(ctx context.Context, name, chat, code string) (waits, matches bool, err error) {
	p, _, err := d.Find(ctx, name, "")
	if errors.Is(err, ErrInvalidLink) {
		return false, false, nil
	}
	waits = err == nil && isSameChat(p.Chat, chat) && p.Code != ""
	return waits, waits && subtle.ConstantTimeCompare([]byte(strings.ToUpper(code)), []byte(p.Proof)) == 1, err
}

// Confirm ends a sign-in with the confirmation code from its page, in the chat of its link.
// maxWrongCodes wrong codes end it too. before, if not nil, is called with the confirmed sign-in.
// If before fails, the sign-in is kept.
func (d *FlowStore) Confirm(ctx context.Context, name, chat, proof string, before func(Pending) error) (Pending, error) {
	for {
		p, rev, err := d.Find(ctx, name, "")
		switch {
		case err != nil:
			return p, err
		case !isSameChat(p.Chat, chat):
			return Pending{}, ErrInvalidLink
		case p.Code == "":
			return Pending{}, errNoPermissionYet
		case subtle.ConstantTimeCompare([]byte(strings.ToUpper(proof)), []byte(p.Proof)) == 1:
			if before != nil {
				if err := before(p); err != nil {
					return p, err
				}
			}
			return p, d.deleteFlow(ctx, name, rev)
		}
		if p.WrongCodes++; p.WrongCodes >= maxWrongCodes {
			return p, cmp.Or[error](d.deleteFlow(ctx, name, rev), ErrTooManyWrongCodes)
		}
		if err = d.store(ctx, name, p, rev); err == nil {
			return Pending{}, errWrongCode
		}
		if !errors.Is(err, storage.ErrConflict) {
			return Pending{}, fmt.Errorf("count a wrong code: %w", err)
		}
	}
}

// ParsePastedAnswer parses the answer of a consent page from the address to which the browser was
// redirected, or from the query of that address.
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

// TrimQuotes returns a pasted text without surrounding quotes and brackets.
func TrimQuotes(args string) string { return strings.Trim(strings.TrimSpace(args), "<>`\"'") }
