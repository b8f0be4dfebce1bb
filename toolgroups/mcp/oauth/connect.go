package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"oneclaw/internal/redact"
	"oneclaw/storage"
	"oneclaw/toolgroups/signin"
)

// Request is a /connect command.
type Request struct {
	// User, Chat and Direct are as in toolgroups.Scope.
	User   string
	Chat   string
	Direct bool
	// UserName is the user's name on the platform.
	UserName string
	// Args is the text after the name of the server: nothing, "again", or the code or address at
	// the end of a sign-in.
	Args string
	// OnConfirm, if not nil, is called before the tokens of a confirmed sign-in are stored.
	OnConfirm func(ctx context.Context) error
}

// grant holds the tokens of a sign-in until the user confirms.
type grant struct {
	account
	Direct bool `json:"direct"`
}

// Connect answers /connect for a server in Markdown, with a link or the result of a code. done
// reports whether the account is now connected. A user's mistake is an answer, not an error.
func (a *Accounts) Connect(ctx context.Context, s Server, req Request) (text string, done bool, err error) {
	text, done, err = a.connect(ctx, s, req)
	if err != nil {
		text, err = answerToMistake(s, err)
	}
	return text, done, err
}

func (a *Accounts) connect(ctx context.Context, s Server, req Request) (string, bool, error) {
	if a.cfg.PublicURL == "" && !req.Direct {
		return "", false, signin.UserError("this bot has no pages of its own, so accounts are connected in a direct chat with me; send {command} there")
	}
	answer, pasted := signin.ParsePastedAnswer(req.Args)
	switch {
	case signin.IsProof(req.Args):
		err := a.confirm(ctx, s, req)
		return connectedAnswer(s), err == nil, err
	case pasted:
		err := a.completePasted(ctx, s, req, answer)
		return connectedAnswer(s), err == nil, err
	case req.Args != "" && !strings.EqualFold(req.Args, "again"):
		return fmt.Sprintf("I expect `/connect %s`, `/connect %s again`, or the code that the page shows at the end.", s.Name, s.Name), false, nil
	}
	old, _, err := a.load(ctx, s, req.User)
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, redact.ErrUnreadable) {
		return "", false, fmt.Errorf("read the connection: %w", err)
	}
	if err == nil && req.Args == "" && a.isWorking(old) {
		return fmt.Sprintf("Your account at %s is connected. If %s does not take it any more, `/connect %s again` makes a new link; "+
			"`/disconnect %s` ends it.", s.Name, s.Name, s.Name, s.Name), false, nil
	}
	text, err := a.beginSignIn(ctx, s, req, old)
	return text, false, err
}

// connectedAnswer returns the answer after connecting an account.
func connectedAnswer(s Server) string {
	return fmt.Sprintf("Your account at %s is connected. Only you use it; `/disconnect %s` ends that.", s.Name, s.Name)
}

// isWorking reports whether an account has no problem that a new link would fix.
func (a *Accounts) isWorking(old account) bool {
	return !old.ConsentEnded && len(old.MissingScopes) == 0 && (old.RefreshToken != "" || old.isValid(a.cfg.Now(), "", false))
}

// beginSignIn begins a sign-in and returns the answer with its link.
func (a *Accounts) beginSignIn(ctx context.Context, s Server, req Request, old account) (string, error) {
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	unlock, err := a.locks.Acquire(asking, discoveryLock)
	if err != nil {
		return "", mistakef("others sign in at the moment; try again in a minute")
	}
	f, err := discover(asking, s)
	unlock()
	if err != nil {
		return "", err
	}
	if other := s.owner(f.meta.Issuer, f.meta.AuthorizationEndpoint, f.meta.TokenEndpoint, f.meta.RegistrationEndpoint); other != "" {
		return "", mistakef("%s would have you sign in where the sign-in of %s is, and would get what you permit there; nothing was connected. "+
			"An administrator who knows that it is right sets its issuer in the settings", s.Name, quote(other))
	}
	c, err := a.clientFor(asking, s, f.meta)
	if err != nil {
		return "", err
	}
	g := authServer{
		URL: s.URL, Resource: f.resource, Issuer: f.meta.Issuer, AuthURL: f.meta.AuthorizationEndpoint, TokenURL: f.meta.TokenEndpoint,
		RevokeURL: secureAddress(f.meta.RevocationEndpoint, f.meta.TokenEndpoint), SendsIssuer: f.meta.AuthorizationResponseIssParameterSupported, Client: c,
	}
	own, err := json.Marshal(grant{account: account{authServer: g}, Direct: req.Direct})
	if err != nil {
		return "", err
	}
	p, replaced, err := a.signIns.Begin(ctx, accountKey(s.Name, req.User), signin.Pending{
		Chat: req.Chat, Name: req.UserName, RedirectURL: a.redirectURI(s), Scopes: requestScopes(f, old), Extra: own,
	})
	if err != nil {
		return "", err
	}
	a.revokeUnconfirmed(ctx, s, req.User, replaced)
	return a.invitation(s, req, p, g, old), nil
}

// requestScopes returns the scopes to request: those that the server names, those that calls lacked
// together with those granted before, and the one for refresh tokens.
func requestScopes(f serverMetadata, old account) []string {
	all := slices.Concat(f.scopes, old.MissingScopes)
	if len(old.MissingScopes) > 0 {
		all = append(all, old.Scopes...)
	}
	if slices.Contains(f.meta.ScopesSupported, "offline_access") {
		all = append(all, "offline_access")
	}
	var out []string
	for _, one := range all {
		if !slices.Contains(out, one) {
			out = append(out, one)
		}
	}
	return out
}

// secureAddress returns an address if it uses https or the scheme of another address, otherwise "".
func secureAddress(address, like string) string {
	u, err := url.Parse(address)
	other, otherErr := url.Parse(like)
	if err != nil || otherErr != nil || u.Host == "" || u.Scheme != "https" && u.Scheme != other.Scheme {
		return ""
	}
	return address
}

// invitation returns the answer with the link.
func (a *Accounts) invitation(s Server, req Request, p signin.Pending, g authServer, old account) string {
	link := a.consentURL(p, g)
	if a.cfg.PublicURL != "" {
		link = a.cfg.PublicURL + startPath + "?state=" + p.State
	}
	text := fmt.Sprintf("[Connect %s](%s)\n\nThe link is for %s alone and works for ten minutes. It leads to %s.\n\n"+
		"At the end the page shows a code. Send it to me here.",
		s.Name, link, quote(cmp.Or(req.UserName, req.User)), quote(g.host()))
	if said := g.beneficiary(s, quote); said != "" {
		text += "\n\n" + said
	}
	if !req.Direct {
		text += fmt.Sprintf(" If I do not see it, send `/connect %s CODE`.", s.Name) + " I accept it only from you, so another person who opens the link connects nothing."
	}
	if old.Issuer != "" && old.Issuer != g.Issuer {
		text += fmt.Sprintf("\n\nThe sign-in of %s was at %s before and is at %s now. Go on only if you know why.",
			s.Name, quote(old.Issuer), quote(g.Issuer))
	}
	if a.cfg.PublicURL == "" {
		text += fmt.Sprintf("\n\nThe browser ends on a page that may not open. Copy its whole address and send that to me instead: "+
			"`/connect %s ADDRESS`. Do not give it to anyone else.", s.Name)
	}
	return text
}

// consentURL returns the address of the consent page.
func (a *Accounts) consentURL(p signin.Pending, g authServer) string {
	address := g.config(p.RedirectURL, p.Scopes...).AuthCodeURL(p.State,
		oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("resource", g.Resource))
	return strings.NewReplacer("(", "%28", ")", "%29").Replace(address) // a parenthesis ends a link in Markdown
}

// AwaitsCode reports whether a sign-in of a user at a server waits in a chat for the code that its page shows, and
// whether code is that code.
func (a *Accounts) AwaitsCode(ctx context.Context, server, user, chat, code string) (waits, matches bool, err error) {
	return a.signIns.Awaits(ctx, accountKey(server, user), chat, code)
}

// decodeGrant decodes the grant stored with a sign-in.
func decodeGrant(p signin.Pending) (g grant, err error) {
	err = json.Unmarshal(p.Extra, &g)
	return g, err
}

// checkAnswer validates the answer from a consent page. The code is empty if consent was refused.
func (a *Accounts) checkAnswer(s Server, p signin.Pending, answer url.Values) (code string, err error) {
	g, err := decodeGrant(p)
	if err != nil {
		return "", err
	}
	said := answer.Get("iss")
	switch {
	case g.URL != s.URL:
		return "", signin.ErrInvalidLink
	case said == "" && g.SendsIssuer, said != "" && said != g.Issuer:
		a.cfg.Logger.Warn("refused an answer from another authorization server", "server", s.Name, "want", g.Issuer, "got", quote(said))
		return "", mistakef("the answer came from another sign-in (%s) than the one that the link led to; nothing was connected", quote(said))
	case answer.Get("error") != "" && answer.Get("error") != "access_denied":
		return "", mistakef("the sign-in of %s answered %s; nothing was connected", s.Name, quote(answer.Get("error")))
	case answer.Get("error") != "":
		return "", nil
	}
	return answer.Get("code"), nil
}

// redeem exchanges a code for the tokens.
func (a *Accounts) redeem(ctx context.Context, s Server, p signin.Pending, code string) (account, error) {
	g, err := decodeGrant(p)
	if err != nil {
		return account{}, err
	}
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	token, err := g.config(p.RedirectURL).Exchange(withHTTPClient(asking, s), code, oauth2.VerifierOption(p.Verifier),
		oauth2.SetAuthURLParam("resource", g.Resource))
	if err != nil {
		said, status, answered := errorAnswer(err)
		a.cfg.Logger.Warn("authorisation code not accepted", "server", s.Name, "status", status, "code", quote(said))
		if said == "invalid_client" {
			a.unregister(ctx, s, g.Client.ID)
		}
		if !answered {
			return account{}, mistakef("the sign-in of %s could not be reached; send {command} for a new link", s.Name)
		}
		return account{}, mistakef("the sign-in of %s did not take the code (%s); nothing was connected, send {command} for a new link", s.Name, quote(said))
	}
	got := g.account
	if err := got.setToken(token, p.Scopes, a.cfg.Now()); err != nil {
		return account{}, mistakef("the sign-in of %s gave tokens that cannot be used (%s); nothing was connected", s.Name, quote(err.Error()))
	}
	got.ConnectedAt = a.cfg.Now()
	return got, nil
}

// maxLifetime bounds the lifetime of a token, in seconds.
const maxLifetime = 10 * 365 * 24 * 3600

// tokenLifetime returns the lifetime of a token in seconds, 0 if the server does not say. The
// library computes the expiry with its own clock, and leaves the number out of some tokens.
func tokenLifetime(token *oauth2.Token) int64 {
	switch said := token.Extra("expires_in").(type) {
	case float64:
		return int64(min(said, maxLifetime))
	case string:
		life, _ := strconv.ParseInt(said, 10, 64)
		return life
	}
	return 0
}

// setToken puts a new token into an account.
func (a *account) setToken(token *oauth2.Token, asked []string, now time.Time) error {
	if !strings.EqualFold(token.Type(), "Bearer") {
		return errors.New("they are not bearer tokens")
	}
	if strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token is no header")
	}
	a.AccessToken, a.Expiry, a.Lifetime = token.AccessToken, time.Time{}, 0
	if life := tokenLifetime(token); life > 0 {
		a.Lifetime = time.Duration(min(life, maxLifetime)) * time.Second
		a.Expiry = now.Add(a.Lifetime)
	}
	a.RefreshToken = cmp.Or(token.RefreshToken, a.RefreshToken)
	if said, ok := token.Extra("scope").(string); ok && said != "" {
		a.Scopes = strings.Fields(said)
	} else if len(asked) > 0 {
		a.Scopes = asked
	}
	return nil
}

// confirm completes a sign-in with the code from its page. The tokens are stored before the sign-in
// ends, so that a crash loses neither.
func (a *Accounts) confirm(ctx context.Context, s Server, req Request) error {
	p, err := a.signIns.Confirm(ctx, accountKey(s.Name, req.User), req.Chat, req.Args, func(p signin.Pending) error {
		var got account
		if err := json.Unmarshal([]byte(p.Code), &got); err != nil {
			return err
		}
		return a.storeConnection(ctx, s, req, got)
	})
	if errors.Is(err, signin.ErrTooManyWrongCodes) {
		a.revokeUnconfirmed(ctx, s, req.User, p)
	}
	return err
}

// revokeUnconfirmed revokes the tokens of a sign-in that the user has not confirmed. If an account of the
// user is connected there, they are only forgotten: some services revoke a consent with all its tokens.
func (a *Accounts) revokeUnconfirmed(ctx context.Context, s Server, user string, p signin.Pending) {
	var got account
	if p.Code != "" && json.Unmarshal([]byte(p.Code), &got) == nil {
		a.revokeUnused(ctx, s, user, got)
	}
}

// revokeUnused revokes the tokens of an account that is not used, unless another account of the user is
// connected at the same service, or may be.
func (a *Accounts) revokeUnused(ctx context.Context, s Server, user string, unused account) {
	connected, _, err := a.load(ctx, s, user)
	switch {
	case err == nil && connected.Issuer == unused.Issuer && !connected.ConsentEnded:
	case err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, redact.ErrUnreadable):
	default:
		a.revoke(ctx, s, unused)
	}
}

// PruneSignIns deletes the sign-ins that were not confirmed in time, and revokes their tokens. client
// reaches the authorization servers of servers that have been removed.
func (a *Accounts) PruneSignIns(ctx context.Context, client *http.Client) error {
	var all error
	for c, err := range listConnections(ctx, a.cfg.KV, pendingPrefix) {
		if err != nil {
			return errors.Join(all, fmt.Errorf("list the sign-ins: %w", err))
		}
		p, err := a.signIns.DiscardExpired(ctx, accountKey(c.Server, c.User))
		if err != nil {
			if !errors.Is(err, signin.ErrInvalidLink) && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, redact.ErrUnreadable) {
				all = errors.Join(all, err)
			}
			continue
		}
		s, ok := a.cfg.Server(c.Server)
		if !ok {
			s = Server{Name: c.Server, HTTP: client}
		}
		a.revokeUnconfirmed(ctx, s, c.User, p)
	}
	return all
}

// completePasted completes a sign-in with the address at which the browser ended. If the bot has its
// own pages, the user has to go through them instead: they name the user whom the account is for.
func (a *Accounts) completePasted(ctx context.Context, s Server, req Request, answer url.Values) error {
	if a.cfg.PublicURL != "" {
		return signin.ErrAddressInsteadOfCode
	}
	if u, err := url.Parse(signin.TrimQuotes(req.Args)); err != nil || u.Path != callbackPath+s.Name {
		return mistakef("send me the whole address that the browser ended on; it begins with %s", quote(a.redirectURI(s)))
	}
	p, _, err := a.signIns.Find(ctx, accountKey(s.Name, req.User), cmp.Or(answer.Get("state"), "-"))
	if err != nil {
		return err
	}
	if p.Chat != req.Chat {
		return signin.ErrInvalidLink
	}
	code, err := a.checkAnswer(s, p, answer)
	if err != nil {
		return err
	}
	if p, err = a.signIns.Take(ctx, accountKey(s.Name, req.User), p.State); err != nil {
		return err
	}
	if code == "" {
		return signin.ErrDenied
	}
	got, err := a.redeem(ctx, s, p, code)
	if err != nil {
		return err
	}
	return a.storeConnection(ctx, s, req, got)
}

// storeConnection stores tokens as the connection of a user.
func (a *Accounts) storeConnection(ctx context.Context, s Server, req Request, got account) error {
	user := req.User
	if req.OnConfirm != nil {
		if err := req.OnConfirm(ctx); err != nil {
			return err
		}
	}
	if got.URL != s.URL {
		a.revoke(ctx, s, got)
		return signin.ErrInvalidLink
	}
	unlock, err := a.locks.Acquire(ctx, accountKey(s.Name, user))
	if err != nil {
		return err
	}
	defer unlock()
	if now, _, err := a.load(ctx, s, user); err == nil && now.ConnectedAt.Equal(got.ConnectedAt) && now.Issuer == got.Issuer && !now.ConsentEnded {
		return nil // stored before, possibly with newer tokens now
	}
	// Any: the latest consent replaces the stored connection.
	if _, err := a.put(ctx, accountPrefix+accountKey(s.Name, user), got, storage.Any); err != nil {
		return fmt.Errorf("store the connection: %w", err)
	}
	a.cfg.Logger.Info("account at an MCP server connected", "server", s.Name, "user", user, "issuer", got.Issuer)
	return nil
}
