package google

import (
	"cmp"
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"net/url"
	"regexp"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oneclaw/internal/seal"
	"oneclaw/storage"
	"oneclaw/toolgroups/google/service"
)

const (
	pendingPrefix = "google/pending/"
	// pendingTime is how long a link can be used, and then what its page shows.
	pendingTime = 10 * time.Minute
	// statePlace binds a sealed state to its purpose.
	statePlace = "google/state"
	// maxCode bounds a code of Google's in bytes; they have up to 256.
	maxCode = 2048
	// maxWrong is the wrong confirmation with which a sign-in is void.
	maxWrong = 3
)

// proofPattern is what a user confirms a sign-in with.
var proofPattern = regexp.MustCompile(`^[A-Za-z2-7]{4}-[A-Za-z2-7]{4}$`)

// pending is a sign-in that has begun.
type pending struct {
	State string `json:"state"`
	Chat  string `json:"chat"`
	// Name is what the platform calls the user.
	Name     string    `json:"name,omitempty"`
	Verifier string    `json:"verifier"`
	Redirect string    `json:"redirect"`
	Scopes   []string  `json:"scopes"`
	Expires  time.Time `json:"expires"`
	// Code is what a browser came back with from Google. It is not exchanged for tokens
	// before the user has sent Proof, which the page showed there, in Chat.
	Code  string `json:"code,omitempty"`
	Proof string `json:"proof,omitempty"`
	// Wrong counts what was sent in its place.
	Wrong int `json:"wrong,omitempty"`
}

// begin remembers a sign-in under a new state; a user has one at a time.
func (g *Google) begin(ctx context.Context, user string, p pending) (pending, error) {
	p.State = base64.RawURLEncoding.EncodeToString(g.seal.Seal(statePlace, []byte(user+"\x00"+rand.Text())))
	p.Verifier, p.Expires = oauth2.GenerateVerifier(), g.cfg.Now().Add(pendingTime)
	// Any: the newest link replaces the one before it.
	if _, err := g.put(ctx, pendingPrefix+user, p, storage.Any); err != nil {
		return pending{}, fmt.Errorf("store the sign-in: %w", err)
	}
	return p, nil
}

// consentURL is the address of Google's page.
func (g *Google) consentURL(p pending) string {
	return g.oauth(p.Redirect, p.Scopes...).AuthCodeURL(p.State, oauth2.AccessTypeOffline, oauth2.ApprovalForce,
		oauth2.SetAuthURLParam("include_granted_scopes", "true"), oauth2.S256ChallengeOption(p.Verifier))
}

// find returns the sign-in of a user. An empty state is one of the user's own chat.
func (g *Google) find(ctx context.Context, user, state string) (pending, storage.Revision, error) {
	var p pending
	rev, err := g.get(ctx, pendingPrefix+user, &p)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, seal.ErrUnreadable):
		return pending{}, 0, errLink
	case err != nil:
		return pending{}, 0, fmt.Errorf("read the sign-in: %w", err)
	case state != "" && subtle.ConstantTimeCompare([]byte(state), []byte(p.State)) != 1, !g.cfg.Now().Before(p.Expires):
		return pending{}, 0, errLink
	}
	return p, rev, nil
}

// end removes a sign-in that was found, so that it is used once.
func (g *Google) end(ctx context.Context, user string, rev storage.Revision) error {
	err := g.cfg.KV.Delete(ctx, pendingPrefix+user, rev)
	if errors.Is(err, storage.ErrConflict) {
		return errLink
	}
	if err != nil {
		return fmt.Errorf("end the sign-in: %w", err)
	}
	return nil
}

// take finds the sign-in of a user and ends it.
func (g *Google) take(ctx context.Context, user, state string) (pending, error) {
	p, rev, err := g.find(ctx, user, state)
	if err == nil {
		err = g.end(ctx, user, rev)
	}
	return p, err
}

// userOf is the user that a state belongs to.
func (g *Google) userOf(state string) (string, bool) {
	sealed, err := base64.RawURLEncoding.DecodeString(state)
	if err != nil {
		return "", false
	}
	data, err := g.seal.Open(statePlace, sealed)
	if err != nil {
		return "", false
	}
	user, _, ok := strings.Cut(string(data), "\x00")
	return user, ok
}

// pasted finds the code in an address, a query, or alone with its slash encoded.
func pasted(args string) (code, state string, ok bool) {
	args = strings.Trim(strings.TrimSpace(args), "<>`\"'")
	if _, query, found := strings.Cut(args, "?"); found {
		args = query
	}
	if strings.Contains(args, "code=") || strings.Contains(args, "error=") {
		q, err := url.ParseQuery(args)
		if err != nil {
			return "", "", false
		}
		return q.Get("code"), q.Get("state"), true
	}
	if code, err := url.PathUnescape(args); err == nil && strings.HasPrefix(code, "4/") && !strings.ContainsAny(code, " \n") {
		return code, "", true
	}
	return "", "", false
}

// paste ends a sign-in with the code that the user sent. Where the bot has pages of its
// own, these say first whom the account is for, and nothing goes past them.
func (g *Google) paste(ctx context.Context, req ConnectRequest, code, state string) (string, error) {
	if g.cfg.PublicURL != "" {
		return sentence(errPage), nil
	}
	p, err := g.take(ctx, req.User, state)
	if err == nil && p.Chat != req.Chat {
		err = errLink
	}
	if err == nil && code == "" {
		err = errDenied
	}
	if err != nil {
		return told(err)
	}
	return g.connected(ctx, req.User, p, code)
}

// connected exchanges a code and tells the user what came of it.
func (g *Google) connected(ctx context.Context, user string, p pending, code string) (string, error) {
	a, err := g.finish(ctx, user, p, code)
	if err != nil {
		return told(err)
	}
	return fmt.Sprintf("Your Google account%s is connected. I may use: %s.", ofEmail(a.Email), service.ScopeNames(a.Scopes)), nil
}

// arrive keeps the code with which a browser came back, until the user confirms it in the
// chat: whoever gave the consent may be somebody else. It returns the sign-in with what
// has to be sent. A sign-in takes one code, so that nobody replaces that of another.
func (g *Google) arrive(ctx context.Context, user, state, code string) (pending, error) {
	p, rev, err := g.find(ctx, user, state)
	switch {
	case err != nil:
		return p, err
	case p.Code != "" || len(code) > maxCode:
		return p, errLink
	case code == "":
		return p, cmp.Or[error](g.end(ctx, user, rev), errDenied)
	}
	random := rand.Text()
	p.Code, p.Proof, p.Expires = code, random[:4]+"-"+random[4:8], g.cfg.Now().Add(pendingTime)
	_, err = g.put(ctx, pendingPrefix+user, p, rev)
	if errors.Is(err, storage.ErrConflict) {
		return p, errLink
	}
	return p, err
}

// confirm ends a sign-in with what its page has shown. A few wrong ones make it void.
func (g *Google) confirm(ctx context.Context, req ConnectRequest) (string, error) {
	for {
		p, rev, err := g.find(ctx, req.User, "")
		if err == nil && p.Chat != req.Chat {
			err = errLink
		}
		if err == nil && p.Code == "" {
			err = errEarly
		}
		if err != nil {
			return told(err)
		}
		if subtle.ConstantTimeCompare([]byte(strings.ToUpper(req.Args)), []byte(p.Proof)) == 1 {
			if err := g.end(ctx, req.User, rev); err != nil {
				return told(err)
			}
			return g.connected(ctx, req.User, p, p.Code)
		}
		if p.Wrong++; p.Wrong >= maxWrong {
			return told(cmp.Or[error](g.end(ctx, req.User, rev), errVoid))
		}
		_, err = g.put(ctx, pendingPrefix+req.User, p, rev)
		if err == nil {
			return sentence(errWrong), nil
		}
		if !errors.Is(err, storage.ErrConflict) {
			return "", fmt.Errorf("count a wrong code: %w", err)
		}
	}
}
