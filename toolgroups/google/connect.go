package google

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oneclaw/storage"
	"oneclaw/toolgroups/google/service"
	"oneclaw/toolgroups/signin"
)

// command is the command that requests a new link.
const command = "/connect google"

const (
	errNoRefreshToken = signin.UserError("Google gave no lasting permission; remove the app at https://myaccount.google.com/permissions and try again")
	errNoOAuth        = signin.UserError("Google isn't set up here. An administrator can do that: /connect google tells them how")
	errNotDirect      = signin.UserError("accounts are connected in a direct chat with me; send {command} there")
)

// ConnectRequest is a /connect google command.
type ConnectRequest struct {
	// User, Chat and Direct are as in toolgroups.Scope.
	User   string
	Chat   string
	Direct bool
	// Admin is true if the user is an administrator, who gets instructions to set Google up.
	Admin bool
	// UserName is the user's name on the platform, which the sign-in pages show.
	UserName string
	// Args is the text after "google": nothing, names of services, or the code or address at the
	// end of a sign-in.
	Args string
	// OnConfirm, if not nil, is called before the account of a confirmed sign-in is stored.
	OnConfirm func(ctx context.Context) error
}

// Connect answers /connect google in Markdown, with a link or the result of a code. A user's mistake
// is an answer, not an error.
func (g *Google) Connect(ctx context.Context, req ConnectRequest) (string, error) {
	if !req.Direct {
		return mistakeText(errNotDirect), nil
	}
	if g.cfg.ClientID == "" && req.Admin {
		return g.setupInstructions(), nil
	} else if g.cfg.ClientID == "" {
		return mistakeText(errNoOAuth), nil
	}
	if code, state, ok := parsePasted(req.Args); ok {
		return g.completePasted(ctx, req, code, state)
	}
	if signin.IsProof(req.Args) {
		return g.confirm(ctx, req)
	}
	named, unknown := scopesOf(req.Args)
	if len(unknown) > 0 {
		return fmt.Sprintf("I know no Google service %q. There are: %s.", strings.Join(unknown, " "), strings.Join(serviceNames(), ", ")), nil
	}
	scopes, current, err := g.scopesToRequest(ctx, req.User, named)
	if err != nil {
		return "", err
	}
	if current != nil && len(missingScopes(scopes, current.Scopes)) == 0 {
		return fmt.Sprintf("Your Google account%s is connected, with everything that was needed so far. "+
			"`/connect google calendar` adds a service, `/disconnect google` ends it.", emailSuffix(current.Email)), nil
	}
	p, _, err := g.signIns.Begin(ctx, req.User, signin.Pending{
		Chat: req.Chat, Name: req.UserName, RedirectURL: cmp.Or(g.cfg.PublicURL, g.cfg.LocalURL, "http://127.0.0.1:8787") + callbackPath, Scopes: scopes,
	})
	if err != nil {
		return "", err
	}
	link := g.consentURL(p)
	if g.cfg.PublicURL != "" {
		link = g.cfg.PublicURL + startPath + "?state=" + p.State
	}
	text := fmt.Sprintf("[Connect your Google account](%s)\n\nThe link is for you alone and works for ten minutes. It asks whether I may %s.\n\n"+
		"At the end the page shows a code. Send it to me here.", link, service.ScopeWords(scopes))
	if g.cfg.PublicURL == "" {
		text += "\n\nIf the browser ends on a page that cannot be opened, copy its whole address and send that to me instead: " +
			"`/connect google ADDRESS`. Do not give it to anyone else."
	}
	return text, nil
}

// IsConfigured reports whether users can connect accounts.
func (g *Google) IsConfigured() bool { return g.cfg.ClientID != "" }

// setupInstructions returns the administrator's instructions to set Google up.
func (g *Google) setupInstructions() string {
	kind := "type *Desktop app*"
	if g.cfg.PublicURL != "" {
		kind = "type *Web application* with the redirect `" + g.cfg.PublicURL + callbackPath + "`"
	}
	return "Google isn't set up yet. Three steps:\n\n" +
		"1. In the [Google Cloud console](https://console.cloud.google.com/) make a project, enable the APIs to use, and configure the consent screen.\n" +
		"2. Under *Credentials* make an OAuth client of the " + kind + ".\n" +
		"3. Start me with `GOOGLE_CLIENT_ID` and `GOOGLE_CLIENT_SECRET`.\n\n" +
		"docs/google.md says more."
}

// mistakeText returns the answer to a mistake.
func mistakeText(m signin.UserError) string { return m.Sentence(command) }

func emailSuffix(email string) string {
	if email == "" {
		return ""
	}
	return " " + email
}

// serviceNames returns the names of the groups without their common prefix.
func serviceNames() []string {
	var names []string
	for _, group := range groups() {
		names = append(names, strings.TrimPrefix(group.Name, "google_"))
	}
	return names
}

// scopesOf returns the scopes of the named services that users can grant, and the unknown names.
func scopesOf(args string) (scopes, unknown []string) {
	for _, name := range strings.FieldsFunc(strings.ToLower(args), func(r rune) bool { return r == ' ' || r == ',' }) {
		i := slices.Index(serviceNames(), strings.TrimPrefix(name, "google_"))
		if i < 0 {
			unknown = append(unknown, name)
			continue
		}
		scopes = append(scopes, grantable(groups()[i].AllScopes())...)
	}
	return scopes, unknown
}

// scopesToRequest returns the scopes for a link: those granted before, so that they are not lost,
// those that tools lacked, and the named ones. It also returns the connected account, or nil.
func (g *Google) scopesToRequest(ctx context.Context, user string, named []string) ([]string, *account, error) {
	wanted, _, err := g.loadMissingScopes(ctx, user)
	if err != nil {
		return nil, nil, fmt.Errorf("read the missing scopes: %w", err)
	}
	scopes := []string{scopeEmail}
	a, _, err := g.load(ctx, user)
	switch {
	case err == nil:
		scopes = append(scopes, missingScopes(a.Scopes, scopes)...)
	case !errors.Is(err, storage.ErrNotFound):
		// A record that cannot be decrypted is replaced.
		g.cfg.Logger.Warn("stored google account not readable", "err", err)
	}
	scopes = append(scopes, missingScopes(append(named, wanted...), scopes)...)
	if err != nil || a.ConsentEnded {
		return scopes, nil, nil
	}
	return scopes, &a, nil
}

// answerToMistake returns the answer to a user's mistake; other errors stay errors.
func answerToMistake(err error) (string, error) {
	if known, ok := errors.AsType[signin.UserError](err); ok {
		return mistakeText(known), nil
	}
	if service.IsToolError(err) {
		return err.Error(), nil
	}
	return "", err
}

// connectAccount exchanges a code for an account and stores it.
func (g *Google) connectAccount(ctx context.Context, user string, p signin.Pending, code string) (account, error) {
	unlock, err := g.locks.Acquire(ctx, user)
	if err != nil {
		return account{}, err
	}
	defer unlock()
	withClient := context.WithValue(ctx, oauth2.HTTPClient, g.oauthClient)
	token, err := g.oauthConfig(p.RedirectURL).Exchange(withClient, code, oauth2.VerifierOption(p.Verifier))
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) && answer.ErrorCode == "invalid_grant" {
		return account{}, signin.ErrInvalidLink
	}
	if err != nil {
		return account{}, g.refreshError(ctx, err)
	}
	if token.RefreshToken == "" {
		return account{}, errNoRefreshToken
	}
	a := account{
		Scopes: p.Scopes, AccessToken: token.AccessToken, Expiry: token.Expiry, Lifetime: token.Expiry.Sub(g.cfg.Now()),
		RefreshToken: token.RefreshToken, ConnectedAt: g.cfg.Now(),
	}
	if granted, ok := token.Extra("scope").(string); ok && granted != "" {
		a.Scopes = strings.Fields(granted)
	}
	// Any: the latest consent replaces the stored account.
	rev, err := g.store(ctx, user, a, storage.Any)
	if err != nil {
		return account{}, fmt.Errorf("store the Google account: %w", err)
	}
	// The account is connected now; the address is only for display. If the account was refreshed or
	// disconnected meanwhile, keep the stored state.
	if a.Email = g.lookupEmail(ctx, a.AccessToken); a.Email != "" {
		if _, err := g.store(ctx, user, a, rev); err != nil {
			g.cfg.Logger.Warn("address of google account not stored", "user", user, "err", err)
		}
	}
	// Any: scopes that a tool stores at this moment are stored again by its next call.
	if err := g.cfg.KV.Delete(ctx, missingPrefix+user, storage.Any); err != nil {
		g.cfg.Logger.Warn("cannot delete the missing scopes of google tools", "user", user, "err", err)
	}
	g.cfg.Logger.Info("google account connected", "user", user, "scopes", service.ScopeNames(a.Scopes))
	return a, nil
}

// lookupEmail looks up the address of the account; it returns "" on any error.
func (g *Google) lookupEmail(ctx context.Context, access string) string {
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, userinfoURL, nil)
	if err != nil {
		return ""
	}
	resp, err := g.oauthClient.Do(withBearer(req, access)) //nolint:bodyclose // discard does
	if err != nil {
		g.cfg.Logger.Warn("address of google account not found", "err", service.PlainLine(err.Error()))
		return ""
	}
	defer discard(resp.Body)
	var info struct {
		Email string `json:"email"`
	}
	if resp.StatusCode != http.StatusOK || json.NewDecoder(http.MaxBytesReader(nil, resp.Body, maxErrorBody)).Decode(&info) != nil {
		g.cfg.Logger.Warn("address of google account not found", "status", resp.StatusCode)
	}
	return info.Email
}

// Disconnect answers /disconnect google in Markdown. It revokes the consent at Google, and
// deletes the stored data in any case.
func (g *Google) Disconnect(ctx context.Context, user string) (string, error) {
	unlock, err := g.locks.Acquire(ctx, user)
	if err != nil {
		return "", err
	}
	defer unlock()
	a, _, err := g.load(ctx, user)
	none := errors.Is(err, storage.ErrNotFound)
	withdrawn := err == nil && g.revoke(ctx, a)
	// Any: delete everything, including what another process has just written and a sign-in in
	// progress.
	for _, key := range []string{accountPrefix + user, missingPrefix + user, pendingPrefix + user} {
		if err := g.cfg.KV.Delete(ctx, key, storage.Any); err != nil {
			return "", fmt.Errorf("delete the Google account: %w", err)
		}
	}
	if none {
		return "No Google account of yours is connected.", nil
	}
	g.cfg.Logger.Info("google account disconnected", "user", user, "withdrawn", withdrawn)
	if !withdrawn {
		return "Your Google account is disconnected and I have forgotten its tokens, but Google could not be told. " +
			"Please remove the app at https://myaccount.google.com/permissions as well.", nil
	}
	return fmt.Sprintf("Your Google account%s is disconnected, and the permission is withdrawn.", emailSuffix(a.Email)), nil
}

// revoke revokes the consent. An earlier revocation counts as success.
func (g *Google) revoke(ctx context.Context, a account) bool {
	form := url.Values{"token": {a.RefreshToken}}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, revokeURL, strings.NewReader(form.Encode()))
	if err != nil {
		return false
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := g.oauthClient.Do(req) //nolint:bodyclose // discard does
	if err != nil {
		g.cfg.Logger.Warn("google consent not withdrawn", "err", service.PlainLine(err.Error()))
		return false
	}
	defer discard(resp.Body)
	return resp.StatusCode == http.StatusOK || resp.StatusCode == http.StatusBadRequest
}
