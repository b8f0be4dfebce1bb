package oauth

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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
	// Confirmed, if not nil, is called before the tokens of a confirmed sign-in are stored.
	Confirmed func(ctx context.Context) error
}

// grant holds the tokens of a sign-in until the user confirms.
type grant struct {
	account
	Direct bool `json:"direct"`
}

// Connect answers /connect for a server in Markdown: with a link, or with the result for a code;
// done says that the account is connected. A user's mistake is an answer, not an error.
func (a *Accounts) Connect(ctx context.Context, s Server, req Request) (text string, done bool, err error) {
	text, done, err = a.connect(ctx, s, req)
	if err != nil {
		text, err = answerToMistake(s, err)
	}
	return text, done, err
}

func (a *Accounts) connect(ctx context.Context, s Server, req Request) (string, bool, error) {
	if a.cfg.PublicURL == "" && !req.Direct {
		return "", false, signin.Mistake("this bot has no pages of its own, so accounts are connected in a direct chat with me; send {command} there")
	}
	answer, pasted := signin.ParsePastedAnswer(req.Args)
	switch {
	case signin.IsProof(req.Args):
		err := a.confirm(ctx, s, req)
		return connected(s), err == nil, err
	case pasted:
		err := a.paste(ctx, s, req, answer)
		return connected(s), err == nil, err
	case req.Args != "" && !strings.EqualFold(req.Args, "again"):
		return fmt.Sprintf("I expect `/connect %s`, `/connect %s again`, or the code that the page shows at the end.", s.Name, s.Name), false, nil
	}
	old, _, err := a.load(ctx, s, req.User)
	if err != nil && !errors.Is(err, storage.ErrNotFound) && !errors.Is(err, redact.ErrUnreadable) {
		return "", false, fmt.Errorf("read the connection: %w", err)
	}
	if err == nil && req.Args == "" && a.works(old) {
		return fmt.Sprintf("Your account at %s is connected. If %s does not take it any more, `/connect %s again` makes a new link; "+
			"`/disconnect %s` ends it.", s.Name, s.Name, s.Name, s.Name), false, nil
	}
	text, err := a.link(ctx, s, req, old)
	return text, false, err
}

// connected is the answer after connecting an account.
func connected(s Server) string {
	return fmt.Sprintf("Your account at %s is connected. Only you use it; `/disconnect %s` ends that.", s.Name, s.Name)
}

// works reports whether nothing is wrong that a new link would fix.
func (a *Accounts) works(old account) bool {
	return !old.Lost && len(old.Wanted) == 0 && (old.Refresh != "" || old.valid(a.cfg.Now(), "", false))
}

// link begins a sign-in.
func (a *Accounts) link(ctx context.Context, s Server, req Request, old account) (string, error) {
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	unlock, err := a.locks.Acquire(asking, discovery)
	if err != nil {
		return "", mistakef("others sign in at the moment; try again in a minute")
	}
	f, err := discover(asking, s)
	unlock()
	if err != nil {
		return "", err
	}
	c, err := a.clientOf(asking, s, f.meta)
	if err != nil {
		return "", err
	}
	g := authServer{
		URL: s.URL, Resource: f.resource, Issuer: f.meta.Issuer, AuthURL: f.meta.AuthorizationEndpoint, TokenURL: f.meta.TokenEndpoint,
		RevokeURL: secure(f.meta.RevocationEndpoint, f.meta.TokenEndpoint), Named: f.meta.AuthorizationResponseIssParameterSupported, Client: c,
	}
	own, err := json.Marshal(grant{account: account{authServer: g}, Direct: req.Direct})
	if err != nil {
		return "", err
	}
	p, err := a.signIns.Begin(ctx, accountKey(s.Name, req.User), signin.Pending{
		Chat: req.Chat, Name: req.UserName, Redirect: a.redirect(s), Scopes: scopes(f, old), Extra: own,
	})
	if err != nil {
		return "", err
	}
	return a.invitation(s, req, p, g, old), nil
}

// scopes returns the scopes to ask for: those that the server names, those that were granted or
// that calls lacked, and the one for refresh tokens.
func scopes(f found, old account) []string {
	all := slices.Concat(f.scopes, old.Wanted)
	if len(old.Wanted) > 0 {
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

// secure returns an address if it is as well protected as another one, otherwise "".
func secure(address, like string) string {
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
		link = a.cfg.PublicURL + StartPath + "?state=" + p.State
	}
	text := fmt.Sprintf("[Connect %s](%s)\n\nThe link is for %s alone and works for ten minutes. It leads to %s.\n\n"+
		"At the end the page shows a code. Send it to me here: `/connect %s CODE`.",
		s.Name, link, quoted(cmp.Or(req.UserName, req.User)), quoted(g.host()), s.Name)
	if !req.Direct {
		text += " I accept it only from you, so another person who opens the link connects nothing."
	}
	if old.Issuer != "" && old.Issuer != g.Issuer {
		text += fmt.Sprintf("\n\nThe sign-in of %s was at %s before and is at %s now. Go on only if you know why.",
			s.Name, quoted(old.Issuer), quoted(g.Issuer))
	}
	if a.cfg.PublicURL == "" {
		text += fmt.Sprintf("\n\nThe browser ends on a page that may not open. Copy its whole address and send that to me instead: "+
			"`/connect %s ADDRESS`. Do not give it to anyone else.", s.Name)
	}
	return text
}

// consentURL returns the address of the consent page.
func (a *Accounts) consentURL(p signin.Pending, g authServer) string {
	return g.config(p.Redirect, p.Scopes...).AuthCodeURL(p.State,
		oauth2.S256ChallengeOption(p.Verifier), oauth2.SetAuthURLParam("resource", g.Resource))
}

// granted decodes the grant of a sign-in.
func granted(p signin.Pending) (g grant, err error) {
	err = json.Unmarshal(p.Extra, &g)
	return g, err
}

// check validates the answer of a consent page. The code is empty if consent was refused.
func (a *Accounts) check(s Server, p signin.Pending, answer url.Values) (code string, err error) {
	g, err := granted(p)
	if err != nil {
		return "", err
	}
	said := answer.Get("iss")
	switch {
	case g.URL != s.URL:
		return "", signin.ErrLink
	case said == "" && g.Named, said != "" && said != g.Issuer:
		a.cfg.Logger.Warn("answer of another authorisation server refused", "server", s.Name, "want", g.Issuer, "got", quoted(said))
		return "", mistakef("the answer came from another sign-in (%s) than the one that the link led to; nothing was connected", quoted(said))
	case answer.Get("error") != "" && answer.Get("error") != "access_denied":
		return "", mistakef("the sign-in of %s answered %s; nothing was connected", s.Name, quoted(answer.Get("error")))
	case answer.Get("error") != "":
		return "", nil
	}
	return answer.Get("code"), nil
}

// redeem exchanges a code for the tokens.
func (a *Accounts) redeem(ctx context.Context, s Server, p signin.Pending, code string) (account, error) {
	g, err := granted(p)
	if err != nil {
		return account{}, err
	}
	asking, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	token, err := g.config(p.Redirect).Exchange(withHTTPClient(asking, s), code, oauth2.VerifierOption(p.Verifier),
		oauth2.SetAuthURLParam("resource", g.Resource))
	if err != nil {
		said, status, answered := answerOf(err)
		a.cfg.Logger.Warn("code of a sign-in not taken", "server", s.Name, "status", status, "code", quoted(said))
		if said == "invalid_client" {
			a.unregister(ctx, s, g.Client.ID)
		}
		if !answered {
			return account{}, mistakef("the sign-in of %s could not be reached; send {command} for a new link", s.Name)
		}
		return account{}, mistakef("the sign-in of %s did not take the code (%s); nothing was connected, send {command} for a new link", s.Name, quoted(said))
	}
	got := g.account
	if err := got.take(token, p.Scopes, a.cfg.Now()); err != nil {
		return account{}, mistakef("the sign-in of %s gave tokens that cannot be used (%s); nothing was connected", s.Name, quoted(err.Error()))
	}
	got.Connected = a.cfg.Now()
	return got, nil
}

// maxLife bounds the lifetime of a token, in seconds.
const maxLife = 10 * 365 * 24 * 3600

// lifeOf returns the lifetime of a token in seconds, 0 if the server does not say. The library
// uses its own clock, and leaves the number out of some tokens.
func lifeOf(token *oauth2.Token) int64 {
	switch said := token.Extra("expires_in").(type) {
	case float64:
		return int64(min(said, maxLife))
	case string:
		life, _ := strconv.ParseInt(said, 10, 64)
		return life
	}
	return 0
}

// take puts new tokens into an account.
func (a *account) take(token *oauth2.Token, asked []string, now time.Time) error {
	if !strings.EqualFold(token.Type(), "Bearer") {
		return errors.New("they are not bearer tokens")
	}
	if strings.ContainsFunc(token.AccessToken, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("the token is no header")
	}
	a.Access, a.Expiry, a.Life = token.AccessToken, time.Time{}, 0
	if life := lifeOf(token); life > 0 {
		a.Life = time.Duration(min(life, maxLife)) * time.Second
		a.Expiry = now.Add(a.Life)
	}
	a.Refresh = cmp.Or(token.RefreshToken, a.Refresh)
	if said, ok := token.Extra("scope").(string); ok && said != "" {
		a.Scopes = strings.Fields(said)
	} else if len(asked) > 0 {
		a.Scopes = asked
	}
	return nil
}

// confirm ends a sign-in with the code of its page. The tokens are stored before the sign-in
// ends, so that a crash loses neither.
func (a *Accounts) confirm(ctx context.Context, s Server, req Request) error {
	p, err := a.signIns.Confirm(ctx, accountKey(s.Name, req.User), req.Chat, req.Args, func(p signin.Pending) error {
		var got account
		if err := json.Unmarshal([]byte(p.Code), &got); err != nil {
			return err
		}
		return a.adopt(ctx, s, req, got)
	})
	var got account
	if errors.Is(err, signin.ErrVoid) && json.Unmarshal([]byte(p.Code), &got) == nil {
		a.revoke(ctx, s, got)
	}
	return err
}

// paste ends a sign-in with the address at which the browser ended. If the bot has pages of its
// own, the user has to go through them first: they say whom the account is for.
func (a *Accounts) paste(ctx context.Context, s Server, req Request, answer url.Values) error {
	if a.cfg.PublicURL != "" {
		return signin.ErrPage
	}
	if u, err := url.Parse(signin.TrimQuotes(req.Args)); err != nil || u.Path != CallbackPath+s.Name {
		return mistakef("send me the whole address that the browser ended on; it begins with %s", quoted(a.redirect(s)))
	}
	p, _, err := a.signIns.Find(ctx, accountKey(s.Name, req.User), cmp.Or(answer.Get("state"), "-"))
	if err != nil {
		return err
	}
	if p.Chat != req.Chat {
		return signin.ErrLink
	}
	code, err := a.check(s, p, answer)
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
	return a.adopt(ctx, s, req, got)
}

// adopt makes tokens the connection of a user.
func (a *Accounts) adopt(ctx context.Context, s Server, req Request, got account) error {
	user := req.User
	if req.Confirmed != nil {
		if err := req.Confirmed(ctx); err != nil {
			return err
		}
	}
	if got.URL != s.URL {
		a.revoke(ctx, s, got)
		return signin.ErrLink
	}
	unlock, err := a.locks.Acquire(ctx, accountKey(s.Name, user))
	if err != nil {
		return err
	}
	defer unlock()
	if now, _, err := a.load(ctx, s, user); err == nil && now.Connected.Equal(got.Connected) && now.Issuer == got.Issuer && !now.Lost {
		return nil // stored before, perhaps with newer tokens now
	}
	// Any: the latest consent replaces whatever there is.
	if _, err := a.put(ctx, accountPrefix+accountKey(s.Name, user), got, storage.Any); err != nil {
		return fmt.Errorf("store the connection: %w", err)
	}
	a.cfg.Logger.Info("account at an MCP server connected", "server", s.Name, "user", user, "issuer", got.Issuer)
	return nil
}
