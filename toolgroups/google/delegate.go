package google

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"
	"sync"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
	"golang.org/x/oauth2/jwt"

	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
)

// scopeSharing is for forwarding and delegates. Google grants it only for domain-wide delegation.
const scopeSharing = scopePrefix + "gmail.settings.sharing"

// grantable returns the scopes that a user can grant.
func grantable(scopes []string) []string {
	return slices.DeleteFunc(slices.Clone(scopes), func(s string) bool { return s == scopeSharing })
}

// delegate gets tokens for the users of a domain with a service account.
type delegate struct {
	key      *jwt.Config // nil without a service account
	subjects map[string]string

	tokens sync.Map // the latest tokens, each in an account, by user and scopes
}

func newDelegate(key []byte, subjects map[string]string) (*delegate, error) {
	d := &delegate{subjects: subjects}
	if len(key) == 0 {
		return d, nil
	}
	var err error
	if d.key, err = google.JWTConfigFromJSON(key); err != nil {
		// The library's error could contain the key.
		return nil, errors.New("the service account's key file cannot be read")
	}
	d.key.TokenURL = tokenURL
	return d, nil
}

// subject returns the address that the service account impersonates for a user.
func (d *delegate) subject(user string) (string, bool) {
	email := d.subjects[user]
	return email, d.key != nil && email != ""
}

// serviceAccountSource returns the service account's token source for a user.
func (g *Google) serviceAccountSource(user, email string, scopes []string) tokenSource {
	name := user + "\x00" + strings.Join(scopes, " ")
	d := g.delegate
	return func(ctx context.Context, rejected string) (string, error) {
		unlock, err := g.locks.Acquire(ctx, name)
		if err != nil {
			return "", err
		}
		defer unlock()
		kept, _ := d.tokens.Load(name)
		if a, ok := kept.(account); ok && a.isValid(g.cfg.Now(), rejected) {
			return a.AccessToken, nil
		}
		key := *d.key
		key.Subject, key.Scopes = email, scopes
		token, err := key.TokenSource(context.WithValue(ctx, oauth2.HTTPClient, g.oauthClient)).Token()
		if err != nil {
			return "", g.delegateError(ctx, err, scopes)
		}
		d.tokens.Store(name, account{AccessToken: token.AccessToken, Expiry: token.Expiry, Lifetime: token.Expiry.Sub(g.cfg.Now())})
		return token.AccessToken, nil
	}
}

// delegateError returns an error that says what the administrator of the domain has to do. It omits
// the body with the error code, which could contain secrets.
func (g *Google) delegateError(ctx context.Context, err error, scopes []string) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.Response.StatusCode < http.StatusInternalServerError &&
		answer.Response.StatusCode != http.StatusTooManyRequests {
		g.cfg.Logger.Warn("service account refused", "status", answer.Response.StatusCode)
		return toolgroups.Errorf(toolgroups.CodeDenied,
			"The service account may not act for this user. The administrator of the domain has to allow its client the scopes: %s.",
			service.ScopeNames(scopes))
	}
	return g.refreshError(ctx, err)
}
