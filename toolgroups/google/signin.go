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
	// stateKey binds a sealed state to its purpose.
	stateKey = "google/state"
)

// consentURL returns the address of Google's consent page.
func (g *Google) consentURL(p signin.Pending) string {
	return g.oauthConfig(p.RedirectURL, p.Scopes...).AuthCodeURL(p.State, oauth2.AccessTypeOffline, oauth2.ApprovalForce,
		oauth2.SetAuthURLParam("include_granted_scopes", "true"), oauth2.S256ChallengeOption(p.Verifier))
}

// parsePasted finds the code in a pasted address or query, or parses a pasted code.
func parsePasted(args string) (code, state string, ok bool) {
	if answer, ok := signin.ParsePastedAnswer(args); ok {
		return answer.Get("code"), answer.Get("state"), true
	}
	if code, err := url.PathUnescape(signin.TrimQuotes(args)); err == nil && strings.HasPrefix(code, "4/") && !strings.ContainsAny(code, " \n") {
		return code, "", true
	}
	return "", "", false
}

// completePasted completes a sign-in with the code that the user sent. If the bot has its own pages,
// the user has to go through them instead: they name the user whom the account is for.
func (g *Google) completePasted(ctx context.Context, req ConnectRequest, code, state string) (string, error) {
	if g.cfg.PublicURL != "" {
		return mistakeText(signin.ErrAddressInsteadOfCode), nil
	}
	p, err := g.signIns.Take(ctx, req.User, state)
	if err == nil && p.Chat != req.Chat {
		err = signin.ErrInvalidLink
	}
	if err == nil && code == "" {
		err = signin.ErrDenied
	}
	if err != nil {
		return answerToMistake(err)
	}
	return g.completeSignIn(ctx, req, p, code)
}

// completeSignIn exchanges a code and returns the answer for the user.
func (g *Google) completeSignIn(ctx context.Context, req ConnectRequest, p signin.Pending, code string) (string, error) {
	if req.OnConfirm != nil {
		if err := req.OnConfirm(ctx); err != nil {
			return "", err
		}
	}
	a, err := g.connectAccount(ctx, req.User, p, code)
	if err != nil {
		return answerToMistake(err)
	}
	return fmt.Sprintf("Your Google account%s is connected. I may %s.", emailSuffix(a.Email), service.ScopeWords(a.Scopes)), nil
}

// AwaitsCode reports whether a sign-in of a user waits in a chat for the code that its page shows, and whether code is
// that code.
func (g *Google) AwaitsCode(ctx context.Context, user, chat, code string) (waits, matches bool, err error) {
	return g.signIns.Awaits(ctx, user, chat, code)
}

// confirm completes a sign-in with the code from its page.
func (g *Google) confirm(ctx context.Context, req ConnectRequest) (string, error) {
	p, err := g.signIns.Confirm(ctx, req.User, req.Chat, req.Args, nil)
	if err != nil {
		return answerToMistake(err)
	}
	return g.completeSignIn(ctx, req, p, p.Code)
}
