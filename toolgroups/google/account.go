package google

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// scopeEmail lets the bot show which account is connected.
	scopeEmail = scopePrefix + "userinfo.email"

	accountPrefix = "google/account/"
	wantedPrefix  = "google/wanted/"
)

// account is the stored record of a connected account.
type account struct {
	// Email is the address; empty if unknown.
	Email string `json:"email,omitempty"`
	// Scopes are the granted scopes.
	Scopes []string `json:"scopes"`
	// Access is a token that is valid until Expiry. Life is its full lifetime.
	Access  string        `json:"access"`
	Expiry  time.Time     `json:"expiry"`
	Life    time.Duration `json:"life,omitempty"`
	Refresh string        `json:"refresh"`
	// Lost says that the consent has ended. The scopes are kept, so that the next link asks for
	// them again.
	Lost bool `json:"lost,omitempty"`
	// Connected is the time of the consent.
	Connected time.Time `json:"connected"`
}

// valid reports whether the token can be used.
func (a account) valid(now time.Time, rejected string) bool {
	return a.Access != "" && a.Access != rejected && now.Add(signin.RenewBefore(a.Life)).Before(a.Expiry)
}

// get reads and decrypts a value. Errors: storage.ErrNotFound, [redact.ErrUnreadable].
func (g *Google) get(ctx context.Context, key string, value any) (storage.Revision, error) {
	entry, err := g.cfg.KV.Get(ctx, key)
	if err != nil {
		return 0, err
	}
	data, err := g.seal.Open(key, entry.Value)
	if err == nil {
		err = json.Unmarshal(data, value)
	}
	return entry.Revision, err
}

// put encrypts a value and replaces a revision.
func (g *Google) put(ctx context.Context, key string, value any, rev storage.Revision) (storage.Revision, error) {
	data, err := json.Marshal(value)
	if err != nil {
		return 0, err
	}
	return g.cfg.KV.Put(ctx, key, g.seal.Seal(key, data), rev)
}

// Account returns the address of a user's connected account, if known, and whether there is one.
func (g *Google) Account(ctx context.Context, user string) (email string, connected bool, err error) {
	a, _, err := g.load(ctx, user)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, redact.ErrUnreadable) {
		return "", false, nil
	}
	return a.Email, err == nil && !a.Lost, err
}

// People yields the users who have connected an account, sorted by id, after the given one;
// empty for all.
func People(ctx context.Context, kv storage.KV, after string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		r := storage.Range{Prefix: accountPrefix}
		if after != "" {
			r.After = accountPrefix + after
		}
		for entry, err := range kv.List(ctx, r) {
			if !yield(strings.TrimPrefix(entry.Key, accountPrefix), err) || err != nil {
				return
			}
		}
	}
}

// load reads the account of a user.
func (g *Google) load(ctx context.Context, user string) (a account, rev storage.Revision, err error) {
	rev, err = g.get(ctx, accountPrefix+user, &a)
	return a, rev, err
}

func (g *Google) store(ctx context.Context, user string, a account, rev storage.Revision) (storage.Revision, error) {
	return g.put(ctx, accountPrefix+user, a, rev)
}

// tokens returns the token source of the user, whose account must have the scopes.
func (g *Google) tokens(ctx context.Context, user string, scopes []string) (tokenSource, error) {
	if email, ok := g.delegate.subject(user); ok && slices.Contains(scopes, scopeSharing) {
		return g.delegated(user, email, scopes), nil
	}
	a, _, err := g.load(ctx, user)
	switch {
	case (err == nil || errors.Is(err, storage.ErrNotFound)) && slices.Contains(missingScopes(scopes, a.Scopes), scopeSharing):
		return nil, toolgroups.Errorf(toolgroups.CodeDenied, "Google allows this only to a service account with domain-wide delegation (%s), "+
			"which the operator of this bot can set up. Tell the user so; trying again does not help.", service.ScopeNames([]string{scopeSharing}))
	case errors.Is(err, storage.ErrNotFound):
		return g.unconnected(ctx, user, scopes)
	case errors.Is(err, redact.ErrUnreadable):
		return nil, toolgroups.Errorf(service.CodeNotConnected, "The stored connection cannot be read any more. %s", service.AskToConnect)
	case err != nil:
		return nil, service.Wrap("read the Google account", err)
	}
	if a.Lost {
		return nil, consentLost()
	}
	if missing := missingScopes(scopes, a.Scopes); len(missing) > 0 {
		if err := g.storeWanted(ctx, user, missing); err != nil {
			return nil, err
		}
		return nil, toolgroups.Errorf(toolgroups.CodeDenied,
			"The user has not granted the permission %s yet. %s", service.ScopeNames(missing), service.AskToConnect)
	}
	return func(ctx context.Context, rejected string) (string, error) { return g.token(ctx, user, rejected) }, nil
}

// unconnected returns the token source for a user without a connected account.
func (g *Google) unconnected(ctx context.Context, user string, scopes []string) (tokenSource, error) {
	if email, ok := g.delegate.subject(user); ok {
		return g.delegated(user, email, scopes), nil
	}
	if g.cfg.ClientID == "" {
		return nil, toolgroups.Errorf(service.CodeNotConnected,
			"Google isn't set up here. An administrator can do that: /connect google tells them how.")
	}
	if err := g.storeWanted(ctx, user, scopes); err != nil {
		return nil, err
	}
	return nil, notConnected()
}

// errLost is the error for a token whose consent has ended.
var errLost = errors.New("consent has ended")

func consentLost() error {
	return toolgroups.Errorf(service.CodeNotConnected, "The user's consent at Google has ended or was withdrawn. %s", service.AskToConnect)
}

func notConnected() error {
	return toolgroups.Errorf(service.CodeNotConnected, "The user has connected no Google account. %s", service.AskToConnect)
}

// token returns a valid token of the user, refreshed if necessary, one at a time per user.
func (g *Google) token(ctx context.Context, user, rejected string) (string, error) {
	unlock, err := g.locks.Acquire(ctx, user)
	if err != nil {
		return "", err
	}
	defer unlock()
	a, rev, err := g.load(ctx, user)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return "", notConnected()
	case err != nil:
		return "", service.Wrap("read the Google account", err)
	case a.valid(g.cfg.Now(), rejected):
		return a.Access, nil
	}
	if a.Lost {
		return "", consentLost()
	}
	fresh, err := g.refresh(ctx, a)
	if errors.Is(err, errLost) {
		a.Lost, a.Access, a.Refresh = true, "", ""
		fresh = a
	} else if err != nil {
		return "", err
	}
	if _, stored := g.store(ctx, user, fresh, rev); stored != nil {
		// If another process refreshed it, or the user connected or disconnected meanwhile,
		// Google's answer about the old token is irrelevant.
		if now, _, err := g.load(ctx, user); err == nil && now.valid(g.cfg.Now(), rejected) {
			return now.Access, nil
		}
		if err == nil {
			return "", service.Wrap("store the Google account", stored)
		}
		g.cfg.Logger.Warn("lost google account not stored", "user", user, "err", stored)
	}
	if err != nil {
		return "", consentLost()
	}
	return fresh.Access, nil
}

// refresh gets a new token. After errLost there is no point in trying again.
func (g *Google) refresh(ctx context.Context, a account) (account, error) {
	ctx = context.WithValue(ctx, oauth2.HTTPClient, g.direct)
	// With an expired access token the source asks for a new one.
	token, err := g.oauth("").TokenSource(ctx, &oauth2.Token{RefreshToken: a.Refresh}).Token()
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.ErrorCode == "invalid_grant" {
		return account{}, errLost
	}
	if err != nil {
		return account{}, g.refreshFault(ctx, err)
	}
	a.Access, a.Expiry, a.Life = token.AccessToken, token.Expiry, token.Expiry.Sub(g.cfg.Now())
	if token.RefreshToken != "" {
		a.Refresh = token.RefreshToken
	}
	return a, nil
}

// refreshFault says why there is no token, without the response, which may contain one.
func (g *Google) refreshFault(ctx context.Context, err error) error {
	var answer *oauth2.RetrieveError
	switch {
	case ctx.Err() != nil:
		return ctx.Err()
	case !errors.As(err, &answer):
		g.cfg.Logger.Warn("google token not refreshed", "err", service.PlainLine(err.Error()))
		return toolgroups.Errorf(service.CodeUnavailable, "Google's sign-in could not be reached. The account stays connected; try again later.")
	case answer.ErrorCode == "invalid_grant":
		return consentLost()
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

// storeWanted stores scopes that a tool lacked, so that the next link asks for them.
func (g *Google) storeWanted(ctx context.Context, user string, scopes []string) error {
	known, rev, err := g.loadWanted(ctx, user)
	if err != nil {
		return service.Wrap("note the missing permission", err)
	}
	more := missingScopes(scopes, known)
	if len(more) == 0 {
		return nil
	}
	data, err := json.Marshal(append(known, more...))
	if err != nil {
		return fmt.Errorf("note the missing permission: %w", err)
	}
	_, err = g.cfg.KV.Put(ctx, wantedPrefix+user, data, rev)
	if err != nil && !errors.Is(err, storage.ErrConflict) { // a concurrent call stored its own
		return service.Wrap("note the missing permission", err)
	}
	return nil
}

// loadWanted returns the scopes that tools have lacked so far.
func (g *Google) loadWanted(ctx context.Context, user string) ([]string, storage.Revision, error) {
	entry, err := g.cfg.KV.Get(ctx, wantedPrefix+user)
	if errors.Is(err, storage.ErrNotFound) {
		return nil, storage.Absent, nil
	}
	if err != nil {
		return nil, 0, err
	}
	var scopes []string
	if err := json.Unmarshal(entry.Value, &scopes); err != nil {
		return nil, entry.Revision, nil // overwrite what cannot be read
	}
	return scopes, entry.Revision, nil
}
