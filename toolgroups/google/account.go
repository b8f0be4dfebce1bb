package google

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"net/http"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/google/service"
	"oneclaw/toolgroups/signin"
)

const (
	scopePrefix = service.ScopePrefix
	// scopeEmail is the scope for showing which account is connected.
	scopeEmail = scopePrefix + "userinfo.email"

	accountPrefix = "google/account/"
	missingPrefix = "google/wanted/"
)

// account is the stored record of a connected account.
type account struct {
	// Email is the address; empty if unknown.
	Email string `json:"email,omitempty"`
	// Scopes are the granted scopes.
	Scopes []string `json:"scopes"`
	// AccessToken is valid until Expiry. Lifetime is the time for which the token was issued.
	AccessToken  string        `json:"access"`
	Expiry       time.Time     `json:"expiry"`
	Lifetime     time.Duration `json:"life,omitempty"`
	RefreshToken string        `json:"refresh"`
	// ConsentEnded is true if the consent has expired or was withdrawn. The scopes are kept, so that
	// the next link asks for them again.
	ConsentEnded bool `json:"lost,omitempty"`
	// ConnectedAt is the time of the consent.
	ConnectedAt time.Time `json:"connected"`
}

// isValid reports whether there is a token that is not the rejected one and does not expire soon.
func (a account) isValid(now time.Time, rejected string) bool {
	return a.AccessToken != "" && a.AccessToken != rejected && now.Add(signin.RenewBefore(a.Lifetime)).Before(a.Expiry)
}

// Account returns the address of a user's account, if known, and whether the account is connected. An
// account whose record cannot be decrypted is not.
func (g *Google) Account(ctx context.Context, user string) (email string, connected bool, err error) {
	a, _, err := g.load(ctx, user)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, redact.ErrUnreadable) {
		return "", false, nil
	}
	return a.Email, err == nil && !a.ConsentEnded, err
}

// ConnectedUsers yields the users who have connected an account, sorted by id.
func ConnectedUsers(ctx context.Context, kv storage.KV) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for entry, err := range kv.List(ctx, storage.Range{Prefix: accountPrefix}) {
			if !yield(strings.TrimPrefix(entry.Key, accountPrefix), err) || err != nil {
				return
			}
		}
	}
}

// load reads the account of a user. Errors are those of [signin.LoadSealed].
func (g *Google) load(ctx context.Context, user string) (account, storage.Revision, error) {
	return signin.LoadSealed[account](ctx, g.cfg.KV, g.sealer, accountPrefix+user)
}

func (g *Google) store(ctx context.Context, user string, a account, rev storage.Revision) (storage.Revision, error) {
	return signin.SaveSealed(ctx, g.cfg.KV, g.sealer, accountPrefix+user, a, rev)
}

// newTokenSource returns the token source of the user, whose account must have the scopes.
func (g *Google) newTokenSource(ctx context.Context, user string, scopes []string) (tokenSource, error) {
	if user == "" {
		return nil, toolgroups.Errorf(service.CodeNotConnected, "It is not known who asks, so no Google account can be used.")
	}
	subject, delegated := g.delegate.subject(user)
	delegated = delegated && slices.Contains(scopes, scopeSharing)
	a, _, err := g.load(ctx, user)
	switch {
	case delegated && err == nil && !strings.EqualFold(a.Email, subject):
		return nil, toolgroups.Errorf(toolgroups.CodeDenied, "The user has connected %s, but this works only in the mailbox of %s. "+
			"Nothing was changed. Tell the user so: with /disconnect google they end the connection, with /connect google they connect the other account.",
			cmp.Or(a.Email, "an account of unknown address"), subject)
	case delegated && (err == nil || errors.Is(err, storage.ErrNotFound)):
		return g.serviceAccountSource(user, subject, scopes), nil
	case (err == nil || errors.Is(err, storage.ErrNotFound)) && slices.Contains(missingScopes(scopes, a.Scopes), scopeSharing):
		return nil, toolgroups.Errorf(toolgroups.CodeDenied, "Google allows this only to a service account with domain-wide delegation (%s), "+
			"which the operator of this bot can set up. Tell the user so; trying again does not help.", service.ScopeNames([]string{scopeSharing}))
	case errors.Is(err, storage.ErrNotFound):
		return g.unconnectedSource(ctx, user, scopes)
	case errors.Is(err, redact.ErrUnreadable):
		return nil, toolgroups.OwnErrorf(service.CodeNotConnected, "The stored connection cannot be read any more. %s", service.AskToConnect)
	case err != nil:
		return nil, service.Wrap("read the Google account", err)
	}
	if a.ConsentEnded {
		return nil, consentEndedError()
	}
	if missing := missingScopes(scopes, a.Scopes); len(missing) > 0 {
		if err := g.storeMissingScopes(ctx, user, missing); err != nil {
			return nil, err
		}
		return nil, toolgroups.OwnErrorf(toolgroups.CodeDenied,
			"The user has not granted the permission %s yet. %s", service.ScopeNames(missing), service.AskToConnect)
	}
	return func(ctx context.Context, rejected string) (string, error) { return g.validToken(ctx, user, rejected) }, nil
}

// unconnectedSource returns the service account's token source for a user without a connected account, or an
// error. If there are no scopes, it asks for those of all groups: Google issues no token without scopes.
func (g *Google) unconnectedSource(ctx context.Context, user string, scopes []string) (tokenSource, error) {
	if email, ok := g.delegate.subject(user); ok {
		if len(scopes) == 0 {
			scopes, _ = scopesOf(strings.Join(serviceNames(), " "))
		}
		return g.serviceAccountSource(user, email, scopes), nil
	}
	if g.cfg.ClientID == "" {
		return nil, toolgroups.Errorf(service.CodeNotConnected,
			"Google isn't set up here. An administrator can do that: /connect google tells them how.")
	}
	if err := g.storeMissingScopes(ctx, user, scopes); err != nil {
		return nil, err
	}
	return nil, notConnectedError()
}

// errConsentEnded is the error for a token whose consent has ended.
var errConsentEnded = errors.New("consent has ended")

func consentEndedError() error {
	return toolgroups.OwnErrorf(service.CodeNotConnected, "The user's consent at Google has ended or was withdrawn. %s", service.AskToConnect)
}

func notConnectedError() error {
	return toolgroups.OwnErrorf(service.CodeNotConnected, "The user has connected no Google account. %s", service.AskToConnect)
}

// validToken returns a valid token of the user, refreshed if necessary by one caller at a time.
func (g *Google) validToken(ctx context.Context, user, rejected string) (string, error) {
	unlock, err := g.locks.Acquire(ctx, user)
	if err != nil {
		return "", err
	}
	defer unlock()
	a, rev, err := g.load(ctx, user)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", notConnectedError()
	case err != nil:
		return "", service.Wrap("read the Google account", err)
	case a.isValid(g.cfg.Now(), rejected):
		return a.AccessToken, nil
	}
	if a.ConsentEnded {
		return "", consentEndedError()
	}
	fresh, err := g.refresh(ctx, a)
	if errors.Is(err, errConsentEnded) {
		a.ConsentEnded, a.AccessToken, a.RefreshToken = true, "", ""
		fresh = a
	} else if err != nil {
		return "", err
	}
	if _, stored := g.store(ctx, user, fresh, rev); stored != nil {
		// If another process refreshed the token, or the user connected or disconnected meanwhile,
		// Google's answer about the old token is irrelevant.
		if now, _, err := g.load(ctx, user); err == nil && now.isValid(g.cfg.Now(), rejected) {
			return now.AccessToken, nil
		}
		if err == nil {
			return "", service.Wrap("store the Google account", stored)
		}
		g.cfg.Logger.Warn("cannot store that the consent has ended", "user", user, "err", stored)
	}
	if err != nil {
		return "", consentEndedError()
	}
	return fresh.AccessToken, nil
}

// refresh gets a new token. It is useless to try again after errConsentEnded.
func (g *Google) refresh(ctx context.Context, a account) (account, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, g.oauthClient)
	// Without a valid access token, the source requests a new one.
	token, err := g.oauthConfig("").TokenSource(ctx, &oauth2.Token{RefreshToken: a.RefreshToken}).Token()
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.ErrorCode == "invalid_grant" {
		return account{}, errConsentEnded
	}
	if err != nil {
		return account{}, g.refreshError(ctx, err)
	}
	a.AccessToken, a.Expiry, a.Lifetime = token.AccessToken, token.Expiry, token.Expiry.Sub(g.cfg.Now())
	if token.RefreshToken != "" {
		a.RefreshToken = token.RefreshToken
	}
	return a, nil
}

// refreshError returns the error for a failed refresh, without the response, which may have a token.
func (g *Google) refreshError(ctx context.Context, err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &answer):
		g.cfg.Logger.Warn("google token not refreshed", "err", service.PlainLine(err.Error()))
		return toolgroups.Errorf(service.CodeUnavailable, "Google's sign-in could not be reached. The account stays connected; try again later.")
	case answer.ErrorCode == "invalid_grant":
		return consentEndedError()
	}
	status := answer.Response.StatusCode
	g.cfg.Logger.Warn("google token not refreshed", "status", status, "code", service.PlainLine(answer.ErrorCode))
	if status == http.StatusTooManyRequests {
		return toolgroups.Errorf(service.CodeRateLimited, "Google's sign-in limits the rate of requests. Try again in a minute.")
	}
	if status >= http.StatusInternalServerError {
		return toolgroups.Errorf(service.CodeUnavailable, "Google's sign-in is not available (%d). The account stays connected; try again later.", status)
	}
	return toolgroups.Errorf(toolgroups.CodeDenied, "Google's sign-in refused (%d %s). The operator has to check the OAuth client.",
		status, service.PlainLine(answer.ErrorCode))
}

// missingScopes returns the wanted scopes that are not granted.
func missingScopes(wanted, granted []string) []string {
	var missing []string
	for _, s := range wanted {
		if !slices.Contains(granted, s) && !slices.Contains(missing, s) {
			missing = append(missing, s)
		}
	}
	return missing
}

// storeMissingScopes stores scopes that a tool lacked, so that the next link asks for them.
func (g *Google) storeMissingScopes(ctx context.Context, user string, scopes []string) error {
	known, rev, err := g.loadMissingScopes(ctx, user)
	if err != nil {
		return service.Wrap("note the missing permission", err)
	}
	more := missingScopes(scopes, known)
	if len(more) == 0 {
		return nil
	}
	_, err = storage.Save(ctx, g.cfg.KV, missingPrefix+user, append(known, more...), rev)
	if err != nil && !errors.Is(err, storage.ErrConflict) { // a concurrent call stored its own
		return service.Wrap("note the missing permission", err)
	}
	return nil
}

// loadMissingScopes returns the stored scopes that tools have lacked.
func (g *Google) loadMissingScopes(ctx context.Context, user string) ([]string, storage.Revision, error) {
	scopes, rev, err := storage.Load[[]string](ctx, g.cfg.KV, missingPrefix+user)
	if rev != storage.Absent {
		err = nil // overwrite an unreadable record
	}
	return scopes, rev, err
}
