package oauth

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/clientcredentials"

	"oneclaw/internal/redact"
	"oneclaw/internal/retry"
	"oneclaw/storage"
	"oneclaw/toolgroups"
	"oneclaw/toolgroups/signin"
)

const (
	// maxRefreshTime bounds the wait for another process that refreshes a token.
	maxRefreshTime = requestTime + 10*time.Second
	// maxClockSkew is how far the clocks of replicas may differ.
	maxClockSkew = 5 * time.Minute
	// refreshPoll is the polling interval during that wait.
	refreshPoll = 200 * time.Millisecond
	// maxRenewals bounds how often a call refreshes its token.
	maxRenewals = 3
)

// IsConnected reports whether a user has connected an account at a server.
func (a *Accounts) IsConnected(ctx context.Context, s Server, user string) (bool, error) {
	now, _, err := a.load(ctx, s, user)
	if errors.Is(err, storage.ErrNotFound) || errors.Is(err, redact.ErrUnreadable) {
		return false, nil
	}
	return err == nil && !now.ConsentEnded, err
}

// Token is an access token of a user for a server.
type Token struct {
	value string
	// ConnectedAt is the time of the consent. It changes when the user connects an account again, which
	// may be another one.
	ConnectedAt time.Time
}

// Token returns a token of a user for a server, refreshed if necessary. rejected is a token that
// the server did not accept, if any.
func (a *Accounts) Token(ctx context.Context, s Server, user, rejected string) (Token, error) {
	if user == "" {
		return Token{}, toolgroups.Errorf(CodeNotConnected, "It is not known who asks, so no account at %s can be used.", s.Name)
	}
	unlock, err := a.locks.Acquire(ctx, accountKey(s.Name, user))
	if err != nil {
		return Token{}, err
	}
	defer unlock()
	fresh, renewals := false, 0
	for {
		now, rev, err := a.loadUsable(ctx, s, user)
		switch {
		case err != nil:
			return Token{}, err
		case now.isValid(a.cfg.Now(), rejected, fresh):
			return Token{now.AccessToken, now.ConnectedAt}, nil
		case now.RefreshToken == "":
			return Token{}, endedError(s)
		case renewals == maxRenewals:
			return Token{}, unavailableError(s)
		}
		if now.isRefreshing(a.cfg.Now()) {
			// Another process is refreshing the token. A second refresh would look like a theft.
			if err := retry.Wait(ctx, refreshPoll); err != nil {
				return Token{}, err
			}
			continue
		}
		if err := a.renew(ctx, s, user, now, rev); err != nil {
			return Token{}, err
		}
		fresh = true
		renewals++
	}
}

// CheckConnected returns an error if a user has no token for a server. It does not contact the server.
func (a *Accounts) CheckConnected(ctx context.Context, s Server, user string) error {
	_, _, err := a.loadUsable(ctx, s, user)
	return err
}

// loadUsable loads the connection of a user. A connection that cannot get a token is an error.
func (a *Accounts) loadUsable(ctx context.Context, s Server, user string) (account, storage.Revision, error) {
	now, rev, err := a.load(ctx, s, user)
	switch {
	case errors.Is(err, storage.ErrNotFound), errors.Is(err, redact.ErrUnreadable):
		err = notConnectedError(s)
	case err != nil:
		err = fmt.Errorf("read the connection to %s: %w", s.Name, err)
	case now.ConsentEnded, now.RefreshToken == "" && !now.isValid(a.cfg.Now(), "", false):
		err = endedError(s)
	}
	return now, rev, err
}

// renew claims the refresh of a token and completes it even if no caller waits: if a new token were
// fetched but not stored, the connection would be lost.
func (a *Accounts) renew(ctx context.Context, s Server, user string, now account, rev storage.Revision) error {
	key := accountPrefix + accountKey(s.Name, user)
	claimed := now
	claimed.RefreshingUntil = a.cfg.Now().Add(maxRefreshTime)
	rev, err := a.put(ctx, key, claimed, rev)
	if errors.Is(err, storage.ErrConflict) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("store the connection to %s: %w", s.Name, err)
	}
	ctx = context.WithoutCancel(ctx)
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	fresh, fault := a.refresh(asking, s, now)
	fresh.RefreshingUntil = time.Time{}
	ctx, stop := context.WithTimeout(ctx, requestTime)
	defer stop()
	err = a.storeRefreshed(ctx, key, now, fresh, rev)
	switch {
	case errors.Is(err, errReplaced): // keep the stored state
		if fault == nil {
			a.revokeUnused(ctx, s, user, fresh)
		}
		return nil
	case err != nil && fault == nil:
		return fmt.Errorf("store the connection to %s: %w", s.Name, err)
	case err != nil:
		a.cfg.Logger.Warn("connection to an MCP server not stored", "server", s.Name, "err", err)
	}
	return fault
}

// errReplaced is returned if an account was disconnected or connected again while it was refreshed.
var errReplaced = errors.New("the account was replaced")

// storeRefreshed stores a refreshed account in place of the one before. It tries again while the store
// fails: the old refresh token does not work any more.
func (a *Accounts) storeRefreshed(ctx context.Context, key string, before, fresh account, rev storage.Revision) error {
	_, err := a.put(ctx, key, fresh, rev)
	for err != nil {
		if !errors.Is(err, storage.ErrConflict) && retry.Wait(ctx, refreshPoll) != nil {
			return err
		}
		var present account
		present, rev, err = signin.LoadSealed[account](ctx, a.cfg.KV, a.sealer, key)
		switch {
		case errors.Is(err, storage.ErrNotFound):
			return errReplaced
		case err != nil:
		case present.AccessToken == fresh.AccessToken && present.RefreshingUntil.IsZero():
			return nil // a write that failed was made
		case present.RefreshToken != before.RefreshToken:
			return errReplaced
		default:
			fresh.MissingScopes = present.MissingScopes
			_, err = a.put(ctx, key, fresh, rev)
		}
	}
	return nil
}

// refresh returns the account with a new token. If that fails, it returns the account to be stored
// and an error for the model.
func (a *Accounts) refresh(ctx context.Context, s Server, now account) (account, error) {
	// The library's own refresh cannot name the resource, which the specification requires.
	own := now.currentClient(s)
	cfg := clientcredentials.Config{
		ClientID: own.ID, ClientSecret: own.Secret, TokenURL: now.TokenURL, AuthStyle: own.authStyle(),
		EndpointParams: url.Values{"grant_type": {"refresh_token"}, "refresh_token": {now.RefreshToken}, "resource": {now.Resource}},
	}
	token, err := cfg.Token(withHTTPClient(ctx, s))
	if err == nil {
		fresh := now
		if err = fresh.setToken(token, nil, a.cfg.Now()); err == nil {
			return fresh, nil
		}
	}
	said, status, answered := errorAnswer(err)
	a.cfg.Logger.Warn("token for an MCP server not refreshed", "server", s.Name, "status", status, "code", quote(said), "err", plainUnlessAnswered(err, answered))
	switch {
	case now.isConfigured(s) && (said == "invalid_client" || said == "unauthorized_client"):
		a.cfg.Logger.Error("the client of an MCP server is refused: check its client_id and client_secret in the settings", "server", s.Name)
		return now, toolgroups.Errorf(CodeSignIn, "The sign-in of %s refuses this bot. The account stays connected. "+
			"Tell the user that an administrator has to check the client_secret of the server in the settings.", s.Name)
	case said == "invalid_grant", said == "invalid_client", said == "unauthorized_client":
		if said != "invalid_grant" {
			a.unregister(ctx, s, now.Client.ID)
		}
		now.ConsentEnded, now.AccessToken, now.RefreshToken = true, "", ""
		return now, endedError(s)
	case answered && status == http.StatusTooManyRequests:
		return now, toolgroups.Errorf(CodeSignIn, "The sign-in of %s limits the rate of requests. Try again in a minute.", s.Name)
	}
	return now, unavailableError(s)
}

func unavailableError(s Server) error {
	return toolgroups.Errorf(CodeSignIn, "The sign-in of %s is not available. The account stays connected; try again later.", s.Name)
}

// plainUnlessAnswered describes an error without the response, which could contain a token.
func plainUnlessAnswered(err error, answered bool) string {
	if answered {
		return ""
	}
	return plainError(err)
}

// storeMissingScopes stores scopes that a call lacked, so that the next link asks for them.
func (a *Accounts) storeMissingScopes(ctx context.Context, s Server, user string, scopes []string) {
	now, rev, err := a.load(ctx, s, user)
	if err == nil {
		known := len(now.MissingScopes)
		for _, one := range scopes {
			if !slices.Contains(now.MissingScopes, one) && len(now.MissingScopes) < 50 {
				now.MissingScopes = append(now.MissingScopes, one)
			}
		}
		if known == len(now.MissingScopes) {
			return
		}
		_, err = a.put(ctx, accountPrefix+accountKey(s.Name, user), now, rev)
	}
	if err != nil && !errors.Is(err, storage.ErrConflict) { // after a conflict the next call stores them
		a.cfg.Logger.Warn("cannot store the missing scopes at an MCP server", "server", s.Name, "err", err)
	}
}

// Disconnect answers /disconnect for a server in Markdown. It revokes the consent at the
// authorization server, if that is supported, and deletes the tokens in any case.
func (a *Accounts) Disconnect(ctx context.Context, s Server, user string) (string, error) {
	unlock, err := a.locks.Acquire(ctx, accountKey(s.Name, user))
	if err != nil {
		return "", err
	}
	defer unlock()
	now, _, err := signin.LoadSealed[account](ctx, a.cfg.KV, a.sealer, accountPrefix+accountKey(s.Name, user))
	p, discarded := a.signIns.Discard(ctx, accountKey(s.Name, user))
	if discarded != nil {
		return "", fmt.Errorf("delete the sign-in: %w", discarded)
	}
	defer a.revokeUnconfirmed(ctx, s, user, p) // the account is deleted by then
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Sprintf("You have no account connected at %s.", s.Name), nil
	}
	if err != nil && !errors.Is(err, redact.ErrUnreadable) {
		a.cfg.Logger.Warn("connection to an MCP server not readable", "server", s.Name, "err", err)
	}
	// Any: delete everything, even what another process has just written.
	if err := a.cfg.KV.Delete(ctx, accountPrefix+accountKey(s.Name, user), storage.Any); err != nil {
		return "", fmt.Errorf("delete the connection: %w", err)
	}
	withdrawn := a.revoke(ctx, s, now)
	a.cfg.Logger.Info("account at an MCP server disconnected", "server", s.Name, "user", user, "withdrawn", withdrawn)
	if !withdrawn {
		return fmt.Sprintf("Your account at %s is disconnected and I have forgotten its tokens, but its sign-in could not be told. "+
			"Please take the permission away there as well.", s.Name), nil
	}
	return fmt.Sprintf("Your account at %s is disconnected, and the permission is withdrawn.", s.Name), nil
}

// Forget deletes everything stored for a server, and revokes the consents if that is supported.
// It returns the number of connected users.
func (a *Accounts) Forget(ctx context.Context, s Server) (int, error) {
	people := 0
	for entry, err := range a.cfg.KV.List(ctx, storage.Range{Prefix: accountPrefix + s.Name + "/"}) {
		if err != nil {
			return people, fmt.Errorf("list the connections: %w", err)
		}
		if _, err := a.Disconnect(ctx, s, strings.TrimPrefix(entry.Key, accountPrefix+s.Name+"/")); err != nil {
			return people, err
		}
		people++
	}
	for entry, err := range a.cfg.KV.List(ctx, storage.Range{Prefix: pendingPrefix + s.Name + "/"}) {
		user := strings.TrimPrefix(entry.Key, pendingPrefix+s.Name+"/")
		var p signin.Pending
		if err == nil {
			p, err = a.signIns.Discard(ctx, accountKey(s.Name, user))
		}
		if err != nil {
			return people, fmt.Errorf("delete the sign-ins: %w", err)
		}
		a.revokeUnconfirmed(ctx, s, user, p)
	}
	if err := a.cfg.KV.Delete(ctx, clientPrefix+s.Name, storage.Any); err != nil {
		return people, fmt.Errorf("delete the client: %w", err)
	}
	return people, nil
}

// revoke revokes a consent (RFC 7009). An earlier revocation counts as success.
func (a *Accounts) revoke(ctx context.Context, s Server, now account) bool {
	if now.ConsentEnded {
		return true
	}
	if now.RevokeURL == "" || now.AccessToken == "" {
		return false
	}
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	done := true
	for _, token := range []struct{ value, kind string }{{now.RefreshToken, "refresh_token"}, {now.AccessToken, "access_token"}} {
		if token.value != "" {
			done = a.revokeToken(ctx, s, now, token.value, token.kind) && done
		}
	}
	return done
}

func (a *Accounts) revokeToken(ctx context.Context, s Server, now account, token, kind string) bool {
	form := url.Values{"token": {token}, "token_type_hint": {kind}}
	own := now.currentClient(s)
	basic := own.authStyle() == oauth2.AuthStyleInHeader
	if !basic {
		form.Set("client_id", own.ID)
		if own.Secret != "" {
			form.Set("client_secret", own.Secret)
		}
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, now.RevokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	if basic {
		req.SetBasicAuth(url.QueryEscape(own.ID), url.QueryEscape(own.Secret))
	}
	resp, err := s.HTTP.Do(req)
	if err != nil {
		a.cfg.Logger.Warn("consent at an MCP server not withdrawn", "server", s.Name, "err", plainError(err))
		return false
	}
	_ = resp.Body.Close()
	return resp.StatusCode == http.StatusOK
}
