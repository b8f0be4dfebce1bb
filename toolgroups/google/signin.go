package google

import (
	"context"
	"fmt"
	"net/url"
	"strings"

	"golang.org/x/oauth2"

	"oneclaw/toolgroups/google/service"
	"oneclaw/toolgroups/signin"
)

const (
	pendingPrefix = "google/pending/"
	// statePlace binds a sealed state to its purpose.
	statePlace = "google/state"
)

// consentURL returns the address of Google's page.
func (g *Google) consentURL(p signin.Pending) string {
	return g.oauth(p.Redirect, p.Scopes...).AuthCodeURL(p.State, oauth2.AccessTypeOffline, oauth2.ApprovalForce,
		oauth2.SetAuthURLParam("include_granted_scopes", "true"), oauth2.S256ChallengeOption(p.Verifier))
}

// pasted finds the code in an address, a query, or alone with its slash encoded.
func pasted(args string) (code, state string, ok bool) {
	if answer, ok := signin.ParsePastedAnswer(args); ok {
		return answer.Get("code"), answer.Get("state"), true
	}
	if code, err := url.PathUnescape(signin.TrimQuotes(args)); err == nil && strings.HasPrefix(code, "4/") && !strings.ContainsAny(code, " \n") {
		return code, "", true
	}
	return "", "", false
}

// paste ends a sign-in with the code that the user sent. If the bot has pages of its own, the
// user has to go through them first: they say whom the account is for.
func (g *Google) paste(ctx context.Context, req ConnectRequest, code, state string) (string, error) {
	if g.cfg.PublicURL != "" {
		return sentence(signin.ErrPage), nil
	}
	p, err := g.signIns.Take(ctx, req.User, state)
	if err == nil && p.Chat != req.Chat {
		err = signin.ErrLink
	}
	if err == nil && code == "" {
		err = signin.ErrDenied
	}
	if err != nil {
		return answerToMistake(err)
	}
	return g.connected(ctx, req, p, code)
}

// connected exchanges a code and returns the answer for the user.
func (g *Google) connected(ctx context.Context, req ConnectRequest, p signin.Pending, code string) (string, error) {
	if req.Confirmed != nil {
		if err := req.Confirmed(ctx); err != nil {
			return "", err
		}
	}
	a, err := g.finish(ctx, req.User, p, code)
	if err != nil {
		return answerToMistake(err)
	}
	return fmt.Sprintf("Your Google account%s is connected. I may use: %s.", ofEmail(a.Email), service.ScopeNames(a.Scopes)), nil
}

// confirm ends a sign-in with the code of its page.
func (g *Google) confirm(ctx context.Context, req ConnectRequest) (string, error) {
	p, err := g.signIns.Confirm(ctx, req.User, req.Chat, req.Args, nil)
	if err != nil {
		return answerToMistake(err)
	}
	return g.connected(ctx, req, p, p.Code)
}
